"""A file's tree with the place of every node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from advisor.frontend.syntax.guard import parse
from advisor.source import Span

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
