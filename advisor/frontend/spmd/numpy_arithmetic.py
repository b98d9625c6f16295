"""NumPy's arithmetic: universal functions, reductions, products, transforms."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from advisor.frontend.expressions.library_steps import steps_of
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.elementwise import Shape
from advisor.frontend.spmd.numpy_arguments import (
    Arguments,
    dtype_name,
    stated_dtype,
    unknown_function,
)
from advisor.frontend.spmd.numpy_rearranged import copied_array
from advisor.frontend.spmd.result_types import of_reduction, of_transform
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Origin, View
from advisor.ir.spmd.steps import Compute
from advisor.numpy_table import ELEMENTWISE, ROWS
from advisor.source import Span
from costdb.expr import Expr, ExprError, ceil, floor, floor_div, log2, num

_REDUCTIONS_NAMES = """
sum prod max min amax amin mean std var any all argmax argmin median ptp nansum nanmax
nanmin average count_nonzero
"""
REDUCTIONS = frozenset(_REDUCTIONS_NAMES.split())
_SELECTIONS = frozenset({"median"})
SCANS = frozenset({"cumsum", "cumprod"})
_TYPE_AT = 99
"""Types of results are stated by keyword; nobody states them by their place."""
UFUNCS = frozenset({*ELEMENTWISE, "real", "imag", "clip"})


def reduction(
    name: str, view: View, rest: Arguments, run: Run, span: Span, *, function: bool = False
) -> Value:
    """Return a reduction of an array, over all of it or along an axis: a method's or function's."""
    if name in _SELECTIONS:
        # it sorts in part: no rate is known
        run.emit(Compute(None, (view,), None, "call", span))
    steps = steps_of(name, function=function)
    axis = rest.at(0, "axis")
    run_length = view.count
    dtype = stated_dtype(rest, _TYPE_AT, of_reduction(name, view.dtype))
    keeps = rest.keyword("keepdims")
    if (axis is None or isinstance(axis, Nothing)) and keeps is None:
        run.emit(Compute(None, (view,), run_length, "reduction", span, steps=steps))
        return Number(None, dtype or "float", varies=True)
    place = run.integer(axis)
    shape = view.shape
    reduced: Shape | None = None
    kept = 0 if keeps is None else run.integer(keeps)
    if shape is not None and place is not None and -len(shape) <= place < len(shape):
        place %= len(shape)
        if kept is not None:
            reduced = (*shape[:place], *(num(1),) * bool(kept), *shape[place + 1 :])
        if reduced == ():
            run.emit(Compute(None, (view,), run_length, "reduction", span, steps=steps))
            return Number(None, dtype or "float", varies=True)
    made = run.fresh(run.text_of(span), dtype, reduced, Origin.COMPUTED, span, sources=(view,))
    along, length = None, None
    if shape is not None and place is not None and -len(shape) <= place < len(shape):
        along, length = len(shape) - 1 - place % len(shape), shape[place]
    run.emit(
        Compute(
            made,
            (view,),
            run_length if reduced is not None else None,
            "reduction",
            span,
            axis_from_last=along,
            length=length,
            steps=steps,
        )
    )
    return Array(made)


def ufunc(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a universal function gives, of arrays or of numbers."""
    values = arguments.values()
    out = arguments.keyword("out")
    if any(isinstance(v, Array) for v in values):
        if arguments.keyword("where") is not None or not _fits(out, values):
            return unknown_function(name, arguments, run, span)
        operation = ELEMENTWISE.get(name, name)
        taken = ROWS[operation].operands if operation in ROWS else len(values)
        if len(values) == taken + 1 and isinstance(values[taken], Array):
            out, values = values[taken], values[:taken]
        if name == "where":
            return _chosen(values, arguments, run, span)
        target = out.view if isinstance(out, Array) else None
        made = elementwise.elementwise(values, run, span, operation, target)
        if target is not None:
            return made
        return _of_type(made, stated_dtype(arguments, _TYPE_AT, made.view.dtype))
    if all(isinstance(v, Number) for v in values) and values:
        return _number_function(name, values, run)
    return Opaque(f"numpy.{name} of something that is not followed")


def _fits(out: Value | None, values: list[Value]) -> bool:
    """Return whether a result is not repeated to fill the array that it is stored in."""
    if not isinstance(out, Array) or out.view.shape is None:
        return True
    found = elementwise.broadcast([v.view.shape for v in values if isinstance(v, Array)])
    return found is None or found == out.view.shape


def _of_type(made: Array, dtype: str | None) -> Array:
    view = made.view
    return Array(replace(view, buffer=replace(view.buffer, dtype=dtype)))


def _chosen(values: list[Value], arguments: Arguments, run: Run, span: Span) -> Value:
    """Return ``np.where``: of three arguments an array of the shape of all, else places."""
    if len(values) != 3:
        return unknown_function("where", arguments, run, span)
    made = elementwise.elementwise(values, run, span, "where")
    return _of_type(made, elementwise.joined_dtype(values[1:], "where"))


def scan(name: str, view: View, rest: Arguments, run: Run, span: Span) -> Value:
    """Return a prefix sum or product: of all elements in a row where no axis is stated."""
    axis, shape = rest.at(0, "axis"), view.shape
    along = None if axis is None or isinstance(axis, Nothing) else run.integer(axis)
    if shape is not None and len(shape) == 1:
        along = 0
    out = rest.keyword("out")
    dtype = stated_dtype(rest, 1, of_reduction(name, view.dtype))
    extents: Shape | None
    if axis is None or isinstance(axis, Nothing):
        extents = None if view.count is None else (view.count,)
    else:
        extents = shape
    made = run.fresh(run.text_of(span), dtype, extents, Origin.COMPUTED, span, sources=(view,))
    target = out.view if isinstance(out, Array) else made
    known = name == "cumsum" and shape is not None and along is not None
    if known and -len(shape or ()) <= (along or 0) < len(shape or ()):
        assert shape is not None and along is not None
        place = along % len(shape)
        run.emit(
            Compute(
                target,
                (view,),
                view.count,
                "scan",
                span,
                axis_from_last=len(shape) - 1 - place,
                length=shape[place],
            )
        )
    else:
        run.emit(Compute(target, (view,), None, "call", span))
    return Array(target)


def _number_function(name: str, values: list[Value], run: Run) -> Value:
    exprs = [run.number(v) for v in values]
    first = exprs[0]
    varies = any(isinstance(v, Number) and v.varies for v in values)
    if first is not None and name in ("floor", "ceil", "sqrt", "square", "log2"):
        return number_function(name, first)
    return Number(None, "float", varies=varies or run.symbols.varies(first))


def number_function(name: str, value: Expr) -> Number:
    """Return a rounding or a root of a number."""
    try:
        match name:
            case "floor":
                return Number(floor(value), "float")
            case "ceil":
                return Number(ceil(value), "float")
            case "sqrt":
                return Number(value ** num(Fraction(1, 2)), "float")
            case "square":
                return Number(value**2, "float")
            case "log2":
                return Number(log2(value), "float")
    except ExprError:
        pass
    return Number(None, "float")


def scalar_type(name: str, first: Value | None, run: Run, span: Span) -> Value:
    """Return a value converted to an element type."""
    dtype = dtype_name(Text(name))
    match first:
        case Array(view):
            return copied_array(view, run, span, view.order, dtype)
        case Number():
            return Number(first.expr, dtype or first.dtype, first.nobody, first.varies)
        case Opaque():
            return Number(first.expr, dtype or "float", varies=first.varies)
    return Number(None, dtype or "float")


def fourier(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a Fourier transform of an array, by its bare name; its work is not known."""
    first = arguments.at(0)
    if not isinstance(first, Array):
        return Opaque("a transform of something that is not known to be an array")
    view = first.view
    resized = len(arguments.positional) > 1 or arguments.keyword("n") or arguments.keyword("s")
    shape = None if resized else _transformed(name, view.shape, arguments, run)
    dtype = of_transform(view.dtype, real=name.startswith("irfft"))
    made = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=(view,))
    run.emit(Compute(made, (view,), None, "call", span))
    return Array(made)


def _transformed(name: str, shape: Shape | None, arguments: Arguments, run: Run) -> Shape | None:
    """Return the shape of a transform: those of real numbers keep half of the last axis."""
    if shape is None or "rfft" not in name or not shape:
        return shape
    axis = arguments.keyword("axis") or arguments.keyword("axes")
    last: int | None = -1
    if isinstance(axis, Sequence):
        last = run.integer(axis.items[-1]) if axis.items else None
    elif axis is not None and not isinstance(axis, Nothing):
        last = run.integer(axis)
    if last is None or not -len(shape) <= last < len(shape):
        return None
    last %= len(shape)
    extent = shape[last]
    half = 2 * (extent - 1) if name.startswith("irfft") else floor_div(extent, num(2)) + 1
    return (*shape[:last], half, *shape[last + 1 :])


def same(arguments: Arguments, run: Run, span: Span) -> Value:
    """A function whose result has the shape of its argument, at an operation an element."""
    first = arguments.at(0)
    if not isinstance(first, Array):
        return Opaque("of something that is not known to be an array")
    return elementwise.elementwise((first,), run, span, "move")


def sorted_copy(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a sorted array, the time of which hangs on its keys."""
    first = arguments.at(0)
    if not isinstance(first, Array):
        return unknown_function("sort", arguments, run, span)
    view = first.view
    made = run.fresh(run.text_of(span), view.dtype, view.shape, Origin.COMPUTED, span)
    run.emit(Compute(made, (view,), None, "call", span))
    return Array(made)


def dot(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a product of vectors or matrices."""
    left, right = arguments.at(0), arguments.at(1)
    if left is None or right is None:
        return Opaque("a product that lacks an operand")
    out = arguments.keyword("out")
    made = elementwise.product(left, right, run, span)
    return out if isinstance(out, Array) else made
