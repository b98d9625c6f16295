"""What one rank does in steps of an SPMD program, as a term of the process algebra.

All ranks compute at the same time and share what lies beyond their own caches, but in a chain.
Which rank is the slowest is found by trying some: the first, the second, the last, and those
that conditions single out. A neighbour is taken to be there. What no model covers is left out
and told, with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from advisor.analysis.processes import in_turn, together
from advisor.analysis.spmd.chains import Chain, chain_of
from advisor.analysis.spmd.operations import of_communication
from advisor.analysis.spmd.regions import NoWork
from advisor.analysis.spmd.statements import of_allocation, of_computation, of_copy
from advisor.analysis.spmd.threads import superstep
from advisor.ir.concrete import rebuilt
from advisor.ir.spmd.program import RANK, RANKS
from advisor.ir.spmd.steps import (
    Allocate,
    Branch,
    Call,
    Communicate,
    Compute,
    ConditionKind,
    Copy,
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
from costdb.expr.nodes import Num
from costdb.records import dataclass, field, replace
from costdb.work import Branch as Chosen
from costdb.work import Leaf, Parallel, Process, SeqLoop, Sequential, Work
from costdb.work import Unknown as Unpriced

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
        if isinstance(value, Num):
            return self._flat(step.then if value.value else step.orelse)
        then = Sequential(tuple(self.block(step.then)))
        orelse = Sequential(tuple(self.block(step.orelse)))
        share = value if condition.probability is None else condition.probability
        made: list[Step | Process] = [Parallel((then, orelse))]
        if then == orelse:
            made = [then]
        elif share is not None:
            made = [Chosen(share, then, orelse)]
        elif condition.kind is not ConditionKind.RANK:
            told = f"`if {condition.text}` is not known: its longer part counts"
            made.append(self.gap(told, condition.span))
        return made, False

    def _value(self, expr: Expr) -> Expr | None:
        try:
            return self.at(expr)
        except (ExprError, ArithmeticError):
            return None

    def _paired(self, flat: list[Step | Process]) -> Iterator[Process]:
        """Yield the work of a straight block; what comes in while as much goes out is one wait."""
        sends = sent = sum(1 for s in flat if isinstance(s, Communicate) and s.op is Op.SEND)
        for step in flat:
            if isinstance(step, Process):
                yield step
            elif not isinstance(step, Communicate) or step.op is not Op.RECV:
                yield from self._step(step)
            elif sends:
                sends -= 1
            elif step.pickled and not sent:
                yield self.gap(f"nothing says how much `{step.method}` receives", step.span)
            else:
                yield from self._step(step)

    def _step(self, step: Step) -> Iterator[Process]:
        try:
            match step:
                case Communicate():
                    yield from self._leaves(of_communication(step))
                case Copy():
                    yield from self._leaves((of_copy(step),))
                case Allocate():
                    yield from self._leaves(of_allocation(step))
                case Compute():
                    yield from self._leaves(of_computation(step))
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
            yield from self.within(loops, loop.body)
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


@dataclass(frozen=True, slots=True)
class _Done:
    """What one rank of a chain does: `before` it receives, `between`, and `after` it has sent."""

    before: tuple[Process, ...]
    between: tuple[Process, ...]
    after: tuple[Process, ...]


def _in_order(*parts: tuple[Process, ...]) -> Sequential:
    return Sequential(tuple(process for part in parts for process in part))
