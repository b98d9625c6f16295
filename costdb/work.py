"""Work: what one rank does, in the words of the models, without any machine.

Sizes and counts are symbolic (:class:`costdb.expr.Expr`), so that one description serves every
problem size; units are in the names. Each class is priced by exactly one model
(:mod:`costdb.pricing` holds the table).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from costdb.expr import ZERO, Expr, free_symbols, num
from costdb.expr.nodes import Num, Rational
from costdb.records import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """A strided block of an array in one rank's memory.

    Attributes
    ----------
    itemsize_bytes : int
        Size of one element.
    counts : tuple of Expr
        Elements along each dimension.
    pitches_bytes : tuple of Expr
        Distance in memory between neighbours along each dimension, same length as `counts`.
    """

    itemsize_bytes: int
    counts: tuple[Expr, ...]
    pitches_bytes: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One message whose payload is gathered from (or scattered to) a region. Lines model."""

    region: Region
    label: str = "message"


@dataclass(frozen=True, slots=True)
class PrefixScan:
    """A prefix operation along one array axis, distributed over `ranks`. Lines model.

    Attributes
    ----------
    ranks : Expr
        Ranks along the scanned mesh dimension (1: purely local).
    edge : Region
        What one step sends: one slice of the block across the scanned axis.
    block : Region
        The local block, passed over about twice (once when `ranks` is 1).
    calls : tuple of ArrayCall or None
        The local scan as calls of an array library, where it is one.
    correction : tuple of ArrayCall or None
        Adding what the ranks before have, likewise.
    """

    ranks: Expr
    edge: Region
    block: Region
    label: str = "scan"
    calls: tuple[ArrayCall, ...] | None = None
    correction: tuple[ArrayCall, ...] | None = None


class CollectiveKind(StrEnum):
    """Collective operations that the models know."""

    REDUCE = "reduce"
    ALLREDUCE = "allreduce"
    BROADCAST = "broadcast"
    ALLGATHER = "allgather"
    ALLTOALL = "alltoall"
    GATHER = "gather"
    SCATTER = "scatter"
    REDUCE_SCATTER = "reduce_scatter"
    ALLGATHERV = "allgatherv"
    """Of pieces whose lengths may differ: libraries take other algorithms than for equal ones."""
    ALLTOALLV = "alltoallv"
    PREFIX = "prefix"
    """``Scan`` and ``Exscan`` on buffers."""


COMBINING = frozenset(
    (
        CollectiveKind.REDUCE,
        CollectiveKind.ALLREDUCE,
        CollectiveKind.REDUCE_SCATTER,
        CollectiveKind.PREFIX,
    )
)
"""Collectives that combine what they carry, which no message does."""

PICKLED_KINDS = (
    CollectiveKind.REDUCE,
    CollectiveKind.ALLREDUCE,
    CollectiveKind.BROADCAST,
    CollectiveKind.ALLGATHER,
    CollectiveKind.ALLTOALL,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
)
"""Collectives of Python objects. Prefix operations on them take the steps of a reduction."""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective over `ranks`; `region` is what one rank contributes to one partner or step.

    For ``allgather`` and ``alltoall`` that is one piece, sent (received) ``ranks - 1`` times; for
    ``gather`` and ``scatter`` one piece, of which the root receives (sends) ``ranks - 1``; for
    ``reduce_scatter`` the piece that one rank gets.
    """

    kind: CollectiveKind
    ranks: Expr
    region: Region
    label: str = "collective"


@dataclass(frozen=True, slots=True)
class PickledMessage:
    """A Python object sent by mpi4py's lower-case calls: ``send``, ``isend``, ``sendrecv``.

    One of it covers all of one message: serialisation at the sender, the transfer, and at the
    receiver the allocation of a buffer and the making of new objects. Pickle model.

    Attributes
    ----------
    region : Region
        What the payload's arrays hold, or the bytes of its numbers (a region of as many double
        words). Strided arrays are copied to one run before they are serialised.
    objects : Expr
        Python objects that are serialised one by one: the items of a list, say of ``tolist()``,
        or the entries of a dictionary. A bare array, number or text has none besides itself.
    plain : bool
        Whether it is Python's alone, a number or a list of such: arrays, and NumPy's numbers, take
        twenty times as long to serialise.
    """

    region: Region
    objects: Expr = ZERO
    label: str = "pickled message"
    plain: bool = False


@dataclass(frozen=True, slots=True)
class PickledCollective:
    """A lower-case collective of mpi4py over `ranks`. Pickle model.

    They are not the algorithms of the MPI library, but what mpi4py makes of them: ``allreduce``
    sends pickled messages up a tree to rank 0, which combines by the Python operator, and
    broadcasts a pickle of the result; ``bcast``, ``gather``, ``scatter``, ``allgather`` and
    ``alltoall`` exchange sizes first, then the bytes.

    Attributes
    ----------
    kind : CollectiveKind
        One of `PICKLED_KINDS`.
    ranks : Expr
    region : Region
        What one rank contributes (``reduce``, ``allreduce``, ``gather``, ``allgather``), what the
        root has (``bcast``), or one piece (``scatter``, ``alltoall``).
    objects : Expr
        As for :class:`PickledMessage`, of that region.
    plain : bool
        As there.
    """

    kind: CollectiveKind
    ranks: Expr
    region: Region
    objects: Expr = ZERO
    label: str = "pickled collective"
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """A traversal of a region by an array statement: all elements loaded, or all stored."""

    region: Region
    store: bool = False


class ArrayOperation(StrEnum):
    """What one call of an array library does; calls of one class cost alike."""

    VIEW = "view"
    FILL = "fill"
    COPY = "copy"
    CAST = "cast"
    TRANSPOSE = "transpose"
    UNARY = "unary"
    ROOT = "root"
    TRANSCENDENTAL = "transcendental"
    FUNCTION = "function"
    CIRCULAR = "circular"
    POWER = "power"
    BINARY = "binary"
    DIVIDE = "divide"
    DIVIDE_BY_ONE = "divide_by_one"
    REMAINDER = "remainder"
    COMPARE = "compare"
    WHERE = "where"
    SCAN = "scan"
    REDUCE = "reduce"
    ROLL = "roll"
    PAD = "pad"
    TAKE = "take"
    ADD_AT = "add_at"
    ADD_AT_CAST = "add_at_cast"
    MATMUL = "matmul"
    MATVEC = "matvec"
    FFT = "fft"
    SORT = "sort"
    LOOP = "loop"
    COMPILED = "compiled"


IN_BLAS = frozenset({"float32", "float64", "complex64", "complex128"})
"""Element types of matrices that BLAS multiplies; NumPy multiplies others by loops of its own."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Memory that one call of an array library reads or writes.

    Attributes
    ----------
    region : Region
        A dimension with pitch 0 is read again for each index along it.
    array : str
        Which array it is part of; empty for what only this statement has.
    distance_bytes : Expr or None
        Bytes that the program touches between two visits of the same lines, this call's own
        included; None: only those of this call.
    advance_bytes : Expr or None
        How much further in memory it lies at each visit, for a region that moves with a loop:
        lines that it keeps come from the visit before. None: all come from `distance_bytes`.
    """

    region: Region
    array: str = ""
    distance_bytes: Expr | None = None
    advance_bytes: Expr | None = None


@dataclass(frozen=True, slots=True)
class ArrayCall:
    """One call of an array library, as an interpreter makes it. Array model.

    Attributes
    ----------
    operation : ArrayOperation
    dtype : str
        Element type that is computed in, by NumPy's name.
    elements : Expr
        Elements of the result; of the operand where the call reduces.
    result : Visit or None
        Where it stores; None for a view.
    operands : tuple of Visit
        What it loads, scalars left out.
    fresh : bool
        Whether the result is an array that the call makes.
    axis_from_last : int or None
        Along which axis it runs, counted from the last one (0); None: all, or none.
    length : Expr or None
        Elements along that axis; the inner extent of a matrix product; places of a table.
    """

    operation: ArrayOperation
    dtype: str
    elements: Expr
    result: Visit | None = None
    operands: tuple[Visit, ...] = ()
    fresh: bool = False
    axis_from_last: int | None = None
    length: Expr | None = None

    @property
    def visits(self) -> tuple[Visit, ...]:
        """All memory it touches, loads first."""
        return self.operands if self.result is None else (*self.operands, self.result)


@dataclass(frozen=True, slots=True)
class Statement:
    """Local computation of one whole-array statement or loop nest.

    Lines model (`phi`, memory) or, where the profile has rates of array operations, the array
    model.

    Attributes
    ----------
    accesses : tuple of Access
        Every array read or written.
    operations : Expr
        Arithmetic operations.
    calls : tuple of ArrayCall or None
        What an array library is called for, in order; None where none is: compiled loops.
    together : Expr or None
        How many ranks do the like at the same time; None where that is not known, as 1.
    """

    accesses: tuple[Access, ...]
    operations: Expr
    label: str = "statement"
    calls: tuple[ArrayCall, ...] | None = None
    together: Expr | None = None


@dataclass(frozen=True, slots=True)
class Spacing:
    """How accesses of one processor to shared memory follow each other.

    Attributes
    ----------
    element_bytes : int
        What each of them accesses.
    between_bytes : Expr
        What other processors access between one and the next: 0 where all are neighbours.
    """

    element_bytes: int
    between_bytes: Expr


@dataclass(frozen=True, slots=True)
class Superstep:
    """A bulk-synchronous shared-memory superstep. SMP interval model.

    Counts are of elements: most reads and most writes of shared data by one processor, and the
    reads and writes of all processors together.

    Attributes
    ----------
    counted_bytes : int or None
        Size of the elements counted; None: of those that a machine's functions were fitted to.
    spacing : Spacing or None
        How a processor's accesses follow each other; None: not known, or not the same throughout.
    """

    processors: Expr
    reads: Expr
    writes: Expr
    total: Expr
    label: str = "superstep"
    spacing: Spacing | None = None
    counted_bytes: int | None = None


class Pattern(StrEnum):
    """Patterns of remote reference, worst first."""

    BASELINE = "baseline"
    COALESCE = "coalesce"
    VECTOR = "vector"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class RemoteGroup:
    """A group of references to shared data in a partitioned global address space. PGAS model.

    Attributes
    ----------
    count : Expr
        Double words touched by the slowest thread.
    threads : Expr
        Threads of the program.
    pattern : Pattern
        The best pattern that the subscripts admit.
    store : bool
        Writes instead of reads.
    mixed : bool
        Uniform over all threads: ``(T-1)/T`` of `pattern` and ``1/T`` local.
    calls : Expr
        One-sided operations that bring the words, where a program calls them itself: a ``Get`` of
        a row is one call of as many words. 0 where references are single, or a compiler's.
    itemsize_bytes : int
        Of elements that a message each fetches where a machine knows no other way; 0: none does.
    """

    count: Expr
    threads: Expr
    pattern: Pattern
    store: bool = False
    mixed: bool = False
    label: str = "remote references"
    calls: Expr = ZERO
    itemsize_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier over `ranks`."""

    ranks: Expr
    label: str = "barrier"


UNREAD = "steps of what is not understood"
"""Label of what is interpreted at least where nobody knows what it takes."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """Iterations of a loop that an interpreter runs statement by statement. Element model.

    Attributes
    ----------
    iterations : Expr
    loads, stores, operations, calls, functions : int
        Elements loaded and stored, operators on single numbers, calls of the array library for
        single numbers, and functions of its own that are written in Python, in each.
    loop : bool
        Whether an iteration of a loop begins with each.
    """

    iterations: Expr
    label: str = "interpreted iterations"
    loads: int = 0
    stores: int = 0
    operations: int = 0
    calls: int = 0
    functions: int = 0
    loop: bool = True


@dataclass(frozen=True, slots=True)
class Fixed:
    """Time that somebody states (a ``# advise: cost`` pragma), in microseconds."""

    microseconds: Expr
    label: str = "stated cost"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Work that no model prices: it takes some time, and nobody knows how much.

    Attributes
    ----------
    line : int
        Where it stands in the source.
    text : str
        What is written there.
    reason : str
        Why it has no price.
    """

    line: int
    text: str
    reason: str

    @property
    def label(self) -> str:
        """How reports name it."""
        return f"line {self.line}: {self.text}"


Work = (
    Message
    | PrefixScan
    | Collective
    | PickledMessage
    | PickledCollective
    | Statement
    | Superstep
    | RemoteGroup
    | Interpretation
    | Barrier
    | Fixed
    | Unknown
)


# Terms of the process algebra: who does what, in which order, on which resource.
#
# The algebra is that of the symbolic performance compilers (PAMELA and its descendants): a
# program is a term over delays and resource usage, composed in sequence and in parallel.
# Everything a term says about time is symbolic, so one term serves every problem size.


@dataclass(frozen=True, slots=True)
class Resource:
    """One first-come-first-served server of an indexed array of them.

    Attributes
    ----------
    index : Expr
        Which server; resources of one array are the same server when their indices are equal.
    multiplicity : Expr
        How many requests it serves at once (heads of a disk, links of a switch).
    array : str
        Servers of different arrays are different, whatever their indices.
    """

    index: Expr
    multiplicity: Expr
    array: str = "fcfs"


@dataclass(frozen=True, slots=True)
class Delay:
    """Time that passes without holding anything others want."""

    seconds: Expr


@dataclass(frozen=True, slots=True)
class Use:
    """Hold `resource` for some time; others who want it queue."""

    resource: Resource
    seconds: Expr


@dataclass(frozen=True, slots=True)
class Sequential:
    """Parts one after the other; no parts is the process that does nothing."""

    parts: tuple[Process, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Parts side by side, done when the last one is."""

    parts: tuple[Process, ...]


@dataclass(frozen=True, slots=True)
class SeqLoop:
    """`body` for each `variable` in ``low..high`` (inclusive; may be empty), in order."""

    variable: str
    low: Expr
    high: Expr
    body: Process


@dataclass(frozen=True, slots=True)
class ParLoop:
    """`body` for each `variable` in ``low..high`` (inclusive; may be empty), side by side."""

    variable: str
    low: Expr
    high: Expr
    body: Process


@dataclass(frozen=True, slots=True)
class Branch:
    """`then` with probability `condition`, else `orelse`.

    A comparison is a probability that happens to be 0 or 1.
    """

    condition: Expr
    then: Process
    orelse: Process


@dataclass(frozen=True, slots=True)
class Leaf:
    """Work of one of the other models, whose price a machine has yet to say."""

    work: Work


Process: TypeAlias = Delay | Use | Sequential | Parallel | SeqLoop | ParLoop | Branch | Leaf

NOTHING = Sequential(())
"""The process that takes no time."""


def repeated(times: Expr, body: Process) -> Process:
    """Return `body` so many times in order."""
    return body if times == num(1) else SeqLoop("pass", num(1), times, body)


def names_of_sizes(term: Process) -> frozenset[str]:
    """Return the names that bound a loop of `term` or choose a server; these are whole."""
    names: frozenset[str] = frozenset()
    pending: list[Process] = [term]
    seen: set[int] = set()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case Use(resource, _):
                names |= free_symbols(resource.index) | free_symbols(resource.multiplicity)
            case Sequential(parts) | Parallel(parts):
                pending.extend(parts)
            case SeqLoop(_, low, high, body) | ParLoop(_, low, high, body):
                names |= free_symbols(low) | free_symbols(high)
                pending.append(body)
            case Branch(_, then, orelse):
                pending.extend((then, orelse))
            case Delay() | Leaf():
                pass
    return names


def constant_of(expr: Expr) -> Rational | None:
    """Return the value of a constant, else None."""
    return expr.value if isinstance(expr, Num) else None
