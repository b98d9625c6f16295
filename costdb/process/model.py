"""Process models: the equations of one or more files, substituted into one process.

A program model says what is done, a machine model what it costs; a later file completes or
replaces equations of an earlier one. Times in the text of a model are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from costdb.choosing import Bound, Chosen, Sized
from costdb.evaluate import Priced, Term
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ExprError,
    conditional,
    logical_not,
    maximum,
    maximum_over,
    summation,
    to_text,
)
from costdb.expr.nodes import Rational, add
from costdb.expr.polynomials import simplify
from costdb.process.servers import Entry, Loop, Tidy, Vector, largest_element, largest_fixed
from costdb.process.substitution import (
    RESERVED,
    Equation,
    Kind,
    ModelError,
    Substitution,
    read_equations,
)
from costdb.records import dataclass
from costdb.work import (
    Branch,
    Delay,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    Resource,
    SeqLoop,
    Sequential,
    Use,
    constant_of,
    names_of_sizes,
)

# --- compile --------------------------------------------------------------------------------------
# Compiling a process to closed forms by the rules of serialisation analysis.
#
# Two kinds of synchronisation delay a program. `phi` counts condition synchronisation alone, the
# critical path of a machine without contention; `delta` counts the work that each resource has to
# do, and its largest element is how long the busiest one is busy. The time `T` takes, at
# every parallel composition, the larger of the two: a lower bound that is exact where one of them
# dominates. Work adds up in `delta` under parallel composition as under sequential composition; the
# rule as once printed takes the maximum, which contradicts the published machine repair result and
# any bound from aggregate work.


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
    """

    T: Expr
    phi: Expr
    delta: Vector


_NOTHING = Cost(ZERO, ZERO, Vector())


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
    return Cost(tidy(part.T), tidy(part.phi), part.delta)


def knowing(positive: Iterable[str], nonnegative: Iterable[str]) -> Tidy:
    """Return simplification under these assumptions."""
    return partial(simplify, positive=frozenset(positive), nonnegative=frozenset(nonnegative))


class _Compiler:
    def __init__(self, tidy: Tidy) -> None:
        self.tidy = tidy
        # A term may be one object in many places, where equations were substituted.
        self.known: dict[int, Cost] = {}

    def part(self, term: Process) -> Cost:
        if id(term) not in self.known:
            self.known[id(term)] = self.compiled(term)
        return self.known[id(term)]

    def compiled(self, term: Process) -> Cost:
        match term:
            case Delay(seconds):
                time = self.tidy(seconds)
                return Cost(time, time, Vector())
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

    def use(self, term: Use) -> Cost:
        resource = term.resource
        time = self.tidy(term.seconds / resource.multiplicity)
        entry = Entry(resource.array, self.tidy(resource.index), time)
        return Cost(time, time, Vector((entry,)))

    def sequence(self, parts: list[Cost]) -> Cost:
        if not parts:
            return _NOTHING
        return Cost(
            add([part.T for part in parts]),
            add([part.phi for part in parts]),
            sum((part.delta for part in parts), Vector()),
        )

    def side_by_side(self, parts: list[Cost]) -> Cost:
        if not parts:
            return _NOTHING
        delta = sum((part.delta for part in parts), Vector())
        times = [part.T for part in parts if not self.is_one_server(part)]
        return Cost(
            self.tidy(maximum(*times, largest_element(delta, self.tidy))),
            self.tidy(maximum(*(part.phi for part in parts))),
            delta,
        )

    def is_one_server(self, part: Cost) -> bool:
        """Tell whether `part` takes as long as some server is busy with it.

        Its time is then no bound beside the work of the busiest server.
        """
        return self.tidy(part.T) in largest_fixed(part.delta, self.tidy)

    def repeated(self, loop: Loop, body: Cost) -> Cost:
        return Cost(
            self.tidy(summation(loop.variable, loop.low, loop.high, body.T)),
            self.tidy(summation(loop.variable, loop.low, loop.high, body.phi)),
            body.delta.over(loop),
        )

    def spread(self, loop: Loop, body: Cost) -> Cost:
        delta = body.delta.over(loop)
        times = [largest_element(delta, self.tidy)]
        if not self.is_one_server(body):
            times.insert(0, maximum_over(loop.variable, loop.low, loop.high, body.T))
        return Cost(
            self.tidy(maximum(*times)),
            self.tidy(maximum_over(loop.variable, loop.low, loop.high, body.phi)),
            delta,
        )

    def branch(self, term: Branch) -> Cost:
        condition = self.tidy(term.condition)
        known = constant_of(condition)
        if known == 1:
            return self.part(term.then)
        if known == 0:
            return self.part(term.orelse)
        then, orelse = self.part(term.then), self.part(term.orelse)
        if condition.is_whole(frozenset()):
            # The same as weighing by 1 and 0, but what is not taken need not have a value.
            return Cost(
                conditional(condition, then.T, orelse.T),
                conditional(condition, then.phi, orelse.phi),
                then.delta.when(condition) + orelse.delta.when(logical_not(condition)),
            )
        other = ONE - condition
        return Cost(
            condition * then.T + other * orelse.T,
            condition * then.phi + other * orelse.phi,
            then.delta.scaled(condition) + orelse.delta.scaled(other),
        )


# --- model ----------------------------------------------------------------------------------------


MICROSECONDS = 1_000_000
"""In a second, the unit of time in the text of a model."""


@dataclass(frozen=True, slots=True)
class Model:
    """A process and what it leaves open.

    Attributes
    ----------
    process : Process
        All equations substituted.
    parameters : mapping of str to int, Fraction or None
        The names that stay symbolic, with the value each has unless the user says otherwise.
        None of them is ever negative.
    sizes : frozenset of str
        Those parameters that bound a loop or choose a server: whole numbers of at least 1.
    files : tuple of str
        Where the model was read from.
    """

    process: Process
    parameters: Mapping[str, Rational | None]
    sizes: frozenset[str]
    files: tuple[str, ...]


def load_model(paths: Sequence[Path]) -> Model:
    """Return the model that the files at `paths` make together.

    Raises
    ------
    ModelError
        With the place of whatever is wrong.
    """
    if not paths:
        raise ModelError("a model needs at least one file")
    equations: dict[str, Equation] = {}
    for path in paths:
        for equation in _distinct(read_equations(path)):
            earlier = equations.get(equation.name)
            if earlier is not None and earlier.kind is not equation.kind:
                raise equation.place.error(
                    f"{equation.name!r} is a {equation.kind} here and a {earlier.kind} in "
                    f"{earlier.place.file}:{earlier.place.line}"
                )
            equations[equation.name] = equation
    substitution = Substitution(equations)
    # each is substituted, for the errors that may be in it
    closed = {e.name: substitution.closed_form(e) for e in equations.values() if not e.formals}
    parameters = {
        equation.name: substitution.default(equation)
        for equation in equations.values()
        if equation.is_parameter and equation.kind is Kind.NUMERIC
    }
    process = closed[_main(equations.values(), str(paths[0])).name]
    assert not isinstance(process, Expr | Vector | Resource)
    sizes = frozenset(parameters.keys() & names_of_sizes(process))
    return Model(process, parameters, sizes, tuple(map(str, paths)))


def compile_model(model: Model) -> Cost:
    """Return the cost of `model` in seconds, over its parameters as `Model` describes them.

    Raises
    ------
    ModelError
        When the cost is too large to write down.
    """
    try:
        positive, nonnegative = model.sizes, model.parameters.keys() - model.sizes
        return compile_process(model.process, positive, nonnegative)
    except ExprError as error:
        raise ModelError(f"{model.files[0]}:1:1: {error}") from None


def price_model(model: Model) -> Priced:
    """Return the price of `model`, whose terms are the bounds that compete.

    They are the critical path (`phi`) and the busiest server of each array of resources; the
    largest of them is at most the whole, and equal to it unless phases of different character
    follow each other.
    """
    cost = compile_model(model)
    tidy = knowing(model.sizes, model.parameters.keys() - model.sizes)
    bounds = [("critical path", cost.phi)]
    bounds += [
        (f"busiest {array}", largest_element(cost.delta.only(array), tidy))
        for array in cost.delta.arrays()
    ]
    terms = (Term(label, "symbolic", s * MICROSECONDS) for label, s in bounds if s != ZERO)
    return Priced(cost.T * MICROSECONDS, tuple(terms))


def _distinct(equations: Iterable[Equation]) -> Iterable[Equation]:
    lines: dict[str, int] = {}
    for equation in equations:
        name, place = equation.name, equation.place
        if name in RESERVED:
            raise place.error(f"{name!r} is a word of the language")
        if name in lines:
            raise place.error(f"{name!r} is defined in line {lines[name]} already")
        lines[name] = place.line
        yield equation


def _main(equations: Iterable[Equation], file: str) -> Equation:
    processes = [e for e in equations if e.kind is Kind.PROCESS]
    for equation in processes:
        if equation.name == "main":
            if equation.formals:
                raise equation.place.error("nothing says the values of the formals of 'main'")
            return equation
    closed = [equation for equation in processes if not equation.formals]
    if not closed:
        raise ModelError(f"{file}:1:1: there is no process to evaluate")
    return closed[-1]


# Process models as subjects of predictions; they state all times, so they need no machine.


@dataclass(frozen=True, slots=True)
class ProcessSubject(Sized):
    """A process model; see :class:`costdb.choosing.Subject`."""

    model: Model

    @property
    def origin(self) -> str:
        """The files it was read from."""
        return " ".join(self.model.files)

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters, in the order of the text."""
        return tuple(self.model.parameters)

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check that `given` are numbers such as the model's parameters and sizes may be."""
        stated = {
            name: default if isinstance(default, int) else float(default)
            for name, default in self.model.parameters.items()
            if default is not None
        }
        return self.bound(self.numbers(given, stated, self.model.sizes))

    def price(self, words: Mapping[str, str]) -> Priced:
        """Return the cost of the model in microseconds."""
        return price_model(self.model)

    def formula(self) -> str:
        """Return the cost in seconds over the parameters, as text that parses.

        Raises
        ------
        ModelError
            It is too large to write down.
        """
        return to_text(compile_model(self.model).T)
