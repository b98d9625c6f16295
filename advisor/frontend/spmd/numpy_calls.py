"""NumPy's functions by their names: which of them are understood, and what each gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.array_members import attribute
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.numpy_arguments import (
    BY_KEYWORD,
    Arguments,
    dtype_name,
    stated_dtype,
    unknown_function,
)
from advisor.frontend.spmd.numpy_created import (
    array,
    array_of_nothing,
    ascontiguous,
    from_file,
    frombuffer,
    over_memory,
)
from advisor.frontend.spmd.numpy_random import random
from advisor.frontend.spmd.numpy_rearranged import (
    copied_array,
    flatten,
    reshape,
    split,
)
from advisor.frontend.spmd.numpy_values import called
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Number, Opaque, Text, Value
from advisor.ir.spmd.memory import Order
from advisor.ir.spmd.steps import Copy
from advisor.numpy_table import ELEMENTWISE, PARAMETERS, ROWS, SAME_AS
from advisor.source import Span

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
