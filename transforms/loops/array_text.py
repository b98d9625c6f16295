"""Statements over arrays as source, written as a person would."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from advisor.dtypes import Kind
from advisor.ir.kernel import Kernel
from advisor.ir.masks import chosen_in, masked
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import SET, Bind, Loop, ScalarBind, Scatter, Statement, Store, is_total
from advisor.ir.values import (
    Along,
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Tally,
    Transpose,
    Value,
    Windows,
    parts_of,
)
from advisor.numpy_table import PYTHON_INTEGER
from advisor.source import Span
from costdb.expr import ONE, Expr, to_text
from costdb.expr.nodes import Add, Num, Sym
from costdb.expr.parse import parse
from transforms.kit.kernels import ZERO, mapped, type_of
from transforms.kit.rewrite import python_text
from transforms.loops.axes import chain, kept_axis
from transforms.loops.lift import COUNTED, METHODS
from transforms.loops.listed import filled, in_list
from transforms.loops.raising import combined

_LOOSE, _COMPARED, _OR, _AND, _SUM, _PRODUCT, _SIGNED, _TIGHT = range(8)
_SIGNS = {
    **{"add": ("+", _SUM), "subtract": ("-", _SUM)},
    **{"multiply": ("*", _PRODUCT), "divide": ("/", _PRODUCT)},
    **{"floor_divide": ("//", _PRODUCT), "remainder": ("%", _PRODUCT)},
    **{"less": ("<", _COMPARED), "less_equal": ("<=", _COMPARED)},
    **{"greater": (">", _COMPARED), "greater_equal": (">=", _COMPARED)},
    **{"equal": ("==", _COMPARED), "not_equal": ("!=", _COMPARED)},
    **{"bitwise_and": ("&", _AND), "bitwise_or": ("|", _OR)},
    **{"logical_and": ("&", _AND), "logical_or": ("|", _OR)},
}
_EXTREMES = ("maximum", "minimum")
_PYTHONS = {Kind.INTEGER: "int", Kind.FLOATING: "float"}
_NONE: Mapping[str, str] = MappingProxyType({})


def lines(statements: Sequence[Statement], kernel: Kernel) -> list[str] | None:
    """Return statements as lines of source; None where a part of them has no words."""
    texts, made = kernel.context.scalar_texts, list[str]()
    for one in statements:
        inner: list[str] | None = None
        match one:
            case Loop(variable, low, high, step, body):
                inner = lines(body, kernel)
                ends = [_size_text(end, kernel) for end in (low, high)]
                if inner is None or None in ends or variable not in texts:
                    return None
                ends = [*(ends[1:] if low == ZERO and step == 1 else ends)]
                ends += [str(step)] if step > 1 else []
                bounds = ", ".join(end for end in ends if end is not None)
                head = f"for {texts[variable]} in range({bounds}):"
                inner = [head, *(f"{kernel.context.indent}{line}" for line in inner)]
            case Bind(name, value):
                text = _text(value, kernel)
                inner = None if text is None else [f"{name} = {text}"]
            case Store():
                text = _stored(one, kernel)
                inner = None if text is None else [text]
            case Scatter():
                text = _combined(one, kernel)
                inner = None if text is None else [text]
        if inner is None:
            return None
        made += inner
    return made


def _combined(one: Scatter, kernel: Kernel) -> str | None:
    """Return the source of what is combined, or stored, at places."""
    texts = [_text(value, kernel) for value in (*one.all_places, one.value)]
    known = [text for text in texts if text is not None]
    module = kernel.context.array_module
    if len(known) < len(texts) or module is None:
        return None
    at = ", ".join(known[:-1])
    if one.operation == SET:
        return f"{one.array}[{at}] = {known[-1]}"
    places = f"({at})" if one.others else at
    return f"{module}.{one.operation}.at({one.array}, {places}, {known[-1]})"


def _stored(store: Store, kernel: Kernel) -> str | None:
    if store.array in kernel.lists and not store.variable:
        whole = filled(store, kernel)
        inner = None if whole is None else _text(whole, kernel)
        made = None if inner is None else in_list(inner, store, kernel)
        if made is None or kernel.lists[store.array].place is not None:
            # a comprehension has no name
            return made
        return f"{store.array} = {made}"
    target = Read(store.array, store.region)
    # the source goes on with the number that the element is made of
    own = store.array if is_total(store) else store.variable
    place = own or _text(target, kernel)
    if place is None:
        return None
    sign, value = "=", store.value
    match value:
        case Elementwise(operation, (left, Copy(right, of_python=True) as wide)) if (
            operation in _EXTREMES and left == target
        ):
            # both are numbers of Python, and so is what comes to the same by NumPy
            told = _stored(replace(store, value=replace(value, operands=(left, right))), kernel)
            of_both = None if told is None else told.removeprefix(f"{place} = ")
            found = _made_by_python(of_both, wide.dtype, kernel)
            return None if found is None else f"{place} = {found}"
    alone = all(isinstance(part, Point) for part in store.region)
    module = kernel.context.array_module
    match value:
        case Scan(operand, axis, "add", _) if store.in_place and operand == target:
            several = sum(not isinstance(part, Point) for part in store.region) > 1
            along = f", axis={axis}" if several else ""
            return None if module is None else f"{module}.cumsum({place}{along}, out={place})"
        case Elementwise("where", (mask, chosen, _)) if masked(store) is not None:
            inner, types = _text(mask, kernel), partial(type_of, kernel=kernel)
            known = chosen_in(chosen, mask, types, ONE)
            if inner is None or known is None:
                return None
            place, value = f"{place}[{inner}]", known
        case Elementwise(operation, (known, other)) if store.in_place and known == target:
            if operation in _SIGNS and _SIGNS[operation][1] in (_SUM, _PRODUCT):
                sign, value = f"{_SIGNS[operation][0]}=", other
            elif alone and operation in _EXTREMES and isinstance(other, Reduction):
                inner = _text(other.operand, kernel, _TIGHT)
                found = f"{inner}.{METHODS[operation]}(initial={place})"
                return None if inner is None else f"{place} = {found}"
    text = _text(value, kernel)
    if text is not None and is_total(store) and _is_whole(value, kernel):
        # NumPy's number where Python's was is not what every reader of it takes
        text = None if "int" in kernel.context.not_builtins else f"int({text})"
    if place == store.array and sign == "=" and not is_total(store):
        place = f"{place}[:]"
    return None if text is None else f"{place} {sign} {text}"


def _made_by_python(text: str | None, dtype: str, kernel: Kernel) -> str | None:
    """Return source that makes a number of Python of one of NumPy; None where none does."""
    name = _PYTHONS.get(kind_of_or_none(dtype) or Kind.BOOLEAN)
    known = text is not None and name is not None and name not in kernel.context.not_builtins
    return f"{name}({text})" if known else None


def bound(total: Store, kernel: Kernel) -> ScalarBind:
    """Return what gives a number its name, as its text does."""
    own = combined(total)
    value = total.value if own is None else own[1]
    if _is_whole(value, kernel):
        value = Copy(value, "int64", of_python=True)
    return ScalarBind(total.array, value, total.span, combined=own is not None)


def _is_whole(value: Value, kernel: Kernel) -> bool:
    return is_count(value, kernel) or _is_place(value)


def _is_place(value: Value) -> bool:
    """Return whether a value is a place in an array, counted from somewhere."""
    match value:
        case Elementwise("add", (one, Scalar())):
            return _is_place(one)
        case Reduction(operation="argmin" | "argmax"):
            return True
    return False


def is_count(value: Value, kernel: Kernel) -> bool:
    """Return whether a value is how often something holds."""
    match value:
        case Reduction(operand, _, "add", "int64", fused=False):
            return type_of(operand, kernel).dtype == "bool"
    return False


def text_of(value: Value, kernel: Kernel) -> str | None:
    """Return a value as source; None where it has no words."""
    return _text(value, kernel)


def counted(statements: tuple[Statement, ...], kernel: Kernel) -> tuple[Statement, ...]:
    """Return statements that count where they are written so."""

    def other(part: object) -> object:
        if isinstance(part, Reduction) and is_count(part, kernel):
            return replace(part, operation="count_nonzero")
        return part

    return mapped(statements, other)


def _text(value: Value, kernel: Kernel, level: int = _LOOSE) -> str | None:
    """Return a value as source, in parentheses where it binds less than `level`."""
    module = kernel.context.array_module
    match value:
        case Read():
            return read_text(value, (), kernel)
        case Scalar(text, dtype, span):
            number = _number(text, dtype, kernel, level)
            return _own_words(span, kernel) if number is None and span is not None else number
        case Expand(Read() as read, axis):
            return read_text(read, (axis,), kernel)
        case Expand(Expand(Read() as read, first), second):
            return read_text(read, (first, second), kernel)
        case Expand(Reduction(inside, _, operation), axis) if operation in METHODS and kept_axis(
            value
        ):
            return _along(METHODS[operation], inside, (axis,), "", kernel, kept=True)
        case Expand(Along(function, inside, _, _, options), axis) if kept_axis(value):
            return _along(function, inside, (axis,), options, kernel, kept=True)
        case Expand(operand, axis):
            inner = _text(operand, kernel, _TIGHT)
            parts = [":"] * len(type_of(operand, kernel).extents)
            parts.insert(axis, "None")
            return None if inner is None else f"{inner}[{', '.join(parts)}]"
        case Called("diagonal", (operand,)):
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"{inner}.diagonal()"
        case Roll(operand, axis, amount) if module is not None:
            inner, shift = _text(operand, kernel), _size_text(amount, kernel)
            along = f", axis={axis}" * (len(type_of(operand, kernel).extents) > 1)
            return inner and shift and f"{module}.roll({inner}, {shift}{along})"
        case Flip(operand, axis):
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"{inner}[{':, ' * axis}::-1]"
        case Fill(text, (extent,), "int64") if text.startswith(COUNTED):
            return _counted(_first(text), extent, kernel)
        case Chosen(Fill(text), mask) if text.startswith(COUNTED) and module is not None:
            inner, start = _text(mask, kernel), _size_text(_first(text), kernel)
            if inner is None or start is None:
                return None
            found = f"{module}.flatnonzero({inner})"
            return found if start == "0" else _within(f"{found} + {start}", _SUM, level)
        case Transpose(operand, (1, 0)):
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"{inner}.T"
        case Transpose(operand, order):
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"{inner}.transpose({', '.join(map(str, order))})"
        case MatMul(left, right):
            return _joined("@", left, right, _PRODUCT, level, kernel)
        case Reduction(Elementwise("multiply", (one, other)), axis, "add", _, fused=True):
            if axis == 1 and isinstance(other, Expand):
                other = other.operand
            elif axis == 0 and isinstance(one, Expand):
                one = one.operand
            return _joined("@", one, other, _PRODUCT, level, kernel)
        case Reduction(condition, axis) if is_count(value, kernel):
            inner = _text(condition, kernel)
            along = "" if axis is None else f", axis={axis}"
            known = inner is not None and module is not None
            return f"{module}.count_nonzero({inner}{along})" if known else None
        case Reduction(_, _, operation, _, fused=False) if operation in METHODS:
            return _along(METHODS[operation], *chain(value), "", kernel)
        case Along(function, operand, along, kept, options):
            return _along(function, operand, along, options, kernel, kept=kept)
        case Windows():
            return _windows(value, kernel)
        case Sort(operand, axis) | Scan(operand, axis, reverse=False) | Fourier(operand, axis):
            return _by_axis(value, operand, axis, kernel)
        case Elementwise("negative", (operand,)):
            inner = _text(operand, kernel, _SIGNED)
            return None if inner is None else _within(f"-{inner}", _SIGNED, level)
        case Elementwise("invert" | "logical_not", (operand,)) if _is_truth(operand, kernel):
            inner = _text(operand, kernel, _SIGNED)
            # a truth value of Python is a number to `~`
            plain = all(isinstance(part, Scalar | Elementwise) for part in parts_of(operand))
            text = f"(not {inner})" if plain else _within(f"~{inner}", _SIGNED, level)
            return None if inner is None else text
        case Elementwise("power", (operand, Scalar() as exponent), called=False):
            base, times = _text(operand, kernel, _TIGHT), _text(exponent, kernel, _TIGHT)
            named = base is not None and times is not None
            return _within(f"{base} ** {times}", _SIGNED, level) if named else None
        case Elementwise("minimum", (Elementwise("maximum", (inside, low)), high)) if (
            module is not None and isinstance(low, Scalar) and isinstance(high, Scalar)
        ):
            return _called(f"{module}.clip", (inside, low, high), kernel)
        case Elementwise(operation, (left, right), called) if operation in _SIGNS and not (
            called and operation.startswith("logical")
        ):
            sign, own = _SIGNS[operation]
            return _joined(sign, left, right, own, level, kernel)
        case Elementwise(operation, parts) if module is not None and operation.isidentifier():
            return _called(f"{module}.{operation}", parts, kernel)
        case Chosen(operand, mask):
            chooses = _text(mask, kernel)
            elements = chosen_in(operand, mask, partial(type_of, kernel=kernel), ONE)
            if elements is not None and elements != value:
                return _text(elements, kernel, level)
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None or chooses is None else f"{inner}[{chooses}]"
        case Gather(Read() as table):
            places = [_text(one, kernel) for one in value.all_places]
            given = [one for one in places if one is not None]
            return read_text(table, (), kernel, given) if len(given) == len(places) else None
        case Fill("eye", (rows, columns), "bool") if rows == columns and module is not None:
            size = _size_text(rows, kernel)
            known = size is not None and "bool" not in kernel.context.not_builtins
            return f"{module}.eye({size}, dtype=bool)" if known else None
        case Copy(operand, dtype, of_python=True) if not type_of(operand, kernel).extents:
            return _made_by_python(_text(operand, kernel), dtype, kernel)
        case Copy(operand, dtype) if module is not None:
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"{inner}.astype({module}.{dtype})"
        case Called("searchsorted", (edges, vector), stated=((_, side),)) if module is not None:
            call = _called(f"{module}.searchsorted", (edges, vector), kernel)
            return None if call is None else f"{call[:-1]}, side={side})"
        case Part(Tally(at, weights, extent), (Range(low, high),)) if module is not None:
            inner, length = _text(at, kernel), _size_text(extent, kernel)
            terms = "" if weights is None else _text(weights, kernel)
            if inner is None or length is None or terms is None:
                return None
            told = f"{inner}{terms and f', weights={terms}'}, minlength={length}"
            of_all = f":{_size_text(high, kernel)}" if low == ZERO else f"{to_text(low)}:-1"
            return f"{module}.bincount({told})[{of_all}]"
        case Called():
            spans = [at for at, one in kernel.context.written if one == value]
            shown = map(kernel.context.text, spans)
            return next((text for text in shown if "\n" not in text), None)
    return None


def _first(text: str) -> Expr:
    """Return the first of whole numbers in a row."""
    return parse(text.removeprefix(COUNTED).strip() or "0")


def _counted(low: Expr, count: Expr, kernel: Kernel) -> str | None:
    """Return the source of whole numbers in a row."""
    first, last = _size_text(low, kernel), _size_text(low + count, kernel)
    module = kernel.context.array_module
    if first is None or last is None or module is None:
        return None
    return f"{module}.arange({last})" if low == ZERO else f"{module}.arange({first}, {last})"


def _is_truth(value: Value, kernel: Kernel) -> bool:
    return type_of(value, kernel).dtype == "bool"


_OF_ARRAYS = frozenset({*METHODS.values(), "std", "var"})
"""Functions that are methods of arrays, too."""


def _along(
    function: str,
    operand: Value,
    along: tuple[int, ...] | None,
    options: str,
    kernel: Kernel,
    *,
    kept: bool = False,
) -> str | None:
    """Return a function along axes; none are named where these are all."""
    method, module = function in _OF_ARRAYS, kernel.context.array_module
    inner = _text(operand, kernel, _TIGHT if method else _LOOSE)
    if inner is None or module is None:
        return None
    rank = len(type_of(operand, kernel).extents)
    given = [options] if options and "=" not in options else []
    if along is not None and (kept or len(along) < rank):
        given.append(f"axis={along[0] if len(along) == 1 else along}")
    given += [options] if "=" in options else []
    given += ["keepdims=True"] if kept else []
    if method:
        return f"{inner}.{function}({', '.join(given)})"
    return f"{module}.{function}({', '.join((inner, *given))})"


def _windows(value: Windows, kernel: Kernel) -> str | None:
    """Return windows as NumPy's view of them."""
    lengths: list[Expr] = []
    axes: list[int] = []
    inner: Value = value
    while isinstance(inner, Windows):
        lengths.insert(0, inner.length)
        axes.insert(0, inner.axis)
        inner = inner.operand
    text, module = _text(inner, kernel), kernel.context.array_module
    sizes = [size for size in (_size_text(one, kernel) for one in lengths) if size is not None]
    rank = len(type_of(inner, kernel).extents)
    if text is None or module is None or len(sizes) < len(lengths) or max(axes) >= rank:
        return None
    shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
    along = "" if axes == [*range(rank)] else f", axis={axes[0] if len(axes) == 1 else tuple(axes)}"
    return f"{module}.lib.stride_tricks.sliding_window_view({text}, {shape}{along})"


_SCANS = {"add": "cumsum", "multiply": "cumprod"}


def _by_axis(value: Sort | Scan | Fourier, operand: Value, axis: int, kernel: Kernel) -> str | None:
    """Return what keeps the shape of its operand, along an axis of it."""
    inner, module = _text(operand, kernel), kernel.context.array_module
    rank = len(type_of(operand, kernel).extents)
    match value:
        case Sort():
            name = "sort"
        case Fourier():
            name = "fft.ifft" if value.inverse else "fft.fft"
        case _:
            known = value.operation in _SCANS
            name = _SCANS[value.operation] if known else f"{value.operation}.accumulate"
    last = isinstance(value, Sort | Fourier) or rank == 1
    along = "" if axis == rank - 1 and last else f", axis={axis}"
    return None if inner is None or module is None else f"{module}.{name}({inner}{along})"


def _within(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text


def _called(function: str, parts: Sequence[Value], kernel: Kernel) -> str | None:
    texts = [_text(one, kernel) for one in parts]
    known = [text for text in texts if text is not None]
    return f"{function}({', '.join(known)})" if len(known) == len(texts) else None


def _number(text: str, dtype: str, kernel: Kernel, level: int) -> str | None:
    """Return a number as source: a literal, a name that the source has for it, or operators.

    What is computed stands there by the names of functions, and what modules hold by theirs.
    """
    module = kernel.context.array_module

    def value(node: ast.expr) -> Value | None:
        match node:
            case ast.Call(ast.Name(name), args) if name in _SIGNS or name in ("negative", "power"):
                parts = tuple(one for one in map(value, args) if one is not None)
                return Elementwise(name, parts) if len(parts) == len(args) else None
            case ast.UnaryOp(ast.USub(), operand):
                inner = value(operand)
                return None if inner is None else Elementwise("negative", (inner,))
            case ast.Name() | ast.Constant() | ast.Attribute() | ast.Subscript():
                return Scalar(ast.unparse(node), dtype)
        return None

    if text.isidentifier() or text in kernel.context.identifiers:
        named = kernel.context.scalar_texts.get(text) if dtype == PYTHON_INTEGER else None
        return named or (text if text in kernel.context.identifiers else None)
    if text in ("numpy.pi", "numpy.e", "numpy.inf", "numpy.nan"):
        return None if module is None else text.replace("numpy", module)
    try:
        return text if float(text) >= 0 else _within(text, _SUM, level)
    except ValueError:
        pass
    try:
        made = value(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return None
    return None if made is None or isinstance(made, Scalar) else _text(made, kernel, level)


def _own_words(span: Span, kernel: Kernel) -> str | None:
    """Return a number as it is written, where that is a call or a name."""
    text = kernel.context.text(span)
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return text if isinstance(node, ast.Call | ast.Attribute | ast.Name) else f"({text})"


def _joined(
    sign: str, left: Value, right: Value, own: int, level: int, kernel: Kernel
) -> str | None:
    # products of matrices and of numbers stand beside each other from left to right
    one = _text(left, kernel, _TIGHT if sign == "@" else own + (own == _COMPARED))
    other = _text(right, kernel, own + 1)
    return None if one is None or other is None else _within(f"{one} {sign} {other}", own, level)


def _size_text(expr: Expr, kernel: Kernel, extents: Mapping[str, str] = _NONE) -> str | None:
    """Return the source of a size, by a name that the kernel has for most of it.

    Of `extents` that have no other name the array itself tells.
    """
    texts = {**extents, **kernel.context.scalar_texts}
    plain = python_text(expr, texts)
    for name, value in kernel.context.computed:
        rest = expr - value
        # a name that saves nothing is of use where there is no other
        if _terms(rest) + (plain is not None) >= _terms(expr):
            continue
        text = python_text(rest, texts)
        if isinstance(rest, Num) and rest.value < 0:
            return f"{name} - {-rest.value}"
        if isinstance(rest, Num):
            return name if rest == ZERO else f"{name} + {text}"
        if text is not None:
            return f"{text} + {name}"
    for name, value in kernel.context.computed if plain is not None else ():
        computed = python_text(value, texts)
        if plain is not None and computed is not None and not computed.isidentifier():
            plain = name if plain == computed else plain.replace(f"({computed})", name)
    return plain


def _terms(expr: Expr) -> int:
    return len(expr.terms) + bool(expr.constant) if isinstance(expr, Add) else int(expr != ZERO)


def read_text(
    read: Read, new_axes: Sequence[int], kernel: Kernel, places: Sequence[str] = ()
) -> str | None:
    """Return the source of a region, with new axes at some places; None where a bound has none.

    Places along its first axes stand in their place, where that is all of them.
    """
    if not read.region:
        return read.array
    if read.array in kernel.lists and kernel.lists[read.array].place is not None:
        return None
    extents = kernel.extents(read.array)
    parts: list[str] = []
    sizes = {
        one.name: f"{read.array}.shape[{axis}]"
        for axis, one in enumerate(extents)
        if isinstance(one, Sym)
    }
    for axis, (part, extent) in enumerate(zip(read.region, extents, strict=True)):
        own = f"{read.array}.shape[{axis}] - "
        ends: list[str | None]
        match part:
            case Point(at):
                ends = [_size_text(at, kernel, sizes)]
            case Range(low, high):
                ends = ["" if low == ZERO else _size_text(low, kernel, sizes)]
                ends.append("" if high == extent else _size_text(high, kernel, sizes))
            case _:
                ends = ["" if part.start == ZERO else _size_text(part.start, kernel, sizes)]
                ends.append("" if part.stop == extent else _size_text(part.stop, kernel, sizes))
                ends.append(str(part.step))
        if any(end is None for end in ends):
            return None
        told = [end for end in ends if end is not None]
        if len(told) > 1 and told[1].startswith(own) and told[1].removeprefix(own).isdecimal():
            # from the array's own end: that is where it is short of so many elements, too
            told[1] = f"-{told[1].removeprefix(own)}"
        parts.append(":".join(told))
    if any("max(" in part for part in parts) and "max" in kernel.context.not_builtins:
        return None
    kept = [number for number, part in enumerate(read.region) if not isinstance(part, Point)]
    for axis in new_axes:
        place = kept[axis] if axis < len(kept) else len(parts)
        parts.insert(place, "None")
        kept = [n + (n >= place) for n in kept]
        kept.insert(axis, place)
    if any(parts[number] != ":" for number in kept[: len(places)]):
        return None
    for number, text in zip(kept, places, strict=False):
        parts[number] = text
    while places and parts[-1] == ":":
        del parts[-1]
    if all(part == ":" for part in parts):
        return read.array
    return f"{read.array}[{', '.join(parts)}]"
