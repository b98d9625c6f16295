"""Arrays that NumPy makes anew: of a shape, a range, Python's values, random numbers, a file."""

from __future__ import annotations

from advisor.frontend.spmd.numpy_arguments import (
    Arguments,
    dtype_name,
    numpy_number,
    stated_dtype,
    stated_order,
)
from advisor.frontend.spmd.numpy_rearranged import copied_array
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Number, Sequence, Value
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Allocate
from advisor.numpy_shapes import Shape
from advisor.source import Span
from costdb.expr import Expr, num


def over_memory(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return ``np.ndarray(...)``: an array over memory that is there, or a new one."""
    given, memory = arguments.at(0, "shape"), arguments.at(2, "buffer")
    shape = None if given is None else run.numbers(given, "shape")
    dtype, order = stated_dtype(arguments, 1, "float64"), stated_order(arguments, 5)
    origin = Origin.NEW
    if memory is not None and not isinstance(memory, Nothing):
        shared = isinstance(memory, Array) and memory.view.buffer.allocation.origin is Origin.SHARED
        origin = Origin.SHARED if shared else Origin.PARAMETER
    view = run.fresh(run.text_of(span), dtype, shape, origin, span, order)
    if origin is Origin.NEW:
        run.emit(Allocate(view.buffer, span, filled=False))
    return Array(view)


def array_of_nothing(run: Run, span: Span, dtype: str | None, shape: Shape | None) -> Value:
    """Return a new vector or array whose elements come from nowhere."""
    if shape is None:
        extent = run.symbols.unknown(
            f"{run.targets[0] if run.targets else 'array'}.n0", "its length is not known", span
        )
        shape = (extent,)
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span)
    run.emit(Allocate(view.buffer, span))
    return Array(view)


def array(arguments: Arguments, run: Run, span: Span, *, copies: bool) -> Value:
    """Return an array of what is given: an array, a number, a nested list."""
    content = arguments.at(0, "object", "a")
    stated = arguments.at(1, "dtype")
    dtype = None if stated is None or isinstance(stated, Nothing) else dtype_name(stated)
    match content:
        case Array(view):
            order = stated_order(arguments, 99)
            wanted = view.order if "order" not in arguments.keywords else order
            same = stated is None or dtype == view.dtype
            if not copies and same and wanted == view.order:
                return content
            return copied_array(
                view, run, span, wanted, dtype if stated is not None else view.dtype
            )
        case Number():
            name = dtype or numpy_number(content.dtype) if stated is None else dtype
            return Array(_python(run, span, name, ()))
        case Sequence():
            shape, kind = _nested(content)
            name = kind if stated is None else dtype
            return Array(_python(run, span, name, shape))
    view = run.fresh(run.text_of(span), dtype, None, Origin.PYTHON, span, Order.UNKNOWN)
    return Array(view)


def _python(run: Run, span: Span, dtype: str | None, shape: Shape | None) -> View:
    view = run.fresh(run.text_of(span), dtype, shape, Origin.PYTHON, span)
    run.emit(Allocate(view.buffer, span))
    return view


def _nested(content: Sequence) -> tuple[Shape | None, str | None]:
    """Return the shape and element type of an array made of a nested list."""
    if content.items and isinstance(content.items[0], External):
        return None, "int64" if content.items[0].path == "range" else None
    element = content.element
    length = content.length
    if content.items is not None:
        length = num(len(content.items))
        element = content.items[0] if content.items else Number(None, "float")
        kinds = {
            item.dtype if isinstance(item, Number) else type(item).__name__
            for item in content.items
        }
        if kinds == {"int", "float"}:
            element = Number(None, "float")
        elif len(kinds) > 1:
            return None, None
    if length is None or element is None:
        return None, None
    match element:
        case Number():
            return (length,), numpy_number(element.dtype)
        case Sequence():
            inner, dtype = _nested(element)
            return None if inner is None else (length, *inner), dtype
        case Array(view):
            shape = view.shape
            return None if shape is None else (length, *shape), view.dtype
    return None, None


def ascontiguous(arguments: Arguments, run: Run, span: Span, order: Order) -> Value:
    """Return an array whose memory is contiguous in an order; a copy where it is not."""
    content = arguments.at(0, "a")
    if not isinstance(content, Array):
        return array(arguments, run, span, copies=True)
    view = content.view
    stated = arguments.at(1, "dtype")
    dtype = view.dtype if stated is None else dtype_name(stated)
    several = view.shape is None or len(view.shape) > 1
    as_is = view.contiguity is Contiguity.YES and (not several or view.order == order)
    if as_is and dtype == view.dtype:
        return content
    return copied_array(view, run, span, order, dtype)


def frombuffer(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a vector of the bytes of a buffer."""
    stated = arguments.at(1, "dtype")
    dtype = "float64" if stated is None else dtype_name(stated)
    memory = arguments.at(0, "buffer")
    if isinstance(memory, Array):
        count = memory.view.count
        if memory.view.dtype != dtype:
            name = f"{run.targets[0] if run.targets else 'array'}.n0"
            count = run.symbols.unknown(name, "its length is not known", span)
        shape = None if count is None else (count,)
        origin = memory.view.buffer.allocation.origin
        return Array(run.fresh(run.text_of(span), dtype, shape, origin, span))
    return array_of_nothing(run, span, dtype, None)


def from_file(arguments: Arguments, run: Run, span: Span, *, binary: bool = False) -> Value:
    """Return an array read from a file; its shape and the time are unknown."""
    run.unknown("the time and the shape of what is read from a file are not known", span)
    dtype = stated_dtype(arguments, 1, None if binary else "float64")
    view = run.fresh(run.text_of(span), dtype, None, Origin.NEW, span, Order.UNKNOWN)
    return Array(view)


def parts_of(
    parts: Value,
) -> tuple[tuple[View, ...], list[Shape] | None, set[str | None], Expr]:
    """Return the arrays among what is joined, all shapes, element types, and how often each."""
    items: tuple[Value, ...] = ()
    times, complete = num(1), isinstance(parts, Sequence)
    if isinstance(parts, Sequence) and parts.items is not None:
        items = parts.items
    elif isinstance(parts, Sequence) and parts.element is not None:
        items, complete = (parts.element,), parts.length is not None
        times = num(1) if parts.length is None else parts.length
    views = tuple(item.view for item in items if isinstance(item, Array))
    shapes: list[Shape] = []
    dtypes: set[str | None] = set()
    for item in items:
        found: Shape | None = None
        match item:
            case Array(view):
                found = view.shape
                dtypes.add(view.dtype)
            case Sequence(items=tuple() as numbers) if all(isinstance(n, Number) for n in numbers):
                found = (num(len(numbers)),)
                dtypes |= {numpy_number(n.dtype) for n in numbers if isinstance(n, Number)}
        if found is None:
            complete = False
        else:
            shapes.append(found)
    return views, shapes if complete and shapes else None, dtypes, times
