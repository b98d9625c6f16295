"""Plans of supersteps to measure a shared-memory machine with.

Three kinds of superstep over the accesses `h` of a busy processor and the number `x` of busy
processors. What each of the published kinds does to the other processors is reconstructed from
its name and from what the cost functions must tell apart:

- *like gather*: `x` processors read `h` elements each, which all have written alike;
- *like scatter*: `x` processors write `h` elements each, which all read alike;
- *vary*: `x` processors read and write `h` elements each, the others none.

Suite 1 makes exactly these plans. Suite 2 draws each processor's reads and writes at random
below the same maxima, suite 3 divides the same totals at random. The Good functions are fitted
to suite 1, the Bad ones to suite 2; the other two suites validate each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

ELEMENT_BYTES = 8
LEAST_H = 5_000
GREATEST_H = 1_900_000


class Kind(StrEnum):
    """Who reads and who writes."""

    LIKE_GATHER = "like-gather"
    LIKE_SCATTER = "like-scatter"
    VARY = "vary"


class Suite(IntEnum):
    """How closely a plan keeps to its kind."""

    EXACT = 1
    SAME_MAXIMA = 2
    SAME_TOTALS = 3


class SuiteError(ValueError):
    """A plan that cannot be made; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A superstep to perform.

    Attributes
    ----------
    suite : Suite
    kind : Kind
    h, x : int
        Accesses of a busy processor and number of busy processors that the plan came from.
    reads, writes : tuple of int
        Elements that each processor reads and writes, one entry for each processor.
    """

    suite: Suite
    kind: Kind
    h: int
    x: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def hr(self) -> int:
        """Most reads by one processor."""
        return max(self.reads)

    @property
    def hw(self) -> int:
        """Most writes by one processor."""
        return max(self.writes)

    @property
    def total(self) -> int:
        """Reads and writes of all processors."""
        return sum(self.reads) + sum(self.writes)


def heights(count: int, low: int = LEAST_H, high: int = GREATEST_H) -> tuple[int, ...]:
    """Return up to `count` whole numbers from `low` to `high`, evenly spaced by ratio.

    Raises
    ------
    SuiteError
        When `count` is below 2 or the range is empty.
    """
    if count < 2 or not 0 < low < high:
        raise SuiteError(f"cannot place {count} sizes from {low} to {high}")
    ratio = (high / low) ** (1 / (count - 1))
    between = [round(low * ratio**step) for step in range(1, count - 1)]
    return tuple(dict.fromkeys((low, *between, high)))


def make_plan(
    suite: Suite, kind: Kind, h: int, x: int, processors: int, source: random.Random
) -> Plan:
    """Return one plan.

    Parameters
    ----------
    h : int
        Accesses of each busy processor, at least 1.
    x : int
        Busy processors, at least 1 and fewer than `processors`.
    source : random.Random
        Where suites 2 and 3 draw from; suite 1 draws nothing.

    Raises
    ------
    SuiteError
        When `h` or `x` is out of range.
    """
    if h < 1:
        raise SuiteError(f"a busy processor makes at least 1 access, not {h}")
    if not 1 <= x < processors:
        raise SuiteError(f"of {processors} processors, 1 to {processors - 1} are busy, not {x}")
    busy = (h,) * x + (0,) * (processors - x)
    match kind:
        case Kind.LIKE_GATHER:
            reads, writes = busy, _evenly(x * h, processors)
        case Kind.LIKE_SCATTER:
            reads, writes = _evenly(x * h, processors), busy
        case Kind.VARY:
            reads, writes = busy, busy
    match suite:
        case Suite.EXACT:
            pass
        case Suite.SAME_MAXIMA:
            reads, writes = _below(reads, source), _below(writes, source)
        case Suite.SAME_TOTALS:
            reads, writes = _divided(reads, source), _divided(writes, source)
    return Plan(suite, kind, h, x, reads, writes)


def plans(suite: Suite, processors: int, sizes: Sequence[int], seed: int = 0) -> Iterator[Plan]:
    """Yield the plans of a suite: every kind, size and number of busy processors.

    The same seed gives the same plans.
    """
    source = random.Random(f"{int(suite)} {processors} {seed}")
    for kind in Kind:
        for h in sizes:
            for x in range(1, processors):
                yield make_plan(suite, kind, h, x, processors, source)


def _evenly(total: int, processors: int) -> tuple[int, ...]:
    share, rest = divmod(total, processors)
    return (share + 1,) * rest + (share,) * (processors - rest)


def _below(counts: tuple[int, ...], source: random.Random) -> tuple[int, ...]:
    most = max(counts)
    drawn = [source.randint(0, most) for _ in counts]
    drawn[source.randrange(len(counts))] = most
    return tuple(drawn)


def _divided(counts: tuple[int, ...], source: random.Random) -> tuple[int, ...]:
    total = sum(counts)
    cuts = sorted(source.randint(0, total) for _ in counts[1:])
    return tuple(b - a for a, b in zip((0, *cuts), (*cuts, total), strict=True))
