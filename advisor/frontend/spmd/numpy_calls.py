"""NumPy's functions and members of arrays: those that hang on memory, and who reads others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from advisor.dtypes import dtype_of, is_dtype
from advisor.frontend.arguments import Given
from advisor.frontend.calls import MADE_OF_NUMBERS, METHODS, VIEWS, Calls
from advisor.frontend.spmd.door import ProgramDoor, of_numbers
from advisor.frontend.spmd.numpy_created import (
    BY_KEYWORD,
    allocated,
    array,
    copied_array,
    dtype_name,
    flatten,
    from_file,
    frombuffer,
    over_memory,
    permuted,
    reshape,
    stated_dtype,
    unknown_function,
    unknown_length,
)
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.subscripts import subscript
from advisor.frontend.spmd.values import (
    Argument,
    Arguments,
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Slice,
    Text,
    Value,
)
from advisor.frontend.trees import NotUnderstood
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.program import RANK
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.ir.values import Scalar
from advisor.numpy_functions import FUNCTIONS, SIZE_AT
from advisor.numpy_table import (
    COPIES,
    ELEMENTWISE,
    PARAMETERS,
    PYTHON_FLOAT,
    REDUCTIONS,
    ROWS,
    SAME_AS,
    UNKNOWN_DTYPE,
    reduced_dtype,
    result_dtype,
)
from advisor.source import Span
from costdb.expr import ceil_div, num, sym

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
        case "imag" if view.dtype is not None and not view.dtype.startswith("complex"):
            return allocated(run, span, view.dtype, shape)
        case "real" | "imag":
            dtype = None if view.dtype is None else result_dtype("absolute", (view.dtype,))
            return _seen_as(view, dtype, run, span)
        case "flat" | "flags" | "data" | "base" | "strides" | "ctypes":
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
            run.emit(Compute(None, (view,), None, span, "tolist"))
            return Sequence(None, Number(None, _python_number(view.dtype)), view.count)
        case "fill":
            run.emit(Compute(view, (), Scalar("?", PYTHON_FLOAT), span))
            return Nothing()
        case "sort":
            given = [Argument(Array(view), name, span, span, view.text) for name in (None, "out")]
            called("sort", None, Arguments((given[0], *arguments.all, given[1])), run, span)
            return Nothing()
        case "resize":
            run.reshaped(view)
            return Nothing()
        case "item":
            return Number(None, _python_number(view.dtype), varies=True)
        case "squeeze":
            return Array(View(view.buffer, view.region, run.text_of(span), span, flat=True))
        case "view":
            return _seen_as(view, dtype_name(arguments.at(0, "dtype")), run, span)
        case "tobytes" | "tostring":
            run.emit(Compute(None, (view,), None, span, "call"))
            return Text(None)
    if name in METHODS:
        return called(name, Array(view), arguments, run, span)
    run.emit(Compute(None, (view,), None, span, "call"))
    return Opaque(f"the result of `.{name}()` is not known")


def _python_number(dtype: str | None) -> str:
    kind = dtype_of(dtype or "float64").kind.value
    return {"boolean": "bool", "integer": "int", "floating": "float"}.get(kind, "complex")


# Functions.

CONSTANTS = frozenset({"numpy.pi", "numpy.e", "numpy.inf", "numpy.nan"})
_OF_FILES = frozenset({"save", "savetxt", "savez", "set_printoptions", "seterr"})


def call(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of NumPy gives, by its name below ``numpy``."""
    first = arguments.at(0)
    match first:
        case Array(view) if name in _OF_ARRAYS:
            found = attribute(view, name, run, span)
            return found or method(view, name, arguments.behind(1), run, span)
        case Number() if name in _OF_ARRAYS:
            return of_numbers(name, [first], run)
    if name in _OF_ARRAYS:
        return Opaque(f"numpy.{name} of no array")
    if name == "append" and isinstance(first, Array):
        return called(name, None, arguments, run, span)
    if name in _HANDLERS:
        return _HANDLERS[name](arguments, run, span)
    if name in _OF_LISTS and not isinstance(first, Array):
        return array(arguments.at(0, "object", "a"), arguments, run, span)
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


def split(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return the parts of an array that is split along its first axis.

    ``split`` makes all of one length; of ``array_split`` the first ones may have one element more.
    """
    source, sections = arguments.at(0), arguments.at(1)
    if not isinstance(source, Array):
        return Opaque("the parts of something that is not known to be an array")
    count = run.number(sections, "parts")
    shape = source.view.shape
    if count is None or shape is None or arguments.keyword("axis") is not None:
        return Sequence(None, Array(View(source.view.buffer, None, source.view.text, span)), count)
    own = num(0) if name == "split" else sym(RANK)
    longest = ceil_div(shape[0] - own, count)
    first = Slice(Nothing(), Number(longest), Nothing())
    return Sequence(None, subscript(source, first, run, span, run.text_of(span)), count)


_OF_ARRAYS = frozenset({"real", "imag", "shape", "size", "reshape", "ravel"})
"""Functions that are attributes or methods of their first argument."""
_OF_LISTS = frozenset({"asanyarray", *COPIES} - {"astype"})
_HANDLERS: dict[str, Callable[[Arguments, Run, Span], Value]] = {
    "ndarray": over_memory,
    "append": lambda a, r, s: allocated(r, s, None, (unknown_length(r, s),)),
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


# Results, under the names that they are given.


def called(name: str, owner: Array | None, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function gives, or a method of an owner, and note the steps that it takes.

    Where the table does not tell that, as much is told as is known.
    """
    noted, door = len(run.steps[-1]), ProgramDoor(run, span)
    out, all_given = arguments.keyword("out"), arguments.all
    if name in ELEMENTWISE and len(arguments.positional) > ROWS[ELEMENTWISE[name]].operands:
        out, all_given = arguments.positional[-1].value, all_given[:-1]
    given = given_to(a for a in all_given if a.keyword != "out")
    calls = Calls(door)
    try:
        if owner is None and len(getattr(FUNCTIONS.get(name), "dtypes", ())) > 1:
            results = calls.several(name, given)
            if len(results) > 1:
                return Sequence(tuple(map(door.behind, results)), is_list=False)
            made = results[0]
        elif owner is None:
            made = calls.function(name, given)
        else:
            made = calls.method(name, door.value(owner), given)
        found = door.behind(made)
        if not isinstance(out, Array):
            return found
        if isinstance(found, Array):
            return _stored(found.view, out.view, run)
    except NotUnderstood:
        pass
    del run.steps[-1][noted:]
    first = owner or arguments.at(0)
    return _of_unknown_shape(SAME_AS.get(name, name), first, arguments, run, span)


def given_to(arguments: Iterable[Argument]) -> list[Given[Value]]:
    """Return arguments as the table of functions is asked."""
    return [Given(one.value, one.keyword, bool(one.star)) for one in arguments]


def gone_through(name: str, values: list[Value], run: Run, span: Span) -> Value | None:
    """Return what a function of Python's makes of a vector's elements; None where nobody knows."""
    door = ProgramDoor(run, span)
    if len(values) != 1 or f"builtins.{name}" not in FUNCTIONS:
        return None
    try:
        made = door.behind(Calls(door).of_python(name, door.value(values[0])))
    except NotUnderstood:
        return None
    if isinstance(made, Array):
        # a list
        return Sequence(None, Number(None, "float"), made.view.count)
    return made


def _of_unknown_shape(
    name: str, first: Value | None, arguments: Arguments, run: Run, span: Span
) -> Value:
    row, dtype = REDUCTIONS.get(name), stated_dtype(arguments, BY_KEYWORD, None)
    text = run.text_of(span)
    arrays = any(isinstance(value, Array) for value in arguments.values())
    if name in ELEMENTWISE and not any(isinstance(one.value, Array) for one in arguments.all):
        return Opaque(f"numpy.{name} of something that is not followed")
    if name.endswith("_like") or (name in MADE_OF_NUMBERS and not arrays):
        view = run.fresh(text, dtype, None, Origin.NEW, span, Order.UNKNOWN)
        run.emit(Allocate(view.buffer, span))
        return Array(view)
    if not isinstance(first, Array) or name not in PARAMETERS:
        return unknown_function(name, arguments, run, span)
    view = first.view
    of_all = not {"axis", "keepdims", "where", "out"} & arguments.keywords.keys()
    if row is not None and of_all and len(arguments.positional) <= (first is arguments.at(0)):
        found = dtype or reduced_dtype(row.result, view.dtype or UNKNOWN_DTYPE)
        run.emit(Compute(None, (view,), None, span))
        return Number(None, "float" if found == UNKNOWN_DTYPE else found, varies=True)
    if name in VIEWS:
        return Array(View(view.buffer, None, text, span))
    made = run.fresh(text, None, None, Origin.COMPUTED, span, sources=(view,))
    run.emit(Compute(made, (view,), None, span, "call", allocates=True))
    return Array(made)


def _stored(made: View, out: View, run: Run) -> Array:
    """Return an array that is stored in ``out=``, as the last step that makes it is."""
    if len({shape for shape in (out.shape, made.shape) if shape is not None}) > 1:
        raise NotUnderstood("`out=` of another shape")
    last = run.steps[-1][-1] if run.steps[-1] else None
    if isinstance(last, Compute) and last.target == made:
        run.frame.buffers.pop((made.buffer.name, made.buffer.number), None)
        run.steps[-1][-1] = replace(last, target=out, allocates=False)
    else:
        run.emit(Copy(out, made, made.span))
    return Array(out)


# Random numbers: functions of ``numpy.random``, and methods of its generators.


def random(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of ``numpy.random`` gives, by its bare name."""
    match name:
        case "default_rng" | "RandomState":
            return External("numpy.random")
        case "seed" | "shuffle":
            return Nothing()
    try:
        drawn = Calls(ProgramDoor(run, span)).drawn(name, given_to(arguments.all))
    except NotUnderstood:
        unknown = unknown_function(name, arguments, run, span)
        return allocated(run, span, None, None) if name in SIZE_AT else unknown
    dtype = None if drawn.dtype == UNKNOWN_DTYPE else drawn.dtype
    if drawn.shape or "size" in arguments.keywords:
        return allocated(run, span, dtype, drawn.shape)
    return Number(None, "int" if dtype == "int64" else dtype or "float", varies=True)
