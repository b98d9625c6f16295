"""Whole numbers and subscripts of the source, as expressions over sizes and absolute regions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import libcst as cst

from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.naming.written_out import ARITHMETIC, entry_of, literal_int
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.signs import Sign, known_non_negative, non_negative_within, sign
from advisor.ir.values import Point, Range, Scalar, Strided, Subscript
from advisor.numpy_shapes import count_of
from advisor.numpy_table import PYTHON_INTEGER
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ExprError,
    free_symbols,
    maximum,
    minimum,
    num,
    substitute,
    to_text,
)
from costdb.expr.nodes import Num


def scalar(node: cst.BaseExpression, scope: Scope) -> Expr:
    """Return the value of a whole-number expression.

    Raises
    ------
    NotUnderstood
        Where it is not one, as far as can be seen.
    """
    match node:
        case cst.Integer():
            return num(node.evaluated_value)
        case cst.Name(value=name):
            if name in scope.scalars:
                return scope.scalars[name]
            raise NotUnderstood(scope.hints.get(name, f"the value of `{name}` is not known"))
        case cst.UnaryOperation(operator=cst.Minus()):
            return -scalar(node.expression, scope)
        case cst.UnaryOperation(operator=cst.Plus()):
            return scalar(node.expression, scope)
        case cst.BinaryOperation():
            return _binary(node, scope)
        case cst.Subscript() | cst.Attribute():
            entry = entry_of(node, scope) if isinstance(node, cst.Subscript) else None
            return _shape_entry(node, scope) if entry is None else scalar(entry, scope)
        case cst.Call(func=cst.Name(value=function)):
            return _call(function, node, scope)
    raise NotUnderstood("a whole number was expected here")


def bound_to_number(name: str, node: cst.BaseExpression, scope: Scope) -> bool:
    """Bind a name to a whole-number expression; return whether it is one, as far as can be seen."""
    try:
        number = scalar(node, scope)
    except NotUnderstood:
        return False
    scope.bind_scalar(name, number)
    scope.started[name] = Scalar(to_text(number), PYTHON_INTEGER)
    return True


def _binary(node: cst.BinaryOperation, scope: Scope) -> Expr:
    left, right = scalar(node.left, scope), scalar(node.right, scope)
    operation = ARITHMETIC.get(type(node.operator))
    try:
        if operation is not None:
            found: Expr = operation(left, right)
            return found
        if isinstance(node.operator, cst.Power) and isinstance(node.right, cst.Integer):
            return left**right
    except ExprError as error:
        raise NotUnderstood(str(error)) from error
    raise NotUnderstood("this operation does not give a whole number")


def _shape_entry(node: cst.Subscript | cst.Attribute, scope: Scope) -> Expr:
    """Return ``x.shape[i]`` or ``x.size``."""
    if isinstance(node, cst.Attribute):
        if node.attr.value == "size" and isinstance(node.value, cst.Name):
            return count_of(_extents(node.value, scope))
        raise NotUnderstood("an attribute whose value is not known")
    base = node.value
    if (
        isinstance(base, cst.Attribute)
        and base.attr.value == "shape"
        and isinstance(base.value, cst.Name)
        and len(node.slice) == 1
        and isinstance(node.slice[0].slice, cst.Index)
    ):
        extents = _extents(base.value, scope)
        position = literal_int(node.slice[0].slice.value)
        if position is not None and -len(extents) <= position < len(extents):
            return extents[position]
    raise NotUnderstood("an element of an array is not a known whole number")


def _extents(name: cst.Name, scope: Scope) -> tuple[Expr, ...]:
    if not scope.is_array(name.value):
        raise NotUnderstood(f"`{name.value}` is not known to be an array")
    return scope.extents_of(name.value)


def _call(function: str, node: cst.Call, scope: Scope) -> Expr:
    if scope.not_builtin(function):
        raise NotUnderstood(f"`{function}` may be something other than the builtin")
    if any(argument.keyword or argument.star for argument in node.args):
        raise NotUnderstood(f"the arguments of `{function}(...)` are not understood")
    arguments = [argument.value for argument in node.args]
    if function == "len" and len(arguments) == 1 and isinstance(arguments[0], cst.Name):
        extents = _extents(arguments[0], scope)
        if extents:
            return extents[0]
    if function == "int" and len(arguments) == 1:
        return scalar(arguments[0], scope)
    if function in ("min", "max") and len(arguments) > 1:
        values = [scalar(argument, scope) for argument in arguments]
        # kept as it is written: sizes of at least 1 are an assumption of prices, not a fact
        return minimum(*values) if function == "min" else maximum(*values)
    raise NotUnderstood(f"the value of `{function}(...)` is not known")


# What a loop goes through: ranges of whole numbers, also those that are written out.


def range_of(node: cst.BaseExpression, scope: Scope) -> tuple[Expr, Expr, int] | None:
    """Return first, end and step of a range; None for anything else.

    Raises
    ------
    NotUnderstood
        For a range whose bounds or step are not known.
    """
    if isinstance(node, cst.Tuple | cst.List):
        return _progression(node)
    if not isinstance(node, cst.Call):
        return None
    name = node.func.value if isinstance(node.func, cst.Name) else None
    if name == "reversed" and not scope.not_builtin(name) and len(node.args) == 1:
        inner = range_of(node.args[0].value, scope)
        if inner is None or inner[2] != 1:
            return None
        return inner[1] - 1, inner[0] - 1, -1
    if name != "range" and not is_prange(node, scope):
        return None
    if name == "range" and scope.not_builtin(name):
        raise NotUnderstood("`range` may be something other than the builtin")
    if not 1 <= len(node.args) <= 3 or any(a.keyword or a.star for a in node.args):
        raise NotUnderstood("a range that cannot be read")
    values = [argument.value for argument in node.args]
    step = literal_int(values[2]) if len(values) == 3 else 1
    if step is None or (step < 1 and step != -1):
        raise NotUnderstood("a range whose step is neither a positive literal nor -1")
    if len(values) == 1:
        return num(0), scalar(values[0], scope), step
    return scalar(values[0], scope), scalar(values[1], scope), step


def is_prange(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether a loop's iterations may be shared by threads."""
    return isinstance(node, cst.Call) and resolve(node.func, scope.imports) == "numba.prange"


def _progression(node: cst.Tuple | cst.List) -> tuple[Expr, Expr, int] | None:
    """Return the range that written out numbers, such as ``(-1, 0, 1)``, are."""
    numbers = [literal_int(element.value) for element in node.elements]
    whole = [number for number in numbers if number is not None]
    if not whole or len(whole) < len(numbers):
        return None
    step = whole[1] - whole[0] if len(whole) > 1 else 1
    if (step < 1 and step != -1) or any(b - a != step for a, b in pairwise(whole)):
        return None
    return num(whole[0]), num(whole[-1] + (1 if step > 0 else -1)), step


# Subscripts, as regions.


def region(
    elements: Sequence[cst.SubscriptElement], extents: tuple[Expr, ...], scope: Scope
) -> tuple[Subscript, ...]:
    """Return the region that a subscript of an array of shape `extents` selects."""
    entries = [element.slice for element in elements]
    dots = [i for i, entry in enumerate(entries) if _is_ellipsis(entry)]
    if len(dots) > 1:
        raise NotUnderstood("two ellipses in one subscript")
    missing = len(extents) - (len(entries) - len(dots))
    if missing < 0:
        raise NotUnderstood("more subscripts than dimensions")
    at = dots[0] if dots else len(entries)
    before, after = entries[:at], entries[at + len(dots) :]
    parts = [
        *(_part(entry, extent, scope) for entry, extent in zip(before, extents, strict=False)),
        *(Range(ZERO, extent) for extent in extents[at : at + missing]),
        *(_part(e, x, scope) for e, x in zip(after, extents[at + missing :], strict=True)),
    ]
    return tuple(parts)


def reversed_region(
    elements: Sequence[cst.SubscriptElement], extents: tuple[Expr, ...], scope: Scope
) -> tuple[tuple[Subscript, ...], int] | None:
    """Return the region of a subscript such as ``[k:0:-1]``, in order, and the axis it reverses.

    None where it is another kind of subscript.
    """
    entries = [element.slice for element in elements]
    backwards = [
        (place, entry)
        for place, entry in enumerate(entries)
        if isinstance(entry, cst.Slice) and entry.step is not None and literal_int(entry.step) == -1
    ]
    if len(backwards) != 1 or len(entries) > len(extents) or any(map(_is_ellipsis, entries)):
        return None
    ((place, entry),) = backwards
    forwards = cst.SubscriptElement(cst.Slice(lower=None, upper=None))
    parts = region([*elements[:place], forwards, *elements[place + 1 :]], extents, scope)
    extent = extents[place]
    low, high = ZERO, extent
    if entry.upper is not None:
        low = _absolute(scalar(entry.upper, scope), extent, scope) + 1
    if entry.lower is not None:
        high = _clipped(_absolute(scalar(entry.lower, scope), extent, scope) + 1, extent, scope)
    _in_order(low, high, extent)
    if known_non_negative(low - high, scope.minima) and low != high:
        raise NotUnderstood("a slice that is always empty")
    axis = sum(not isinstance(part, Point) for part in parts[:place])
    return (*parts[:place], Range(low, high), *parts[place + 1 :]), axis


def is_new_axis(element: cst.SubscriptElement) -> bool:
    """Return whether an entry of a subscript puts in a dimension (``None``, ``np.newaxis``)."""
    entry = element.slice
    if not isinstance(entry, cst.Index):
        return False
    if isinstance(entry.value, cst.Attribute):
        return entry.value.attr.value == "newaxis"
    return isinstance(entry.value, cst.Name) and entry.value.value in ("None", "newaxis")


def _is_ellipsis(entry: cst.BaseSlice) -> bool:
    return isinstance(entry, cst.Index) and isinstance(entry.value, cst.Ellipsis)


def _part(entry: cst.BaseSlice, extent: Expr, scope: Scope) -> Subscript:
    if isinstance(entry, cst.Index):
        if isinstance(entry.value, cst.Name) and entry.value.value == "None":
            raise NotUnderstood("a new axis in a subscript")
        value = scalar(entry.value, scope)
        return Point(_absolute(value, extent, scope))
    assert isinstance(entry, cst.Slice)
    step = _step(entry.step)
    low = ZERO if entry.lower is None else _absolute(scalar(entry.lower, scope), extent, scope)
    high = extent if entry.upper is None else _absolute(scalar(entry.upper, scope), extent, scope)
    low, high = _clipped(low, extent, scope), _clipped(high, extent, scope)
    _in_order(low, high, extent)
    if known_non_negative(low - high, scope.minima):
        if isinstance(low - high, Num):
            return Range(low, low)
        if entry.lower is not None and entry.upper is not None:
            raise NotUnderstood("a slice that is always empty")
    return Range(low, high) if step == 1 else _in_steps(low, high, step)


def _in_order(low: Expr, high: Expr, extent: Expr) -> None:
    """Refuse what holds nothing but for small extents."""
    sizes = free_symbols(extent)
    if sizes & free_symbols(low) and not sizes & free_symbols(high):
        raise NotUnderstood("a slice from near the end to near the start")


def _in_steps(low: Expr, high: Expr, step: int) -> Subscript:
    found = Strided(low, high, step)
    # what selects a single index is a range like any other
    return Range(low, low + 1) if found.count == ONE else found


def _clipped(bound: Expr, extent: Expr, scope: Scope) -> Expr:
    """Return a bound of a slice, moved to the edge where it surely lies beyond."""
    if sign(bound, scope.minima) is Sign.NEGATIVE:
        return ZERO
    beyond = bound - extent
    return extent if isinstance(beyond, Num) and beyond.value > 0 else bound


def _step(node: cst.BaseExpression | None) -> int:
    if node is None:
        return 1
    if not isinstance(node, cst.Integer) or node.evaluated_value < 1:
        raise NotUnderstood(
            "a slice with a step that is not written as a positive number, or as -1"
        )
    return node.evaluated_value


def _absolute(value: Expr, extent: Expr, scope: Scope) -> Expr:
    """Return a bound counted from the start, whatever sign Python would count it from.

    A bound ``extent - k`` with ``k >= 0`` is read as at least 0: sizes are assumed to be such
    that slices stay inside their array. A bound ``-k`` that may be 0 is not read at all, for
    Python counts it from the one end or from the other.
    """
    if non_negative_within(value, scope.minima, scope.maxima, scope.starts):
        return value
    found = sign(value, scope.minima)
    if found is Sign.NEGATIVE:
        return extent + value
    if found is Sign.UNKNOWN and _falls_short(value, extent, scope):
        return value
    raise NotUnderstood("the sign of a subscript is not known")


def _falls_short(value: Expr, extent: Expr, scope: Scope) -> bool:
    """Return whether a bound is written as the extent less something."""
    distance = extent - value
    if not non_negative_within(distance, scope.minima, scope.maxima, scope.starts):
        return False
    if free_symbols(extent):
        return not free_symbols(extent) & free_symbols(distance)
    return substitute(distance, dict.fromkeys(free_symbols(distance), ZERO)) == ZERO
