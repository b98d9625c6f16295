"""Attributes and methods of arrays: what they denote, and the work they do."""

from __future__ import annotations

from dataclasses import replace

from advisor.dtypes import dtype_of
from advisor.frontend.expressions.calls import METHODS
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.numpy_arguments import Arguments, dtype_name
from advisor.frontend.spmd.numpy_rearranged import (
    copied_array,
    flatten,
    permuted,
    reshape,
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
from advisor.source import Span
from costdb.expr import num


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
