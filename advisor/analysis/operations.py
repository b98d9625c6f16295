"""Work of operations on one rank's part of an array, with the collectives they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain, combinations

from advisor.analysis.calls import cast, dense, product, view
from advisor.analysis.halos import OneRead, Reach
from advisor.analysis.owners import Operand, held, local_region
from advisor.analysis.placement import Facts, NotPriced, Placement, local_extents, transposed
from advisor.distribution import CyclicDim
from advisor.ir.dependence import largest
from advisor.ir.shapes import ArrayType
from advisor.ir.values import Called, Fourier, Range, Reduction
from advisor.numpy_functions import cost_of, spelled
from advisor.numpy_table import Shape, itemsize_of, promote, strong
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil,
    ceil_div,
    evaluate,
    free_symbols,
    log2,
    maximum,
    minimum,
    num,
)
from costdb.work import (
    NOTHING,
    Access,
    ArrayCall,
    ArrayOperation,
    Branch,
    Collective,
    CollectiveKind,
    Interpretation,
    Leaf,
    Message,
    Pattern,
    PrefixScan,
    Process,
    Region,
    RemoteGroup,
    SeqLoop,
    Statement,
    Visit,
)

STATEMENTS = "array statements"
PRODUCTS = "matrix products"
_FOR_A_PAIR = 50
"""What it takes to choose a pair of operands of `einsum`, in calls for one number."""
_PASSES = 2**5
"""A selection takes about as long as sorting so many at a time."""
_SUMMED = frozenset({"add", "multiply", "mean", "spread"})
"""Operations that are done in the type of their result, and not of their operand."""


def broadcast(found: ArrayType, placement: Placement) -> list[Process]:
    """Return what brings one element of an array to all ranks."""
    ranks = product(tuple(map(placement.ranks, range(len(placement.dims)))))
    if ranks == ONE:
        return []
    one = dense((ONE,), found.dtype)
    return [Leaf(Collective(CollectiveKind.BROADCAST, ranks, one, "broadcast"))]


def rolled(source: Operand, axis: int, amount: Expr) -> Reach:
    """Return what a periodic shift reads of other ranks."""
    placement, extents = source.placement, source.array.extents
    spread = [d for d in range(len(extents)) if placement.is_spread(d)]
    read = OneRead(
        {d: -amount if d == axis else ZERO for d in spread},
        {d: (ZERO, extent) for d, extent in enumerate(extents) if d not in spread},
    )
    regions = {d: placement.along(d, Range(ZERO, extents[d])) for d in spread}
    return Reach(source.array, placement, regions, (read,), wraps_after=extents[axis])


def wrapped(source: Operand, axis: int, before: Expr, after: Expr, facts: Facts) -> list[Process]:
    """Return what the ranks at the ends fetch for a periodic rim.

    No rank is at both ends, unless it is alone, so the wider side counts.
    """
    placement, found = source.placement, source.array
    if not placement.is_spread(axis):
        return []
    if isinstance(placement.dims[axis], CyclicDim):
        raise NotPriced("a periodic rim along a cyclically distributed dimension")
    extents = local_extents(placement, found.extents, facts)
    layers = largest((before, after), facts.minima)
    counts = tuple(layers if d == axis else extent for d, extent in enumerate(extents))
    region = local_region(found, placement, counts, facts)
    sent = Leaf(Message(region, f"halo messages, axis {axis}"))
    several = placement.along(axis, Range(ZERO, found.extents[axis])).several
    return [sent if several == ONE else Branch(several, sent, NOTHING)]


def copy(
    source: Operand, found: ArrayType, placement: Placement, facts: Facts, operation: ArrayOperation
) -> Process:
    """Return a copy of the local part into an array of its own.

    A library that only shows it otherwise (`operation` is a view) copies nothing.
    """
    accesses = _passed(source, found, placement, facts)
    call = view()
    if operation is not ArrayOperation.VIEW:
        call = _call(operation, source, found, accesses)
    return Leaf(Statement(accesses, ZERO, STATEMENTS, (call,)))


def scan(
    axis: int, source: Operand, found: ArrayType, placement: Placement, facts: Facts
) -> Process:
    """Return a prefix operation along one axis."""
    if isinstance(placement.dims[axis], CyclicDim) and placement.is_spread(axis):
        raise NotPriced("a scan along a cyclically distributed dimension")
    accesses = _passed(source, found, placement, facts)
    counts = accesses[1].region.counts
    edge = tuple(ONE if d == axis else count for d, count in enumerate(counts))
    call = _call(ArrayOperation.SCAN, source, found, accesses, axis)
    casts = cast(call, call.operands[0], source.array.dtype)
    stored = Visit(accesses[1].region)
    added = ArrayCall(
        ArrayOperation.BINARY, found.dtype, product(counts), stored, (stored,), fresh=False
    )
    return Leaf(
        PrefixScan(
            ranks=placement.ranks(axis),
            edge=local_region(found, placement, edge, facts),
            block=accesses[1].region,
            label=f"prefix scan, axis {axis}",
            calls=(*casts, call),
            correction=(added,),
        )
    )


def products(made: list[Process]) -> tuple[list[Process], Statement]:
    """Return the products that a sum fuses with, and what is done before: they are stored nowhere.

    What the factors themselves are made by stays.
    """
    match made:
        case [*before, Leaf(Statement(accesses=accesses) as work)]:
            loads = tuple(access for access in accesses if not access.store)
            return before, replace(work, accesses=loads)
    raise NotPriced("a product of something that is not computed element by element")


def reduction(
    value: Reduction,
    source: Operand,
    found: ArrayType,
    facts: Facts,
    fused: Statement | None = None,
) -> list[Process]:
    """Return a reduction along one axis, or over all of them; `fused` are products that it sums."""
    views: tuple[ArrayCall, ...] = ()
    factors: tuple[Visit, ...] = ()
    if fused is not None and fused.calls:
        *before, multiplied = fused.calls
        views, factors = tuple(before), multiplied.operands
    memory, axis, dtype = held(source, facts), value.axis, source.array.dtype
    counts, elements = memory.counts, product(memory.counts)
    kept = tuple(c for d, c in enumerate(counts) if axis is not None and d != axis)
    casts: tuple[ArrayCall, ...] = ()
    call = ArrayCall(
        ArrayOperation.MATVEC if factors else ArrayOperation.REDUCE,
        dtype,
        elements,
        Visit(dense(kept, found.dtype)) if kept else None,
        factors or (Visit(memory, source.name or ""),),
        fresh=bool(kept),
        axis_from_last=None if axis is None or factors else len(counts) - 1 - axis,
        length=elements if axis is None else counts[axis],
    )
    if not factors and value.operation in _SUMMED:
        call = replace(call, dtype=strong(found.dtype))
        casts = cast(call, call.operands[0], dtype)
    if casts and casts[0].result:
        # from the buffer, not from memory
        call = replace(call, operands=(casts[0].result,))
    accesses: tuple[Access, ...] = (Access(memory),)
    work = elements
    if fused is not None:
        accesses, work = fused.accesses, fused.operations + elements
    calls = (*views, *casts, call)
    made: list[Process] = [Leaf(Statement(accesses, work, STATEMENTS, calls))]
    along = range(len(counts)) if axis is None else (axis,)
    ranks = product(tuple(source.placement.ranks(d) for d in along))
    if ranks != ONE:
        region = dense(kept or (ONE,), found.dtype)
        made.append(Leaf(Collective(CollectiveKind.ALLREDUCE, ranks, region, "reduction")))
    return made


def fourier(
    value: Fourier, source: Operand, found: ArrayType, placement: Placement, facts: Facts
) -> list[Process]:
    """Return transforms along one axis; a distributed one is transposed there and back."""
    axis, before, behind = value.axis, list[Process](), list[Process]()
    if placement.is_spread(axis) and value.butterflies:
        if isinstance(placement.dims[axis], CyclicDim):
            raise NotPriced("butterflies along a cyclically distributed dimension")
        # in each of the last log2 P butterfly steps, a rank exchanges its whole part with another;
        # where P is no power of two, the next one bounds it
        part = local_region(found, placement, local_extents(placement, found.extents, facts), facts)
        exchange = Leaf(Message(part, f"butterfly exchanges, axis {axis}"))
        steps = ceil(log2(placement.ranks(axis)))
        before = [SeqLoop(f"butterfly.axis{axis}", ONE, steps, exchange)]
    elif placement.is_spread(axis):
        counts = list(local_extents(placement, found.extents, facts))
        others = [d for d in range(len(counts)) if d != axis and not placement.is_spread(d)]
        if not others:
            raise NotPriced("a Fourier transform with no local dimension to exchange for")
        ranks, other = placement.ranks(axis), others[0]
        counts[other] = ceil_div(counts[other], ranks)
        piece = local_region(found, placement, tuple(counts), facts)
        moves = f"transposition (all-to-all), axis {axis}"
        before = behind = [Leaf(Collective(CollectiveKind.ALLTOALL, ranks, piece, moves))]
        source = replace(source, placement=transposed(source.placement, axis, other))
        placement = transposed(placement, axis, other)
    each, transforms = 5 * _halvings(found.extents[axis]), (ArrayOperation.FFT, axis)
    work = along_lines(source, found, placement, each, transforms, facts, "Fourier transforms")
    return [*before, work, *behind]


def sorting(
    axis: int, source: Operand, found: ArrayType, placement: Placement, facts: Facts
) -> Process:
    """Return a sort along an axis that every rank holds whole."""
    if placement.is_spread(axis):
        raise NotPriced("a sort along a distributed dimension")
    compared, sorts = _halvings(found.extents[axis]), (ArrayOperation.SORT, axis)
    return along_lines(source, found, placement, compared, sorts, facts, "sort")


def _halvings(extent: Expr) -> Expr:
    return ZERO if extent == ZERO else log2(extent)


def called(name: str, sources: list[Operand], found: ArrayType, facts: Facts) -> list[Process]:
    """Return the work of a function that has a line in the table, or that Python has.

    Raises
    ------
    NotPriced
        No model knows how long it takes.
    """
    cost = cost_of(name)
    if cost is None:
        raise NotPriced(f"the time of {spelled(name)} is not known")
    if not cost:
        return []
    what, times = cost[0], Fraction(cost[1])
    source = sources[0] if sources else None
    memory = None if source is None else held(source, facts)
    counts = found.extents if memory is None else memory.counts
    last, elements = (counts or (ONE,))[-1], product(counts)
    given = () if source is None or memory is None else (Visit(memory, source.name or ""),)
    result = Visit(dense(found.extents, found.dtype)) if found.extents else None
    call = partial(ArrayCall, dtype=found.dtype, result=result, operands=given, fresh=True)
    if what == "python":
        # each element becomes an object, and objects are what it works on
        each = Interpretation(elements, loads=1, operations=int(times), loop=False)
        compared = elements * log2(maximum(2, last))
        more = [Leaf(Interpretation(compared, operations=1, loop=False))] * name.endswith("sorted")
        return [Leaf(each), *more]
    if what in ("each", "calls"):
        rows = product(found.extents) if what == "each" else ONE
        return [
            Leaf(Interpretation(rows, calls=int(times))),
            Leaf(
                Statement(
                    (),
                    elements,
                    STATEMENTS,
                    (call(ArrayOperation.REDUCE, elements=elements, length=last),),
                )
            ),
        ]
    match what:
        case "views":
            made = [view()]
            flat = name == "ravel" or (name == "reshape" and len(counts) > len(found.extents) == 1)
            if flat and memory not in (None, dense(counts, found.dtype)):
                # what does not lie in a row is copied into one
                made.append(call(ArrayOperation.COPY, elements=elements))
        case "sort":
            made = [call(ArrayOperation.SORT, elements=elements * times, length=last)]
        case "partition":
            made = [call(ArrayOperation.SORT, elements=elements * times, length=num(_PASSES))]
        case "products":
            # as many as in so many products of rows with one another, or of columns where there
            # are fewer, and with every other column
            dtype = promote(found.dtype, strong(sources[0].array.dtype))
            fewer = minimum(*counts[-2:]) if counts[1:] else ONE
            first = call(ArrayOperation.MATMUL, elements=elements, length=fewer * num(times))
            made = [view(), view(), replace(first, result=None, dtype=dtype)]
            if len(sources) > 1:
                columns = product(found.extents)
                made.append(call(ArrayOperation.MATMUL, elements=columns, length=last))
        case _:
            moved = product(found.extents) * num(times)
            length = last if what == "fft" else None
            made = [view(), call(ArrayOperation(what), elements=moved, length=length)]
    accesses = tuple(Access(one.region) for one in given)
    checks = [Leaf(Interpretation(ONE, calls=_CHECKS))] * (what == "products")
    if checks and counts[2:]:
        # of small matrices LAPACK takes about as long for an element as Python for a step
        steps = elements * num(times / 3)
        checks.append(Leaf(Interpretation(steps, operations=1, loop=False)))
    return [*checks, Leaf(Statement(accesses, elements, STATEMENTS, tuple(made)))]


_CHECKS = 8
"""So many calls from Python look at what NumPy's linear algebra is given, and make its results."""


_A_SUM = 24
"""What it takes `einsum` to begin each of its sums, in operations on one element: measured, as
372,816 sums of three products take 1.8 ms, 4 ns each beside the products."""


def contracted(value: Called, shapes: Sequence[Shape]) -> list[Process]:
    """Return the work of ``einsum``: a loop nest over all indices, or pairs of operands in turn.

    Of pairs that comes first which leaves the fewest elements, and of such the one with the fewest
    products. What both have and nothing else needs is summed by a product of matrices.
    """
    (_, subscripts), (_, optimized) = value.stated
    operands, _, result = subscripts.partition("->")
    pending = [frozenset(axes) for axes in operands.split(",")]
    extents = dict(zip(operands.replace(",", ""), chain.from_iterable(shapes), strict=True))

    def over(axes: Iterable[str]) -> Expr:
        return product(tuple(extents[axis] for axis in sorted(axes)))

    def size(axes: Iterable[str]) -> float:
        counts = over(axes)
        return float(evaluate(counts, dict.fromkeys(free_symbols(counts), 100)))

    def left(some: Sequence[frozenset[str]]) -> frozenset[str]:
        others = list(pending)
        for one in some:
            others.remove(one)
        return frozenset().union(*some) & frozenset(result).union(*others)

    def order(pair: Sequence[frozenset[str]]) -> tuple[float, float]:
        return size(left(pair)) - sum(map(size, pair)), size(pair[0] | pair[1])

    made: list[Process] = []
    while pending:
        some = tuple(pending) if optimized == "False" else min(combinations(pending, 2), key=order)
        axes, kept = frozenset[str]().union(*some), left(some)
        for one in some:
            pending.remove(one)
        if optimized == "True" and kept < axes and axes - kept == some[0] & some[1]:
            call = partial(ArrayCall, ArrayOperation.MATMUL, length=over(axes - kept))
            elements = over(kept)
        else:
            call = partial(ArrayCall, ArrayOperation.BINARY)
            # of up to three operands it has loops of their own
            elements = over(axes) * {2: 3, 3: 6}.get(len(some), 10 * len(some))
            elements += over(kept) * num(_A_SUM if kept < axes else 0)
        work = call(value.dtype, elements, None, (), fresh=False)
        made.append(Leaf(Statement((), elements, STATEMENTS, (work,))))
        if optimized == "True":
            made.append(Leaf(Interpretation(ONE, calls=_FOR_A_PAIR, loop=False)))
            pending += [kept] if pending else []
    return made


def along_lines(
    source: Operand,
    found: ArrayType,
    placement: Placement,
    operations: Expr,
    what: tuple[ArrayOperation, int],
    facts: Facts,
    label: str,
) -> Process:
    """Return an operation that passes over the local part with some work an element."""
    accesses = _passed(source, found, placement, facts)
    call = _call(what[0], source, found, accesses, what[1])
    work = product(accesses[1].region.counts) * operations
    return Leaf(Statement(accesses, work, label, (call,)))


def _passed(
    source: Operand, found: ArrayType, placement: Placement, facts: Facts
) -> tuple[Access, Access]:
    """Return the loads of an operand, and the stores to the array that is made of it."""
    counts = local_extents(placement, found.extents, facts)
    stored = local_region(found, placement, counts, facts)
    return Access(held(source, facts)), Access(stored, store=True)


def _call(
    operation: ArrayOperation,
    source: Operand,
    found: ArrayType,
    accesses: tuple[Access, Access],
    axis: int | None = None,
) -> ArrayCall:
    """Return a call that makes an array out of another one."""
    counts = accesses[1].region.counts
    return ArrayCall(
        operation,
        found.dtype,
        product(counts),
        Visit(dense(counts, found.dtype)),
        (Visit(accesses[0].region, source.name or ""),),
        fresh=True,
        axis_from_last=None if axis is None else len(counts) - 1 - axis,
        length=None if axis is None else counts[axis],
    )


def remote(
    table: Operand, places: Operand, stores: tuple[bool, ...], facts: Facts, *, casts: bool = False
) -> list[Process]:
    """Return references to uniformly random elements of a vector.

    They are read, or combined with values where `stores` holds True; the library converts these
    one by one where it `casts` them.
    """
    threads = table.placement.ranks(0)
    counts = local_extents(places.placement, places.array.extents, facts)
    if threads == ONE:
        return [_own_references(table, places, counts, stores, facts, casts=casts)]
    return [
        Leaf(
            RemoteGroup(
                product(counts),
                threads,
                Pattern.BASELINE,
                store,
                mixed=True,
                itemsize_bytes=itemsize_of(table.array.dtype),
            )
        )
        for store in stores
    ]


def chosen(source: Operand, mask: Operand, found: ArrayType, facts: Facts) -> Process:
    """Return the taking of the elements that a mask chooses.

    It takes as long as a choice between two numbers for each place of the mask.
    """
    memory, truth = held(source, facts), held(mask, facts)
    call = ArrayCall(
        ArrayOperation.WHERE,
        found.dtype,
        product(memory.counts),
        Visit(dense(memory.counts, found.dtype)),
        (Visit(memory, source.name or ""), Visit(truth, mask.name or "")),
        fresh=True,
    )
    accesses = (Access(memory), Access(truth))
    return Leaf(Statement(accesses, ZERO, STATEMENTS, (call,)))


def taken(table: Operand, places: list[Operand], found: ArrayType, facts: Facts) -> Process:
    """Return the taking of elements, or rows, at places along several axes, or of several."""
    memory, indices = held(table, facts), [held(one, facts) for one in places]
    elements = product(found.extents)
    made = Visit(dense(found.extents, found.dtype))
    operands = (Visit(memory, table.name or ""), *map(Visit, indices))
    call = ArrayCall(
        ArrayOperation.TAKE,
        found.dtype,
        # each further axis has a place to find
        elements * num(max(1, len(places))),
        made,
        operands,
        fresh=True,
        length=product(memory.counts),
    )
    accesses = (Access(memory), *map(Access, indices))
    return Leaf(Statement(accesses, ZERO, "references to random places", (call,)))


def put(table: Operand, given: list[Operand], count: Expr, facts: Facts, *, adds: bool) -> Process:
    """Return the storing of values at places, or the adding of them there.

    Stores take as long as reads.
    """
    memory, indices = held(table, facts), [held(one, facts) for one in given]
    call = ArrayCall(
        ArrayOperation.ADD_AT if adds else ArrayOperation.TAKE,
        table.array.dtype,
        count * num(max(1, len(table.array.extents))),
        Visit(memory, table.name or ""),
        tuple(map(Visit, indices)),
        fresh=False,
        length=product(memory.counts),
    )
    accesses = (*map(Access, indices), Access(memory, store=True))
    return Leaf(Statement(accesses, count, "references to random places", (call,)))


def tally(places: Operand, counted: Operand, facts: Facts) -> list[Process]:
    """Return the counting of one's own places, and the adding up of what all ranks counted."""
    counts = local_extents(places.placement, places.array.extents, facts)
    made = [_own_references(counted, places, counts, (False, True), facts)]
    ranks = product(tuple(map(places.placement.ranks, range(len(counts)))))
    if ranks != ONE:
        sums = dense(counted.array.extents, counted.array.dtype)
        made.append(Leaf(Collective(CollectiveKind.ALLREDUCE, ranks, sums, "reduction")))
    return made


def _own_references(
    table: Operand,
    places: Operand,
    counts: tuple[Expr, ...],
    stores: tuple[bool, ...],
    facts: Facts,
    *,
    casts: bool = False,
) -> Process:
    """Return references to random places of an array that one rank holds.

    Which lines they touch depends on the data. Rates of array operations price them by the length
    of the array; without such rates each counts as a line of its own, which is the most.
    """
    extents = local_extents(table.placement, table.array.extents, facts)
    held = Visit(local_region(table.array, table.placement, extents, facts), table.name or "")
    index = Visit(local_region(places.array, places.placement, counts, facts), places.name or "")
    dtype, elements = table.array.dtype, product(counts)
    taken = Visit(dense(counts, dtype))
    scatters = True in stores
    combined = ArrayOperation.ADD_AT_CAST if casts else ArrayOperation.ADD_AT
    call = ArrayCall(
        combined if scatters else ArrayOperation.TAKE,
        dtype,
        elements,
        held if scatters else taken,
        (index,) if scatters else (held, index),
        fresh=not scatters,
        length=product(extents),
    )
    whole_array = product(extents) * itemsize_of(dtype)
    anywhere = Region(itemsize_of(dtype), (elements,), (whole_array,))
    accesses = [Access(index.region), Access(anywhere)]
    accesses += [Access(anywhere, store=True)] if scatters else []
    work = elements if scatters else ZERO
    return Leaf(Statement(tuple(accesses), work, "references to random places", (call,)))
