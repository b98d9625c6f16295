"""NumPy's functions and members of arrays: those that hang on memory, and who reads others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from advisor.dtypes import dtype_of
from advisor.frontend.expressions.calls import METHODS
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.numpy_created import (
    BY_KEYWORD,
    Arguments,
    array,
    array_of_nothing,
    ascontiguous,
    copied_array,
    dtype_name,
    flatten,
    from_file,
    frombuffer,
    over_memory,
    permuted,
    reshape,
    split,
    stated_dtype,
    unknown_function,
)
from advisor.frontend.spmd.numpy_values import called
from advisor.frontend.spmd.run import Run
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
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.numpy_table import ELEMENTWISE, PARAMETERS, ROWS, SAME_AS
from advisor.source import Span
from costdb.expr import Expr, num

# Attributes and methods of arrays: what they denote, and the work they do.


def attribute(view: View, name: str, run: Run, span: Span) -> Value | None:
    """Return what an attribute of an array that is no method denotes."""
    shape = view.shape
    match name:
        case "T":
            return permuted(view, tuple(range(len(shape or ())))[::-1], run, span)
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
        case "imag" if view.dtype is not None and not view.dtype.startswith("complex"):
            made = run.fresh(run.text_of(span), view.dtype, view.shape, Origin.NEW, span)
            run.emit(Allocate(made.buffer, span))
            return Array(made)
        case "real" | "imag":
            return _seen_as(view, elementwise.joined_dtype((Array(view),), "absolute"), run, span)
        case "flags" | "data" | "base" | "strides" | "ctypes":
            return Opaque(f"`.{name}` of an array", foreign=True)
    return None


def _seen_as(view: View, dtype: str | None, run: Run, span: Span) -> Value:
    """Return an array's memory as elements of another type, or as parts of each element."""
    if dtype == view.dtype:
        return Array(View(view.buffer, None, run.text_of(span), span))
    made = replace(view.buffer.allocation, within=view.buffer)
    buffer = replace(view.buffer, dtype=dtype, extents=None, allocation=made)
    return Array(View(buffer, None, run.text_of(span), span))


def _unknown_size(view: View, run: Run) -> Value:
    why = f"the size of `{view.text}` is not known"
    return Number(run.symbols.unknown(f"{view.buffer.name}.size", why, None))


def _itemsize(view: View) -> int:
    return dtype_of(view.dtype).itemsize_bytes if view.dtype else 8


def method(view: View, name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a method of an array gives."""
    arguments = Arguments(given)
    match name:
        case "copy":
            match arguments.at(0, "order"):
                case None | Text("C"):
                    order = Order.C
                case Text("F"):
                    order = Order.F
                case _:
                    order = view.order
            return copied_array(view, run, span, order)
        case "flatten":
            return flatten(view, run, span, copies=True, order=arguments.at(0, "order"))
        case "ravel":
            return flatten(view, run, span, copies=False, order=arguments.at(0, "order"))
        case "reshape":
            shape = arguments.keyword("shape")
            extents = arguments.values() if shape is None else [shape]
            return reshape(view, extents, run, span, arguments.keyword("order"))
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
        case "squeeze":
            return Array(View(view.buffer, view.region, run.text_of(span), span, flat=True))
        case "view":
            kind = dtype_name(arguments.at(0, "dtype"))
            return _seen_as(view, kind, run, span)
        case "tobytes" | "tostring":
            run.emit(Compute(None, (view,), num(0), "call", span))
            return Text(None)
    if name in METHODS:
        return called(name, Array(view), arguments, run, span)
    run.emit(Compute(None, (view,), None, "call", span))
    return Opaque(f"the result of `.{name}()` is not known")


def _python_number(dtype: str | None) -> str:
    if dtype is None:
        return "float"
    kind = dtype_of(dtype).kind.value
    return {"boolean": "bool", "integer": "int", "floating": "float"}.get(kind, "complex")


UFUNCS = frozenset({*ELEMENTWISE, "real", "imag"})
_CONSTANTS = frozenset({"pi", "e", "inf", "nan"})


def call(name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a function of NumPy gives, by its name below ``numpy``."""
    arguments = Arguments(given)
    first = arguments.at(0)
    if name in ("real", "imag") and isinstance(first, Array):
        found = attribute(first.view, name, run, span)
        return Opaque("a part of complex numbers") if found is None else found
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(arguments, run, span)
    if name.startswith("random."):
        return random(name.removeprefix("random."), arguments, run, span)
    if name in UFUNCS:
        return ufunc(name, arguments, run, span)
    if name in ("int32", "int64", "float32", "float64", "intc", "int_", "float_", "complex128"):
        return scalar_type(name, first, run, span)
    if name in ("save", "savetxt", "savez", "set_printoptions", "seterr"):
        run.unknown(f"the time of numpy.{name} is not known", span)
        return Nothing()
    if name.startswith("testing."):
        return Nothing()
    return called(name, None, arguments, run, span)


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
        return _of_type(made, stated_dtype(arguments, BY_KEYWORD, made.view.dtype))
    if all(isinstance(v, Number) for v in values) and values:
        return elementwise.of_numbers(name, values, run)
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


def _copyto(arguments: Arguments, run: Run, span: Span) -> Value:
    target, source = arguments.at(0), arguments.at(1)
    if isinstance(target, Array) and isinstance(source, Array):
        run.emit(Copy(target.view, source.view, span))
    return Nothing()


def _shape_function(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    found = attribute(first.view, "shape", run, span) if isinstance(first, Array) else None
    return found or Opaque("a shape that is not known")


def _array_split_size(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    found = attribute(first.view, "size", run, span) if isinstance(first, Array) else None
    return found or Opaque("a size that is not known")


def _reshaped(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if isinstance(first, Array):
        shape = arguments.at(1, "shape", "newshape")
        given = [Opaque("a shape that is not stated") if shape is None else shape]
        return reshape(first.view, given, run, span, arguments.at(2, "order"))
    return Opaque("a reshape of something that is not known to be an array")


def _raveled(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if isinstance(first, Array):
        return flatten(first.view, run, span, copies=False, order=arguments.at(1, "order"))
    return Opaque("of something that is not known to be an array")


def _dtype(arguments: Arguments, run: Run, span: Span) -> Value:
    name = dtype_name(arguments.at(0, "dtype"))
    return (
        Opaque("an element type that is not known") if name is None else External(f"numpy.{name}")
    )


_HANDLERS: dict[str, Callable[[Arguments, Run, Span], Value]] = {
    "ndarray": over_memory,
    "array": lambda a, r, s: array(a, r, s, copies=True),
    "asarray": lambda a, r, s: array(a, r, s, copies=False),
    "asanyarray": lambda a, r, s: array(a, r, s, copies=False),
    "copy": lambda a, r, s: array(a, r, s, copies=True),
    "ascontiguousarray": lambda a, r, s: ascontiguous(a, r, s, Order.C),
    "asfortranarray": lambda a, r, s: ascontiguous(a, r, s, Order.F),
    "require": lambda a, r, s: ascontiguous(a, r, s, Order.C),
    "reshape": _reshaped,
    "ravel": _raveled,
    "append": lambda a, r, s: array_of_nothing(r, s, None, None),
    "array_split": partial(split, "array_split"),
    "split": partial(split, "split"),
    "dtype": _dtype,
    "copyto": _copyto,
    "shape": _shape_function,
    "size": _array_split_size,
    "frombuffer": frombuffer,
    "fromstring": frombuffer,
    "loadtxt": from_file,
    "load": lambda a, r, s: from_file(a, r, s, binary=True),
    "genfromtxt": from_file,
    "fromfile": from_file,
}


def is_known(name: str) -> bool:
    """Return whether a function of NumPy is understood."""
    return name in _HANDLERS or name in UFUNCS or SAME_AS.get(name, name) in PARAMETERS


def constant(path: str) -> Value | None:
    """Return what a constant of NumPy denotes."""
    if path.removeprefix("numpy.") in _CONSTANTS:
        return Number(None, "float")
    return None


# Random numbers: functions of ``numpy.random``, and methods of its generators.

_WITH_SIZE_AT = {
    0: "random random_sample ranf sample standard_cauchy standard_exponential standard_normal",
    1: "chisquare exponential geometric logseries pareto poisson power rayleigh standard_gamma"
    " standard_t weibull zipf",
    2: "beta binomial f gamma gumbel integers laplace logistic lognormal negative_binomial"
    " noncentral_chisquare normal randint random_integers uniform vonmises wald",
    3: "hypergeometric noncentral_f triangular",
}
SIZE_AT = {name: place for place, names in _WITH_SIZE_AT.items() for name in names.split()}
"""The place of ``size`` among the arguments, by the name of a distribution."""

INTEGERS = frozenset(
    [
        "binomial",
        "geometric",
        "hypergeometric",
        "integers",
        "logseries",
        "negative_binomial",
        "poisson",
        "randint",
        "random_integers",
        "zipf",
    ]
)
TYPED = frozenset(
    ["integers", "randint", "random", "standard_exponential", "standard_gamma", "standard_normal"]
)
"""Those that take ``dtype``, behind ``size``."""


def random(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of ``numpy.random`` gives, by its bare name."""
    match name:
        case "default_rng" | "RandomState":
            return External("numpy.random")
        case "seed":
            return Nothing()
        case "rand" | "randn":
            return _of_extents(arguments, run, span)
        case "permutation" | "shuffle":
            return _in_other_order(name, arguments, run, span)
    place = SIZE_AT.get(name)
    if place is None or arguments.starred or arguments.keyword("out") is not None:
        return unknown_function(name, arguments, run, span)
    size = arguments.at(place, "size")
    kind = "int64" if name in INTEGERS else "float64"
    dtype = stated_dtype(arguments, place + 1, kind) if name in TYPED else kind
    if size is not None and not isinstance(size, Nothing):
        return _array(run, span, dtype, run.numbers(size, "size"))
    given = [*arguments.values(), *(one.value for one in arguments.keywords.values())]
    if any(isinstance(value, Array | Sequence) for value in given):
        return unknown_function(name, arguments, run, span)  # an array of their shape
    return Number(None, "int" if name in INTEGERS else "float", varies=True)


def _of_extents(arguments: Arguments, run: Run, span: Span) -> Value:
    extents = arguments.values()
    if arguments.starred:
        return _array(run, span, "float64", None)
    if not extents:
        return Number(None, "float", varies=True)
    return _array(
        run, span, "float64", run.numbers(Sequence(tuple(extents), is_list=False), "size")
    )


def _in_other_order(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if name == "shuffle":
        return Nothing()
    if isinstance(first, Number):
        return array_of_nothing(run, span, "int64", None if first.expr is None else (first.expr,))
    if isinstance(first, Array):
        return copied_array(first.view, run, span, first.view.order)
    return unknown_function(name, arguments, run, span)


def _array(run: Run, span: Span, dtype: str | None, shape: tuple[Expr, ...] | None) -> Value:
    view = run.fresh(run.text_of(span), dtype, shape, Origin.NEW, span)
    run.emit(Allocate(view.buffer, span))
    return Array(view)
