"""Trees of source, without what LibCST's own visit does besides.

``node.visit(visitor)`` makes every node anew, so that visitors may change the tree, and goes
through blanks, commas and brackets; names and statements need neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache

import libcst as cst

_TOKENS = frozenset(
    {
        "leading_lines", "lines_after_decorators", "lines_after_module_docstring", "header",
        "footer", "trailing_whitespace", "indent", "encoding", "default_indent",
        "default_newline", "has_trailing_newline", "lpar", "rpar", "lbracket", "rbracket",
        "lbrace", "rbrace", "comma", "semicolon", "equal", "colon", "first_colon", "second_colon",
        "dot", "separator", "leading_whitespace",
    }
)  # fmt: skip
"""Fields that hold nothing but blanks, comments and punctuation."""


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what stands directly within a node, in the order of the source.

    Blanks, comments and punctuation are left out, and names that denote nothing by themselves:
    those of attributes and keywords, and all within an import.
    """
    for name in _fields_of(type(node)):
        held = getattr(node, name)
        for part in held if isinstance(held, list | tuple) else (held,):
            if isinstance(part, cst.CSTNode):
                yield part


def nodes_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all that is within it, as `parts_of` does."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(list(parts_of(found))))


_ORDERS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.CompFor: ("asynchronous", "target"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.For: ("asynchronous", "target"),
    cst.FunctionDef: (
        "decorators", "asynchronous", "name", "type_parameters", "params", "returns", "body"
    ),
    cst.IfExp: ("body", "test", "orelse"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Parameters: ("posonly_params", "posonly_ind", "params"),
    cst.With: ("asynchronous", "items"),
}  # fmt: skip
"""Of nodes whose fields are declared in another order than they stand in the source."""


@cache
def _fields_of(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = [field.name for field in fields(kind)]
    if kind in (cst.Import, cst.ImportFrom):
        return ()
    silent = {cst.Attribute: "attr", cst.Arg: "keyword"}.get(kind)
    kept = [n for n in names if n not in _TOKENS and n != silent and not n.startswith("whitespace")]
    order = _ORDERS.get(kind, ())
    return (*order, *(name for name in kept if name not in order))
