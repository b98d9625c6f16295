"""numba's parallel loops as supersteps of the shared-memory model."""

from __future__ import annotations

from advisor.analysis.facts import NotPriced
from advisor.analysis.spmd.statements import itemsize
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.program import THREADS
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Compute,
    Copy,
    Loop,
    LoopKind,
    Step,
    Unknown,
    Visit,
    follows,
    is_dealt_in_turn,
    walk,
)
from costdb.expr import (
    Expr,
    ceil_div,
    conditional,
    free_symbols,
    less,
    maximum,
    maximum_over,
    minimum,
    num,
    substitute,
    summation,
    sym,
)
from costdb.work import Spacing, Superstep, Work

_THREAD = "thread"
_WORD_BYTES = 4


def superstep(loop: Loop) -> tuple[Work, ...]:
    """Return a parallel loop as a superstep: iterations are divided evenly among threads.

    Raises
    ------
    NotPriced
        Nothing says how often it runs, or what an iteration touches.
    """
    if loop.trips is None:
        raise NotPriced(loop.why or "how often a parallel loop runs is not known")
    reads, writes = _traffic(loop.body, frozenset({loop.variable}))
    # threads without an iteration take no part
    threads = minimum(sym(THREADS), maximum(loop.trips, 1))
    most_read, most_written = _most(loop, loop.trips, reads), _most(loop, loop.trips, writes)
    total = loop.trips * (reads + writes)
    if _varies(loop, reads) or _varies(loop, writes):
        total = summation(loop.variable, loop.low, loop.low + loop.trips - 1, reads + writes)
    gaps, label = _spacing(loop), "parallel loop"
    return (
        Superstep(threads, most_read, most_written, total, label, gaps, counted_bytes=_WORD_BYTES),
    )


def _spacing(loop: Loop) -> Spacing | None:
    """Return how the accesses of a thread follow each other; None where they differ in that."""
    found: Spacing | None = None
    for visit in walk(loop.body):
        match visit.step:
            case Compute(target=target, reads=reads):
                views = reads if target is None else (*reads, target)
            case Copy(target=target, source=source):
                views = (target, source)
            case Branch() | Call() | Unknown():
                return None
            case _:
                continue
        for view in views:
            one = _spacing_of(loop, visit, view)
            if one is None or found not in (None, one):
                return None
            found = one
    return found


def _spacing_of(loop: Loop, visit: Visit, view: View) -> Spacing | None:
    inner = visit.loops[-1] if visit.loops else loop
    if not follows(view, inner.variable):
        return None
    size = itemsize(view.dtype)
    if is_dealt_in_turn(loop, inner):
        # one thread that has all turns shares its lines with nobody
        between = conditional(less(1, sym(THREADS)), (loop.high - 1) * size, num(0))
        return Spacing(size, between)
    neighbours = inner.kind in (LoopKind.COUNTED, LoopKind.THREADS) and inner.every == num(1)
    return Spacing(size, num(0)) if neighbours else None


def _varies(loop: Loop, words: Expr) -> bool:
    return loop.variable in free_symbols(words)


def _most(loop: Loop, trips: Expr, words: Expr) -> Expr:
    """Return the most that a thread accesses, of blocks of iterations that follow each other.

    Where iterations differ (`range(thread, n, threads)` within one for each thread, triangles),
    each thread has the sum of its own.
    """
    share = ceil_div(trips, sym(THREADS))
    if not _varies(loop, words):
        return share * words
    first = loop.low + sym(_THREAD) * share
    last = minimum(first + share, loop.low + trips) - 1
    own = summation(loop.variable, first, last, words)
    return maximum_over(_THREAD, num(0), sym(THREADS) - 1, own)


def _traffic(steps: tuple[Step, ...], indices: frozenset[str]) -> tuple[Expr, Expr]:
    """Return the 4-byte elements that one iteration reads and writes.

    Parameters
    ----------
    steps : tuple of Step
    indices : frozenset of str
        Of the loops around: a block that depends on them may end before it starts.
    """
    reads = writes = num(0)
    for step in steps:
        match step:
            case Compute(target=target, reads=views):
                reads = reads + sum((_words(view) for view in views), num(0))
                writes = writes + (num(0) if target is None else _words(target))
            case Copy(target=target, source=source):
                reads, writes = reads + _words(source), writes + _words(target)
            case Loop(trips=trips, body=body):
                if trips is None:
                    raise NotPriced(step.why)
                inner_reads, inner_writes = _traffic(body, indices | {step.variable})
                if free_symbols(trips) & indices:
                    trips = maximum(trips, 0)
                reads = reads + _repeated(step, trips, inner_reads)
                writes = writes + _repeated(step, trips, inner_writes)
    return reads, writes


def _repeated(loop: Loop, trips: Expr, words: Expr) -> Expr:
    """Return what all iterations of a loop access, which may differ by its index."""
    if not _varies(loop, words):
        return trips * words
    turn = f"{loop.variable}.turn"
    index = loop.low + sym(turn) * loop.every
    return summation(turn, num(0), trips - 1, substitute(words, {loop.variable: index}))


def _words(view: View) -> Expr:
    count = view.count
    if count is None:
        raise NotPriced(f"the size of `{view.text}` is not known")
    return count * itemsize(view.dtype) / _WORD_BYTES
