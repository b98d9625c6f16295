"""Trees of source shown to visitors, without what LibCST's own visit does besides.

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


def show(node: cst.CSTNode, visitor: cst.CSTVisitor) -> None:
    """Call a visitor's methods for a node and what is within it, in the order of the source.

    Parameters
    ----------
    node : CSTNode
    visitor : CSTVisitor
        It is not shown blanks, comments and punctuation.
    """
    if visitor.on_visit(node):
        for name in _fields_of(type(node)):
            held = getattr(node, name)
            if isinstance(held, cst.CSTNode):
                visitor.on_visit_attribute(node, name)
                show(held, visitor)
                visitor.on_leave_attribute(node, name)
            elif isinstance(held, list | tuple):
                visitor.on_visit_attribute(node, name)
                for part in held:
                    show(part, visitor)
                visitor.on_leave_attribute(node, name)
    visitor.on_leave(node)


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what stands directly within a node, but for blanks, comments and punctuation."""
    for name in _fields_of(type(node)):
        held = getattr(node, name)
        for part in held if isinstance(held, list | tuple) else (held,):
            if isinstance(part, cst.CSTNode):
                yield part


_ORDERS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Arg: ("keyword", "value"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.CompFor: ("asynchronous", "target"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.For: ("asynchronous", "target"),
    cst.FunctionDef: (
        "decorators", "asynchronous", "name", "type_parameters", "params", "returns", "body"
    ),
    cst.IfExp: ("body", "test", "orelse"),
    cst.ImportFrom: ("relative", "module", "names"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Parameters: ("posonly_params", "posonly_ind", "params"),
    cst.With: ("asynchronous", "items"),
}  # fmt: skip
"""Of nodes whose fields are declared in another order than they stand in the source."""


@cache
def _fields_of(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = [field.name for field in fields(kind)]
    kept = [n for n in names if n not in _TOKENS and not n.startswith("whitespace")]
    order = _ORDERS.get(kind, ())
    return (*order, *(name for name in kept if name not in order))
