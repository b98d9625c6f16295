"""A file of an SPMD program: its functions, and what is known of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isqrt
from typing import Any, Protocol

from advisor.ir.kernel import Legality, Rule, SourceContext
from advisor.ir.spmd.memory import Buffer
from advisor.ir.spmd.steps import Communicate, Loop, Step, Visit, walk
from advisor.source import Edit, Span
from costdb.expr import Expr, ExprError, evaluate
from costdb.records import dataclass, field

RANKS = "P"
"""The symbol of the number of ranks of ``COMM_WORLD``."""

RANK = "rank"
"""The symbol of the own rank in ``COMM_WORLD``."""

THREADS = "threads"
"""The symbol of the number of threads that share a parallel loop."""


# Sizes that a program works out from others: factors of the number of ranks, mostly.

Number = int | float


@dataclass(frozen=True, slots=True)
class LargerFactor:
    """The first extent that ``MPI.Compute_dims`` chooses for two axes: the larger one."""

    nodes: Expr

    def value(self, values: Mapping[str, Number]) -> int | None:
        """Return it; None where its sizes are not known."""
        nodes = number_of(self.nodes, values)
        if nodes is None or nodes < 1:
            return None
        return next(nodes // d for d in range(isqrt(nodes), 0, -1) if nodes % d == 0)


Derived = LargerFactor


def number_of(expr: Expr | None, values: Mapping[str, Number]) -> int | None:
    """Return a whole number; None where its sizes are not known."""
    try:
        return None if expr is None else int(evaluate(expr, values))
    except (ExprError, ArithmeticError):
        return None


def with_derived(
    rules: Mapping[str, Derived | None], values: Mapping[str, Number]
) -> dict[str, Number]:
    """Return values with those that follow from them, in the order of the source."""
    found = dict(values)
    for name, rule in rules.items():
        if rule is not None and name not in found:
            value = rule.value(found)
            if value is not None:
                found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class SizeFact:
    """What is known of a symbol.

    Attributes
    ----------
    value : int, float or None
        None: nothing binds it.
    origin : str
        What says so, for a report: ``"line 12"``, ``"default of --size, line 7"``,
        ``"mpirun -n 4, line 3"``, ``"assert, line 9"``; where `value` is None, why.
    span : Span or None
    derived : Derived or None
        How the program works it out from other sizes.
    tried : bool
        A command line in the text has it, which shows how to try the program: nothing asks for it.
    """

    value: int | float | None
    origin: str
    span: Span | None = None
    derived: Derived | None = None
    tried: bool = False


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a function of the file is called.

    Attributes
    ----------
    span : Span
    depth : int
        Loops around the call, with those around its caller's own calls.
    """

    span: Span
    depth: int


@dataclass(frozen=True, slots=True)
class SpmdFunction:
    """One function, as every rank runs it.

    Attributes
    ----------
    name : str
        ``solve``, ``Grid.exchange``, or `MODULE`.
    span : Span
        Its name where it is defined; line 1 for the module.
    whole : Span
        All of it.
    body : tuple of Step
    parameters : tuple of str
    buffers : tuple of Buffer
        Those that the function makes.
    calls : tuple of CallSite
        Where the file calls it; none for one that only others call.
    depth : int
        The most loops around any of its calls: what it does outside loops of its own may be
        inside those.
    returned : frozenset of str
        Names that its ``return`` statements mention.
    """

    name: str
    span: Span
    whole: Span
    body: tuple[Step, ...]
    parameters: tuple[str, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    calls: tuple[CallSite, ...] = ()
    depth: int = 0
    returned: frozenset[str] = frozenset()

    def visits(self) -> Iterator[Visit]:
        """Yield the function's own steps; functions that it calls have theirs."""
        return walk(self.body)

    def operations(self) -> Iterator[tuple[Visit, Communicate]]:
        """Yield every communication operation with what is around it."""
        for visit in self.visits():
            if isinstance(visit.step, Communicate):
                yield visit, visit.step

    def weight(self, visit: Visit) -> int:
        """Return how many loops a step is in, with those around the function's calls."""
        return visit.depth + self.depth


@dataclass(frozen=True, slots=True)
class Program:
    """A file.

    Attributes
    ----------
    path : str
    functions : tuple of SpmdFunction
        Those that communicate, themselves or through what they call, and those with parallel
        loops; in the order of the source, the module last.
    sizes : mapping of str to SizeFact
        Every symbol of the functions, `RANKS` included. A symbol is called as the source calls
        the variable; a name with several meanings has a number after it.
    context : SourceContext
        The text around; `SourceContext.array_module` is what NumPy is imported as.
    mpi_module : str or None
        What ``mpi4py.MPI`` is imported as.
    found : dict
        What follows from it alone, see :func:`advisor.ir.kernel.once`.
    """

    path: str
    functions: tuple[SpmdFunction, ...]
    sizes: Mapping[str, SizeFact]
    context: SourceContext = field(repr=False)
    mpi_module: str | None = None
    found: dict[object, Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    def function(self, name: str) -> SpmdFunction | None:
        """Return a function by its name."""
        return next((f for f in self.functions if f.name == name), None)


# What a rule about SPMD programs offers: other operations in the place of some.
#
# The engine prices both sides with the same models, at the sizes and ranks that the source or the
# user gives, and ranks by the gain. A rule states operations; it never states a cost.


@dataclass(frozen=True, slots=True)
class ProgramProposal:
    """One way to write part of a program otherwise.

    Attributes
    ----------
    title : str
        What to do, as an imperative: "send the array as a buffer".
    reason : str
        Why it can be faster, without numbers.
    span : Span
        The line that a person should look at: the call.
    function : SpmdFunction
    before, after : tuple of Step
        The steps that change, and what stands in their place; none where they have no price.
        Steps that stay as they are need not be there. Loops that enclose the change are given in
        `loops`, not here; a loop that the change removes or adds is a step.
    loops : tuple of Loop
        Around the steps in the function, outermost first: ``visit.loops``.
    legality : Legality
    edits : callable returning tuple of Edit
        Builds the edits; called only when somebody looks at them. Empty where the source cannot
        be changed mechanically.
    ranks_from : int
        From how many ranks on there are fewer messages, so that it is told without a price too;
        0 where only a price tells.
    """

    title: str
    reason: str
    span: Span
    function: SpmdFunction
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    legality: Legality
    loops: tuple[Loop, ...] = ()
    edits: Callable[[], tuple[Edit, ...]] = tuple
    ranks_from: int = 0


class ProgramTransform(Rule, Protocol):
    """A rule about SPMD programs, found through the group ``advise.program_transforms``."""

    def propose_program(self, program: Program) -> Iterable[ProgramProposal]:
        """Yield every alternative to what the program does.

        Proposals that speak of the same `span` compete; the fastest is told, the others are its
        alternatives.
        """
