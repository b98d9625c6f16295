"""How far data has gone since it was last used, for every call of an array library.

The kernel is thought of as called again and again. Between two visits of an array lie the bytes
that the calls between them touch; a region that moves through its array with a loop meets most
lines only once in all the kernel's data. What is far is slower to come by.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from costdb.expr import ZERO, Expr, minimum
from costdb.expr.nodes import add
from costdb.work import (
    ArrayCall,
    Branch,
    Leaf,
    Parallel,
    ParLoop,
    PrefixScan,
    Process,
    Region,
    SeqLoop,
    Sequential,
    Statement,
    Visit,
)


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
        own = _touched_by(call.visits)
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


@lru_cache(maxsize=1024)
def _touched_by(visits: tuple[Visit, ...]) -> Expr:
    """Return the bytes that a call touches; iterations, and variants, make the same calls."""
    return add(map(bytes_of, dict.fromkeys(visit.region for visit in visits)))


def bytes_of(region: Region) -> Expr:
    """Return the bytes of a region's distinct elements."""
    found = ZERO + region.itemsize_bytes
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if pitch != ZERO:
            found = found * count
    return found
