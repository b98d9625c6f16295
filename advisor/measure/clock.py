"""The clock of a sampled program: loops run in parts, and what is skipped is counted.

A loop asks its :class:`Loop` for parts of its iterations. Few iterations end at once. Of many, the
first are run, then windows further on, each behind iterations that warm caches; the time of all is
integrated over the number of the iteration, and the clock put forward by what was not run. Loops
within loops put it forward in the same way, so that whoever is around sees their whole time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Any, Final

Times = tuple[float, float, float]
"""Seconds: as taken; as they would be with each loop's fastest parts; with its slowest."""

WHOLE_S: Final = 0.03
"""Loops that take no longer run whole; within loops a fifth of it for each of those around."""
PART_S: Final = 2e-4
"""Parts that are timed take so long, where an iteration does not take longer."""
_SHARES: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
_EMPTY: Final = 500
_MOST_SEEN: Final = 6
LONG_S: Final = 2e-3
"""Iterations that take longer are seen in fewer places."""
_AGREED: Final = 64
"""Loops in which ranks talk run whole up to here, an eighth of it within another one; of longer
ones every rank runs the same iterations, whatever its clock says."""
_FIRST, _AT_ONCE = 8, 2
"""Of these it runs so many first, and then so many at once."""


class Unfinished(BaseException):
    """A loop whose number of trips the program does not tell went on for too long."""

    def __init__(self, place: int, trips: int, seconds: float) -> None:
        super().__init__(place, trips, seconds)
        self.place, self.trips, self.seconds = place, trips, seconds


class NotSampledError(BaseException):
    """The program came to a part of it that is not sampled."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(place, why)
        self.place, self.why = place, why


@dataclass(slots=True)
class Clock:
    """What runs, and how long it would have taken with what was skipped.

    Attributes
    ----------
    budget_s : float
        How long loops of unknown length may go on.
    marks : list of (int, Times)
        When each marked statement began.
    skipped : dict of int to int
        Loops, by place, and how many iterations were not run.
    whole : bool
        Run all iterations of every loop.
    timer : callable
        Seconds: on the clock, or of the processor, which other programs do not hold up.
    """

    budget_s: float
    whole: bool = False
    timer: Callable[[], float] = field(default_factory=lambda: time.perf_counter)
    offsets: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    marks: list[tuple[int, Times]] = field(default_factory=list)
    skipped: dict[int, int] = field(default_factory=dict)
    depth: int = 0
    touched: set[tuple[int, int]] = field(default_factory=set)
    trips: dict[int, list[float]] = field(default_factory=dict)
    rates: dict[int, float] = field(default_factory=dict)
    talking: int = 0
    loop_s: float = 0.0
    left_s: float = 0.0

    def now(self) -> Times:
        """Return the time with what was skipped so far."""
        at = self.timer()
        one, two, three = self.offsets
        return at + one, at + two, at + three

    def mark(self, place: int) -> None:
        """Note that a statement begins."""
        self.marks.append((place, self.now()))

    def loop(self, place: int, sequence: Any, kind: str, *, talks: bool = False) -> Loop:
        """Return the parts of a loop over `sequence`, in which ranks talk to each other or not."""
        return Loop(self.now(), self, place, sequence, kind, talks)

    def trip(self, place: int) -> None:
        """Count a trip of a loop whose number of trips is not known.

        Raises
        ------
        Unfinished
            The budget is spent.
        """
        at = time.perf_counter()
        known = self.trips.setdefault(place, [at, 0.0])
        known[1] += 1
        if at - known[0] > self.budget_s:
            raise Unfinished(place, int(known[1]), at - known[0])

    def refuse(self, place: int, why: str) -> None:
        """End the run at a part of the program that is not sampled."""
        raise NotSampledError(place, why)

    def enter(self, place: int) -> None:
        """Note that a loop begins whose number of trips is not known."""
        self.trips.pop(place, None)

    def put(self, began: Times, spent: Times) -> None:
        """Have `spent` gone by since `began`, whatever really has, and what it costs to ask."""
        one, two, three = self.now()
        (first, second, third), offsets = began, self.offsets
        offsets[0] += spent[0] - (one - first) - self.loop_s
        offsets[1] += spent[1] - (two - second) - self.loop_s
        offsets[2] += spent[2] - (three - third) - self.loop_s

    def learn(self) -> None:
        """Time what a loop and its names cost here that a loop without a clock does not."""
        for number in range(2):
            best = min(self._empty(carried=bool(number)) for _ in range(7))
            if number:
                self.left_s = best - self.loop_s
            else:
                self.loop_s = best
        self.skipped.clear()
        self.rates.clear()

    def _empty(self, *, carried: bool) -> float:
        begin = self.now()[0]
        for _ in range(_EMPTY):
            loop = self.loop(-1, range(1), "")
            for part in loop:
                if carried:
                    (begin,) = loop.carry(begin)
                for _ in part:
                    pass
            if carried:
                (begin,) = loop.left(begin)
        spent = self.now()[0] - begin
        begin = self.timer()
        for _ in range(_EMPTY):
            for _ in range(1):
                pass
        return (spent - (self.timer() - begin)) / _EMPTY


@dataclass(slots=True)
class Loop:
    """The iterations of one loop, in parts.

    Attributes
    ----------
    broke : bool
        Set by the program when it leaves the loop.
    """

    start: Times
    clock: Clock
    place: int
    sequence: Any
    kind: str
    talks: bool = False
    broke: bool = False
    length: int = 0
    ahead: int = 0
    seen: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)
    at: int = 0
    began: Times = (0.0, 0.0, 0.0)
    known: Times = (0.0, 0.0, 0.0)
    counted: int = 0
    points: list[tuple[float, Times]] = field(default_factory=list)

    def __iter__(self) -> Iterator[Any]:
        self.length = self._length()
        if self.length <= 0:
            if self.length:
                yield self.sequence
            return
        clock = self.clock
        clock.depth += 1
        clock.talking += self.talks
        whole_s = max(WHOLE_S / 5 ** (clock.depth - 1), PART_S)
        try:
            if clock.whole or self._is_short(whole_s):
                yield from self._timed(0, self.length)
            else:
                yield from self._parts(whole_s)
        finally:
            clock.depth -= 1
            clock.talking -= self.talks
            # what the clock itself does between parts does not count; nor, where the program left
            # the loop, does any iteration after that
            clock.put(self.start, self._total(self.at if self.broke else self.length))

    def _is_short(self, whole_s: float) -> bool:
        clock = self.clock
        if self.talks:
            most: int = _AGREED // 8 ** (clock.talking - 1)
            return self.length <= most
        # who skipped work between messages would wait less for the others, or more
        return bool(clock.talking) or (clock.rates.get(self.place, whole_s) * self.length < whole_s)

    def _length(self) -> int:
        """Return how many iterations there are, -1 where they cannot be divided."""
        kind = self.kind
        if kind == "zipped":
            parts = [p for p in self.sequence if _divides(p)]
            return min(map(len, parts)) if len(parts) == len(self.sequence) else self._joined()
        if not _divides(self.sequence):
            return self._joined()
        length = len(self.sequence)
        if kind == "numbered":
            self.sequence, self.kind = (range(length), self.sequence), "zipped"
        return length

    def _joined(self) -> int:
        if self.kind:
            over = (
                zip(*self.sequence, strict=False)
                if self.kind == "zipped"
                else enumerate(self.sequence)
            )
            self.sequence, self.kind = over, ""
        return -1

    def _part(self, low: int, high: int) -> Any:
        self.at = low
        if self.kind == "zipped":
            return zip(*(one[low:high] for one in self.sequence), strict=False)
        return self.sequence[low:high]

    def _timed(self, low: int, high: int, *, counts: bool = True) -> Generator[Any, None, Times]:
        """Yield a part; return the seconds that an iteration of it took."""
        part = self._part(low, high)
        clock = self.clock
        self.began = clock.now()
        try:
            yield part
        finally:
            one, two, three = clock.now()
            first, second, third = self.began
            spent = one - first, two - second, three - third
            if counts:
                known = self.known
                self.known = known[0] + spent[0], known[1] + spent[1], known[2] + spent[2]
        many = high - low
        clock.rates[self.place] = spent[0] / many
        return spent[0] / many, spent[1] / many, spent[2] / many

    def _parts(self, whole_s: float) -> Iterator[Any]:
        """Yield parts; where iterations are left out, leave rates behind."""
        length, done, size = self.length, 0, 1
        shares, many, width = _SHARES, 3, _AT_ONCE
        while True:
            size = min(size, length - done)
            rate = yield from self._timed(done, done + size)
            done += size
            if self.talks and done >= _FIRST and not self._is_fixed():
                break
            # the first ones alone: they find caches and memory as no other does
            if (
                not self.talks
                and done >= 3
                and self.known[0] >= PART_S
                and rate[0] * (length - done) > whole_s
            ):
                shares, many = ((0.5, 1.0), 1) if rate[0] > LONG_S else (_SHARES, 3)
                width = _width(rate)
                if len(shares) * (many + 1) * width < length - done and not self._is_fixed():
                    break
            if done >= length:
                return
            size = size if done < 3 else size * 2
        self.counted = first = done
        if many == 1:
            self.points.append((done - size / 2, rate))
        for share in shares:
            opened = (many + 1) * width
            middle = first + share * (length - first)
            low = max(done, min(length - opened, round(middle - opened / 2)))
            self._skip(low - done)
            yield from self._timed(low, low + width, counts=False)
            taken: list[Times] = []
            for begin in range(low + width, low + opened, width):
                rate = yield from self._timed(begin, begin + width, counts=False)
                taken.append(rate)
            done = low + opened
            # one of three may have been held up
            mid = sorted(one[0] for one in taken)[many // 2]
            spread = mid, min(one[1] for one in taken), max(one[2] for one in taken)
            self.points.append((done - many * width / 2, spread))
            width = width if self.talks else min(width, _width(rate))
        self._skip(length - done)

    def _total(self, high: int) -> Times:
        """Return how long the iterations below `high` take.

        The least and the greatest are those of windows that are off independently of each other.
        """
        if not self.points:
            return self.known
        ends = self.counted, high
        points = [(at, rate[0]) for at, rate in self.points]
        mid = _integral(points, *ends)
        off = [0.0, 0.0]
        for number, (at, rate) in enumerate(self.points):
            for side in (0, 1):
                moved = [*points]
                moved[number] = at, rate[1 + side]
                off[side] += (_integral(moved, *ends) - mid) ** 2
        known, low, above = self.known
        return known + mid, low + max(0.0, mid - sqrt(off[0])), above + mid + sqrt(off[1])

    def _skip(self, iterations: int) -> None:
        self.ahead += iterations
        if iterations:
            self.clock.skipped[self.place] = self.clock.skipped.get(self.place, 0) + iterations

    def _is_fixed(self) -> bool:
        """Whether what one iteration hands to the next decides shapes, so that none is skipped."""
        values = [taken for _, taken in self.seen[1:]]
        return any(
            _form(one) != _form(other)
            for before, after in pairwise(values)
            for one, other in zip(before, after, strict=True)
        )

    def carry(self, *values: Any) -> tuple[Any, ...]:
        """Take what one part hands to the next; return it as skipped iterations would leave it."""
        if self.ahead:
            values = tuple(self._advanced(number, value) for number, value in enumerate(values))
            self.ahead = 0
        elif len(self.seen) < _MOST_SEEN:
            self.seen.append((self.at, tuple(_kept(value) for value in values)))
        self.began = self.clock.now()
        return values

    def left(self, *values: Any) -> tuple[Any, ...]:
        """Return what the loop hands to what follows."""
        timer = self.clock.timer
        began = timer()
        if self.ahead:
            values = self.carry(*values)
        offsets, clock = self.clock.offsets, self.clock
        spent = timer() - began + clock.left_s
        for number in range(3):
            offsets[number] -= spent
        return values

    def _advanced(self, number: int, value: Any) -> Any:
        """Return a number or a list as the skipped iterations would have left it."""
        steps = {
            (_size(after[number]) - _size(before[number])) / (there - here)
            for (here, before), (there, after) in zip(self.seen[1:], self.seen[2:], strict=False)
            if there > here
        }
        if len(steps) != 1:
            return value
        step = steps.pop() * self.ahead
        if isinstance(value, list):
            value.extend(value[-1:] * int(step))
            return value
        return (
            value + int(step) if isinstance(value, int) and not isinstance(value, bool) else value
        )

    def touch(self, *arrays: Any) -> None:
        """Have arrays in memory as the iterations that were skipped would have left them."""
        if self.place not in self.clock.skipped:
            return
        began = self.clock.now()
        for array in arrays:
            flags = getattr(array, "flags", None)
            key = id(array), getattr(array, "nbytes", 0)
            if flags is None or key in self.clock.touched or not flags.forc or not flags.writeable:
                continue
            self.clock.touched.add(key)
            flat = array.ravel("K")[:: max(1, 4096 // array.itemsize)]
            flat[...] = flat.copy()
        self.clock.put(began, (0.0, 0.0, 0.0))


def _divides(sequence: Any) -> bool:
    return isinstance(sequence, range | list | tuple) or (
        hasattr(sequence, "shape") and hasattr(sequence, "strides") and sequence.ndim > 0
    )


def _kept(value: Any) -> Any:
    """Return what is remembered of a value: numbers, and the form of anything else."""
    if isinstance(value, int | float | complex):
        return value
    if isinstance(value, list):
        return ["list", len(value)]
    return [type(value).__name__, getattr(value, "shape", None), str(getattr(value, "dtype", ""))]


def _form(kept: Any) -> Any:
    """Return what must stay the same for iterations to be skipped."""
    if isinstance(kept, list):
        return kept if kept[0] != "list" else "list"
    return type(kept).__name__


def _size(kept: Any) -> float:
    if isinstance(kept, bool):
        return 0.0
    if isinstance(kept, int):
        return float(kept)
    return float(kept[1]) if isinstance(kept, list) and kept[0] == "list" else 0.0


def _width(rate: Times) -> int:
    """Return how many iterations are timed together."""
    return max(1, round(PART_S / max(rate[0], 1e-9)))


def _integral(points: Sequence[tuple[float, float]], low: float, high: float) -> float:
    """Return the integral of the parabolas through points, three by three, and on beyond them."""
    if len(points) == 1:
        return (high - low) * points[0][1]
    total, begin = 0.0, low
    for first in range(0, len(points) - 1, 2):
        part = points[first : first + 3]
        end = high if first + 3 >= len(points) else part[-1][0]
        total += _parabola(part, begin, end)
        begin = end
    return max(0.0, total)


def _parabola(points: Sequence[tuple[float, float]], low: float, high: float) -> float:
    (x0, y0), (x1, y1), *more = points
    slope = (y1 - y0) / (x1 - x0)
    bend = 0.0
    if more:
        x2, y2 = more[0]
        bend = ((y2 - y1) / (x2 - x1) - slope) / (x2 - x0)
    a, b, h = low - x0, high - x0, x1 - x0
    squares = (b * b - a * a) / 2
    return y0 * (b - a) + slope * squares + bend * ((b**3 - a**3) / 3 - h * squares)
