"""What one rank does in steps of an SPMD program, as a term of the process algebra.

All ranks compute at the same time and share what lies beyond their own caches, but in a chain.
Which rank is the slowest is found by trying some: the first, the second, the last, and those
that conditions single out. A neighbour is taken to be there. What no model covers is left out
and told, with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeGuard

from advisor.analysis.placement import NotPriced
from advisor.analysis.processes import in_turn, together
from advisor.analysis.spmd.statements import at_least, itemsize, of_communication, of_step
from advisor.ir.kernel import rebuilt
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.program import RANK, RANKS, THREADS, number_of
from advisor.ir.spmd.steps import (
    Allocate,
    Branch,
    Call,
    Communicate,
    Compute,
    ConditionKind,
    Copy,
    Interpret,
    Leave,
    Loop,
    LoopKind,
    Op,
    Step,
    Unknown,
    Visit,
    follows,
    is_dealt_in_turn,
    walk,
)
from advisor.source import Span
from costdb.expr import (
    Expr,
    ExprError,
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
from costdb.expr.functions import chance
from costdb.expr.nodes import Num
from costdb.records import dataclass, field, replace
from costdb.work import Branch as Chosen
from costdb.work import Leaf, Parallel, Process, SeqLoop, Sequential, Spacing, Superstep, Work
from costdb.work import Unknown as Unpriced

# --- threads --------------------------------------------------------------------------------------
# numba's parallel loops as supersteps of the shared-memory model.


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


# --- lower ----------------------------------------------------------------------------------------


# Ranks that wait for one another: each receives from one neighbour, then sends to the other.
#
# How long it takes is a matter of all ranks: where the receive of each waits for the send of the
# one before, what a rank does in between is done one after the other. Whether a block is so is told
# from what each of a few ranks does in it; nothing but a price depends on it.


_TRIED = 4
"""Ranks that are tried: the ends, and two between them, of which one is odd."""

_TWO_SIDED = frozenset({Op.SEND, Op.RECV, Op.SENDRECV})


def link_of(steps: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """Return what a rank does from its receive to its send, if a block is a chain of all ranks."""
    visits = walk(steps, into_calls=True)
    found = {visit.step.op for visit in visits if isinstance(visit.step, Communicate)}
    if not {Op.SEND, Op.RECV} <= found or Op.SENDRECV in found:
        return None
    return _linked(steps, 1) or _linked(steps, -1)


def _linked(steps: tuple[Step, ...], towards: int) -> tuple[Step, ...] | None:
    link: tuple[Step, ...] = ()
    for rank in range(_TRIED):
        here = {RANK: rank, RANKS: _TRIED}
        decided = list(_decided(steps, here))
        line = [step for step in decided if step is not None]
        if len(line) < len(decided) or any(map(_talks_within, line)):
            return None
        talks = [(at, step) for at, step in enumerate(line) if _talks(step)]
        done = [(step.op, _partner_of(step, here)) for _, step in talks if step.blocking]
        ends = (Op.RECV, rank - towards), (Op.SEND, rank + towards)
        if len(done) < len(talks) or done != [end for end in ends if 0 <= end[1] < _TRIED]:
            return None
        if len(talks) == 2:
            link = tuple(line[talks[0][0] : talks[1][0] + 1])
    return link


def _talks(step: Step) -> TypeGuard[Communicate]:
    return isinstance(step, Communicate) and step.op in _TWO_SIDED


def _talks_within(step: Step) -> bool:
    """Return whether a step that holds others sends or receives."""
    inside = walk((step,), into_calls=True)
    return any(visit.step is not step and _talks(visit.step) for visit in inside)


def _decided(steps: tuple[Step, ...], here: dict[str, int]) -> Iterator[Step | None]:
    """Yield what a rank does, with branches decided; None once it may leave early."""
    for step in steps:
        match step:
            case Branch(condition=condition, then=then, orelse=orelse):
                value = number_of(condition.value, here)
                if value is not None:
                    yield from _decided(then if value else orelse, here)
                    continue
                if any(isinstance(visit.step, Leave) for visit in walk((step,))):
                    yield None
                yield step
            case Call(body=(*body, Leave(how="return"))) | Call(body=body):
                yield from _decided(tuple(body), here)
            case Leave():
                yield None
            case Communicate(op=Op.SEND | Op.RECV):
                partner = step.source if step.op is Op.RECV else step.dest
                other = _partner_of(step, here)
                absent = other is not None and not 0 <= other < here[RANKS]
                if not (absent and partner is not None and partner.may_be_nobody):
                    yield step
            case _:
                yield step


def _partner_of(step: Communicate, here: dict[str, int]) -> int | None:
    partner = step.source if step.op is Op.RECV else step.dest
    return None if partner is None else number_of(partner.rank, here)


LINK = "link"
"""The symbol that counts the ranks between the ends of a chain."""

MOST_RANKS = 6
"""Ranks that are tried."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a price leaves out."""

    reason: str
    span: Span


@dataclass(frozen=True, slots=True)
class Lowered:
    """The work of the slowest rank, and what it leaves out."""

    process: Process
    gaps: tuple[Gap, ...]


@lru_cache(maxsize=512)
def lower_steps(steps: tuple[Step, ...], loops: tuple[Loop, ...] = ()) -> Lowered:
    """Return the work of steps, for the slowest of the ranks that are tried.

    Parameters
    ----------
    steps : tuple of Step
    loops : tuple of Loop
        Around the steps, outermost first; those of unknown length count once.
    """
    found: dict[Process, None] = {}
    gaps: dict[Gap, None] = {}
    for rank in _ranks(steps):
        lowering = _Lowering({RANK: rank})
        made = Sequential(tuple(lowering.within(loops, steps)))
        found.setdefault(together(made, sym(RANKS)))
        gaps.update(dict.fromkeys(lowering.gaps))
    several = tuple(found)
    return Lowered(several[0] if len(several) == 1 else Parallel(several), tuple(gaps))


def _ranks(body: tuple[Step, ...]) -> list[Expr]:
    """Return the ranks to try."""
    tried = [num(1), num(0), sym(RANKS) - 1]
    for visit in walk(body, into_calls=True):
        if isinstance(visit.step, Branch):
            single = visit.step.condition.single_rank
            if isinstance(single, Num) and single not in tried:
                tried.append(single)
    return tried[:MOST_RANKS]


@dataclass(slots=True)
class _Lowering:
    bindings: dict[str, Expr]
    gaps: dict[Gap, None] = field(default_factory=dict)

    def at(self, expr: Expr) -> Expr:
        """Return an expression as this rank sees it; ranks of other communicators count as 0."""
        bindings = dict(self.bindings)
        for name in free_symbols(expr):
            if name.startswith("rank."):
                bindings[name] = num(0)
        return substitute(expr, bindings) if bindings.keys() & free_symbols(expr) else expr

    def gap(self, reason: str, span: Span) -> Process:
        """Return work that nobody can price."""
        self.gaps.setdefault(Gap(reason, span))
        return Leaf(Unpriced(span.start_line, "", reason))

    def block(self, steps: tuple[Step, ...]) -> list[Process]:
        """Return what a block does."""
        links = [link_of(steps)]
        if links == [None]:
            links = [link_of(step.body) for step in steps if isinstance(step, Call)]
        waits = [self._wait(link) for link in links if link is not None]
        return [*waits, *self._straight(steps)]

    def _straight(self, steps: tuple[Step, ...]) -> list[Process]:
        """Return what a block does on a rank that waits for nobody."""
        return list(self._paired(self._flat(steps)[0]))

    def _wait(self, link: tuple[Step, ...]) -> Process:
        """Return what passes until the last rank of a chain has received."""
        before = dict(self.bindings)
        self.bindings[RANK] = num(1)
        once = in_turn(Sequential(tuple(self._straight(link))))
        self.bindings = before
        return SeqLoop(LINK, num(1), sym(RANKS) - 2, once)

    def _flat(self, steps: tuple[Step, ...]) -> tuple[list[Step | Process], bool]:
        """Return steps with decided branches in their place, and whether they leave."""
        made: list[Step | Process] = []
        for step in steps:
            match step:
                case Branch():
                    part, left = self._branch(step)
                    made += part
                    if left:
                        return made, True
                case Call(body=body):
                    part, _ = self._flat(body)
                    made += part
                case Leave(how=how):
                    if how in ("return", "exit", "abort", "raise", "continue"):
                        return made, True
                case _:
                    made.append(step)
        return made, False

    def _branch(self, step: Branch) -> tuple[list[Step | Process], bool]:
        condition = step.condition
        value = None if condition.value is None else self._value(condition.value)
        sides = step.then, step.orelse
        if condition.kind is ConditionKind.RANK:
            sides = _sent_to_each_other(*sides), _sent_to_each_other(*sides[::-1])
        if isinstance(value, Num):
            return self._flat(sides[0] if value.value else sides[1])
        then, orelse = (Sequential(tuple(self.block(side))) for side in sides)
        share = value if condition.probability is None else condition.probability
        made: list[Step | Process] = [Parallel((then, orelse))]
        if then == orelse:
            made = [then]
        elif share is not None:
            made = [Chosen(share, then, orelse)]
        elif condition.kind is not ConditionKind.RANK:
            made = [Chosen(chance(condition.span.start_line), then, orelse)]
        return made, False

    def _value(self, expr: Expr) -> Expr | None:
        try:
            return self.at(expr)
        except (ExprError, ArithmeticError):
            return None

    def _paired(self, flat: list[Step | Process]) -> Iterator[Process]:
        """Yield the work of a straight block; what comes in while as much goes out is one wait."""
        sends = sum(1 for s in flat if isinstance(s, Communicate) and s.op is Op.SEND)
        for step in flat:
            if isinstance(step, Process):
                yield step
            elif not isinstance(step, Communicate) or step.op is not Op.RECV:
                yield from self._step(step)
            elif sends:
                sends -= 1
            else:
                yield from self._step(step)

    def _step(self, step: Step) -> Iterator[Process]:
        try:
            match step:
                case Communicate():
                    yield from self._leaves(of_communication(step))
                case Copy() | Allocate() | Compute() | Interpret():
                    yield from (rebuilt(part, self.at) for part in of_step(step))
                case Loop(kind=LoopKind.THREADS):
                    yield from self._leaves(superstep(step))
                case Loop():
                    yield from self._repeated(step, ())
                case Unknown(reason, span, _):
                    yield self.gap(reason, span)
        except NotPriced as unknown:
            yield self.gap(str(unknown), step.span)
            if isinstance(step, Communicate) and step.pickled:
                yield from self._leaves(at_least(step))
        except ExprError as error:
            yield self.gap(f"sizes that contradict each other: {error}", step.span)

    def within(self, loops: tuple[Loop, ...], body: tuple[Step, ...]) -> list[Process]:
        """Return what steps do that stand in loops, of which the first is the outermost."""
        if not loops:
            return self.block(body)
        first, *rest = loops
        return list(self._repeated(replace(first, body=body), tuple(rest)))

    def _repeated(self, loop: Loop, loops: tuple[Loop, ...]) -> Iterator[Process]:
        """Yield a loop around others and its body; one of unknown length counts once."""
        before = dict(self.bindings)
        if loop.trips is None:
            yield self.gap(f"{loop.why}: it counts once", loop.span)
            yield SeqLoop("turn", num(1), num(1), Sequential(tuple(self.within(loops, loop.body))))
            return
        turn = f"{loop.variable}.turn" if loop.variable else "turn"
        trips, low = self.at(loop.trips), self.at(loop.low)
        stride = self.at(loop.every)
        straight = bool(loop.variable) and stride == num(1) and not loop.by_rank
        link = None if loops else link_of(loop.body)
        if link is not None:
            # later iterations follow the first one from rank to rank
            self.bindings |= {loop.variable: low} if loop.variable else {}
            yield self._wait(link)
            self.bindings = dict(before)
        if loop.variable and not straight:
            self.bindings[loop.variable] = low + sym(turn) * stride
        body = self.within(loops, loop.body) if link is None else self._straight(loop.body)
        inner = Sequential(tuple(body))
        self.bindings = before
        if inner == Sequential(()):
            return
        if straight:
            yield SeqLoop(loop.variable, low, low + trips - 1, inner)
        else:
            yield SeqLoop(turn, num(0), trips - 1, inner)

    def _leaves(self, works: Iterable[Work]) -> Iterator[Process]:
        for work in works:
            yield Leaf(rebuilt(work, self.at))


def _sent_to_each_other(steps: tuple[Step, ...], others: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return steps whose broadcasts of objects carry what other ranks send at their place.

    Collectives come in the same order on all ranks: ``comm.bcast(None)`` on one side of a branch
    is the broadcast of the other side.
    """
    theirs = [step for step in others if isinstance(step, Communicate) and step.op is Op.BCAST]
    mine = [step for step in steps if isinstance(step, Communicate) and step.op is Op.BCAST]
    if len(mine) != len(theirs):
        return steps
    carried = {
        id(one): replace(one, send=other.send)
        for one, other in zip(mine, theirs, strict=True)
        if one.send is None
    }
    return tuple(carried.get(id(step), step) for step in steps)
