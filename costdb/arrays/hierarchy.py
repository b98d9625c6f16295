"""Which level of the memory still holds data that was last used so many bytes ago.

A level keeps what was used within its size, and with it what crowds into its sets: lines at a
pitch that shares a large power of two with the bytes of a way fit few sets, so that they leave
the level as more of them would. The nearest level is small and replaces what is oldest: it holds
all or nothing. Farther ones are shared and hashed, and lose their data little by little.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from costdb.expr import Expr, gcd, maximum, minimum, num

ZERO, ONE = num(0), num(1)
NEAR, BEYOND = "near", "beyond"
USUAL_WAYS = (4096, 65_536)
"""Bytes of a way of the first level, and of farther ones, where a profile does not say."""

_SHARP, _SOFT = (0.9, 1.1), (0.5, 1.5)
"""From how many times its size on a level loses data, and from how many on it has lost all."""


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
    """

    levels: tuple[int, ...]
    line_bytes: int
    ways: tuple[int, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the pieces beyond the first level, nearest first."""
        return (*(f"b{level}" for level in self.levels[1:]), BEYOND)

    def crowding(self, pitch: Expr) -> tuple[Expr, ...]:
        """Return by how much larger lines at a pitch seem to each level than they are."""
        return tuple(maximum(1, gcd(pitch, way) / self.line_bytes) for way in self.ways)

    def shares(self, distance: Expr, crowding: Sequence[Expr] = ()) -> Iterator[tuple[str, Expr]]:
        """Yield, for each piece, the share of the data gone so far that comes from there.

        Parameters
        ----------
        distance : Expr
            Bytes touched since the data was last used.
        crowding : sequence of Expr
            By level (:meth:`crowding`); none where lines spread over all sets.
        """
        seeming = crowding or (ONE,) * len(self.levels)
        lost = [
            _ramp(distance * times / level, *(_SOFT if number else _SHARP))
            for number, (level, times) in enumerate(zip(self.levels, seeming, strict=True))
        ]
        if crowding:
            # what a level still holds is not looked for farther away
            lost = [lost[0], *(minimum(a, b) for a, b in itertools.pairwise(lost))]
        yield from self._differences(lost)

    def away(self, distance: Expr) -> Expr:
        """Return the share of data gone so far that the first level has lost."""
        return _ramp(distance / self.levels[0], *_SHARP)

    def shares_anywhere(self, table_bytes: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each piece, the share of references to random places of a table.

        A level holds a part of the table as large as itself, whichever it is.
        """
        lost = [1 - level / maximum(level, table_bytes) for level in self.levels]
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


def _ramp(times: Expr, low: float, high: float) -> Expr:
    return minimum(1, maximum(0, (times - low) / (high - low)))
