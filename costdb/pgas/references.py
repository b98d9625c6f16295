"""References to shared arrays between two sequence points, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from costdb.expr import Expr, less, num


class Spread(StrEnum):
    """How a shared array lies over the threads."""

    BLOCK = "block"
    CYCLIC = "cyclic"
    REMOTE = "remote"
    """All that is referenced lies on one other thread."""


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array.

    Attributes
    ----------
    name : str
    spread : Spread
    axis : int
        The axis that is spread over the threads.
    fastest : int
        The axis along which one thread's elements lie next to each other in memory.
    """

    name: str
    spread: Spread
    axis: int = 0
    fastest: int = 0


@dataclass(frozen=True, slots=True)
class Affine:
    """The subscript ``offset + sum(coefficient * index)``; zero coefficients are left out."""

    coefficients: tuple[tuple[str, int], ...]
    offset: int = 0

    def step(self, index: str) -> int:
        """Return by how much the subscript grows when the loop index grows by 1."""
        return dict(self.coefficients).get(index, 0)


@dataclass(frozen=True, slots=True)
class Irregular:
    """A subscript that analysis cannot follow: uniform over the axis, known by its name only."""

    name: str


Subscript = Affine | Irregular


def affine(offset: int = 0, **coefficients: int) -> Affine:
    """Return an affine subscript: ``affine(-1, i=1)`` is ``i - 1``."""
    return Affine(tuple(sorted((k, v) for k, v in coefficients.items() if v != 0)), offset)


@dataclass(frozen=True, slots=True)
class Reference:
    """One read or one write of an array element in a statement.

    Attributes
    ----------
    array : str
        Name of a :class:`SharedArray` of the interval.
    subscripts : tuple of Subscript
        One for each axis.
    statement : str
        Where it occurs; ``x += y`` is a read and a write of `x` in one statement.
    store : bool
    depth : int or None
        How many of the interval's loops enclose it, outermost first; None means all.
    """

    array: str
    subscripts: tuple[Subscript, ...]
    statement: str
    store: bool = False
    depth: int | None = None


class DependenceKind(StrEnum):
    """What orders two references."""

    TRUE = "true"
    ANTI = "anti"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Dependence:
    """Reference number `sink` must come after `source`."""

    source: int
    sink: int
    kind: DependenceKind


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the interval: its index, and the slowest thread's trips, never negative."""

    index: str
    trips: Expr


@dataclass(frozen=True, slots=True)
class Interval:
    """What one thread does between two sequence points.

    Attributes
    ----------
    threads : Expr
    arrays : tuple of SharedArray
    loops : tuple of Loop
        Outermost first.
    references : tuple of Reference
        Calls inlined, in program order.
    dependences : tuple of Dependence
    affinity : str
        Index of the loop whose trips go to the owner of that element; empty where every thread
        makes all trips.
    below, above : Expr or None
        1 where the slowest thread's block has a neighbour on that side, else 0; by default
        both sides have one as soon as there are two threads.
    """

    threads: Expr
    arrays: tuple[SharedArray, ...]
    loops: tuple[Loop, ...]
    references: tuple[Reference, ...]
    dependences: tuple[Dependence, ...] = ()
    affinity: str = ""
    below: Expr | None = None
    above: Expr | None = None

    def has_neighbour(self, offset: int) -> Expr:
        """Return 1 where the block that `offset` reaches into exists, else 0."""
        side = self.below if offset < 0 else self.above
        return less(num(1), self.threads) if side is None else side
