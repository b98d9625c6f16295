"""Immutable trees, bounded in size, hashed once and compared by structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, cast

from costdb.expr.numbers import ExprError

MAX_DEPTH = 100
"""Levels of nesting: keeps every recursion over a tree clear of Python's limit."""

MAX_SIZE = 2_000_000
"""Nodes counted as a tree: keeps a shared subtree from standing for an astronomic one.

Whatever computes with expressions visits a shared part once, so that the work is that of the
distinct parts: some thousand for a stencil over blocks of three axes whose sizes are all open,
where the tree has some hundred thousand. Only text is as long as the tree.
"""


Setter: TypeAlias = Callable[[object, object], None]


class Node:
    """An immutable, hashable tree; ``==`` compares structure, in whatever order it is written."""

    __slots__ = ("_free", "_hash", "children", "depth", "size")
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _free: frozenset[str] | None
    _hash: int
    children: tuple[Node, ...]
    depth: int
    size: int

    def _seal(self, children: tuple[Node, ...]) -> None:
        depth = 0
        size = 1
        for child in children:
            if child.depth > depth:
                depth = child.depth
            size += child.size
        if depth >= MAX_DEPTH:
            raise ExprError(f"the expression is nested more than {MAX_DEPTH} levels deep")
        if size > MAX_SIZE:
            raise ExprError(f"the expression has more than {MAX_SIZE} parts")
        _set_children(self, children)
        _set_depth(self, depth + 1)
        _set_size(self, size)
        _set_hash(self, hash((type(self).__name__, self._key())))
        _set_free(self, None)

    def _key(self) -> object:
        """Return what this node is, its children in no order where theirs does not matter."""
        return self.children

    def _beside(self) -> object:
        """Return what else than its children this node is."""
        return None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node):
            return NotImplemented
        if type(self) is not type(other) or self._hash != other._hash or self.size != other.size:
            return False
        if self.children and self.children == other.children:
            # mostly written in the same order, too, which is compared faster than any order; and
            # equal parts that are one and the same are compared at once the next time
            _set_children(self, other.children)
            return self._beside() == other._beside()
        return self._key() == other._key()

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ from process to process, so they are not carried along.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


def setter(owner: type[Node], slot: str) -> Setter:
    """Return what sets a slot of a node that is being made.

    Expressions are made by the ten thousand. A slot's own setter takes half the time of
    ``object.__setattr__``, which the methods that forbid changes leave as the other way.
    """
    return cast(Setter, owner.__dict__[slot].__set__)


_set_children = setter(Node, "children")
_set_depth = setter(Node, "depth")
_set_size = setter(Node, "size")
_set_hash = setter(Node, "_hash")
_set_free = setter(Node, "_free")
