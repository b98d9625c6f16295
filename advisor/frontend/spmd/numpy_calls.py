"""NumPy's functions by their names: which of them are understood, and what each gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.array_members import attribute
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.numpy_arguments import Arguments, dtype_name, unknown_function
from advisor.frontend.spmd.numpy_arithmetic import (
    REDUCTIONS,
    SCANS,
    UFUNCS,
    dot,
    fourier,
    reduction,
    same,
    scalar_type,
    scan,
    sorted_copy,
    ufunc,
)
from advisor.frontend.spmd.numpy_created import (
    FILLED,
    arange,
    array,
    array_like,
    array_of_nothing,
    ascontiguous,
    eye,
    filled_array,
    from_file,
    frombuffer,
    linspace,
)
from advisor.frontend.spmd.numpy_joined import joined
from advisor.frontend.spmd.numpy_random import random
from advisor.frontend.spmd.numpy_rearranged import (
    axes_moved,
    flatten,
    reshape,
    split,
    transpose,
)
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Number, Opaque, Value
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.steps import Compute, Copy
from advisor.source import Span

_CONSTANTS = frozenset({"pi", "e", "inf", "nan"})


def call(name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a function of NumPy gives, by its name below ``numpy``."""
    arguments = Arguments(given)
    first = arguments.at(0)
    if name in FILLED:
        return filled_array(arguments, run, span, filled=FILLED[name], full=name == "full")
    if name in ("zeros_like", "ones_like", "empty_like", "full_like"):
        return array_like(first, arguments, run, span, filled=name != "empty_like")
    if name in ("real", "imag") and isinstance(first, Array):
        found = attribute(first.view, name, run, span)
        return Opaque("a part of complex numbers") if found is None else found
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(arguments, run, span)
    bare = name.rpartition(".")[2]
    if name.startswith("random."):
        return random(bare, arguments, run, span)
    if bare in REDUCTIONS and isinstance(first, Array):
        return reduction(bare, first.view, arguments.after_first(), run, span, function=True)
    if name in SCANS and isinstance(first, Array):
        return scan(name, first.view, arguments.after_first(), run, span)
    if name in UFUNCS:
        return ufunc(name, arguments, run, span)
    if name in ("int32", "int64", "float32", "float64", "intc", "int_", "float_", "complex128"):
        return scalar_type(name, first, run, span)
    if name in ("save", "savetxt", "savez", "set_printoptions", "seterr"):
        run.unknown(f"the time of numpy.{name} is not known", span)
        return Nothing()
    if name.startswith("testing."):
        return Nothing()
    return unknown_function(name, arguments, run, span)


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


def _transposed(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if isinstance(first, Array):
        return transpose(first.view, arguments.values()[1:], run, span)
    return Opaque("a transpose of something that is not known to be an array")


def _flipped(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return a view that goes through an axis from its end: none that is one stretch."""
    first = arguments.at(0)
    if not isinstance(first, Array):
        return Opaque("of something that is not known to be an array")
    view = first.view
    flat = view.shape is not None
    return Array(View(view.buffer, None, run.text_of(span), span, flat=flat, shown=view.shape))


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


def _rolled(arguments: Arguments, run: Run, span: Span) -> Value:
    if isinstance(arguments.at(1, "shift"), Array):
        return unknown_function("roll", arguments, run, span)
    return same(arguments, run, span)


def _norm(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    if not isinstance(first, Array):
        return Number(None, "float", varies=True)
    rest = arguments.after_first()
    rest.positional = rest.positional[1:]
    rest.keywords = {k: a for k, a in rest.keywords.items() if k != "ord"}
    # squares are added as fast as numbers
    return reduction("sum", first.view, rest, run, span)


def _stated_more(arguments: Arguments) -> bool:
    return len(arguments.values()) > 1 or bool(arguments.keywords)


def _differences(arguments: Arguments, run: Run, span: Span) -> Value:
    first = arguments.at(0)
    shape = first.view.shape if isinstance(first, Array) else None
    if not isinstance(first, Array) or not shape or _stated_more(arguments):
        return unknown_function("diff", arguments, run, span)
    made = run.fresh(
        run.text_of(span), first.view.dtype, (*shape[:-1], shape[-1] - 1), Origin.COMPUTED, span
    )
    count = elementwise.size_of(made.shape)
    run.emit(Compute(made, (first.view,), count, "elementwise", span, "subtract"))
    return Array(made)


def _searched(arguments: Arguments, run: Run, span: Span) -> Value:
    first, wanted = arguments.at(0), arguments.at(1, "v")
    if not isinstance(first, Array) or not isinstance(wanted, Array):
        return unknown_function("searchsorted", arguments, run, span)
    made = run.fresh(run.text_of(span), "int64", wanted.view.shape, Origin.COMPUTED, span)
    run.emit(Compute(made, (first.view, wanted.view), None, "call", span))
    return Array(made)


def _dtype(arguments: Arguments, run: Run, span: Span) -> Value:
    name = dtype_name(arguments.at(0, "dtype"))
    return (
        Opaque("an element type that is not known") if name is None else External(f"numpy.{name}")
    )


_HANDLERS: dict[str, Callable[[Arguments, Run, Span], Value]] = {
    "arange": arange,
    "linspace": linspace,
    "eye": eye,
    "identity": eye,
    "array": lambda a, r, s: array(a, r, s, copies=True),
    "asarray": lambda a, r, s: array(a, r, s, copies=False),
    "asanyarray": lambda a, r, s: array(a, r, s, copies=False),
    "copy": lambda a, r, s: array(a, r, s, copies=True),
    "ascontiguousarray": lambda a, r, s: ascontiguous(a, r, s, Order.C),
    "asfortranarray": lambda a, r, s: ascontiguous(a, r, s, Order.F),
    "require": lambda a, r, s: ascontiguous(a, r, s, Order.C),
    "reshape": _reshaped,
    "ravel": _raveled,
    "transpose": _transposed,
    "append": lambda a, r, s: array_of_nothing(r, s, None, None),
    "array_split": partial(split, "array_split"),
    "split": partial(split, "split"),
    "dot": dot,
    "matmul": dot,
    "vdot": dot,
    "inner": dot,
    "roll": _rolled,
    "flip": _flipped,
    "sort": sorted_copy,
    "linalg.norm": _norm,
    "diff": _differences,
    "searchsorted": _searched,
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
for _name in ("", "2", "n"):
    for _kind in ("fft", "ifft", "rfft", "irfft"):
        _HANDLERS[f"fft.{_kind}{_name}"] = partial(fourier, f"{_kind}{_name}")
for _name in ("concatenate", "hstack", "vstack", "stack", "column_stack", "row_stack"):
    _HANDLERS[_name] = partial(joined, _name)
for _name in ("swapaxes", "moveaxis", "rollaxis"):
    _HANDLERS[_name] = partial(axes_moved, _name)


def is_known(name: str) -> bool:
    """Return whether a function of NumPy is understood."""
    return name in _HANDLERS or name in FILLED or name in REDUCTIONS | UFUNCS


def constant(path: str) -> Value | None:
    """Return what a constant of NumPy denotes."""
    if path.removeprefix("numpy.") in _CONSTANTS:
        return Number(None, "float")
    return None
