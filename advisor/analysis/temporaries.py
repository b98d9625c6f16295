"""Arrays that statements make and free again, as they follow one another in a heap.

An interpreter frees an intermediate result as soon as it was used, and a library takes the place
of a freed array of equal size, else the heap's end. What becomes free at the end may go back to
the system, and comes anew page by page when the same is done again: with each iteration of a
loop, and with each call of a kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from costdb.arrays.reuse import bytes_of
from costdb.expr import Expr, less, num
from costdb.process.terms import NOTHING, Branch, Leaf, Parallel, Process, Sequential
from costdb.work import ArrayCall, ArrayOperation, Drain, FreshMemory, PrefixScan, Statement

ELIDED_BYTES = 256 * 2**10
"""From here on NumPy stores into an operand that nobody else has: its constant."""
_COMPLEX_BYTES = 16
_SCRATCH = 2
"""Lines of transforms that the library keeps beside its result: factors, and a copy."""


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
                scratch = [heap.take(size) for size in _scratch(call)]
                results.append(heap.take(bytes_of(call.result.region)))
                used += scratch
        for slot in used:
            heap.release(slot)
    for slot in results[: len(results) - binds]:
        heap.release(slot)
    return tuple(heap.drains)


def _scratch(call: ArrayCall) -> Iterator[Expr]:
    if call.operation is ArrayOperation.FFT and call.length is not None:
        for _ in range(_SCRATCH):
            yield call.length * _COMPLEX_BYTES


@dataclass(slots=True)
class Memory:
    """The memory of a kernel's arrays, statement by statement.

    Attributes
    ----------
    arrays : mapping of str to Expr
        Bytes of all named arrays.
    left : tuple of Expr
        The most arrays that a statement left free at the end of the heap.
    """

    arrays: Mapping[str, Expr]
    left: tuple[Expr, ...] = ()

    def of_statement(self, made: Sequence[Process], *, binds: bool) -> list[Process]:
        """Return the work of one statement after that of the memory it gets anew each time.

        Parameters
        ----------
        made : sequence of Process
            The work of the statement.
        binds : bool
            Whether it makes an array that stays.
        """
        calls = [call for process in made for call in _calls(process)]
        each, shared = (drains_of(calls, binds=binds, elides=elides) for elides in (False, True))
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
        named = tuple(size for name, size in self.arrays.items() if name in names)
        if not named or len(named) + len(self.left) < 2:
            return process
        before = (Drain(self.left, charged=False),) if self.left else ()
        others = tuple(size for name, size in self.arrays.items() if name not in names)
        memory = FreshMemory((*before, Drain(named, self.left)), tuple(dict.fromkeys(others)))
        return Sequential((Leaf(memory), process))


def _calls(process: Process) -> Iterator[ArrayCall]:
    match process:
        case Leaf(Statement() | PrefixScan() as work):
            yield from work.calls or ()
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _calls(part)
