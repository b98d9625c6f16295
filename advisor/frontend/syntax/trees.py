"""A file's tree with the place of every node, and what is within a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from advisor.frontend.syntax.guard import parse
from advisor.source import Span
from costdb.records import dataclass, fields

MOST_TREES: Final = 16
"""Kept of late: several readers ask for one, and a program for those of the modules beside it."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed file.

    Attributes
    ----------
    module : libcst.Module
    span_of : callable
        The place of a node.
    comments : callable
        Their places in the order of the source.
    """

    module: cst.Module
    span_of: Callable[[cst.CSTNode], Span]
    comments: Callable[[], tuple[Span, ...]]


@lru_cache(MOST_TREES)
def tree_of(path: str, source: str) -> Tree:
    """Return the tree of a file.

    Raises
    ------
    ParseProblem
        As :func:`advisor.frontend.syntax.guard.parse` does.
    """
    module = parse(path, source)
    # worked out when first asked: of most modules beside a program nobody asks for any
    positions = cache(lambda: _positions(module))

    def comments() -> tuple[Span, ...]:
        found = (p for node, p in positions().items() if isinstance(node, cst.Comment))
        return tuple(sorted(map(_span, found)))

    return Tree(module, lambda node: _span(positions()[node]), comments)


def _span(place: CodeRange) -> Span:
    return Span(place.start.line, place.start.column, place.end.line, place.end.column)


def _positions(module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    return _Placing(module, unsafe_skip_copy=True).resolve(PositionProvider)


class _Placing(MetadataWrapper):
    """Does not show the whole tree to nobody, which takes as long as to find all places."""

    def visit_batched(
        self,
        visitors: Iterable[cst.BatchableCSTVisitor],
        before_visit: Callable[[cst.CSTNode], None] | None = None,
        after_leave: Callable[[cst.CSTNode], None] | None = None,
    ) -> cst.CSTNode:
        visitors = tuple(visitors)
        if not visitors:
            return self.module
        return super().visit_batched(visitors, before_visit, after_leave)


# What is within a node, without what LibCST's own visit does besides: ``node.visit(visitor)`` makes
# every node anew, so that visitors may change the tree, and goes through blanks, commas and
# brackets; names and statements need neither.

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
