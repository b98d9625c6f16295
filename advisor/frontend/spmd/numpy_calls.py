"""NumPy's functions and members of arrays: those that hang on memory, and who reads others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from advisor.dtypes import dtype_of, is_dtype
from advisor.frontend.calls import METHODS
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.numpy_created import (
    allocated,
    array,
    array_of_nothing,
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
    Arguments,
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Range,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.steps import Compute, Copy
from advisor.numpy_functions import INTEGERS, SIZE_AT, TYPED
from advisor.numpy_table import COPIES, ELEMENTWISE, PARAMETERS, SAME_AS
from advisor.source import Span
from costdb.expr import num

# Attributes and methods of arrays: what they denote, and the work they do.


def attribute(view: View, name: str, run: Run, span: Span) -> Value | None:
    """Return what an attribute of an array that is no method denotes."""
    shape, count = view.shape, view.count
    match name:
        case "T":
            return permuted(view, tuple(range(len(shape or ())))[::-1], run, span)
        case "shape" if shape is not None:
            return Sequence(tuple(Number(extent) for extent in shape), is_list=False)
        case "shape":
            why = f"the shape of `{view.text}` is not known"
            return Opaque(why, text=f"{view.buffer.name}.shape")
        case "size" if count is None:
            why = f"the size of `{view.text}` is not known"
            return Number(run.symbols.unknown(f"{view.buffer.name}.size", why, None))
        case "size":
            return Number(count)
        case "ndim":
            return Number(num(len(shape))) if shape is not None else Opaque("its dimensions")
        case "itemsize":
            return Number(num(_itemsize(view)))
        case "nbytes":
            return Number(None if count is None else count * _itemsize(view))
        case "dtype":
            return External(f"numpy.{view.dtype}") if view.dtype else Opaque("its element type")
        case "flat":
            return Array(View(view.buffer, view.region, view.text, span, flat=True))
        case "imag" if view.dtype is not None and not view.dtype.startswith("complex"):
            return allocated(run, span, view.dtype, shape)
        case "real" | "imag":
            return _seen_as(view, elementwise.joined_dtype((Array(view),), "absolute"), run, span)
        case "flags" | "data" | "base" | "strides" | "ctypes":
            return Opaque(f"`.{name}` of an array", foreign=True)
    return None


def _seen_as(view: View, dtype: str | None, run: Run, span: Span) -> Value:
    """Return an array's memory as elements of another type, or as parts of each element."""
    buffer = view.buffer
    if dtype != view.dtype:
        made = replace(buffer.allocation, within=buffer)
        buffer = replace(buffer, dtype=dtype, extents=None, allocation=made)
    return Array(View(buffer, None, run.text_of(span), span))


def _itemsize(view: View) -> int:
    return dtype_of(view.dtype).itemsize_bytes if view.dtype else 8


def method(view: View, name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a method of an array gives."""
    match name:
        case "flatten" | "ravel":
            copies, order = name == "flatten", arguments.at(0, "order")
            return flatten(view, run, span, copies=copies, order=order)
        case "reshape":
            shape = arguments.keyword("shape") or arguments.keyword("newshape")
            extents, order = arguments.values(), arguments.keyword("order")
            if extents and isinstance(extents[-1], Text):
                order = extents.pop()
            return reshape(view, extents if shape is None else [shape], run, span, order)
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
            return _seen_as(view, dtype_name(arguments.at(0, "dtype")), run, span)
        case "tobytes" | "tostring":
            run.emit(Compute(None, (view,), num(0), "call", span))
            return Text(None)
    if name in METHODS:
        return called(name, Array(view), arguments, run, span)
    run.emit(Compute(None, (view,), None, "call", span))
    return Opaque(f"the result of `.{name}()` is not known")


def _python_number(dtype: str | None) -> str:
    kind = dtype_of(dtype or "float64").kind.value
    return {"boolean": "bool", "integer": "int", "floating": "float"}.get(kind, "complex")


# Functions.

_CONSTANTS = frozenset({"pi", "e", "inf", "nan"})
_OF_FILES = frozenset({"save", "savetxt", "savez", "set_printoptions", "seterr"})


def call(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of NumPy gives, by its name below ``numpy``."""
    first = arguments.at(0)
    if name in _OF_ARRAYS and not isinstance(first, Array):
        return elementwise.of_any(name, arguments.values(), run, span)
    if isinstance(first, Array) and name in _OF_ARRAYS:
        found = attribute(first.view, name, run, span)
        return found or method(first.view, name, arguments.behind(1), run, span)
    if name == "append" and isinstance(first, Array):
        return called(name, None, arguments, run, span)
    if name in _HANDLERS or (name in _OF_LISTS and not isinstance(first, Array)):
        return (_HANDLERS | _OF_LISTS)[name](arguments, run, span)
    if name.startswith("random."):
        return random(name.removeprefix("random."), arguments, run, span)
    if is_dtype(name):
        return scalar_type(name, first, run, span)
    if name in _OF_FILES:
        run.unknown(f"the time of numpy.{name} is not known", span)
        return Nothing()
    if name.startswith("testing."):
        return Nothing()
    return called(name, None, arguments, run, span)


def scalar_type(name: str, first: Value | None, run: Run, span: Span) -> Value:
    """Return a value converted to an element type."""
    dtype = dtype_name(Text(name)) or "float"
    match first:
        case Array(view):
            return copied_array(view, run, span, view.order, dtype=dtype)
        case Number():
            return replace(first, dtype=dtype)
        case Opaque():
            return Number(first.expr, dtype, varies=first.varies)
    return Number(None, dtype)


def _copyto(arguments: Arguments, run: Run, span: Span) -> Value:
    target, source = arguments.at(0), arguments.at(1)
    if isinstance(target, Array) and isinstance(source, Array):
        run.emit(Copy(target.view, source.view, span))
    return Nothing()


def _dtype(arguments: Arguments, run: Run, span: Span) -> Value:
    name = dtype_name(arguments.at(0, "dtype"))
    return (
        Opaque("an element type that is not known") if name is None else External(f"numpy.{name}")
    )


_OF_ARRAYS = frozenset({"real", "imag", "shape", "size", "reshape", "ravel"})
"""Functions that are attributes or methods of their first argument."""
_OF_LISTS = {name: array for name in ("asanyarray", *COPIES) if name != "astype"}
_HANDLERS: dict[str, Callable[[Arguments, Run, Span], Value]] = {
    "ndarray": over_memory,
    "append": lambda a, r, s: array_of_nothing(r, s, None, None),
    "array_split": partial(split, "array_split"),
    "split": partial(split, "split"),
    "dtype": _dtype,
    "copyto": _copyto,
    "frombuffer": frombuffer,
    "fromstring": frombuffer,
    "loadtxt": from_file,
    "load": partial(from_file, binary=True),
    "genfromtxt": from_file,
    "fromfile": from_file,
}


def is_known(name: str) -> bool:
    """Return whether a function of NumPy is understood."""
    return (
        name in (_HANDLERS.keys() | _OF_ARRAYS | ELEMENTWISE.keys())
        or SAME_AS.get(name, name) in PARAMETERS
    )


def constant(path: str) -> Value | None:
    """Return what a constant of NumPy denotes."""
    return Number(None, "float") if path.removeprefix("numpy.") in _CONSTANTS else None


# Random numbers: functions of ``numpy.random``, and methods of its generators.


def random(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of ``numpy.random`` gives, by its bare name."""
    first, values = arguments.at(0), arguments.values()
    match name:
        case "default_rng" | "RandomState":
            return External("numpy.random")
        case "seed" | "shuffle":
            return Nothing()
        case "rand" | "randn" if arguments.starred or values:
            extents = Sequence(None if arguments.starred else tuple(values), is_list=False)
            return allocated(run, span, "float64", run.numbers(extents, "size"))
        case "rand" | "randn":
            return Number(None, "float", varies=True)
        case "permutation" if isinstance(first, Number):
            shape = None if first.expr is None else (first.expr,)
            return array_of_nothing(run, span, "int64", shape)
        case "permutation" if isinstance(first, Array):
            return copied_array(first.view, run, span, first.view.order)
    place = SIZE_AT.get(name)
    if place is None or arguments.starred or arguments.keyword("out") is not None:
        return unknown_function(name, arguments, run, span)
    size = arguments.at(place, "size")
    kind = "int64" if name in INTEGERS else "float64"
    dtype = stated_dtype(arguments, place + 1, kind) if name in TYPED else kind
    if size is not None and not isinstance(size, Nothing):
        return allocated(run, span, dtype, run.numbers(size, "size"))
    given = [*values, *arguments.by_keyword().values()]
    if any(isinstance(value, Array | Sequence | Range) for value in given):
        return unknown_function(name, arguments, run, span)  # an array of their shape
    return Number(None, "int" if name in INTEGERS else "float", varies=True)
