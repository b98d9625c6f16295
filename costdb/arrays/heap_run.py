"""What a program's arrays get anew from the system in each call, by following them through a heap.

A program is thought of as called again and again, so that what its heap became by earlier calls
is there when it begins. One thing nobody can read off its text: whether some small block, taken
while a large array lay at the heap's end, stays above it. The place of that array then is a gap in
which arrays of its size find room ever after, and less lies at the end. So programs are followed
twice, without such a gap and with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from costdb.arrays.amounts import KEPT_BYTES, SMALL_BYTES
from costdb.arrays.heap import PADDING_BYTES, Came, Heap, block_bytes
from costdb.expr import Expr, evaluate, free_symbols, num
from costdb.expr.nodes import Num
from costdb.heap_work import FreshMemory, HeapStep, Laps, Released, Renamed, Taken

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
