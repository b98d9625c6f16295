"""What a function of an SPMD program does, in order.

A step that is a loop, a branch or a call holds further steps. :func:`walk` goes through them all
and says what is around each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache

from advisor.ir.spmd.memory import Buffer, Order, Payload, View
from advisor.ir.values import Elementwise, Point, Value
from advisor.source import Span
from costdb.expr import Expr, ExprError, evaluate, free_symbols, num, substitute, sym
from costdb.records import dataclass, field

_MOST_COUNTED = 2000
"""Of longer loops so many iterations are asked whether a condition holds in them."""
_GOLDEN = (5**0.5 - 1) / 2

# --- ranks ----------------------------------------------------------------------------------------
# Who takes part: communicators, and the partners of a message.


class CommKind(StrEnum):
    """How a communicator came to be."""

    WORLD = "world"
    SELF = "self"
    CARTESIAN = "cartesian"
    SPLIT = "split"
    NODE = "node"
    GIVEN = "given"
    """A parameter or an attribute that nothing in the file binds."""


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator. Duplicates are the communicator that they duplicate.

    Attributes
    ----------
    kind : CommKind
    text : str
        The expression that made it, or the name of the parameter: tells communicators apart.
    size, rank : Expr
        Symbols. Those of ``COMM_WORLD`` and of a communicator that a function is given are
        called ``P`` and ``rank``; others ``P.NAME`` and ``rank.NAME``.
    span : Span
        Where it was made.
    dims : tuple of Expr or None
        Extents of a Cartesian communicator, where they are known.
    periods : tuple of (bool or None) or None
        Which of its dimensions wrap around; None where that is not known.
    duck_typed : bool
        Known only from how it is used: nothing in the file says that it is mpi4py's.
    """

    kind: CommKind
    text: str
    size: Expr
    rank: Expr
    span: Span
    dims: tuple[Expr, ...] | None = None
    periods: tuple[bool | None, ...] | None = None
    duck_typed: bool = False


class PartnerKind(StrEnum):
    """How a rank names the other end of a message."""

    RANK = "rank"
    """`Partner.rank` is an expression over the own rank, the size and loop indices."""
    NEIGHBOUR = "neighbour"
    """The neighbour `displacement` away along `axis` of a Cartesian communicator."""
    NOBODY = "nobody"
    """``PROC_NULL``."""
    ANY = "any"
    """``ANY_SOURCE``: whoever sends first, as in task farms."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Partner:
    """The other end of a message.

    Attributes
    ----------
    kind : PartnerKind
    text : str
        As in the source, ``""`` where a default is meant.
    rank : Expr or None
        Set for `PartnerKind.RANK`.
    axis, displacement : int or None
        Set for `PartnerKind.NEIGHBOUR`.
    may_be_nobody : bool
        ``PROC_NULL`` on some ranks.
    span : Span or None
    """

    kind: PartnerKind
    text: str
    rank: Expr | None = None
    axis: int | None = None
    displacement: int | None = None
    may_be_nobody: bool = False
    span: Span | None = None


# --- steps ----------------------------------------------------------------------------------------


class Op(StrEnum):
    """Operations of MPI, whatever their spelling: blocking or not, pickled or not."""

    SEND = "send"
    RECV = "recv"
    SENDRECV = "sendrecv"
    PROBE = "probe"
    BARRIER = "barrier"
    BCAST = "bcast"
    REDUCE = "reduce"
    ALLREDUCE = "allreduce"
    REDUCE_SCATTER = "reduce_scatter"
    SCAN = "scan"
    EXSCAN = "exscan"
    GATHER = "gather"
    ALLGATHER = "allgather"
    SCATTER = "scatter"
    ALLTOALL = "alltoall"
    NEIGHBOR_ALLGATHER = "neighbor_allgather"
    NEIGHBOR_ALLTOALL = "neighbor_alltoall"
    GET = "get"
    PUT = "put"
    ACCUMULATE = "accumulate"
    FENCE = "fence"
    LOCK = "lock"
    UNLOCK = "unlock"
    FLUSH = "flush"


@dataclass(frozen=True, slots=True)
class Communicate:
    """One call of a communicator's or a window's method.

    Attributes
    ----------
    op : Op
    method : str
        As in the source: ``Isend``, ``allreduce``, ``Allgatherv``.
    communicator : Communicator
        Of a window: the one that it was made on.
    span : Span
        The call.
    statement : Span
        The whole statement that the call stands in.
    pickled : bool
        A lower-case method, which serialises Python objects.
    blocking : bool
    varying : bool
        A ``v`` or ``w`` form: every rank may contribute another count.
    mode : str
        ``"synchronous"``, ``"buffered"`` or ``"ready"`` sends; ``""`` for the standard mode.
    send, receive : Payload or None
        A lower-case receive without a buffer has no `receive`; see `result` and `comes`.
        ``MPI.IN_PLACE`` leaves `send` None and sets `in_place`.
    comes : Payload or None
        What a lower-case receive is sent, where every send that it may match carries the same.
    in_place : bool
    dest, source : Partner or None
    tag : Expr or None
    root : Expr or None
        0 where it is left out.
    operation : str or None
        ``"SUM"``, ``"MAX"``, ...; None where it is not known. Collectives only.
    result : str or None
        What the returned value is assigned to, as in the source.
    places : mapping of str to Span
        Where each argument stands, by mpi4py's name of the parameter (``buf``, ``sendbuf``,
        ``sendobj``, ``dest`` ...), with its keyword where it has one; ``"method"`` is the name
        of the method, ``"receiver"`` what stands before its dot.
    receiver : str
        What stands before the dot.
    window : str or None
        Name of the window, for one-sided operations.
    """

    op: Op
    method: str
    communicator: Communicator
    span: Span
    statement: Span
    pickled: bool = False
    blocking: bool = True
    varying: bool = False
    mode: str = ""
    send: Payload | None = None
    receive: Payload | None = None
    comes: Payload | None = None
    in_place: bool = False
    dest: Partner | None = None
    source: Partner | None = None
    tag: Expr | None = None
    root: Expr | None = None
    operation: str | None = None
    result: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False)
    receiver: str = ""
    window: str | None = None

    @property
    def replaces(self) -> bool:
        """Whether what comes takes the place of what is sent, as in ``Sendrecv_replace``."""
        return self.op is Op.SENDRECV and "buf" in self.places

    def __hash__(self) -> int:
        return hash((self.op, self.method, self.span, self.receiver))


@dataclass(frozen=True, slots=True)
class Wait:
    """``request.Wait()``, ``Waitall`` and their like."""

    span: Span


@dataclass(frozen=True, slots=True)
class Copy:
    """Elements move from one array to another of this rank: staging, unpacking, ``.copy()``.

    `allocates` says that `target` is new memory each time.
    """

    target: View
    source: View
    span: Span
    allocates: bool = False


@dataclass(frozen=True, slots=True)
class Allocate:
    """New memory without meaningful content, or filled with a constant."""

    buffer: Buffer
    span: Span
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Compute:
    """Arithmetic on arrays of this rank.

    Attributes
    ----------
    target : View or None
        What is written; None for a result that is a number.
    reads : tuple of View
    value : Value or None
        What is computed: one operation, whose operands are numbers and ``Read("0", ...)`` for the
        first of `reads`, and so on. None where that, or how much of it, is not known.
    span : Span
        Of the statement.
    what : str
        ``"element"``: a single one, read or written by the interpreter; ``"tolist"``: all of them
        as objects; ``"call"``: a library function of unknown cost; ``""`` for operations.
    allocates : bool
        Whether `target` is new memory each time.
    places : tuple of Value
        At which places along its first axes it is stored, where only the data know.
    """

    target: View | None
    reads: tuple[View, ...]
    value: Value | None
    span: Span
    what: str = ""
    allocates: bool = False
    places: tuple[Value, ...] = ()

    @property
    def operation(self) -> str:
        """NumPy's name of an elementwise operation: ``"add"``, ``"sqrt"``."""
        return self.value.operation if isinstance(self.value, Elementwise) else ""


@dataclass(frozen=True, slots=True)
class Interpret:
    """The interpreter's own work on numbers: so many operators, comparisons and calls."""

    operations: Expr
    span: Span


class ConditionKind(StrEnum):
    """On what a branch depends."""

    RANK = "rank"
    """Different ranks may take different branches."""
    DATA = "data"
    """What the program computes decides, on every rank for itself."""
    UNIFORM = "uniform"
    """The same on every rank, as far as can be seen: loop indices, options, constants."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a branch.

    Attributes
    ----------
    kind : ConditionKind
    text : str
        As in the source.
    span : Span
    value : Expr or None
        1 where it holds and 0 elsewhere, over ranks, sizes and loop indices; None where it
        cannot be said.
    single_rank : Expr or None
        Set where `value` is ``rank == something``: one rank only.
    probability : Expr or None
        From a ``# advise: prob`` pragma.
    """

    kind: ConditionKind
    text: str
    span: Span
    value: Expr | None = None
    single_rank: Expr | None = None
    probability: Expr | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """``if``; a chain of ``elif`` nests in `orelse`."""

    condition: Condition
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]
    span: Span


class LoopKind(StrEnum):
    """What repeats."""

    COUNTED = "counted"
    """``for v in range(low, high, step)``."""
    ELEMENTS = "elements"
    """Over the elements of a sequence."""
    WHILE = "while"
    THREADS = "threads"
    """numba's ``prange``: iterations are divided among threads."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop.

    Attributes
    ----------
    kind : LoopKind
    variable : str
        Symbol of its index in the body; ``""`` where it has none.
    low, high : Expr
        ``low <= variable < high``; for other loops 0 and the number of trips.
    step : int
    trips : Expr or None
        How often the body runs; None where the source does not tell, with `why` saying so.
    body : tuple of Step
    span : Span
        Its header.
    why : str
    by_rank : bool
        Ranks run different iterations: ``range(rank, n, size)``, ``range(lo, hi)`` of a block.
    timing : bool
        Repeats the same to measure it.
    stride : Expr or None
        The step, where it is no literal (`step` is 1 then): ``range(rank, n, size)``.
    """

    kind: LoopKind
    variable: str
    low: Expr
    high: Expr
    step: int
    trips: Expr | None
    body: tuple[Step, ...]
    span: Span
    why: str = ""
    by_rank: bool = False
    timing: bool = False
    stride: Expr | None = None

    @property
    def every(self) -> Expr:
        """The step, a literal or not."""
        return num(self.step) if self.stride is None else self.stride


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the same file, with what it does there."""

    function: str
    body: tuple[Step, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Leave:
    """``return``, ``break``, ``continue``, ``raise``, ``sys.exit()``."""

    how: str
    span: Span


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that is not understood; it may read or change every name that it mentions."""

    reason: str
    span: Span
    mentions: frozenset[str] = frozenset()


Step = (
    Communicate
    | Wait
    | Copy
    | Allocate
    | Compute
    | Interpret
    | Branch
    | Loop
    | Call
    | Leave
    | Unknown
)


@dataclass(frozen=True, slots=True)
class Visit:
    """A step and what is around it.

    Attributes
    ----------
    step : Step
    loops : tuple of Loop
        Around it, outermost first.
    branches : tuple of (Branch, bool)
        Around it, and whether it stands in the first part.
    calls : tuple of Call
        Around it, when calls are entered.
    block : tuple of Step
        The steps that it stands among.
    position : int
        Its place among them.
    """

    step: Step
    loops: tuple[Loop, ...] = ()
    branches: tuple[tuple[Branch, bool], ...] = ()
    calls: tuple[Call, ...] = ()
    block: tuple[Step, ...] = ()
    position: int = 0

    @property
    def depth(self) -> int:
        """Loops around the step; loops that only repeat a measurement do not count."""
        return sum(1 for loop in self.loops if not loop.timing)

    def begins(self, line: int) -> bool:
        """Return whether the step is a loop that begins in a line, and within no other such."""
        loops = [one for one in (*self.loops, self.step) if isinstance(one, Loop)]
        return [one for one in loops if one.span.start_line == line] == [self.step]

    def times(self, sizes: Mapping[str, int | float], unknown: float | None = None) -> float | None:
        """Return how often the step runs, each loop of which nothing tells `unknown` times.

        Of conditions those count that ask for the index of one loop: ``if i % 10 == 0``.
        """
        found = 1.0
        for loop in self.loops:
            trips = unknown
            with suppress(ExprError, ArithmeticError):
                trips = unknown if loop.trips is None else float(evaluate(loop.trips, sizes))
            if trips is None:
                return None
            found *= self._held(loop, trips, sizes)
        return found

    def _held(self, loop: Loop, trips: float, sizes: Mapping[str, int | float]) -> float:
        """Return in how many iterations of a loop the conditions hold that ask for its index."""
        asked = tuple(
            (branch.condition.value, first)
            for branch, first in self.branches
            if branch.condition.value is not None
            and loop.variable in free_symbols(branch.condition.value) <= {loop.variable, *sizes}
        )
        if loop.trips is None or not asked:
            return trips
        used = frozenset().union(*(free_symbols(value) for value, _ in asked)) & sizes.keys()
        with suppress(ExprError, ArithmeticError):
            low, every = (int(evaluate(one, sizes)) for one in (loop.low, loop.every))
            indices = range(low, low + int(trips) * every, every)
            return _counted(asked, loop.variable, indices, tuple((n, sizes[n]) for n in used))
        return trips


@lru_cache(maxsize=64)
def _counted(
    asked: tuple[tuple[Expr, bool], ...],
    index: str,
    indices: range,
    sizes: tuple[tuple[str, int | float], ...],
) -> int:
    """Return for how many values of an index all of some conditions are as they are asked to be."""

    def held(some: Iterable[int]) -> int:
        every = ({**dict(sizes), index: k} for k in some)
        return sum(all(bool(evaluate(v, one)) == first for v, first in asked) for one in every)

    if (trips := len(indices)) <= _MOST_COUNTED:
        return held(indices)
    # multiples of the golden section keep to no step; the ends are often asked for
    spread = (indices[int(k * _GOLDEN % 1 * trips)] for k in range(1, _MOST_COUNTED + 1))
    most = round(held(spread) / _MOST_COUNTED * (trips - 2))
    return max(1, held((indices[0], indices[-1])) + most)


def walk(steps: tuple[Step, ...], *, into_calls: bool = False) -> Iterator[Visit]:
    """Yield all steps in program order, outer ones before those within them."""
    yield from _walk(steps, Visit(Leave("", Span(1, 0, 1, 0))), into_calls)


def _walk(steps: tuple[Step, ...], around: Visit, into_calls: bool) -> Iterator[Visit]:
    for position, step in enumerate(steps):
        here = Visit(step, around.loops, around.branches, around.calls, steps, position)
        yield here
        match step:
            case Loop():
                inner = Visit(step, (*here.loops, step), here.branches, here.calls)
                yield from _walk(step.body, inner, into_calls)
            case Branch():
                for part, first in ((step.then, True), (step.orelse, False)):
                    guarded = (*here.branches, (step, first))
                    inner = Visit(step, here.loops, guarded, here.calls)
                    yield from _walk(part, inner, into_calls)
            case Call() if into_calls:
                inner = Visit(step, here.loops, here.branches, (*here.calls, step))
                yield from _walk(step.body, inner, into_calls)


# How parallel loops deal elements out to threads: in turn, or in blocks.


def is_dealt_in_turn(outer: Loop, inner: Loop) -> bool:
    """Return whether ``for i in range(t, n, T)`` stands in ``for t in prange(T)``."""
    return (
        outer.kind is LoopKind.THREADS
        and inner.kind is LoopKind.COUNTED
        and outer.low == num(0)
        and outer.step == 1
        and outer.stride is None
        and outer.high != num(1)
        and inner.low == sym(outer.variable)
        and inner.every == outer.high
    )


def follows(view: View, variable: str) -> bool:
    """Return whether a view is one element, and the next in memory for the next index of a loop."""
    if view.region is None or not view.region or view.transposed or view.flat:
        return False
    if len(view.region) > 1 and view.buffer.order is Order.UNKNOWN:
        return False
    *others, last = view.region[::-1] if view.buffer.order is Order.F else view.region
    if not isinstance(last, Point) or variable not in free_symbols(last.at):
        return False
    if any(not isinstance(i, Point) or variable in free_symbols(i.at) for i in others):
        return False
    return substitute(last.at, {variable: sym(variable) + 1}) == last.at + 1
