"""Process models: the equations of one or more files, substituted into one process.

A program model says what is done, a machine model what it costs; a later file completes or
replaces equations of an earlier one. Times in the text of a model are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from costdb.choosing import Bound, Chosen, Sized
from costdb.estimate import Priced, Term
from costdb.expr import ZERO, Expr, ExprError, to_text
from costdb.expr.nodes import Rational
from costdb.process.compile import Cost, compile_process, knowing
from costdb.process.servers import Vector, largest_element
from costdb.process.substitution import RESERVED, Substitution
from costdb.process.syntax import Equation, Kind, ModelError, read_equations
from costdb.records import dataclass
from costdb.work import Process, Resource, names_of_sizes

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
