"""What work and symbols a process holds, how many ranks do it at once, what it takes compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from advisor.analysis.calls import product
from advisor.analysis.placement import Placement, ranks_of
from advisor.ir.kernel import mapped, rebuilt
from costdb.arrays.amounts import is_table
from costdb.expr import ONE, ZERO, Expr, evaluate, free_symbols, less, num, substitute
from costdb.expr.nodes import Num
from costdb.lines.coefficients import region_line_bounds
from costdb.records import counted, dataclass, replace
from costdb.work import (
    UNREAD,
    ArrayCall,
    ArrayOperation,
    Branch,
    Collective,
    Interpretation,
    Leaf,
    Message,
    Parallel,
    ParLoop,
    PrefixScan,
    Process,
    Region,
    SeqLoop,
    Sequential,
    Statement,
    Visit,
    Work,
)


def works(process: Process) -> Iterator[Work]:
    """Yield all work of a process, in order."""
    match process:
        case Leaf(work):
            yield work
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from works(part)
        case SeqLoop(body=body) | ParLoop(body=body):
            yield from works(body)
        case Branch(_, then, orelse):
            yield from works(then)
            yield from works(orelse)


def of_work(process: Process, other: Callable[[Work], Process]) -> Process:
    """Return a process with another one in the place of each work."""

    def changed(part: object) -> object:
        if isinstance(part, Leaf):
            return other(part.work)
        return part if isinstance(part, Expr) else None

    return mapped(process, changed)


def meets(process: Process) -> bool:
    """Return whether ranks meet in a collective operation."""
    return any(isinstance(work, Collective | PrefixScan) for work in works(process))


# Under owner-computes all ranks of the mesh do their part at once and share caches and memory; in a
# recurrence over a distributed axis they take turns.


def ranks_together(placements: Iterable[Placement]) -> Expr:
    """Return how many ranks the largest mesh of a kernel has; 1 where nothing is distributed.

    Of several meshes whose sizes are not all known the first such counts.
    """
    found = [ranks_of(p.mesh, tuple(axis for axis, _ in p.mesh.axes)) for p in placements]
    known = [ranks for ranks in found if isinstance(ranks, Num)]
    if len(known) < len(found):
        return next(ranks for ranks in found if not isinstance(ranks, Num))
    return max(known, key=lambda ranks: ranks.value, default=ONE)


def in_turn(process: Process) -> Process:
    """Return work that one rank does after another."""
    return together(process, ONE)


def together(process: Process, ranks: Expr) -> Process:
    """Return work that so many ranks do at once, where no other number is stated already."""

    def done(work: Work) -> Process:
        if isinstance(work, Statement) and work.together is None:
            return Leaf(replace(work, together=ranks))
        return Leaf(work)

    return of_work(process, done)


def with_distances(process: Process, footprint_bytes: Expr) -> Process:
    """Return a process whose calls know how far what they have not met before comes.

    The kernel is thought of as called again and again: a region that moves through its array with a
    loop meets most lines only once in all the kernel's data.
    """

    def far(part: object) -> object:
        if isinstance(part, Visit) and part.advance_bytes not in (None, ZERO):
            return replace(part, distance_bytes=footprint_bytes)
        return part if isinstance(part, Expr) else None

    return mapped(process, far)


# What a process sends, counted: the evidence for what a price says of it.

Sizes = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A kind of message at given sizes.

    Attributes
    ----------
    label : str
    elements, itemsize_bytes, line_bytes : int
    lines_low, lines_high : int
        Distinct cache lines touched while marshalling one message, over all starts.
    """

    label: str
    elements: int
    itemsize_bytes: int
    line_bytes: int
    lines_low: int
    lines_high: int

    def __str__(self) -> str:
        """Describe the message in one line."""
        if self.lines_low == self.lines_high:
            lines = counted(self.lines_low, "cache line")
        else:
            lines = f"{self.lines_low} to {self.lines_high} cache lines"
        elements = counted(self.elements, "element")
        return (
            f"{self.label}: {elements} of {self.itemsize_bytes} B each time,"
            f" on {lines} of {self.line_bytes} B"
        )


def transfers(process: Process, sizes: Sizes, line_bytes: int) -> tuple[Transfer, ...]:
    """Return the kinds of messages a process sends, each once, in program order.

    Messages whose size depends on a loop's index are left out, and so are those that are not
    sent at these sizes.
    """
    bound = {name: num(size) for name, size in sizes.items()}
    found: dict[Transfer, None] = {}
    for label, region in _regions(process, bound):
        transfer = _at(label, region, bound, line_bytes)
        if transfer is not None:
            found[transfer] = None
    return tuple(found)


def _regions(process: Process, bound: Mapping[str, Expr]) -> Iterator[tuple[str, Region]]:
    match process:
        case Leaf(Message(region, label)):
            yield label, region
        case Leaf(PrefixScan(ranks, edge, _, label)) if substitute(ranks, bound) != num(1):
            yield f"{label}, each step", edge
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _regions(part, bound)
        case SeqLoop(_, low, high, body) | ParLoop(_, low, high, body):
            if substitute(less(high, low), bound) != num(1):
                yield from _regions(body, bound)
        case Branch(condition, then, orelse):
            decided = substitute(condition, bound)
            if decided != num(0):
                yield from _regions(then, bound)
            if decided != num(1):
                yield from _regions(orelse, bound)
        case _:
            return


def _at(label: str, region: Region, bound: Mapping[str, Expr], line_bytes: int) -> Transfer | None:
    fixed = rebuilt(region, lambda part: substitute(part, bound))
    elements = product(fixed.counts)
    if free_symbols(elements) or evaluate(elements, {}) <= 0:
        return None
    low, high = (int(evaluate(lines, {})) for lines in region_line_bounds(fixed, line_bytes))
    number = int(evaluate(elements, {}))
    return Transfer(label, number, region.itemsize_bytes, line_bytes, low, high)


# What a loop takes once a compiler of single functions has it, from what it takes interpreted.
#
# Steps of the interpreter become operations of a compiled loop, and calls of the array library on
# little data lose what calling takes. Amounts are in operations of a compiled loop whose iterations
# do not wait, the only ones that are calibrated: what stands in for others is estimated.


LABEL = "compiled loops"
WAITING = 20
"""An operation whose operands come from the iteration before takes its latency, four cycles; of
others a processor does several in each."""
FUNCTION = 60
"""A logarithm, a sine, a power: a call of the mathematical library for one number."""
ROOT = 20
"""A division or a square root."""
ALLOCATED = 500
"""An array that an iteration makes, however small."""
_FUNCTIONS = {
    ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION, ArrayOperation.CIRCULAR,
    ArrayOperation.POWER, ArrayOperation.REMAINDER,
}  # fmt: skip
_ROOTS = {ArrayOperation.ROOT, ArrayOperation.DIVIDE, ArrayOperation.DIVIDE_BY_ONE}
_ALGORITHMS = {ArrayOperation.SORT, ArrayOperation.FFT}
"""No compiler of loops has a faster one than the library."""


def compiled(process: Process, *, waiting: bool) -> Process:
    """Return what interpreted work takes compiled.

    Parameters
    ----------
    process : Process
    waiting : bool
        Whether each iteration may wait for the one before.
    """

    def other(work: Work) -> Process:
        match work:
            case Interpretation() if not (waiting and work.label == UNREAD):
                each = work.loads + work.stores + work.operations + int(work.loop)
                each += WAITING * (waiting and work.loop) + FUNCTION * (work.calls + work.functions)
                return _loop(work.iterations * each)
            case Statement(calls=tuple() as calls):
                return Leaf(replace(work, calls=tuple(map(_inlined, calls)), label=LABEL))
        return Leaf(work)

    return of_work(process, other)


def of_lists(process: Process, places: int) -> Process:
    """Return what interpreted work takes where elements are Python's numbers in lists.

    A step on such is no longer than an iteration, which takes a number and binds it. An element
    takes one for each of its `places`.
    """

    def other(work: Work) -> Process:
        if not isinstance(work, Interpretation):
            return Leaf(work)
        steps = places * (work.loads + work.stores) + work.operations + work.loop
        listed = replace(work, iterations=work.iterations * steps, loads=0, stores=0, operations=0)
        calls = replace(work, loads=0, stores=0, operations=0, loop=False)
        return Sequential((Leaf(replace(listed, calls=0, loop=True)), Leaf(calls)))

    return of_work(process, other)


def _loop(operations: Expr) -> Process:
    call = ArrayCall(ArrayOperation.COMPILED, "float64", operations)
    return Leaf(Statement((), operations, LABEL, (call,)))


def _inlined(call: ArrayCall) -> ArrayCall:
    """Return a call of the library as the loop that a compiler puts in its place."""
    if call.operation in _ALGORITHMS:
        return call
    each = num(FUNCTION if call.operation in _FUNCTIONS else 1)
    each = num(ROOT) if call.operation in _ROOTS else each
    if call.operation is ArrayOperation.MATMUL and call.length is not None:
        each = each * call.length
    made = num(ALLOCATED * call.fresh)
    # what is taken of a table are elements
    visits = (one for one in call.visits if not is_table(call, one))
    operands = tuple(one for one in visits if product(one.region.counts) != num(1))
    return replace(
        call,
        operation=ArrayOperation.COMPILED,
        dtype="float64",
        elements=call.elements * each + made,
        operands=operands,
        result=None,
        fresh=False,
        axis_from_last=None,
        length=None,
    )
