"""Which level of the memory still holds data that was last used so many bytes ago.

A level keeps what was used within its size, and with it what crowds into its sets: lines at a
pitch that shares a large power of two with the bytes of a way fit few sets, so that they leave
the level as more of them would. The nearest level is small and replaces what is oldest: it holds
all or nothing. Farther ones lose their data little by little, and go by where the system put the
pages: what a pitch says of the sets ends at the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from costdb.expr import ONE, ZERO, Expr, gcd, less, maximum, num

NEAR, BEYOND = "near", "beyond"
USUAL_WAYS = (4096, 65_536)
"""Bytes of a way of the first level, and of farther ones, where a profile does not say."""

PAGE_BYTES = 4096
PAGES_AT_HAND = 3072
"""Of how many pages processors know the place, where nothing else was found of one."""
STEPS_TO_LEARN = 64
"""In so many steps processors learn to hand on what a step stores, where nothing else was found."""
SPREADS = 4, 2, 1
"""Farther levels of some processors mix higher bits of an address into the number of a set: lines
that would share one by their places in pages spread over so many. The first is the usual one."""

_BESIDE = 2
"""So many times as large as itself a table seems to a level while it is referred to at random:
nearer to 1 or to 3, three calibrations missed more."""

_Steps = tuple[tuple[int, int], ...]
_AT_ONCE: _Steps = ((1, 1),)
_STEPS: _Steps = ((2, 3), (1, 1), (4, 3))
"""A farther level has lost a third of its data at two thirds of its size, two at its size, and all
at four thirds: in steps, which closed forms of loops bear better than slopes."""
_CROWDED_STEPS: _Steps = ((3, 4), (7, 8), (1, 1), (9, 8), (5, 4))
"""Of lines that crowd, which go through few sets, a farther level loses half over half its size."""
_LAST_STEPS: _Steps = ((1, 2), (3, 4), (1, 1))
"""The last one, which is shared with others, has lost all at its size."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The caches of a machine, nearest first.

    Attributes
    ----------
    levels : tuple of int
        Bytes that each holds, ascending.
    line_bytes : int
    ways : tuple of int
        Bytes of one way of each: lines so far apart share a set.
    spread : int
        Over how many times as many sets of farther levels lines spread as their places in pages
        say.
    pages : int
        About so many pages the processor soon knows the place of; others are looked up.
    learned : int
        In walks of up to so many steps it does not learn to hand on what one stores to the next.
    kept : float
        Lines that crowd seem so many times as large as the second level when it has lost half.
    """

    levels: tuple[int, ...]
    line_bytes: int
    ways: tuple[int, ...]
    spread: int = SPREADS[0]
    pages: int = PAGES_AT_HAND
    learned: int = STEPS_TO_LEARN
    kept: float = 1.0

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the pieces beyond the first level, nearest first."""
        return (*(f"b{level}" for level in self.levels[1:]), BEYOND)

    def crowding(self, pitch: Expr) -> tuple[Expr, ...]:
        """Return by how much larger lines at a pitch seem to each level than they are.

        The first two are a process's own. In the last cache, which is shared, lines lie by more of
        their address than a pitch says: the pieces of it have them all.
        """
        near, *farther = self.ways
        pages = (num(min(way, PAGE_BYTES)) for way in farther[:1])
        return (
            maximum(1, gcd(pitch, near) / self.line_bytes),
            *(maximum(1, gcd(pitch, page) / (self.spread * self.line_bytes)) for page in pages),
            *(ONE for _ in farther[1:]),
        )

    def lost(self, distance: Expr, crowding: Sequence[Expr] = ()) -> tuple[Expr, ...]:
        """Return, for each level, the share that it has lost of data gone so far.

        Parameters
        ----------
        distance : Expr
            Bytes touched since the data was last used.
        crowding : sequence of Expr
            By level (:meth:`crowding`); none where lines spread over all sets.
        """
        seeming = crowding or (ONE,) * len(self.levels)
        far = [distance * times for times in seeming]
        sizes, steps = list(self.levels), [_AT_ONCE, *(_STEPS for _ in self.levels[1:])]
        steps[-1] = _LAST_STEPS
        if crowding and len(sizes) > 2:
            sizes[1], steps[1] = int(self.kept * sizes[1]), _CROWDED_STEPS
        return tuple(map(lost_of, far, sizes, steps))

    def shares(self, distance: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each piece, the share of the data gone so far that comes from there."""
        yield from self._differences(self.lost(distance))

    def shares_anywhere(self, table_bytes: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each piece, the share of references to random places of a table.

        A level holds a part of the table, whichever it is: half as large as itself, as the places
        and what is gathered go through it meanwhile, and pages crowd in some of its sets.
        """
        lost = [1 - level / maximum(level, _BESIDE * table_bytes) for level in self.levels]
        yield from self._differences(lost)

    def _differences(self, lost: Sequence[Expr]) -> Iterator[tuple[str, Expr]]:
        for number, key in enumerate(self.keys):
            here = lost[number] - (lost[number + 1] if number + 1 < len(lost) else ZERO)
            if here != ZERO:
                yield key, here


def hierarchy(levels: Sequence[int], line_bytes: int, ways: Sequence[int] = ()) -> Hierarchy:
    """Return the caches of a machine, their ways the usual ones where they are not known."""
    near, far = USUAL_WAYS
    usual = (near, *(far for _ in levels[1:]))
    known = tuple(ways) if len(ways) == len(levels) else usual
    return Hierarchy(tuple(levels), line_bytes, known)


def lost_of(used: Expr, size: int, steps: _Steps = _STEPS) -> Expr:
    """Return the share that a store of some size has lost when so much was used since."""
    total = ZERO
    for times, parts in steps:
        total = total + less(times * size, parts * used)
    return total / len(steps)
