"""The work of local steps: copies, new memory, arithmetic on arrays.

Each is told twice, as accesses to regions and as the call of the array library that it is, so that
either model can price it.
"""

from __future__ import annotations

from collections.abc import Iterable

from advisor.analysis.array_statements.calls import copied, dense, operation_class, view
from advisor.analysis.placed.placement import pitches_bytes
from advisor.analysis.spmd.regions import NoWork, itemsize, region_of, run_of, visited_region
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.numpy_shapes import count_of
from advisor.source import Span
from costdb.expr import ZERO, Expr, num
from costdb.expr.nodes import Num
from costdb.lines.coefficients import bytes_of
from costdb.work import (
    Access,
    ArrayCall,
    ArrayOperation,
    Interpretation,
    Region,
    Statement,
    Visit,
    Work,
)

ASSUMED_DTYPE = "float64"
"""The element type of arrays of which the source does not tell it."""

_CALLED = {
    "reduction": ArrayOperation.REDUCE,
    "scan": ArrayOperation.SCAN,
    "sort": ArrayOperation.SORT,
    "fourier": ArrayOperation.FFT,
    "roll": ArrayOperation.ROLL,
    "pad": ArrayOperation.PAD,
    "tally": ArrayOperation.ADD_AT,
}


def of_copy(step: Copy) -> Work:
    """Return the work of moving elements within one rank."""
    source = region_of(step.source)
    own = dense(source.counts, _dtype(step.target))
    target = own if step.allocates else region_of(step.target)
    dtypes = (_dtype(step.source), _dtype(step.target))
    visited = visited_region(step.source)
    stored = dense(visited.counts, dtypes[1]) if step.allocates else visited_region(step.target)
    visits = Visit(visited, step.source.buffer.name), Visit(stored, step.target.buffer.name)
    call = copied(*visits, dtypes, fresh=step.allocates)
    calls = (*_views((step.source, step.target), step.span), call)
    return Statement((Access(source), Access(target, store=True)), ZERO, "copies", calls)


def kept_copy(region: Region, dtype: str | None, label: str) -> Work:
    """Return the copying of a region to memory of a library's own."""
    known = dtype or ASSUMED_DTYPE
    item = region.itemsize_bytes
    aside = Region(item, region.counts, pitches_bytes(region.counts, "C", item))
    call = copied(Visit(region), Visit(aside), (known, known), fresh=False)
    return Statement((Access(region), Access(aside, store=True)), ZERO, label, (call,))


def _views(operands: Iterable[View | None], span: Span) -> tuple[ArrayCall, ...]:
    """Return the making of the views that are written out here; others have names."""
    here = {
        operand.span
        for operand in operands
        if operand is not None and not operand.is_whole and span.contains(operand.span)
    }
    return (view(),) * len(here)


def _dtype(view: View | None) -> str:
    return ASSUMED_DTYPE if view is None or view.dtype is None else view.dtype


def of_allocation(step: Allocate) -> tuple[Work, ...]:
    """Return the work of filling new memory; memory left undefined costs nothing."""
    if not step.filled or step.buffer.extents is None:
        return ()
    count, dtype = count_of(step.buffer.extents), step.buffer.dtype or ASSUMED_DTYPE
    region = run_of(count, itemsize(step.buffer.dtype))
    call = ArrayCall(ArrayOperation.FILL, dtype, count, Visit(region), fresh=True)
    return (Statement((Access(region, store=True),), ZERO, "fills", (call,)),)


def of_computation(step: Compute) -> tuple[Work, ...]:
    """Return the work of arithmetic on arrays.

    Raises
    ------
    NoWork
        Shapes or the cost of a library function are not known.
    """
    if step.what == "element":
        stored = 0 if step.target is None else 1
        return (Interpretation(num(1), loads=len(step.reads), stores=stored),)
    if step.what == "interpreted":
        operators = step.operations.value if isinstance(step.operations, Num) else 1
        return (Interpretation(num(1), operations=int(operators)),)
    if step.what == "tolist":
        count = num(1) if step.operations is None else step.operations
        read = tuple(Access(region_of(view)) for view in step.reads)
        return (Interpretation(count, loads=1), Statement(read, ZERO, "lists", (view(),)))
    if step.operations is None:
        called = "the time of a library function is not known"
        shapes = "the shapes of what is computed here are not known"
        raise NoWork(called if step.what == "call" else shapes)
    loads = [Access(region_of(view)) for view in step.reads]
    stores = [] if step.target is None else [Access(region_of(step.target), store=True)]
    calls = (*_views((*step.reads, step.target), step.span), _call(step, loads, stores))
    return (Statement((*loads, *stores), step.operations, step.what, calls),)


def _call(step: Compute, loads: list[Access], stores: list[Access]) -> ArrayCall:
    dtype = _dtype(step.reads[0] if step.reads else step.target)
    operands = tuple(Visit(visited_region(view), view.buffer.name) for view in step.reads)
    result = None
    if step.target is not None:
        result = Visit(visited_region(step.target), step.target.buffer.name)
    elements = _elements(stores or loads)
    fresh = step.target is not None and step.target not in step.reads and step.what != "fill"
    match step.what:
        case "fill":
            return ArrayCall(ArrayOperation.FILL, dtype, elements, result)
        case "reduction" | "scan" | "sort" | "fourier" | "roll" | "pad" | "tally":
            count = _elements(loads if step.what in ("reduction", "tally") else stores or loads)
            length = step.length
            if step.what == "tally":
                length = _elements(stores)
            elif step.what == "reduction" and length is None:
                length = count
            return ArrayCall(
                _CALLED[step.what],
                dtype,
                count,
                result,
                operands,
                fresh=fresh and step.what != "tally",
                axis_from_last=step.axis_from_last,
                length=length,
            )
        case "product":
            # two vectors make one number
            made, operation = elements if stores else num(1), ArrayOperation.MATMUL
            flat = any(len(o.region.counts) == 1 for o in operands)
            if step.length is not None and (flat or not stores):
                # every element of the matrix is used once: nothing is brought near to stay there
                made, operation = made * step.length, ArrayOperation.MATVEC
            return ArrayCall(operation, dtype, made, result, operands, fresh, length=step.length)
    arrays = len(operands)
    operation = operation_class(step.operation, dtype, arrays, by_one=arrays < 2)
    return ArrayCall(operation, dtype, elements, result, operands, fresh)


def _elements(accesses: list[Access]) -> Expr:
    if not accesses:
        return num(1)
    region = accesses[0].region
    return bytes_of(region) / region.itemsize_bytes
