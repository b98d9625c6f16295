"""What one rank does in steps of an SPMD program, as a term of the process algebra.

All ranks compute at the same time and share what lies beyond their own caches, but in a chain.
Which rank is the slowest is found by trying some: the first, the second, the last, and those
that conditions single out. A neighbour is taken to be there. What no model covers is left out
and told, with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from advisor.analysis.processes import in_turn, together
from advisor.analysis.spmd.array_steps import NoWork
from advisor.analysis.spmd.statements import of_communication, of_step
from advisor.analysis.spmd.threads import superstep
from advisor.ir.concrete import rebuilt
from advisor.ir.spmd.program import RANK, RANKS, number_of
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
    walk,
)
from advisor.source import Span
from costdb.expr import Expr, ExprError, free_symbols, less, num, substitute, sym
from costdb.expr.functions import chance
from costdb.expr.nodes import Num
from costdb.records import dataclass, field, replace
from costdb.work import Branch as Chosen
from costdb.work import Leaf, Parallel, Process, SeqLoop, Sequential, Work
from costdb.work import Unknown as Unpriced

# Ranks that wait for one another: each receives from one neighbour, then sends to the other.
#
# Such a chain runs one rank after the other, however many there are. It is looked for by deciding
# the conditions of a block for every rank of a few small numbers of ranks, and only what is one for
# all of them counts.


_TRIED = (2, 3, 4, 5)
"""Numbers of ranks that are tried; conditions on odd and even ranks show within them."""

_TWO_SIDED = frozenset({Op.SEND, Op.RECV, Op.SENDRECV})


@dataclass(frozen=True, slots=True)
class Stage:
    """What one rank does: `before` it receives, `between`, and `after` it has sent."""

    before: tuple[Step, ...]
    between: tuple[Step, ...]
    after: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of all ranks.

    Attributes
    ----------
    message : Communicate
        The send.
    begin : Stage
        Of the rank that waits for nobody; it does nothing before it receives.
    inner : Stage
        Of the ranks between the ends.
    end : Stage
        Of the last one, which sends nothing: all that follows its receive is `after`.
    upwards : bool
        From rank 0 to the last; else from the last to rank 0.
    """

    message: Communicate
    begin: Stage
    inner: Stage
    end: Stage
    upwards: bool


def chain_of(steps: tuple[Step, ...]) -> Chain | None:
    """Return the chain that a block is; None for any other."""
    visits = walk(steps, into_calls=True)
    found = {visit.step.op for visit in visits if isinstance(visit.step, Communicate)}
    if not {Op.SEND, Op.RECV} <= found or Op.SENDRECV in found:
        return None
    return _directed(steps, upwards=True) or _directed(steps, upwards=False)


Link = tuple[Stage, Communicate | None]
"""What one rank does, and what it sends."""


def _directed(steps: tuple[Step, ...], *, upwards: bool) -> Chain | None:
    ends: list[tuple[Stage, Stage]] = []
    inner: list[Link] = []
    for ranks in _TRIED:
        order = range(ranks) if upwards else range(ranks - 1, -1, -1)
        tried = (_link(steps, rank, ranks, place, upwards) for place, rank in enumerate(order))
        links = [link for link in tried if link is not None]
        if len(links) < ranks:
            return None
        ends.append((links[0][0], links[-1][0]))
        inner += links[1:-1]
    (begin, end), (stage, message) = ends[0], inner[0]
    alike = all(one == ends[0] for one in ends) and all(one == inner[0] for one in inner)
    return Chain(message, begin, stage, end, upwards) if alike and message is not None else None


def _link(steps: tuple[Step, ...], rank: int, ranks: int, place: int, upwards: bool) -> Link | None:
    """Return what one rank does and its send; None where it is no link of a chain."""
    here = {RANK: rank, RANKS: ranks}
    decided = list(_decided(steps, here))
    line = [step for step in decided if step is not None]
    towards = 1 if upwards else -1
    wanted: list[tuple[Op, int]] = []
    if place > 0:
        wanted.append((Op.RECV, rank - towards))
    if place < ranks - 1:
        wanted.append((Op.SEND, rank + towards))
    talks = [(at, step) for at, step in enumerate(line) if _talks(step)]
    if len(line) < len(decided) or len(talks) != len(wanted) or any(map(_talks_within, line)):
        return None
    for (_, step), (op, partner) in zip(talks, wanted, strict=True):
        if step.op is not op or not step.blocking or _partner_of(step, here) != partner:
            return None
    received = talks[0][0] if place > 0 else -1
    sent = talks[-1][0] if place < ranks - 1 else received
    stage = Stage(
        tuple(line[: max(received, 0)]), tuple(line[received + 1 : sent]), tuple(line[sent + 1 :])
    )
    return stage, talks[-1][1] if place < ranks - 1 else None


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


def lower_steps(steps: Sequence[Step], loops: Sequence[Loop] = ()) -> Lowered:
    """Return the work of steps, for the slowest of the ranks that are tried.

    Parameters
    ----------
    steps : sequence of Step
    loops : sequence of Loop
        Around the steps, outermost first; those of unknown length count once.
    """
    body = tuple(steps)
    found: dict[Process, None] = {}
    gaps: dict[Gap, None] = {}
    for rank in _ranks(body):
        lowering = _Lowering({RANK: rank})
        made = Sequential(tuple(lowering.within(tuple(loops), body)))
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
        chain = chain_of(steps)
        if chain is not None:
            return [self._once_through(chain)]
        flat, _ = self._flat(steps)
        return list(self._paired(flat))

    def _once_through(self, chain: Chain) -> Process:
        """Return what passes until the last rank of a chain is done.

        The first rank sends when it is ready, each of the others has to have received before it
        goes on, and the last one has its work left.
        """
        begin, inner, end, message = self._stages(chain)
        # who waits for the rank before computes alone
        link = in_turn(_in_order(inner.between, message))
        started = Parallel((_in_order(begin.between), _in_order(inner.before)))
        links = SeqLoop(LINK, num(1), sym(RANKS) - 2, link)
        whole = Sequential((started, *message, links, in_turn(_in_order(end.after))))
        return Chosen(less(num(1), sym(RANKS)), whole, _in_order(begin.between, begin.after))

    def _once_more(self, chain: Chain) -> Process:
        """Return by how much each further pass through a chain delays the end.

        A send waits for its receiver, so a rank between the ends is in two messages a pass; with
        two ranks there are only ends.
        """
        begin, inner, end, message = self._stages(chain)
        between = _in_order(inner.before, message, inner.between, message, inner.after)
        first = _in_order(begin.between, message, begin.after)
        ends = Parallel((first, _in_order(end.before, message, end.after)))
        return Chosen(less(num(2), sym(RANKS)), Parallel((ends, between)), ends)

    def _stages(self, chain: Chain) -> tuple[_Done, _Done, _Done, tuple[Process, ...]]:
        """Return what the first, an inner and the last rank of a chain do, and its message."""
        ends = num(0), sym(RANKS) - 1
        first, last = ends if chain.upwards else ends[::-1]
        ranks = ((chain.begin, first), (chain.inner, num(1)), (chain.end, last))
        begin, inner, end = (
            _Done(*(self._of(steps, rank) for steps in (stage.before, stage.between, stage.after)))
            for stage, rank in ranks
        )
        return begin, inner, end, (Sequential(self._of((chain.message,), num(1))),)

    def _of(self, steps: tuple[Step, ...], rank: Expr) -> tuple[Process, ...]:
        """Return what steps are that one rank takes."""
        before = dict(self.bindings)
        self.bindings[RANK] = rank
        made = tuple(self.block(steps))
        self.bindings = before
        return made

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
                    chain = chain_of(body)
                    if chain is not None:
                        made.append(self._once_through(chain))
                        continue
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
        except NoWork as unknown:
            yield self.gap(str(unknown), step.span)
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
        chain = None if loops else chain_of(loop.body)
        if chain is not None:
            yield from self._passes(loop, chain, (turn, low, trips, stride))
            return
        if loop.variable and not straight:
            self.bindings[loop.variable] = low + sym(turn) * stride
        inner = Sequential(tuple(self.within(loops, loop.body)))
        self.bindings = before
        if inner == Sequential(()):
            return
        if straight:
            yield SeqLoop(loop.variable, low, low + trips - 1, inner)
        else:
            yield SeqLoop(turn, num(0), trips - 1, inner)

    def _passes(
        self, loop: Loop, chain: Chain, counted: tuple[str, Expr, Expr, Expr]
    ) -> Iterator[Process]:
        """Yield a loop each of whose iterations goes through a chain, one behind the other."""
        turn, low, trips, stride = counted
        before = dict(self.bindings)
        if loop.variable:
            self.bindings[loop.variable] = low
        first = self._once_through(chain)
        yield Chosen(less(num(0), trips), first, Sequential(()))
        if loop.variable:
            self.bindings[loop.variable] = low + sym(turn) * stride
        further = self._once_more(chain)
        self.bindings = before
        yield SeqLoop(turn, num(1), trips - 1, further)

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


@dataclass(frozen=True, slots=True)
class _Done:
    """What one rank of a chain does: `before` it receives, `between`, and `after` it has sent."""

    before: tuple[Process, ...]
    between: tuple[Process, ...]
    after: tuple[Process, ...]


def _in_order(*parts: tuple[Process, ...]) -> Sequential:
    return Sequential(tuple(process for part in parts for process in part))
