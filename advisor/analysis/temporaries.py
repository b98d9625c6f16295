"""Arrays that statements make and free again, as they follow one another in a heap.

An interpreter frees an intermediate result as soon as it was used, and a library takes the place
of a freed array of equal size, else the heap's end. What becomes free at the end may go back to
the system, and comes anew page by page when the same is done again: with each iteration of a
loop, and with each call of a kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from costdb.arrays.reuse import ELIDED_BYTES, bytes_of
from costdb.arrays.transform import padded
from costdb.expr import Expr, free_symbols, less, num, substitute
from costdb.expr.nodes import Num
from costdb.heap_work import Drain, FreshMemory, HeapStep, Laps, Released, Renamed, Taken
from costdb.process.terms import (
    NOTHING,
    Branch,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
)
from costdb.work import ArrayCall, ArrayOperation, PrefixScan, Region, Statement

_COMPLEX_BYTES = 16
_SCRATCH = 2
"""Lines of transforms that the library keeps beside its result: factors, and a copy."""
_BUFFERED = 8192
"""Elements of a buffer of NumPy's iterator: its constant."""
_WALKS = frozenset({
    ArrayOperation.BINARY, ArrayOperation.UNARY, ArrayOperation.DIVIDE, ArrayOperation.ROOT,
    ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION, ArrayOperation.COMPARE,
    ArrayOperation.DIVIDE_BY_ONE, ArrayOperation.REMAINDER,
})  # fmt: skip


@dataclass(slots=True)
class _Slot:
    size: Expr
    free: bool = False


@dataclass(slots=True)
class _Heap:
    """What one statement takes of the end of a heap.

    Attributes
    ----------
    slots : list
        In the order of their addresses.
    kept : list of Expr
        Free at the end, unless given back.
    """

    slots: list[_Slot] = field(default_factory=list)
    kept: list[Expr] = field(default_factory=list)
    drains: list[Drain] = field(default_factory=list)

    def take(self, size: Expr) -> _Slot:
        for slot in self.slots:
            if slot.free and slot.size == size:
                slot.free = False
                return slot
        if self.kept:
            self.kept.pop()
        self.slots.append(_Slot(size))
        return self.slots[-1]

    def release(self, slot: _Slot) -> None:
        slot.free = True
        freed: list[Expr] = []
        while self.slots and self.slots[-1].free:
            freed.append(self.slots.pop().size)
        if freed:
            self.drains.append(Drain(tuple(freed), tuple(self.kept)))
            self.kept += freed


def drains_of(calls: Sequence[ArrayCall], *, binds: bool, elides: bool) -> tuple[Drain, ...]:
    """Return what becomes free at the end of a heap in one statement.

    Parameters
    ----------
    calls : sequence of ArrayCall
        In the order in which they happen; operands without a name are results before them.
    binds : bool
        Whether the last result gets a name, and so stays.
    elides : bool
        Whether a result may take the place of an operand.
    """
    heap, results = _Heap(), list[_Slot]()
    for call in calls:
        used = [results.pop() for visit in call.operands if not visit.array and results]
        if call.fresh and call.result is not None:
            if call.reuses and elides and used:
                results.append(used.pop())
            else:
                line = _line_bytes(call)
                taken = (*_scratch(call), *((line,) * _SCRATCH if line is not None else ()))
                scratch = [heap.take(size) for size in taken]
                results.append(heap.take(bytes_of(call.result.region)))
                used += scratch
        for slot in used:
            heap.release(slot)
    for slot in results[: len(results) - binds]:
        heap.release(slot)
    return tuple(heap.drains)


def _scratch(call: ArrayCall) -> Iterator[Expr]:
    """Yield what an operation takes for itself, before it takes its result."""
    if call.operation is ArrayOperation.SCAN and call.result is not None:
        result = call.result.region
        if any(visit.region.itemsize_bytes != result.itemsize_bytes for visit in call.operands):
            # the whole operand, in the type of the result
            yield bytes_of(result)


def _line_bytes(call: ArrayCall) -> Expr | None:
    """Return the bytes of the lines that are transformed, None where none are."""
    if call.operation is not ArrayOperation.FFT or call.length is None:
        return None
    return call.length * _COMPLEX_BYTES


def _transform_phases(call: ArrayCall) -> tuple[list[Expr], list[list[Expr]]]:
    """Return what a transform takes after its result: for all of it, and one after another."""
    line = _line_bytes(call)
    if line is None or call.length is None:
        return [], []
    around = padded(int(call.length.value)) if isinstance(call.length, Num) else None
    if around is None:
        # factors, and a copy to go back and forth
        return [line], [[line]]
    longer = num(around * _COMPLEX_BYTES)
    # factors, and the convolution's transform; a copy to make that, and then to go there and back
    return [longer, line + longer / 2], [[longer, longer], [longer, longer]]


def _buffers(call: ArrayCall) -> Iterator[Expr]:
    """Yield what a walk over operands that do not go on without gaps takes, after its result."""
    if call.operation not in _WALKS or call.result is None:
        return
    rank = len(call.result.region.counts)
    for visit in call.operands if rank > 1 else ():
        if len(visit.region.counts) != rank or not _is_dense(visit.region):
            yield num(_BUFFERED * visit.region.itemsize_bytes)


def _is_dense(region: Region) -> bool:
    pitch = num(region.itemsize_bytes)
    for count, own in zip(reversed(region.counts), reversed(region.pitches_bytes), strict=True):
        if own != pitch:
            return False
        pitch = pitch * count
    return True


@dataclass(slots=True)
class Memory:
    """The memory of a kernel's arrays, statement by statement.

    Where all sizes are numbers, the work of a statement has the steps of its memory beside it, and
    that of the whole kernel is followed from call to call; else what each statement drains.

    Attributes
    ----------
    arrays : mapping of str to Expr
        Bytes of all named arrays.
    left : tuple of Expr
        The most arrays that a statement left free at the end of the heap.
    """

    arrays: Mapping[str, Expr]
    left: tuple[Expr, ...] = ()

    @property
    def known(self) -> bool:
        """Whether all sizes are numbers."""
        return all(isinstance(size, Num) for size in self.arrays.values())

    def of_statement(self, made: Sequence[Process], name: str) -> list[Process]:
        """Return the work of one statement after that of the memory it gets anew each time.

        Parameters
        ----------
        made : sequence of Process
            The work of the statement.
        name : str
            Of the array that it makes and that stays; empty where there is none.
        """
        calls = [call for process in made for call in _calls(process)]
        if self.known:
            steps = steps_of(calls, name, self.arrays.get(name))
            return [_marked(steps), *made] if steps else list(made)
        each, shared = (
            drains_of(calls, binds=bool(name), elides=elides) for elides in (False, True)
        )
        if shared:
            self.left = max(self.left, (*shared[-1].freed_bytes, *shared[-1].before_bytes), key=len)
        memory = self._given(shared)
        if each != shared:
            elided = next(call for call in calls if call.reuses and call.result is not None)
            assert elided.result is not None
            small = less(bytes_of(elided.result.region), num(ELIDED_BYTES))
            apart = self._given(each)
            if apart is not None:
                memory = Branch(small, apart, memory or NOTHING)
        return list(made) if memory is None else [memory, *made]

    def of_renaming(self, pairs: tuple[tuple[str, str], ...]) -> list[Process]:
        """Return the work of names that are handed over: none but what it means for memory."""
        return [_marked((Renamed(pairs),))] if self.known and pairs else []

    def _given(self, drains: tuple[Drain, ...]) -> Process | None:
        """Return the work of memory; None where no drain has as much as two arrays."""
        if all(len(drain.freed_bytes) + len(drain.before_bytes) < 2 for drain in drains):
            return None
        return Leaf(FreshMemory(drains, tuple(dict.fromkeys(self.arrays.values()))))

    def of_call(self, process: Process, names: Collection[str]) -> Process:
        """Return the work of a kernel after that of the memory which each call of it gets anew.

        When it ends, the arrays that it gave names are freed beside what statements left.

        Parameters
        ----------
        names : collection of str
            Of the arrays that it makes.
        """
        if self.known:
            return self._followed(process, names)
        named = tuple(size for name, size in self.arrays.items() if name in names)
        if not named or len(named) + len(self.left) < 2:
            return process
        left = tuple(_after(process, size) for size in self.left)
        before = (Drain(left, charged=False),) if left else ()
        others = tuple(size for name, size in self.arrays.items() if name not in names)
        memory = FreshMemory((*before, Drain(named, left)), tuple(dict.fromkeys(others)))
        return Sequential((Leaf(memory), process))

    def _followed(self, process: Process, names: Collection[str]) -> Process:
        plain, steps = _unmarked(process)
        if not steps:
            return plain
        given = tuple(size for name, size in self.arrays.items() if name not in names)
        ended = tuple(Released(name) for name in self.arrays)
        memory = FreshMemory((), tuple(dict.fromkeys(given)), steps=(*steps, *ended))
        return Sequential((Leaf(memory), plain))


def steps_of(calls: Sequence[ArrayCall], name: str, size: Expr | None) -> tuple[HeapStep, ...]:
    """Return what one statement takes and frees, one after another.

    Parameters
    ----------
    calls : sequence of ArrayCall
        In the order in which they happen; operands without a name are results before them.
    name : str
        What the last result is called from then on; empty where it is freed too.
    size : Expr or None
        Of the array of that name.
    """
    steps: list[HeapStep] = []
    results: list[str] = []

    def take(size: Expr, *, scratch: bool = False) -> str:
        block = f"#{len(steps)}"
        steps.append(Taken(block, size, scratch))
        return block

    for call in calls:
        used = [results.pop() for visit in call.operands if not visit.array and results]
        if call.fresh and call.result is not None:
            made = bytes_of(call.result.region)
            elides = call.reuses and not (isinstance(made, Num) and made.value < ELIDED_BYTES)
            if elides and used:
                results.append(used.pop())
            else:
                scratch = [take(part, scratch=True) for part in _scratch(call)]
                results.append(take(made))
                used += scratch
        lasting, phases = _transform_phases(call)
        kept = [take(part, scratch=True) for part in lasting]
        for phase in (*phases, list(_buffers(call))):
            steps += [Released(block) for block in [take(part, scratch=True) for part in phase]]
        steps += map(Released, kept)
        steps += map(Released, used)
    if name:
        own = results.pop() if results else take(size) if size is not None else ""
        steps += (Released(name), Renamed(((name, own),)))
    steps += map(Released, results)
    return tuple(steps)


def _after(process: Process, size: Expr) -> Expr:
    """Return what a size that depends on indices of loops was in their last iterations."""
    for variable, last in _last_laps(process):
        if variable in free_symbols(size):
            size = substitute(size, {variable: last})
    return size


def _last_laps(process: Process) -> Iterator[tuple[str, Expr]]:
    """Yield the indices of loops with their last values, those of inner loops first."""
    match process:
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _last_laps(part)
        case SeqLoop(variable, _, high, body) | ParLoop(variable, _, high, body):
            yield from _last_laps(body)
            yield variable, high
        case Branch(_, then, orelse):
            yield from _last_laps(then)
            yield from _last_laps(orelse)


def _marked(steps: tuple[HeapStep, ...]) -> Process:
    return Leaf(FreshMemory((), steps=steps))


def _unmarked(process: Process) -> tuple[Process, tuple[HeapStep, ...]]:
    """Return a process without the steps of memory in it, and those steps in their order."""
    match process:
        case Leaf(FreshMemory(steps=steps)):
            return NOTHING, steps
        case Sequential(parts) | Parallel(parts):
            found = [_unmarked(part) for part in parts]
            kept = tuple(part for part, _ in found if part != NOTHING)
            return type(process)(kept), tuple(step for _, steps in found for step in steps)
        case SeqLoop(variable, low, high, body) | ParLoop(variable, low, high, body):
            inner, steps = _unmarked(body)
            laps = (Laps(variable, low, high, steps),) if steps else ()
            return type(process)(variable, low, high, inner), laps
        case Branch(condition, then, orelse):
            (first, one), (second, other) = _unmarked(then), _unmarked(orelse)
            # which of the two is taken, nobody knows: memory is followed through both
            return Branch(condition, first, second), (*one, *other)
    return process, ()


def _calls(process: Process) -> Iterator[ArrayCall]:
    match process:
        case Leaf(Statement() | PrefixScan() as work):
            yield from work.calls or ()
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _calls(part)
