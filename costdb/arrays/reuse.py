"""How far data has gone since it was last used, for every call of an array library.

The kernel is thought of as called again and again. Between two visits of an array lie the bytes
that the calls between them touch; a region that moves through its array with a loop meets most
lines only once in all the kernel's data. What is far is slower to come by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from costdb.arrays.memory import fastest, is_turned
from costdb.expr import ONE, ZERO, Expr, less, minimum
from costdb.process.terms import (
    Branch,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
)
from costdb.work import ArrayCall, ArrayOperation, PrefixScan, Region, Statement, Visit

# What an array library makes of a call: results in place of operands, operands turned in buffers.
#
# From some size on an operator stores into an operand that nobody else has, whose lines are then
# the result's. A loop over elements goes through memory in one order for all its operands. What
# lies in another order, as a transposed array does, is first copied in that order, a buffer at a
# time.

ELIDED_BYTES = 256 * 2**10
"""From here on NumPy stores into an operand that nobody else has: its constant."""

_BY_ELEMENT = frozenset({
    ArrayOperation.BINARY, ArrayOperation.DIVIDE, ArrayOperation.COMPARE, ArrayOperation.UNARY,
    ArrayOperation.ROOT, ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION,
    ArrayOperation.WHERE, ArrayOperation.DIVIDE_BY_ONE, ArrayOperation.REMAINDER,
})  # fmt: skip


def taking_over(call: ArrayCall) -> Iterator[tuple[Expr, ArrayCall]]:
    """Yield a call with memory of its own for its result and without, and when it is so: 1 or 0.

    A call whose result takes no operand's place comes alone.
    """
    taken = next(
        (one for one in call.operands if call.result and _could_hold(one, call.result)), None
    )
    if not call.reuses or taken is None or call.result is None:
        yield ONE, call
        return
    small = less(bytes_of(call.result.region), ELIDED_BYTES)
    yield small, call
    yield 1 - small, replace(call, result=taken, fresh=False)


def _could_hold(operand: Visit, result: Visit) -> bool:
    return not operand.array and operand.region == result.region


def with_copies(call: ArrayCall) -> Iterator[ArrayCall]:
    """Yield the copies that transpose operands of a call into buffers, and then the call.

    The order is that of the last axis, but where all memory that is given wants another one.
    """
    given = [one for one in call.visits if one is not call.result or not call.fresh]
    ordered = [one for one in given if fastest(one.region) is not None]
    turned = []
    if call.operation in _BY_ELEMENT and ordered:
        first = max(ordered, key=lambda one: fastest(one.region) or 0)
        turned = [one for one in call.operands if is_turned(one.region, first.region)]
    for one in turned:
        yield ArrayCall(ArrayOperation.TRANSPOSE, call.dtype, call.elements, None, (one,))
    kept = tuple(one for one in call.operands if one not in turned)
    yield replace(call, operands=kept) if turned else call


def with_distances(process: Process, footprint_bytes: Expr) -> Process:
    """Return a process whose calls know how far their data comes.

    Parameters
    ----------
    process : Process
    footprint_bytes : Expr
        Of all arrays together, the most that can lie between two visits.
    """
    walk = _Walk(footprint_bytes)
    walk.over(process)
    return walk.over(process)


@dataclass(slots=True)
class _Walk:
    footprint: Expr
    touched: Expr = ZERO
    last: dict[str, Expr] = field(default_factory=dict)
    moving: set[tuple[str, Expr]] = field(default_factory=set)
    iteration: Expr | None = None

    def over(self, process: Process) -> Process:
        """Return a part of the process with distances, after having gone through it."""
        match process:
            case Leaf(Statement() | PrefixScan() as work):
                return Leaf(self._work(work))
            case Sequential(parts):
                return Sequential(tuple(self.over(part) for part in parts))
            case Parallel(parts):
                return Parallel(tuple(self.over(part) for part in parts))
            case SeqLoop(variable, low, high, body):
                return SeqLoop(variable, low, high, self._body(body))
            case ParLoop(variable, low, high, body):
                return ParLoop(variable, low, high, self._body(body))
            case Branch(condition, then, orelse):
                return Branch(condition, self.over(then), self.over(orelse))
        return process

    def _body(self, body: Process) -> Process:
        """Go through one iteration to know what the next one finds, and then through that."""
        outer = self.moving, self.iteration
        begun = self.touched
        self.moving, self.iteration = set(), None
        self.over(body)
        self.moving, self.iteration = set(), self.touched - begun
        made = self.over(body)
        self.moving, self.iteration = outer
        # an iteration's bytes may depend on its index, which means nothing out here
        self.touched = begun + self.footprint
        self.last = dict.fromkeys(self.last, begun)
        return made

    def _work(self, work: Statement | PrefixScan) -> Statement | PrefixScan:
        if work.calls is None:
            return work
        return replace(work, calls=tuple(self._call(call) for call in work.calls))

    def _call(self, call: ArrayCall) -> ArrayCall:
        own = ZERO
        for region in dict.fromkeys(visit.region for visit in call.visits):
            own = own + bytes_of(region)
        made = replace(
            call,
            operands=tuple(self._visit(visit, own) for visit in call.operands),
            result=None if call.result is None else self._visit(call.result, own),
        )
        self.touched = self.touched + own
        for visit in call.visits:
            if visit.array:
                self.last[visit.array] = self.touched
        return made

    def _visit(self, visit: Visit, own: Expr) -> Visit:
        if not visit.array:
            return visit
        advance = visit.advance_bytes
        if advance is not None and advance != ZERO:
            key = visit.array, advance
            if key not in self.moving:
                self.moving.add(key)
                return replace(visit, distance_bytes=self.footprint)
            return replace(visit, distance_bytes=own, advance_bytes=None)
        if advance is not None:
            since = own if self.iteration is None else self.iteration
            return replace(visit, distance_bytes=since, advance_bytes=None)
        since = self.footprint
        if visit.array in self.last:
            since = minimum(since, self.touched - self.last[visit.array] + own)
        return replace(visit, distance_bytes=since)


def bytes_of(region: Region) -> Expr:
    """Return the bytes of a region's distinct elements."""
    found = ZERO + region.itemsize_bytes
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if pitch != ZERO:
            found = found * count
    return found
