"""Functions of SPMD programs as subjects of predictions, alone or against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import MODULE, RANKS, Program, SpmdFunction, with_derived
from advisor.observed import SeenMessages
from advisor.ranking.findings import with_text
from advisor.ranking.own_cores import about_cores
from advisor.ranking.programs import LoweredCost, cost_steps
from advisor.ranking.seen_messages import as_observed
from costdb.estimate import Missing, Priced
from costdb.expr import sym
from costdb.machines import Machine
from costdb.subject import Bound, Chosen, Number, RefusedError, Subject, SubjectError
from costdb.wording import nearest, read_number

PROGRAM = "program"
"""The parameter that tells alternatives apart."""


def load_function(
    path: str, source: str, name: str | None, messages: Sequence[SeenMessages] = ()
) -> tuple[Program, SpmdFunction] | None:
    """Return a function of an SPMD program; None where the file holds no such program.

    Without a name it is the only function that communicates, or all that the file does when it
    is run.

    Raises
    ------
    SubjectError
        Nothing is called so, or several functions communicate and none is named.
    SourceProblem
        The file does not parse.
    """
    program = read_program(path, source)
    if program is None:
        return None
    program = as_observed(program, messages)
    names = tuple(function.name for function in program.functions)
    if name is None:
        own = [f for f in program.functions if f.name != MODULE]
        if len(own) > 1:
            listed = ", ".join(f.name for f in own)
            raise SubjectError(f"{path}: {listed} communicate: choose one with --kernel")
        return program, (own or list(program.functions))[0]
    found = program.function(name)
    if found is None:
        short = [f for f in program.functions if f.name.rpartition(".")[2] == name]
        if len(short) != 1:
            hint = nearest(name, names)
            raise SubjectError(f"{path}: no function {name} communicates{hint}")
        found = short[0]
    return program, found


def program_subject(
    path: str, program: Program, function: SpmdFunction, machine: Machine
) -> ProgramSubject:
    """Return a function as the subject of predictions for a machine."""
    return ProgramSubject(path, program, function, cost_steps(function.body, machine))


@dataclass(frozen=True, slots=True)
class ProgramSubject:
    """One function with its price on a machine; see :class:`costdb.subject.Subject`."""

    path: str
    program: Program
    function: SpmdFunction
    found: LoweredCost | Missing
    words: frozenset[str] = field(default=frozenset())

    @property
    def origin(self) -> str:
        """File, line and name of the function."""
        return f"{self.path}:{self.function.span.start_line}: function `{self.function.name}`"

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols that its price depends on."""
        if isinstance(self.found, Missing):
            return tuple(self.program.sizes)
        return tuple(sorted(self.found.costed.sizes))

    def about(self, name: str) -> str:
        """Return what is known of a symbol."""
        fact = self.program.sizes.get(name)
        return "" if fact is None else fact.origin

    def origins(self, given: Mapping[str, Chosen]) -> tuple[str, ...]:
        """Return what bound each symbol that was not given."""
        facts = self.program.sizes
        values = self.bind(given).numbers
        return tuple(
            f"{name} = {values[name]:g}: {facts[name].origin}"
            for name in self.names
            if name in facts and name not in given and name in values
        )

    def cautions(self, machine: Machine, given: Mapping[str, Chosen]) -> tuple[str, ...]:
        """Return what the price takes for granted that need not be so."""
        return tuple(about_cores(machine, sym(RANKS), self.bind(given).numbers))

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check that `given` are symbols of the program; the others are as the source says."""
        numbers: dict[str, Number] = {
            name: fact.value for name, fact in self.program.sizes.items() if fact.value is not None
        }
        known = {*self.names, *self.program.sizes}
        for name, value in given.items():
            if name not in known:
                hint = nearest(name, self.names)
                raise RefusedError(f"{self.origin}: there is no size {name}{hint}")
            number = read_number(value) if isinstance(value, str) else value
            if number is None or not math.isfinite(number) or number < 0:
                raise RefusedError(f"{self.origin}: {name} = {value} is no size")
            if isinstance(numbers.get(name), int) and not float(number).is_integer():
                raise RefusedError(f"{self.origin}: {name} = {value} is not a whole number")
            numbers[name] = number
        numbers = with_derived({n: f.derived for n, f in self.program.sizes.items()}, numbers)
        return Bound({}, numbers, {name: numbers[name] for name in self.names if name in numbers})

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the price of the function as it is written."""
        if isinstance(self.found, Missing):
            return self.found
        priced = self.found.costed.priced
        return replace(priced, omitted=with_text(priced.omitted, self.program.context.lines))

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Refuse: a program does not say how large its sizes may be."""
        raise SubjectError(
            f"{self.origin}: which values may {name} take? Say so, as --over {name}=1..64"
        )


@dataclass(frozen=True, slots=True)
class AlternativesSubject:
    """Several subjects that do the same job; the word `PROGRAM` says which is meant."""

    subjects: Mapping[str, Subject]
    words: frozenset[str] = field(default=frozenset({PROGRAM}))

    @property
    def origin(self) -> str:
        """All of them."""
        return " against ".join(self.subjects)

    @property
    def names(self) -> tuple[str, ...]:
        """The choice, and all sizes of any of them."""
        sizes = dict.fromkeys(name for s in self.subjects.values() for name in s.names)
        return (PROGRAM, *sizes)

    def about(self, name: str) -> str:
        """Return what the first that knows a size says of it."""
        if name == PROGRAM:
            return "one of " + ", ".join(self.subjects)
        return next((s.about(name) for s in self.subjects.values() if s.about(name)), "")

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Bind the chosen one; sizes that only others have do not concern it."""
        chosen = str(given.get(PROGRAM, ""))
        if chosen not in self.subjects:
            raise RefusedError(f"{PROGRAM} = {chosen}: {self.about(PROGRAM)}")
        subject = self.subjects[chosen]
        for name in given:
            if name not in self.names:
                raise RefusedError(f"{self.origin}: there is no size {name}")
        own = {name: value for name, value in given.items() if name in subject.names}
        bound = subject.bind(own)
        return Bound({PROGRAM: chosen}, bound.numbers, {PROGRAM: chosen, **bound.shown})

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the price of the chosen one."""
        return self.subjects[words[PROGRAM]].price({})

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return the alternatives."""
        if name == PROGRAM:
            return tuple(self.subjects)
        first = next(iter(self.subjects.values()))
        return first.values(name, given)
