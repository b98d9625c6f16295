"""A heap as the GNU C library keeps it: where blocks are taken, and what is given back.

Blocks up to a threshold come from the heap, larger ones from the system each time. A block is
taken from the smallest free part that holds it, else from the heap's end, which grows by what is
lacking and some padding. Free neighbours become one; when the free end reaches twice the
threshold after a release, all of it but the padding goes back to the system. The threshold is the
largest block that the system was ever given back, up to a limit. Pages that come from the system
fault when they are first touched. It clears them, and what it clears is as far away as what was
given back at once: the page that was given back last is the next that comes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log

from costdb.arrays.amounts import HUGE_BYTES, KEPT_BYTES, SMALL_BYTES
from costdb.expr import Expr, evaluate, free_symbols, num
from costdb.expr.nodes import Num
from costdb.heap_work import FreshMemory, HeapStep, Laps, Released, Renamed, Taken

# What a program's arrays get anew from the system in each call, by following them through a heap.
#
# A program is thought of as called again and again, so that what its heap became by earlier calls
# is there when it begins. One thing nobody can read off its text: whether some small block, taken
# while a large array lay at the heap's end, stays above it. The place of that array then is a gap
# in which arrays of its size find room ever after, and less lies at the end. So programs are
# followed twice, without such a gap and with one.

HEAP_BYTES = 216 * 1000
"""The largest that an interpreter has freed by the time that it has loaded NumPy, or more."""
_MOST_CALLS = 4
_MOST_LAPS = (48, 6)
"""Of an outer loop, and of loops in it, that are followed; others are taken to be like them."""

Block = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Anew:
    """Bytes that come anew in one call, in small pages and in huge ones, and how many are far."""

    small_bytes: Expr
    huge_bytes: Expr
    far_small_bytes: Expr
    far_huge_bytes: Expr


def come_anew(work: FreshMemory) -> tuple[Anew, Anew]:
    """Return what comes anew without a gap in the heap, and with one for the largest block.

    All sizes in the work are numbers but for the indices of its loops.
    """
    given = [int(evaluate(size, {})) for size in work.other_bytes]
    threshold = max((HEAP_BYTES, *(size for size in given if size <= KEPT_BYTES)))
    counts: dict[object, int] = {}
    plain = _Run(Heap(threshold), counts).steady(work.steps)
    return plain, _Run(_with_gap(threshold, largest(work.steps)), counts).steady(work.steps)


def largest(steps: Sequence[HeapStep]) -> int:
    """Return the bytes of the largest block that comes from a heap."""
    return max(_sizes(steps), default=0)


def _with_gap(threshold: int, size: int) -> Heap:
    """Return a heap with a free part of that size, and something small above it."""
    room = block_bytes(size)
    end = room + SMALL_BYTES
    return Heap(threshold, end, end + PADDING_BYTES, touched=end, free=[(0, room)])


def _sizes(steps: Sequence[HeapStep]) -> Iterator[int]:
    for step in steps:
        match step:
            case Taken(_, Num(value), _) if value <= KEPT_BYTES:
                yield int(value)
            case Laps(steps=inner):
                yield from _sizes(inner)


@dataclass(slots=True)
class _Run:
    heap: Heap
    counts: dict[object, int]
    """Sizes that were asked for, by formula and lap: each call has the same."""
    blocks: dict[str, Block] = field(default_factory=dict)
    bound: dict[str, int] = field(default_factory=dict)

    def steady(self, steps: Sequence[HeapStep]) -> Anew:
        """Return what comes anew in a call once calls leave the heap as they find it."""
        before: object = None
        came = Came()
        for _ in range(_MOST_CALLS):
            state = self._state()
            if state == before:
                break
            before = state
            start = self.heap.came
            self._through(steps, 0)
            came = self.heap.came.plus(start, -1)
        return Anew(
            num(came.small_bytes),
            num(came.huge_bytes),
            num(came.far_small_bytes),
            num(came.far_huge_bytes),
        )

    def _through(self, steps: Sequence[HeapStep], depth: int) -> None:
        for step in steps:
            match step:
                case Taken(block, size, scratch):
                    self._take(block, size, scratch=scratch)
                case Released(block):
                    self._release(block)
                case Renamed(pairs):
                    self._rename(pairs)
                case Laps():
                    self._laps(step, depth)

    def _take(self, block: str, size: Expr, *, scratch: bool) -> None:
        count = self._count(size)
        # smaller ones the library keeps for itself, larger ones are priced with their calls
        if SMALL_BYTES <= count <= KEPT_BYTES or (scratch and count > KEPT_BYTES):
            self.blocks[block] = self.heap.take(count, huge=not scratch)

    def _count(self, size: Expr) -> int:
        if isinstance(size, Num):
            return int(size.value)
        # loops that lie in one another are always the same ones
        key = size, *self.bound.items()
        if key not in self.counts:
            self.counts[key] = int(evaluate(size, self.bound))
        return self.counts[key]

    def _release(self, block: str) -> None:
        found = self.blocks.pop(block, None)
        if found is not None and found not in self.blocks.values():
            self.heap.release(found)

    def _rename(self, pairs: tuple[tuple[str, str], ...]) -> None:
        found = [self.blocks.get(other) for _, other in pairs]
        passing = [other for _, other in pairs if other.startswith("#")]
        dropped = [name for name, _ in pairs]
        old = [self.blocks.pop(name) for name in dropped if name in self.blocks]
        for (name, _), block in zip(pairs, found, strict=True):
            if block is not None:
                self.blocks[name] = block
        for other in passing:
            self.blocks.pop(other, None)
        for block in old:
            if block not in self.blocks.values():
                self.heap.release(block)

    def _laps(self, laps: Laps, depth: int) -> None:
        low, high = (int(evaluate(end, self.bound)) for end in (laps.low, laps.high))
        count = max(0, high - low + 1)
        most = min(count, _MOST_LAPS[min(depth, 1)])
        alike = not _depends(laps.steps, laps.variable)
        first = self.heap.came
        before: object = None
        for done in range(most):
            start = self.heap.came
            # evenly over all laps where these differ
            self.bound[laps.variable] = low + (done if alike else done * count // most)
            self._through(laps.steps, depth + 1)
            state = self._state() if alike else None
            if state is not None and state == before:
                self._add(start, count - done - 1)
                break
            before = state
        else:
            self._add(first, (count - most) / max(1, most))
        self.bound.pop(laps.variable, None)

    def _add(self, start: Came, times: float) -> None:
        """Count what came since the start as many times more."""
        self.heap.came = self.heap.came.plus(self.heap.came.plus(start, -1), times)

    def _state(self) -> object:
        heap = self.heap
        blocks = tuple(sorted(self.blocks.items()))
        ends = heap.threshold, heap.end, heap.limit, heap.touched, heap.given_back
        return ends, tuple(heap.free), blocks


def _depends(steps: Sequence[HeapStep], variable: str) -> bool:
    for step in steps:
        match step:
            case Taken(_, size, _) if variable in free_symbols(size):
                return True
            case Laps(_, low, high, inner) if variable in free_symbols(low) | free_symbols(
                high
            ) or _depends(inner, variable):
                return True
    return False


PAGE_BYTES = 4096
HUGE_PAGE_BYTES = 2 * 2**20
PADDING_BYTES = 128 * 2**10
"""What the library takes more than it needs, and keeps when it gives back: its constant."""
_OVERHEAD_BYTES = 16
_LEAST_SPLIT_BYTES = 32
SMALL_AWAY_BYTES, HUGE_AWAY_BYTES = (4_000_000, 16_000_000), (12_000_000, 60_000_000)
"""So much given back at once was measured, in small pages and in huge ones: less is as near as the
first, more as far as the second."""
_CONSOLIDATED_BYTES = 2**16
"""Only the release of as much as this looks whether the end should be given back."""


@dataclass(frozen=True, slots=True)
class Came:
    """What came anew from the system, in small pages and in huge ones, and what of it is far."""

    small_bytes: float = 0
    huge_bytes: float = 0
    far_small_bytes: float = 0
    far_huge_bytes: float = 0

    def plus(self, more: Came, times: float = 1) -> Came:
        """Return as much and so many times as much as came besides."""
        return Came(
            self.small_bytes + times * more.small_bytes,
            self.huge_bytes + times * more.huge_bytes,
            self.far_small_bytes + times * more.far_small_bytes,
            self.far_huge_bytes + times * more.far_huge_bytes,
        )


@dataclass(slots=True)
class Heap:
    """The state of a heap; addresses count from its first block.

    Attributes
    ----------
    threshold : int
        The largest block that the system was given back so far.
    end : int
        Of the blocks in use: here the free end begins.
    limit : int
        Of the heap: here the free end stops.
    touched : int
        Up to here pages were touched since they came from the system.
    free : list of (int, int)
        Free parts between blocks in use: address and bytes, by address.
    came : Came
        What has come anew.
    given_back : int
        What was given back before something came anew, at once or in turn.
    """

    threshold: int
    end: int = 0
    limit: int = PADDING_BYTES
    touched: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)
    came: Came = Came()
    given_back: int = 0
    _taken_since: bool = False

    def take(self, size: int, *, huge: bool = True) -> tuple[int, int]:
        """Return the address and the bytes of a block; a negative address for the system's.

        Parameters
        ----------
        size : int
        huge : bool
            Whether pages are asked to be huge if the block is large.
        """
        huge = huge and size >= HUGE_BYTES
        needed = block_bytes(size)
        fitting = min((part for part in self.free if part[1] >= needed), key=_by_size, default=None)
        if fitting is not None:
            self.free.remove(fitting)
            at, length = fitting
            if length - needed >= _LEAST_SPLIT_BYTES:
                insort(self.free, (at + needed, length - needed))
                length = needed
            return at, length
        if self.limit - self.end < needed + _LEAST_SPLIT_BYTES:
            if needed >= self.threshold:
                length = -(-(needed + _OVERHEAD_BYTES // 2) // PAGE_BYTES) * PAGE_BYTES
                self._touch(0, length, huge=huge)
                return -1, length
            lacking = needed + PADDING_BYTES + _LEAST_SPLIT_BYTES - (self.limit - self.end)
            self.limit += -(-lacking // PAGE_BYTES) * PAGE_BYTES
        at = self.end
        self.end += needed
        if self.end > self.touched:
            self._touch(max(at, self.touched), self.end, huge=huge)
            self.touched = self.end
        return at, needed

    def release(self, block: tuple[int, int]) -> None:
        """Free a block."""
        at, length = block
        if at < 0:
            self._give_back(length)
            if self.threshold < length <= KEPT_BYTES:
                self.threshold = length
            return
        for part in [part for part in self.free if part[0] + part[1] == at]:
            self.free.remove(part)
            at, length = part[0], part[1] + length
        for part in [part for part in self.free if part[0] == at + length]:
            self.free.remove(part)
            length += part[1]
        if at + length == self.end:
            self.end = at
            length += self.limit - self.end
        else:
            insort(self.free, (at, length))
        if length >= _CONSOLIDATED_BYTES and self.limit - self.end >= 2 * self.threshold:
            beyond = self.limit - self.end - _LEAST_SPLIT_BYTES - 1 - PADDING_BYTES
            self.limit -= max(0, beyond // PAGE_BYTES * PAGE_BYTES)
            self._give_back(self.touched - self.limit)
            self.touched = min(self.touched, self.limit)

    def _give_back(self, size: int) -> None:
        if size > 0:
            self.given_back = size + (0 if self._taken_since else self.given_back)
            self._taken_since = False

    def _touch(self, begin: int, end: int, *, huge: bool) -> None:
        pages = (-(-end // PAGE_BYTES) - -(-begin // PAGE_BYTES)) * PAGE_BYTES
        whole = 0
        if huge:
            first = -(-begin // HUGE_PAGE_BYTES)
            whole = max(0, end // HUGE_PAGE_BYTES - first) * HUGE_PAGE_BYTES
        small = max(0, pages - whole)
        far_small = small * far_share(self.given_back, SMALL_AWAY_BYTES)
        far_huge = whole * far_share(self.given_back, HUGE_AWAY_BYTES)
        self.came = self.came.plus(Came(small, whole, far_small, far_huge))
        self._taken_since = True


def far_share(given_back: float, away_bytes: tuple[int, int]) -> float:
    """Return how far memory is that was given back with so much: from 0, near, to 1."""
    near, far = away_bytes
    return log(min(max(given_back, near), far) / near) / log(far / near)


def block_bytes(size: int) -> int:
    """Return what an array of some bytes takes of a heap."""
    return -(-(size + _OVERHEAD_BYTES // 2) // _OVERHEAD_BYTES) * _OVERHEAD_BYTES


def _by_size(part: tuple[int, int]) -> tuple[int, int]:
    return part[1], part[0]
