"""NumPy's functions and the methods of arrays: what they make, of which shape, from what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.run import Argument, Run
from advisor.frontend.spmd.values import (
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.source import Span
from costdb.expr import Expr, ExprError, ceil, ceil_div, floor, log2, num

Shape = tuple[Expr, ...]

_FILLED = {"zeros": True, "ones": True, "full": True, "empty": False, "ndarray": False}
_RANDOM = frozenset(
    {"rand", "randn", "random", "random_sample", "uniform", "normal", "standard_normal"}
)
_RANDOM_INTEGERS = frozenset({"randint", "integers", "random_integers"})
_REDUCTIONS_NAMES = """
sum prod max min amax amin mean std var any all argmax argmin median ptp nansum nanmax
nanmin average count_nonzero
"""
_REDUCTIONS = frozenset(_REDUCTIONS_NAMES.split())
_SCANS = frozenset({"cumsum", "cumprod"})
_UNARY_NAMES = """
sqrt exp log log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh abs absolute fabs
negative square conj conjugate real imag sign rint floor ceil isnan isfinite logical_not
reciprocal exp2 expm1 log1p cbrt angle
"""
_UNARY = frozenset(_UNARY_NAMES.split())
_BINARY_NAMES = """
add subtract multiply divide true_divide power maximum minimum mod remainder arctan2 hypot
fmax fmin floor_divide logical_and logical_or equal not_equal less greater less_equal
greater_equal where clip bitwise_and bitwise_or left_shift right_shift
"""
_BINARY = frozenset(_BINARY_NAMES.split())
_CONSTANTS = frozenset({"pi", "e", "inf", "nan"})


def call(name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a function of NumPy gives, by its name below ``numpy``."""
    arguments = _Arguments(given)
    first = arguments.at(0)
    if name in _FILLED:
        return _new(arguments, run, span, filled=_FILLED[name], full=name == "full")
    if name in ("zeros_like", "ones_like", "empty_like", "full_like"):
        return _like(first, arguments, run, span, filled=name != "empty_like")
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(arguments, run, span)
    bare = name.rpartition(".")[2]
    if name.startswith("random."):
        return _random(bare, arguments, run, span)
    if bare in _REDUCTIONS and isinstance(first, Array):
        return _reduction(bare, first.view, arguments.after_first(), run, span)
    if name in _SCANS and isinstance(first, Array):
        return elementwise.elementwise((first,), run, span, name)
    if name in _UNARY | _BINARY:
        return _ufunc(name, arguments, run, span)
    if name in ("int32", "int64", "float32", "float64", "intc", "int_", "float_", "complex128"):
        return _scalar_type(name, first, run, span)
    if name in ("save", "savetxt", "savez", "set_printoptions", "seterr"):
        run.unknown(f"the time of numpy.{name} is not known", span)
        return Nothing()
    if name.startswith("testing."):
        return Nothing()
    return _unknown_function(name, arguments, run, span)


class _Arguments:
    def __init__(self, given: list[Argument]) -> None:
        self.positional = [a for a in given if a.keyword is None and not a.star]
        self.keywords = {a.keyword: a for a in given if a.keyword is not None}
        self.starred = any(a.star for a in given)

    def at(self, position: int, *keywords: str) -> Value | None:
        if position < len(self.positional):
            return self.positional[position].value
        for keyword in keywords:
            if keyword in self.keywords:
                return self.keywords[keyword].value
        return None

    def keyword(self, name: str) -> Value | None:
        return self.keywords[name].value if name in self.keywords else None

    def after_first(self) -> _Arguments:
        rest = _Arguments([])
        rest.positional, rest.keywords = self.positional[1:], self.keywords
        return rest

    def values(self) -> list[Value]:
        return [a.value for a in self.positional]


def dtype_name(value: Value | None) -> str | None:
    """Return NumPy's name of the element type that a value states; None where it is not known."""
    match value:
        case Text(str() as text):
            name = text
        case External(path=path):
            name = path.rpartition(".")[2]
        case _:
            return None
    try:
        return dtype_of(name).name
    except UnknownDtype:
        return None


def _stated_dtype(arguments: _Arguments, position: int, default: str | None) -> str | None:
    value = arguments.at(position, "dtype")
    if value is None or isinstance(value, Nothing):
        return default
    return dtype_name(value)


def _order(arguments: _Arguments, position: int) -> Order:
    match arguments.at(position, "order"):
        case Text("F"):
            return Order.F
        case Text("C") | None:
            return Order.C
    return Order.UNKNOWN


def _new(arguments: _Arguments, run: Run, span: Span, *, filled: bool, full: bool) -> Value:
    given = arguments.at(0, "shape")
    shape = None if given is None else run.numbers(given, "shape")
    default: str | None = "float64"
    if full:
        value = arguments.at(1, "fill_value")
        default = _numpy_number(value.dtype) if isinstance(value, Number) else None
    dtype = _stated_dtype(arguments, 2 if full else 1, default)
    order = _order(arguments, 3 if full else 2)
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span, order)
    run.emit(Allocate(view.buffer, span, filled))
    return Array(view)


def _like(
    model: Value | None, arguments: _Arguments, run: Run, span: Span, *, filled: bool
) -> Value:
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


def _arange(arguments: _Arguments, run: Run, span: Span) -> Value:
    values = [run.number(v, "bound") for v in arguments.values()]
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
    dtype = _stated_dtype(arguments, 3, default)
    return _made(run, span, dtype, shape)


def _made(run: Run, span: Span, dtype: str | None, shape: Shape | None) -> Value:
    """Return a new vector or array whose elements come from nowhere."""
    if shape is None:
        extent = run.symbols.unknown(
            f"{run.targets[0] if run.targets else 'array'}.n0", "its length is not known", span
        )
        shape = (extent,)
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span)
    run.emit(Allocate(view.buffer, span))
    return Array(view)


def _linspace(arguments: _Arguments, run: Run, span: Span) -> Value:
    count = arguments.at(2, "num")
    extent = num(50) if count is None else run.number(count, "num")
    dtype = _stated_dtype(arguments, 5, "float64")
    if arguments.keyword("retstep") is not None:
        made = _made(run, span, dtype, None if extent is None else (extent,))
        return Sequence((made, Number(None, "float")), is_list=False)
    return _made(run, span, dtype, None if extent is None else (extent,))


def _eye(arguments: _Arguments, run: Run, span: Span) -> Value:
    rows = run.number(arguments.at(0, "N") or Opaque(""), "N")
    columns = arguments.at(1, "M")
    other = rows if columns is None or isinstance(columns, Nothing) else run.number(columns, "M")
    shape = None if rows is None or other is None else (rows, other)
    dtype = dtype_name(arguments.keyword("dtype")) or "float64"
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span)
    run.emit(Allocate(view.buffer, span))
    return Array(view)


def _random(name: str, arguments: _Arguments, run: Run, span: Span) -> Value:
    if name in ("seed", "default_rng", "RandomState"):
        return External("numpy.random") if name != "seed" else Nothing()
    size: Value | None
    if name in ("rand", "randn"):
        values = arguments.values()
        if not values:
            return Number(None, "float", varies=True)
        size = Sequence(tuple(values), is_list=False)
    elif name in ("random", "random_sample"):
        size = arguments.at(0, "size")
    else:
        size = arguments.keyword("size") or arguments.at(2)
    dtype = "int64" if name in _RANDOM_INTEGERS else "float64"
    if name in ("choice", "permutation", "shuffle", "multivariate_normal"):
        first = arguments.at(0)
        if name == "permutation" and isinstance(first, Number):
            return _made(run, span, "int64", None if first.expr is None else (first.expr,))
        if name == "permutation" and isinstance(first, Array):
            return _copied(first.view, run, span, first.view.order)
        return Nothing() if name == "shuffle" else _unknown_function(name, arguments, run, span)
    if size is None or isinstance(size, Nothing):
        return Number(None, "int" if name in _RANDOM_INTEGERS else "float", varies=True)
    if name not in _RANDOM | _RANDOM_INTEGERS:
        dtype = "float64"
    shape = run.numbers(size, "size")
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span)
    run.emit(Allocate(view.buffer, span))
    return Array(view)


def _array(arguments: _Arguments, run: Run, span: Span, *, copies: bool) -> Value:
    content = arguments.at(0, "object", "a")
    stated = arguments.at(1, "dtype")
    dtype = None if stated is None or isinstance(stated, Nothing) else dtype_name(stated)
    match content:
        case Array(view):
            order = _order(arguments, 99)
            wanted = view.order if "order" not in arguments.keywords else order
            same = stated is None or dtype == view.dtype
            if not copies and same and wanted == view.order:
                return content
            return _copied(view, run, span, wanted, dtype if stated is not None else view.dtype)
        case Number():
            name = dtype or _numpy_number(content.dtype) if stated is None else dtype
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


def _numpy_number(name: str) -> str | None:
    return {"int": "int64", "float": "float64", "complex": "complex128", "bool": "bool"}.get(
        name, dtype_name(Text(name))
    )


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
            return (length,), _numpy_number(element.dtype)
        case Sequence():
            inner, dtype = _nested(element)
            return None if inner is None else (length, *inner), dtype
        case Array(view):
            shape = view.shape
            return None if shape is None else (length, *shape), view.dtype
    return None, None


def _copied(
    view: View, run: Run, span: Span, order: Order = Order.C, dtype: str | None = None
) -> Value:
    text = run.text_of(span)
    made = run.fresh(text, dtype or view.dtype, view.shape, Origin.COPY, span, order, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def _ascontiguous(arguments: _Arguments, run: Run, span: Span, order: Order) -> Value:
    content = arguments.at(0, "a")
    if not isinstance(content, Array):
        return _array(arguments, run, span, copies=True)
    view = content.view
    stated = arguments.at(1, "dtype")
    dtype = view.dtype if stated is None else dtype_name(stated)
    several = view.shape is None or len(view.shape) > 1
    as_is = view.contiguity is Contiguity.YES and (not several or view.order == order)
    if as_is and dtype == view.dtype:
        return content
    return _copied(view, run, span, order, dtype)


def _reshape(
    view: View, given: list[Value], run: Run, span: Span, order: Value | None = None
) -> Value:
    wanted = given[0] if len(given) == 1 else Sequence(tuple(given), is_list=False)
    shape = run.numbers(wanted, "shape")
    if shape is not None:
        unknown = [k for k, extent in enumerate(shape) if extent == num(-1)]
        if len(unknown) == 1 and view.count is not None:
            rest = num(1)
            for extent in shape:
                rest = rest * extent if extent != num(-1) else rest
            shape = tuple(e if e != num(-1) else view.count / rest for e in shape)
    if view.contiguity is Contiguity.YES and view.is_whole and view.buffer.allocation:
        # the same memory under another shape
        text = run.text_of(span)
        made = run.fresh(text, view.dtype, shape, view.buffer.allocation.origin, span, view.order)
        return Array(made)
    if view.contiguity is Contiguity.YES:
        return Array(View(view.buffer, view.region, run.text_of(span), span, flat=True))
    made = run.fresh(run.text_of(span), view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def _flatten(view: View, run: Run, span: Span, *, copies: bool) -> Value:
    if not copies and view.contiguity is Contiguity.YES and view.order is not Order.F:
        shape = view.shape
        if shape is not None and len(shape) == 1:
            return Array(view)
        return Array(
            View(view.buffer, view.region, run.text_of(span), span, view.transposed, flat=True)
        )
    count = view.count
    shape = None if count is None else (count,)
    made = run.fresh(run.text_of(span), view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def _reduction(name: str, view: View, rest: _Arguments, run: Run, span: Span) -> Value:
    axis = rest.at(0, "axis")
    run_length = view.count
    dtype = view.dtype
    if name in ("mean", "std", "var", "median", "average") and dtype in ("int32", "int64"):
        dtype = "float64"
    if name in ("argmax", "argmin", "count_nonzero"):
        dtype = "int64"
    if name in ("any", "all"):
        dtype = "bool"
    if name in ("sum", "prod") and dtype in ("bool", "int32", "int16", "int8"):
        dtype = "int64"
    keeps = rest.keyword("keepdims")
    if (axis is None or isinstance(axis, Nothing)) and keeps is None:
        run.emit(Compute(None, (view,), run_length, "reduction", span))
        return Number(None, dtype or "float", varies=True)
    place = run.integer(axis)
    shape = view.shape
    reduced: Shape | None = None
    if shape is not None and place is not None and -len(shape) <= place < len(shape):
        reduced = tuple(e for k, e in enumerate(shape) if k != place % len(shape))
        if keeps is not None:
            reduced = None
        elif not reduced:
            run.emit(Compute(None, (view,), run_length, "reduction", span))
            return Number(None, dtype or "float", varies=True)
    elif axis is not None and not isinstance(axis, Nothing) and shape is not None:
        reduced = None
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
        )
    )
    return Array(made)


def _ufunc(name: str, arguments: _Arguments, run: Run, span: Span) -> Value:
    values = arguments.values()
    out = arguments.keyword("out")
    if any(isinstance(v, Array) for v in values):
        operation = {"divide": "Divide", "true_divide": "Divide"}.get(name, name)
        if len(values) == 3 and name not in ("where", "clip") and isinstance(values[2], Array):
            out, values = values[2], values[:2]
        if name == "where" and len(values) == 3:
            values = values[1:]
        target = out.view if isinstance(out, Array) else None
        made = elementwise.elementwise(values, run, span, operation, target)
        if name in _UNARY - {"abs", "absolute", "negative", "square", "conj", "sign"}:
            return _as_float(made)
        return made
    if all(isinstance(v, Number) for v in values) and values:
        return _number_function(name, values, run)
    return Opaque(f"numpy.{name} of something that is not followed")


def _as_float(made: Array) -> Value:
    view = made.view
    if view.dtype is not None and view.dtype.startswith(("int", "uint", "bool")):
        return Array(replace(view, buffer=replace(view.buffer, dtype="float64")))
    return made


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


def _scalar_type(name: str, first: Value | None, run: Run, span: Span) -> Value:
    dtype = dtype_name(Text(name))
    match first:
        case Array(view):
            return _copied(view, run, span, view.order, dtype)
        case Number():
            return Number(first.expr, dtype or first.dtype, first.nobody, first.varies)
        case Opaque():
            return Number(first.expr, dtype or "float", varies=first.varies)
    return Number(None, dtype or "float")


def _concatenate(arguments: _Arguments, run: Run, span: Span) -> Value:
    parts = arguments.at(0)
    views = (
        [p.view for p in parts.items if isinstance(p, Array)]
        if isinstance(parts, Sequence) and parts.items is not None
        else []
    )
    dtype = views[0].dtype if views and len({v.dtype for v in views}) == 1 else None
    shape: Shape | None = None
    if (
        views
        and isinstance(parts, Sequence)
        and parts.items is not None
        and len(views) == len(parts.items)
    ):
        shapes = [v.shape for v in views]
        axis = run.integer(arguments.at(1, "axis")) if arguments.at(1, "axis") else 0
        if all(s for s in shapes) and axis is not None:
            first = shapes[0] or ()
            if all(s is not None and len(s) == len(first) for s in shapes) and axis < len(first):
                total = sum(((s or ())[axis] for s in shapes), num(0))
                shape = (*first[:axis], total, *first[axis + 1 :]) if axis >= 0 else None
    elif isinstance(parts, Sequence) and isinstance(parts.element, Array):
        dtype = parts.element.view.dtype
    made = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=tuple(views))
    run.emit(Compute(made, tuple(views), num(0) if shape else None, "elementwise", span))
    return Array(made)


def _transpose(view: View, arguments: list[Value], run: Run, span: Span) -> Value:
    shape = view.shape
    if arguments or shape is None or view.flat:
        if shape is not None and len(shape) == 2 and not view.flat:
            return Array(
                View(view.buffer, view.region, run.text_of(span), span, not view.transposed)
            )
        return Array(View(view.buffer, None, run.text_of(span), span))
    return Array(View(view.buffer, view.region, run.text_of(span), span, not view.transposed))


def _split(arguments: _Arguments, run: Run, span: Span) -> Value:
    source, sections = arguments.at(0), arguments.at(1)
    if not isinstance(source, Array):
        return Opaque("the parts of something that is not known to be an array")
    count = run.number(sections, "parts") if isinstance(sections, Number | Opaque) else None
    shape = source.view.shape
    if count is None or shape is None or arguments.keyword("axis") is not None:
        return Sequence(None, Array(View(source.view.buffer, None, source.view.text, span)), count)
    high = Sequence(
        (External("slice"), Nothing(), Number(ceil_div(shape[0], count)), Nothing()), is_list=False
    )
    part = subscript(source, high, run, span, run.text_of(span))
    return Sequence(None, part, count)


def _fourier(arguments: _Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if not isinstance(first, Array):
        return Opaque("a transform of something that is not known to be an array")
    view = first.view
    shape = view.shape if len(arguments.positional) == 1 else None
    made = run.fresh(run.text_of(span), "complex128", shape, Origin.COMPUTED, span, sources=(view,))
    run.emit(Compute(made, (view,), None, "call", span))
    return Array(made)


def _unknown_function(name: str, arguments: _Arguments, run: Run, span: Span) -> Value:
    views = tuple(v.view for v in arguments.values() if isinstance(v, Array))
    if not views and all(isinstance(v, Number) for v in arguments.values()):
        return Opaque(f"the result of numpy.{name} is not known")
    run.emit(Compute(None, views, None, "call", span))
    return Opaque(f"the result of numpy.{name} is not known")


def _same(arguments: _Arguments, run: Run, span: Span) -> Value:
    """A function whose result has the shape of its argument, at an operation an element."""
    first = arguments.at(0)
    if not isinstance(first, Array):
        return Opaque("of something that is not known to be an array")
    return elementwise.elementwise((first,), run, span, "move")


def _dot(arguments: _Arguments, run: Run, span: Span) -> Value:
    left, right = arguments.at(0), arguments.at(1)
    if left is None or right is None:
        return Opaque("a product that lacks an operand")
    out = arguments.keyword("out")
    made = elementwise.product(left, right, run, span)
    return out if isinstance(out, Array) else made


def _copyto(arguments: _Arguments, run: Run, span: Span) -> Value:
    target, source = arguments.at(0), arguments.at(1)
    if isinstance(target, Array) and isinstance(source, Array):
        run.emit(Copy(target.view, source.view, span))
    return Nothing()


def _shape_function(arguments: _Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    found = attribute(first.view, "shape", run, span) if isinstance(first, Array) else None
    return found or Opaque("a shape that is not known")


def _array_split_size(arguments: _Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    found = attribute(first.view, "size", run, span) if isinstance(first, Array) else None
    return found or Opaque("a size that is not known")


def _frombuffer(arguments: _Arguments, run: Run, span: Span) -> Value:
    stated = arguments.at(1, "dtype")
    dtype = "float64" if stated is None else dtype_name(stated)
    return _made(run, span, dtype, None)


def _file(arguments: _Arguments, run: Run, span: Span, *, binary: bool = False) -> Value:
    run.unknown("the time and the shape of what is read from a file are not known", span)
    dtype = _stated_dtype(arguments, 1, None if binary else "float64")
    view = run.fresh(run.text_of(span), dtype, None, Origin.NEW, span, Order.UNKNOWN)
    return Array(view)


def _transposed(arguments: _Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if isinstance(first, Array):
        return _transpose(first.view, arguments.values()[1:], run, span)
    return Opaque("a transpose of something that is not known to be an array")


def _reshaped(arguments: _Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if isinstance(first, Array):
        return _reshape(first.view, arguments.values()[1:], run, span)
    return Opaque("a reshape of something that is not known to be an array")


def _raveled(arguments: _Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if isinstance(first, Array):
        return _flatten(first.view, run, span, copies=False)
    return Opaque("of something that is not known to be an array")


_HANDLERS: dict[str, Callable[[_Arguments, Run, Span], Value]] = {
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "identity": _eye,
    "array": lambda a, r, s: _array(a, r, s, copies=True),
    "asarray": lambda a, r, s: _array(a, r, s, copies=False),
    "asanyarray": lambda a, r, s: _array(a, r, s, copies=False),
    "copy": lambda a, r, s: _array(a, r, s, copies=True),
    "ascontiguousarray": lambda a, r, s: _ascontiguous(a, r, s, Order.C),
    "asfortranarray": lambda a, r, s: _ascontiguous(a, r, s, Order.F),
    "require": lambda a, r, s: _ascontiguous(a, r, s, Order.C),
    "reshape": _reshaped,
    "ravel": _raveled,
    "transpose": _transposed,
    "concatenate": _concatenate,
    "append": lambda a, r, s: _made(r, s, None, None),
    "hstack": _concatenate,
    "array_split": _split,
    "split": _split,
    "dot": _dot,
    "matmul": _dot,
    "vdot": _dot,
    "inner": _dot,
    "roll": _same,
    "flip": _same,
    "sort": _same,
    "copyto": _copyto,
    "shape": _shape_function,
    "size": _array_split_size,
    "frombuffer": _frombuffer,
    "fromstring": _frombuffer,
    "loadtxt": _file,
    "load": lambda a, r, s: _file(a, r, s, binary=True),
    "genfromtxt": _file,
    "fromfile": _file,
}
for _name in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft"):
    _HANDLERS[f"fft.{_name}"] = _fourier


def is_known(name: str) -> bool:
    """Return whether a function of NumPy is understood."""
    return name in _HANDLERS or name in _FILLED or name in _REDUCTIONS | _UNARY | _BINARY


def constant(path: str) -> Value | None:
    """Return what a constant of NumPy denotes."""
    if path.removeprefix("numpy.") in _CONSTANTS:
        return Number(None, "float")
    return None


def attribute(view: View, name: str, run: Run, span: Span) -> Value | None:
    """Return what an attribute of an array that is no method denotes."""
    shape = view.shape
    match name:
        case "T":
            return _transpose(view, [], run, span)
        case "shape" if shape is not None:
            return Sequence(tuple(Number(extent) for extent in shape), is_list=False)
        case "shape":
            why = f"the shape of `{view.text}` is not known"
            return Opaque(why, text=f"{view.buffer.name}.shape")
        case "size":
            return Number(view.count) if view.count is not None else _unknown_size(view, run)
        case "ndim":
            return Number(num(len(shape))) if shape is not None else Opaque("its dimensions")
        case "itemsize":
            return Number(num(_itemsize(view)))
        case "nbytes":
            return Number(None if view.count is None else view.count * _itemsize(view))
        case "dtype":
            return External(f"numpy.{view.dtype}") if view.dtype else Opaque("its element type")
        case "flat":
            return Array(View(view.buffer, view.region, view.text, span, flat=True))
        case "real" | "imag":
            return Array(View(view.buffer, None, run.text_of(span), span))
        case "flags" | "data" | "base" | "strides" | "ctypes":
            return Opaque(f"`.{name}` of an array", foreign=True)
    return None


def _unknown_size(view: View, run: Run) -> Value:
    why = f"the size of `{view.text}` is not known"
    return Number(run.symbols.unknown(f"{view.buffer.name}.size", why, None))


def _itemsize(view: View) -> int:
    return dtype_of(view.dtype).itemsize_bytes if view.dtype else 8


def method(view: View, name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a method of an array gives."""
    arguments = _Arguments(given)
    match name:
        case "copy":
            match arguments.at(0, "order"):
                case None | Text("C"):
                    order = Order.C
                case Text("F"):
                    order = Order.F
                case _:
                    order = view.order
            return _copied(view, run, span, order)
        case "flatten":
            return _flatten(view, run, span, copies=True)
        case "ravel":
            return _flatten(view, run, span, copies=False)
        case "reshape":
            return _reshape(view, arguments.values(), run, span)
        case "transpose":
            return _transpose(view, arguments.values(), run, span)
        case "astype":
            dtype = dtype_name(arguments.at(0, "dtype"))
            made = run.fresh(
                run.text_of(span), dtype, view.shape, Origin.COPY, span, view.order, copied=view
            )
            run.emit(Copy(made, view, span, allocates=True))
            return Array(made)
        case "tolist":
            run.emit(Compute(None, (view,), view.count, "tolist", span))
            return Sequence(None, Number(None, _python_number(view.dtype)), view.count)
        case "fill":
            run.emit(Compute(view, (), num(0), "fill", span))
            return Nothing()
        case "sort":
            run.emit(Compute(view, (view,), None, "call", span))
            return Nothing()
        case "item":
            return Number(None, _python_number(view.dtype), varies=True)
        case "dot":
            right = arguments.at(0)
            return elementwise.product(Array(view), right, run, span) if right else Nothing()
        case "conj" | "conjugate" | "round" | "clip" | "cumsum" | "cumprod":
            return elementwise.elementwise((Array(view),), run, span, name)
        case "squeeze":
            return Array(View(view.buffer, view.region, run.text_of(span), span, flat=True))
        case "view":
            return Array(View(view.buffer, None, run.text_of(span), span))
        case "tobytes" | "tostring":
            run.emit(Compute(None, (view,), num(0), "call", span))
            return Text(None)
    if name in _REDUCTIONS:
        return _reduction(name, view, arguments, run, span)
    run.emit(Compute(None, (view,), None, "call", span))
    return Opaque(f"the result of `.{name}()` is not known")


def _python_number(dtype: str | None) -> str:
    if dtype is None:
        return "float"
    kind = dtype_of(dtype).kind.value
    return {"boolean": "bool", "integer": "int", "floating": "float"}.get(kind, "complex")
