"""Compiling a process to closed forms by the rules of serialisation analysis.

Two kinds of synchronisation delay a program. `phi` counts condition synchronisation alone, the
critical path of a machine without contention; `delta` counts the work that each resource has to
do, and its largest element `omega` is how long the busiest one is busy. The time `T` takes, at
every parallel composition, the larger of the two: a lower bound that is exact where one of them
dominates. Work adds up in `delta` under parallel composition as under sequential composition;
the rule as once printed takes the maximum, which contradicts the published machine repair
result and any bound from aggregate work.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    conditional,
    logical_not,
    maximum,
    maximum_over,
    summation,
)
from costdb.expr.nodes import add
from costdb.expr.simplify import simplify
from costdb.process.servers import Entry, Loop, Tidy, Vector, largest_element, largest_fixed
from costdb.records import dataclass
from costdb.work import (
    Branch,
    Delay,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
    Use,
    constant_of,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process costs, over the sizes of the program.

    Attributes
    ----------
    T : Expr
        Time: a lower bound, exact where either kind of synchronisation dominates.
    phi : Expr
        Critical path without contention.
    delta : Vector
        Work of each resource.
    omega : Expr
        Work of the busiest resource.
    """

    T: Expr
    phi: Expr
    delta: Vector
    omega: Expr


@dataclass(frozen=True, slots=True)
class _Part:
    time: Expr
    phi: Expr
    delta: Vector


_NOTHING = _Part(ZERO, ZERO, Vector())


def compile_process(
    term: Process,
    positive: Iterable[str] = (),
    nonnegative: Iterable[str] = (),
) -> Cost:
    """Return the cost of `term` in closed form where one is known.

    Parameters
    ----------
    term : Process
    positive : iterable of str
        Names that stand for whole numbers of at least 1; the result holds for these only.
    nonnegative : iterable of str
        Names that stand for numbers of at least 0; likewise.

    Raises
    ------
    ExprError
        For a cost too large to write down.
    """
    tidy = knowing(positive, nonnegative)
    part = _Compiler(tidy).part(term)
    omega = largest_element(part.delta, tidy)
    return Cost(tidy(part.time), tidy(part.phi), part.delta, omega)


def knowing(positive: Iterable[str], nonnegative: Iterable[str]) -> Tidy:
    """Return simplification under these assumptions."""
    return partial(simplify, positive=frozenset(positive), nonnegative=frozenset(nonnegative))


class _Compiler:
    def __init__(self, tidy: Tidy) -> None:
        self.tidy = tidy
        # A term may be one object in many places, where equations were substituted.
        self.known: dict[int, _Part] = {}

    def part(self, term: Process) -> _Part:
        if id(term) not in self.known:
            self.known[id(term)] = self.compiled(term)
        return self.known[id(term)]

    def compiled(self, term: Process) -> _Part:
        match term:
            case Delay(seconds):
                time = self.tidy(seconds)
                return _Part(time, time, Vector())
            case Use():
                return self.use(term)
            case Leaf():
                raise AssertionError("work of other models is priced on a machine")
            case Sequential(parts):
                return self.sequence([self.part(part) for part in parts])
            case Parallel(parts):
                return self.side_by_side([self.part(part) for part in parts])
            case SeqLoop(variable, low, high, body):
                return self.repeated(Loop(variable, low, high), self.part(body))
            case ParLoop(variable, low, high, body):
                return self.spread(Loop(variable, low, high), self.part(body))
            case Branch():
                return self.branch(term)

    def use(self, term: Use) -> _Part:
        resource = term.resource
        time = self.tidy(term.seconds / resource.multiplicity)
        entry = Entry(resource.array, self.tidy(resource.index), time)
        return _Part(time, time, Vector((entry,)))

    def sequence(self, parts: list[_Part]) -> _Part:
        if not parts:
            return _NOTHING
        return _Part(
            add([part.time for part in parts]),
            add([part.phi for part in parts]),
            sum((part.delta for part in parts), Vector()),
        )

    def side_by_side(self, parts: list[_Part]) -> _Part:
        if not parts:
            return _NOTHING
        delta = sum((part.delta for part in parts), Vector())
        times = [part.time for part in parts if not self.is_one_server(part)]
        return _Part(
            self.tidy(maximum(*times, largest_element(delta, self.tidy))),
            self.tidy(maximum(*(part.phi for part in parts))),
            delta,
        )

    def is_one_server(self, part: _Part) -> bool:
        """Tell whether `part` takes as long as some server is busy with it.

        Its time is then no bound beside the work of the busiest server.
        """
        return self.tidy(part.time) in largest_fixed(part.delta, self.tidy)

    def repeated(self, loop: Loop, body: _Part) -> _Part:
        return _Part(
            self.tidy(summation(loop.variable, loop.low, loop.high, body.time)),
            self.tidy(summation(loop.variable, loop.low, loop.high, body.phi)),
            body.delta.over(loop),
        )

    def spread(self, loop: Loop, body: _Part) -> _Part:
        delta = body.delta.over(loop)
        times = [largest_element(delta, self.tidy)]
        if not self.is_one_server(body):
            times.insert(0, maximum_over(loop.variable, loop.low, loop.high, body.time))
        return _Part(
            self.tidy(maximum(*times)),
            self.tidy(maximum_over(loop.variable, loop.low, loop.high, body.phi)),
            delta,
        )

    def branch(self, term: Branch) -> _Part:
        condition = self.tidy(term.condition)
        known = constant_of(condition)
        if known == 1:
            return self.part(term.then)
        if known == 0:
            return self.part(term.orelse)
        then, orelse = self.part(term.then), self.part(term.orelse)
        if condition.is_whole(frozenset()):
            # The same as weighing by 1 and 0, but what is not taken need not have a value.
            return _Part(
                conditional(condition, then.time, orelse.time),
                conditional(condition, then.phi, orelse.phi),
                then.delta.when(condition) + orelse.delta.when(logical_not(condition)),
            )
        other = ONE - condition
        return _Part(
            condition * then.time + other * orelse.time,
            condition * then.phi + other * orelse.phi,
            then.delta.scaled(condition) + orelse.delta.scaled(other),
        )
