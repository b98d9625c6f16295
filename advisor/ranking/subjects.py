"""Kernels, and functions of SPMD programs, as subjects of predictions, alone or compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from advisor.analysis.lower import Unpriced
from advisor.files import read_source
from advisor.finding import MODULE, OBSERVED
from advisor.frontend.kernels import read_kernels
from advisor.frontend.prefilter import may_call_compiled
from advisor.frontend.spmd.reader import read_program
from advisor.frontend.trees import deep_nesting_refused
from advisor.ir.kernel import Kernel, whole_numbers_of
from advisor.ir.spmd.program import RANKS, Program, SpmdFunction, with_derived
from advisor.observed import Seen, SeenMessages, by_signature
from advisor.ranking.compare import Costed, about_cores, cost, ranks_of
from advisor.ranking.findings import with_text
from advisor.ranking.programs import LoweredCost, as_observed, cost_steps
from advisor.source import SourceProblem
from costdb.choosing import Bound, Chosen, RefusedError, Sized, Subject, SubjectError
from costdb.evaluate import Missing, Priced
from costdb.expr import ExprError, free_symbols, sym
from costdb.machines import Machine
from costdb.records import dataclass, nearest, replace

PROGRAM = "program"
"""The parameter that tells alternatives apart."""
_MOST_NAMED = 5
"""Of machines in a title."""


def load_kernel(
    path: str,
    name: str | None,
    observed: Sequence[Seen] = (),
    given: Mapping[str, int | float] = MappingProxyType({}),
) -> Kernel:
    """Return a kernel of a file: the one called `name`, or the only one.

    Parameters
    ----------
    path : str
    name : str or None
    observed : sequence of Seen
        What runs showed of it: functions that were seen are kernels, whatever the file says.
    given : mapping of str to number
        Sizes that arrays are made of which the file passes to functions that numba compiles.

    Raises
    ------
    SubjectError
        There is none, or several and none is named.
    SourceProblem
        The file does not parse, or an annotation cannot be right.
    OSError
        It cannot be read.
    """
    with deep_nesting_refused(path):
        source = read_source(path).text
        kernels = read_kernels(path, source, heaviest(observed))
        if name is None and len(kernels) > 1:
            # of several those are meant that the file calls kernels, if it does
            marked = {one.name for one in read_kernels(path, source)}
            kernels = tuple(one for one in kernels if one.name in marked) or kernels
        if not kernels or (name is not None and name not in {one.name for one in kernels}):
            kernels = _with_compiled(path, source, kernels, given)
    names = tuple(kernel.name for kernel in kernels)
    if not kernels:
        why = (
            "mark a function with @kernel, or say in comments what arrays it is passed"
            if may_call_compiled(source)
            else "mark a function with @kernel, or let advise run see the program run"
        )
        raise SubjectError(f"{path}: there is no kernel: {why}")
    if name is None and len(kernels) > 1:
        raise SubjectError(f"{path}: holds {', '.join(names)}: choose one with --kernel")
    found = [kernel for kernel in kernels if name in (None, kernel.name)]
    if not found:
        raise SubjectError(f"{path}: there is no kernel {name}{nearest(str(name), names)}")
    if len(found) > 1:
        raise SubjectError(f"{path}: {len(found)} kernels are named {found[0].name}")
    return found[0]


def _with_compiled(
    path: str, source: str, kernels: tuple[Kernel, ...], given: Mapping[str, int | float]
) -> tuple[Kernel, ...]:
    """Return also the functions that numba compiles, with the arrays that the file passes them."""
    if not may_call_compiled(source):
        return kernels
    from advisor.frontend.spmd.called import called

    known = {kernel.name for kernel in kernels}
    compiled = read_kernels(path, source, called(path, source, given=given))
    return (*kernels, *(kernel for kernel in compiled if kernel.name not in known))


def heaviest(observed: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return of each function the kind of call that weighed most."""
    found: dict[str, Seen] = {}
    for seen in by_signature(one for one in observed if one.arrays):
        if seen.function not in found or seen.weight > found[seen.function].weight:
            found[seen.function] = seen
    return tuple(found.values())


def kernel_subject(path: str, kernel: Kernel, machine: Machine) -> KernelSubject:
    """Return a kernel, as it is written, as the subject of predictions for `machine`.

    Raises
    ------
    SubjectError
        Its sizes contradict each other.
    """
    try:
        return KernelSubject(path, kernel, cost(kernel, machine))
    except Unpriced as unknown:
        line, column = unknown.span.start_line, unknown.span.start_column
        message = f"no price for kernel `{kernel.name}`: {unknown.reason}"
        return KernelSubject(path, kernel, SourceProblem(path, line, column, message))
    except ExprError as error:
        raise SubjectError(f"{path}: kernel `{kernel.name}`: {error}") from error


@dataclass(frozen=True, slots=True)
class KernelSubject(Sized):
    """A kernel and its price on a machine; see :class:`costdb.choosing.Subject`.

    A statement that is not understood is found by who asks for the price.
    """

    path: str
    kernel: Kernel
    costed: Costed | Missing | SourceProblem

    @property
    def origin(self) -> str:
        """File, line and name of the kernel."""
        return f"{self.path}:{self.kernel.span.start_line}: kernel `{self.kernel.name}`"

    @property
    def names(self) -> tuple[str, ...]:
        """Sizes: those with a value in the source, then the others."""
        used = set(self.costed.sizes) if isinstance(self.costed, Costed) else set()
        for array in self.kernel.arrays.values():
            used.update(*(free_symbols(extent) for extent in array.extents))
        sizes = self.kernel.sizes
        if not self.kernel.asked:
            # of what the file around a compiled function binds, it only knows its arrays' extents
            sizes = {name: binding for name, binding in sizes.items() if name in used}
        return tuple(dict.fromkeys((*sizes, *sorted(used))))

    def origins(self, given: Mapping[str, Chosen]) -> tuple[str, ...]:
        """Return which sizes a run bound, and none was given for."""
        return tuple(
            f"{name} = {binding.value:g}: {binding.origin}"
            for name, binding in self.kernel.sizes.items()
            if name not in given and binding.origin.startswith(OBSERVED)
        )

    def cautions(self, machine: Machine, given: Mapping[str, Chosen]) -> tuple[str, ...]:
        """Return what the price takes for granted that need not be so."""
        return tuple(about_cores(machine, ranks_of(self.kernel), self.bind(given).numbers))

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check that `given` are sizes of the kernel; the others are as the source says."""
        stated = {name: binding.value for name, binding in self.kernel.sizes.items()}
        if not isinstance(self.costed, Costed):
            # which sizes there are is not known
            stated = {**dict.fromkeys(given, 1), **stated}
        return self.bound(self.numbers(given, stated, whole_numbers_of(self.kernel)))

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the price of the kernel as it is written.

        Raises
        ------
        SourceProblem
            Some statement is not understood.
        """
        if isinstance(self.costed, SourceProblem):
            raise self.costed
        return self.costed if isinstance(self.costed, Missing) else self.costed.priced


def load_function(
    path: str, source: str, name: str | None, machine: Machine, messages: Sequence[SeenMessages]
) -> ProgramSubject | None:
    """Return a function of an SPMD program on a machine; None where the file holds none.

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
    if name is None:
        own = [f for f in program.functions if f.name != MODULE]
        if len(own) > 1:
            listed = ", ".join(f.name for f in own)
            raise SubjectError(f"{path}: {listed} communicate: choose one with --kernel")
        found = (own or program.functions)[0]
    elif (known := program.function(name)) is not None:
        found = known
    else:
        short = [f for f in program.functions if f.name.rpartition(".")[2] == name]
        if len(short) != 1:
            hint = nearest(name, [function.name for function in program.functions])
            raise SubjectError(f"{path}: no function {name} communicates{hint}")
        found = short[0]
    return ProgramSubject(path, program, found, cost_steps(found.body, machine))


@dataclass(frozen=True, slots=True)
class ProgramSubject(Sized):
    """One function with its price on a machine; see :class:`costdb.choosing.Subject`."""

    path: str
    program: Program
    function: SpmdFunction
    found: LoweredCost | Missing

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
        facts = self.program.sizes
        stated = {name: fact.value for name, fact in facts.items() if fact.value is not None}
        whole = [name for name, value in stated.items() if isinstance(value, int)]
        unbound = dict.fromkeys(given.keys() & facts.keys(), 0)
        numbers = self.numbers(given, {**unbound, **stated}, whole, least=0)
        return self.bound(with_derived({n: f.derived for n, f in facts.items()}, numbers))

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the price of the function as it is written."""
        if isinstance(self.found, Missing):
            return self.found
        priced = self.found.costed.priced
        return replace(priced, omitted=with_text(priced.omitted, self.program.context.lines))


@dataclass(frozen=True, slots=True)
class AlternativesSubject:
    """Several subjects that do the same job; one word says which is meant."""

    subjects: Mapping[str, Subject]
    by: str = PROGRAM

    @property
    def words(self) -> frozenset[str]:
        """The choice, and the words of any of them."""
        return frozenset({self.by}).union(*(one.words for one in self.subjects.values()))

    @property
    def origin(self) -> str:
        """All of them; what is one thing on several machines by its own name."""
        origins = dict.fromkeys(one.origin for one in self.subjects.values())
        if self.by == PROGRAM or len(origins) > 1:
            return " against ".join(self.subjects)
        many = len(self.subjects) > _MOST_NAMED
        named = f"{len(self.subjects)} machines" if many else ", ".join(self.subjects)
        return f"{next(iter(origins))} on {named}"

    @property
    def names(self) -> tuple[str, ...]:
        """The choice, and all sizes of any of them."""
        sizes = dict.fromkeys(name for s in self.subjects.values() for name in s.names)
        return (self.by, *sizes)

    def about(self, name: str) -> str:
        """Return what the first that knows a size says of it."""
        if name == self.by:
            return "one of " + ", ".join(self.subjects)
        return next((s.about(name) for s in self.subjects.values() if s.about(name)), "")

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Bind the chosen one; sizes that only others have do not concern it."""
        chosen = str(given.get(self.by, ""))
        if chosen not in self.subjects:
            raise RefusedError(f"{self.by} = {chosen}: {self.about(self.by)}")
        subject = self.subjects[chosen]
        for name in given:
            if name not in self.names:
                raise RefusedError(f"{self.origin}: there is no size {name}")
        own = {name: value for name, value in given.items() if name in subject.names}
        bound = subject.bind(own)
        if self.by != PROGRAM:  # what a machine has no price for is no choice, others may be
            missing = subject.price(bound.words)
            if isinstance(missing, Missing):
                raise RefusedError(f"no price on {chosen}: {missing.what.partition(';')[0]}")
        mine = {self.by: chosen}
        return Bound({**mine, **bound.words}, bound.numbers, {**mine, **bound.shown})

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the price of the chosen one."""
        own = {name: word for name, word in words.items() if name != self.by}
        return self.subjects[words[self.by]].price(own)

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return the alternatives."""
        if name == self.by:
            return tuple(self.subjects)
        first = next(iter(self.subjects.values()))
        return first.values(name, given)
