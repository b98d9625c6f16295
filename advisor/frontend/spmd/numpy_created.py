"""Arrays that NumPy makes anew: of a shape, a range, Python's values, random numbers, a file."""

from __future__ import annotations

from advisor.frontend.spmd.elementwise import Shape
from advisor.frontend.spmd.numpy_arguments import (
    Arguments,
    dtype_name,
    numpy_number,
    stated_dtype,
    stated_order,
    unknown_function,
)
from advisor.frontend.spmd.numpy_rearranged import copied_array
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Number, Opaque, Sequence, Value
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Allocate
from advisor.source import Span
from costdb.expr import Expr, ceil, num

FILLED = {"zeros": True, "ones": True, "full": True, "empty": False, "ndarray": False}


def filled_array(arguments: Arguments, run: Run, span: Span, *, filled: bool, full: bool) -> Value:
    """Return a new array of a stated shape."""
    given = arguments.at(0, "shape")
    shape = None if given is None else run.numbers(given, "shape")
    default: str | None = "float64"
    if full:
        value = arguments.at(1, "fill_value")
        default = numpy_number(value.dtype) if isinstance(value, Number) else None
    dtype = stated_dtype(arguments, 2 if full else 1, default)
    order = stated_order(arguments, 3 if full else 2)
    memory = arguments.keyword("buffer")
    if memory is not None and not isinstance(memory, Nothing):
        # an array over memory that is there
        shared = isinstance(memory, Array) and memory.view.buffer.allocation.origin is Origin.SHARED
        origin = Origin.SHARED if shared else Origin.PARAMETER
        return Array(run.fresh(run.text_of(span), dtype, shape, origin, span, order))
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span, order)
    run.emit(Allocate(view.buffer, span, filled))
    return Array(view)


def array_like(
    model: Value | None, arguments: Arguments, run: Run, span: Span, *, filled: bool
) -> Value:
    """Return a new array of the shape of another."""
    if not isinstance(model, Array):
        return _given(run, span)
    dtype = arguments.keyword("dtype")
    name = model.view.dtype if dtype is None else dtype_name(dtype)
    view = run.fresh(run.text_of(span), name, model.view.shape, Origin.NEW, span, model.view.order)
    run.emit(Allocate(view.buffer, span, filled))
    return Array(view)


def _given(run: Run, span: Span) -> Value:
    view = run.fresh(run.text_of(span), None, None, Origin.NEW, span, Order.UNKNOWN)
    run.emit(Allocate(view.buffer, span))
    return Array(view)


def arange(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a vector of the numbers of a range."""
    values = [run.number(v, f"bound{k}") for k, v in enumerate(arguments.values())]
    whole = all(not isinstance(v, Number) or v.dtype in ("int", "bool") for v in arguments.values())
    known = any(isinstance(v, Opaque) for v in arguments.values())
    default = None if known else ("int64" if whole else "float64")
    extent: Expr | None = None
    if whole and values and None not in values:
        ends = [v for v in values if v is not None]
        extent = ends[0] if len(ends) == 1 else ends[1] - ends[0]
        if len(ends) == 3:
            extent = ceil(extent / ends[2]) if ends[2] != num(0) else None
    shape = None if extent is None else (extent,)
    dtype = stated_dtype(arguments, 3, default)
    return array_of_nothing(run, span, dtype, shape)


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


def linspace(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a vector of evenly spaced numbers."""
    if any(isinstance(value, Array) for value in arguments.values()):
        return unknown_function("linspace", arguments, run, span)
    count = arguments.at(2, "num")
    extent = num(50) if count is None else run.number(count, "num")
    dtype = stated_dtype(arguments, 5, "float64")
    if arguments.keyword("retstep") is not None:
        made = array_of_nothing(run, span, dtype, None if extent is None else (extent,))
        return Sequence((made, Number(None, "float")), is_list=False)
    return array_of_nothing(run, span, dtype, None if extent is None else (extent,))


def eye(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a new matrix with ones on its diagonal."""
    rows = run.number(arguments.at(0, "N") or Opaque(""), "N")
    columns = arguments.at(1, "M")
    other = rows if columns is None or isinstance(columns, Nothing) else run.number(columns, "M")
    shape = None if rows is None or other is None else (rows, other)
    dtype = dtype_name(arguments.keyword("dtype")) or "float64"
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
