"""Whole numbers and subscripts of the source, as expressions over sizes and absolute regions."""

from __future__ import annotations

import operator as of_python
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, pairwise
from types import EllipsisType

import libcst as cst

from advisor.frontend.bindings import dotted, resolve
from advisor.frontend.scope import Scope
from advisor.frontend.trees import NotUnderstood, nodes_in
from advisor.ir.dependence import Sign, known_non_negative, non_negative_within, sign
from advisor.ir.values import Point, Range, Scalar, Strided, Subscript
from advisor.numpy_table import PYTHON_INTEGER, count_of
from advisor.source import Span
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ExprError,
    ceil,
    equal,
    floor,
    floor_div,
    free_symbols,
    less,
    less_equal,
    log2,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    num,
    substitute,
    to_text,
)
from costdb.expr.nodes import FloorDiv, Num
from costdb.records import dataclass, field

# --- selections -----------------------------------------------------------------------------------
# What subscripts select: whole numbers, slices and new axes, as regions of an array.


Sliced = tuple[Expr | None, Expr | None, int | None]
"""The bounds of a slice, as they are written, and its step; None for one that is not a number."""

Entry = Expr | Sliced | EllipsisType | None
"""An index, a slice, an ellipsis, or a new axis."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of the symbols in subscripts.

    Attributes
    ----------
    minima : mapping of str to int
        Least values, where they are not 1.
    maxima : mapping of str to Expr
        Greatest values of the indices of the loops around, outermost first.
    starts : mapping of str to Expr
        First values of those.
    value : callable or None
        Gives the value of an expression where a program tells it. With it a number whose sign is
        not known is taken to count from the start, as in most programs; else that is refused.
    """

    minima: Mapping[str, int] = field(default_factory=dict)
    maxima: Mapping[str, Expr] = field(default_factory=dict)
    starts: Mapping[str, Expr] = field(default_factory=dict)
    value: Callable[[Expr], int | None] | None = None

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        return non_negative_within(expr, self.minima, self.maxima, self.starts)

    def negative(self, expr: Expr) -> bool:
        """Return whether an expression is below 0, by its value where nothing else tells."""
        if sign(expr, self.minima) is Sign.NEGATIVE:
            return True
        known = None if self.value is None else self.value(expr)
        return known is not None and known < 0


@dataclass(frozen=True, slots=True)
class Selection:
    """What a subscript selects.

    Attributes
    ----------
    region : tuple of Subscript
        An entry for each dimension of the array, in order.
    flipped : tuple of int
        Axes of what remains that are gone through from the end.
    expanded : tuple of int
        Axes of length 1 that are put in after that, by their places in the result.
    """

    region: tuple[Subscript, ...]
    flipped: tuple[int, ...]
    expanded: tuple[int, ...]


def selected(entries: Sequence[Entry], extents: tuple[Expr, ...], sizes: Sizes) -> Selection:
    """Return what a subscript of an array of shape `extents` selects.

    Raises
    ------
    NotUnderstood
        For more entries than dimensions, or bounds that may lie anywhere.
    """
    dots = [place for place, entry in enumerate(entries) if entry is ...]
    missing = len(extents) + len(dots) - sum(entry is not None for entry in entries)
    if len(dots) > 1 or missing < 0:
        raise NotUnderstood("two ellipses in one subscript, or more entries than dimensions")
    at = dots[0] if dots else len(entries)
    whole: Sliced = (None, None, 1)
    parts: list[Subscript] = []
    flipped: list[int] = []
    expanded: list[int] = []
    remaining = 0
    for entry in (*entries[:at], *[whole] * missing, *entries[at + 1 :]):
        if entry is None:
            expanded.append(remaining + len(expanded))
            continue
        assert entry is not ...
        extent, backwards = extents[len(parts)], False
        if isinstance(entry, Expr):
            part: Subscript = _point(entry, extent, sizes)
        else:
            part = _slice(entry, extent, sizes)
            backwards = (entry[2] or 1) < 0
        flipped += [remaining] * backwards
        remaining += not isinstance(part, Point)
        parts.append(part)
    return Selection(tuple(parts), tuple(flipped), tuple(expanded))


def _point(at: Expr, extent: Expr, sizes: Sizes) -> Point:
    try:
        return Point(_absolute(at, extent, sizes))
    except NotUnderstood:
        # one element, from whichever end: in loops, up to so many before the first
        least = substitute(at, dict(sizes.starts))
        far = sizes.maxima and not (isinstance(least, Num) and sizes.non_negative(at - least))
        if far or extent == num(0):
            raise
        return Point(at % extent)


def _slice(entry: Sliced, extent: Expr, sizes: Sizes) -> Subscript:
    """Return the indices of a dimension, in order also where a slice runs backwards."""
    lower, upper, step = entry
    if step is None or (step < 1 and step != -1):
        raise NotUnderstood(
            "a slice with a step that is not written as a positive number, or as -1"
        )
    back = int(step < 0)
    first, last = (upper, lower) if back else (lower, upper)
    low = ZERO if first is None else _absolute(first, extent, sizes) + back
    high = extent if last is None else _absolute(last, extent, sizes) + back
    low, high = _clipped(low, extent, sizes), _clipped(high, extent, sizes)
    beyond = low - high
    if high == ZERO or (isinstance(beyond, Num) and beyond.value >= 0) or sizes.negative(-beyond):
        return Range(high, high)
    if None not in (lower, upper) and known_non_negative(beyond, sizes.minima):
        raise NotUnderstood("a slice that is always empty")
    if not sizes.non_negative(high - low):
        _in_order(low, high, extent)
        if sizes.value is None and not free_symbols(extent) & free_symbols(high - low):
            # nothing, where the bounds are the other way round
            high = maximum(low, high)
    return Range(low, high) if step in (1, -1) else _in_steps(low, high, step)


def _in_order(low: Expr, high: Expr, extent: Expr) -> None:
    """Refuse what holds nothing but for small extents."""
    sizes = free_symbols(extent)
    if sizes & free_symbols(low) and not sizes & free_symbols(high):
        raise NotUnderstood("a slice from near the end to near the start")


def _in_steps(low: Expr, high: Expr, step: int) -> Subscript:
    found = Strided(low, high, step)
    # what selects a single index is a range like any other
    return Range(low, low + 1) if found.count == ONE else found


def _clipped(bound: Expr, extent: Expr, sizes: Sizes) -> Expr:
    """Return a bound of a slice, moved to the edge where it surely lies beyond."""
    if sign(bound, sizes.minima) is Sign.NEGATIVE:
        return ZERO
    beyond = bound - extent
    return extent if isinstance(beyond, Num) and beyond.value > 0 else bound


def _absolute(value: Expr, extent: Expr, sizes: Sizes) -> Expr:
    """Return a bound counted from the start, whatever sign Python would count it from.

    A bound ``extent - k`` with ``k >= 0`` is read as at least 0: sizes are assumed to be such
    that slices stay inside their array. A bound ``-k`` that may be 0 is not read at all, for
    Python counts it from the one end or from the other.
    """
    if sizes.non_negative(value):
        return value
    if sizes.negative(value):
        return extent + value
    unknown = sign(value, sizes.minima) is Sign.UNKNOWN
    if sizes.value is not None or (unknown and _falls_short(value, extent, sizes)):
        return value
    raise NotUnderstood("the sign of a subscript is not known")


def _falls_short(value: Expr, extent: Expr, sizes: Sizes) -> bool:
    """Return whether a bound is written as the extent less something."""
    distance = extent - value
    if not sizes.non_negative(distance):
        return False
    if free_symbols(extent):
        return not free_symbols(extent) & free_symbols(distance)
    return substitute(distance, dict.fromkeys(free_symbols(distance), ZERO)) == ZERO


# --- indices --------------------------------------------------------------------------------------


# Arithmetic and comparisons of whole numbers of the source, as expressions over sizes.


def calculated(operation: str, *operands: Expr | None) -> Expr | None:
    """Return what an operator gives, by LibCST's name of it, or a function by its own.

    None where that is not known.
    """
    made, known = _OPERATIONS.get(operation), [one for one in operands if one is not None]
    if made is None or len(known) < len(operands):
        return None
    try:
        return made(*known)
    except (ExprError, ArithmeticError, ValueError):
        return None


def _power(base: Expr, exponent: Expr) -> Expr | None:
    """Return a power by a small number, or of two numbers, such as ``2 ** 20``."""
    if not isinstance(exponent, Num):
        return None
    small = abs(Fraction(exponent.value)) <= 8
    plain = isinstance(base, Num) and abs(Fraction(base.value)) <= 1024
    literal = plain and 0 <= Fraction(exponent.value) <= 64
    return base**exponent if small or literal else None


def _shifted(number: Expr, bits: Expr) -> Expr | None:
    power = _power(num(2), bits)
    return None if power is None else number * power


def _quotient(one: Expr, other: Expr) -> Expr:
    """Return a quotient of whole numbers: half of 2*n is n."""
    match made := floor_div(one, other):
        case FloorDiv(dividend=dividend, divisor=Num(1)) if dividend.is_whole(free_symbols(made)):
            return dividend
    return made


_OPERATIONS: Mapping[str, Callable[..., Expr | None]] = {
    "Add": of_python.add,
    "Subtract": of_python.sub,
    "Multiply": of_python.mul,
    "Divide": of_python.truediv,
    "FloorDivide": _quotient,
    "Modulo": of_python.mod,
    "Power": _power,
    "LeftShift": _shifted,
    "And": logical_and,
    "Or": logical_or,
    "Not": logical_not,
    "Equal": equal,
    "Is": equal,
    "NotEqual": lambda one, other: logical_not(equal(one, other)),
    "IsNot": lambda one, other: logical_not(equal(one, other)),
    "LessThan": less,
    "LessThanEqual": less_equal,
    "GreaterThan": lambda one, other: less(other, one),
    "GreaterThanEqual": lambda one, other: less_equal(other, one),
    "floor": floor,
    "ceil": ceil,
    "sqrt": lambda value: value ** num(Fraction(1, 2)),
    "isqrt": lambda value: floor(value ** num(Fraction(1, 2))),
    "square": lambda value: value**2,
    "log2": log2,
}

Known = Expr | tuple["Known", ...] | cst.BaseExpression
"""A whole number, a tuple, or anything else as it stands in the source."""

MOST_ITERATIONS = 64
"""How often a loop over written-out values, with those around it, is read."""


_NOT_WHOLE = (cst.Divide, cst.MatrixMultiply)


def known(node: Known, scope: Scope) -> Known:
    """Return the whole number that an expression is, or what a tuple, list or shape consists of."""
    match node:
        case cst.Integer():
            return num(node.evaluated_value)
        case cst.Name(value=name) if name in scope.scalars:
            return scope.scalars[name]
        case cst.Name(value=name) if name in scope.written_out:
            return known(scope.written_out[name], scope)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            if any(isinstance(element, cst.StarredElement) for element in elements):
                return node
            return tuple(known(element.value, scope) for element in elements)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus() as sign, expression=inner):
            found = known(inner, scope)
            if isinstance(found, Expr):
                return -found if isinstance(sign, cst.Minus) else found
        case cst.BinaryOperation(operator=operator) if not isinstance(operator, _NOT_WHOLE):
            left = known(node.left, scope)
            right = known(node.right, scope) if isinstance(left, Expr | tuple) else node
            if isinstance(left, tuple) and isinstance(right, tuple):
                return (*left, *right) if isinstance(operator, cst.Add) else node
            if isinstance(left, Expr) and isinstance(right, Expr):
                made = calculated(type(operator).__name__, left, right)
                # a power may be none; an extent that is written as a fraction is one all the same
                fraction = isinstance(operator, cst.Power | cst.LeftShift)
                fraction = fraction and made is not None and not made.is_whole(free_symbols(made))
                return node if made is None or fraction else made
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            entries = known(base, scope)
            place = whole_number(known(index, scope)) if isinstance(entries, tuple) else None
            if isinstance(entries, tuple) and place is not None:
                return entries[place] if -len(entries) <= place < len(entries) else node
        case cst.Subscript(base, [cst.SubscriptElement(cst.Slice(lower, upper, step=None))]):
            entries = known(base, scope) if isinstance(base, cst.Attribute) else node
            ends = [None if one is None else known(one, scope) for one in (lower, upper)]
            places = [None if one is None else whole_number(one) for one in ends]
            if isinstance(entries, tuple) and places.count(None) == ends.count(None):
                return entries[slice(*places)]
        case cst.Attribute(
            value=cst.Name(value=name), attr=cst.Name("shape" | "size" | "ndim" as asked)
        ):
            if scope.is_array(name):
                extents = scope.extents_of(name)
                if asked == "ndim":
                    return num(len(extents))
                return extents if asked == "shape" else count_of(extents)
        case cst.Attribute(cst.Subscript(cst.Name(name), [element]), cst.Name("shape")) if (
            scope.is_array(name) and isinstance(element.slice, cst.Index)
        ):
            if isinstance(known(element.slice.value, scope), Expr):
                return scope.extents_of(name)[1:]
        case cst.Call():
            return _called(node, scope)
    return node


def whole_number(found: Known) -> int | None:
    """Return a whole number that depends on no size; None for anything else."""
    number = found.value if isinstance(found, Num) else None
    # no size is as large as that
    return number if isinstance(number, int) and number.bit_length() < 64 else None


def constant_int(node: cst.BaseExpression) -> int | None:
    """Return the value of arithmetic on literal whole numbers: ``1 << 20``, ``64 * 1024``."""
    return whole_number(known(node, _NOTHING))


_NOTHING = Scope({}, lambda node: Span(1, 0, 1, 0), lambda name: True)


def scalar(node: Known, scope: Scope) -> Expr:
    """Return the value of a whole-number expression.

    Raises
    ------
    NotUnderstood
        Where it is not one, as far as can be seen.
    """
    found = known(node, scope)
    if isinstance(found, Expr):
        return found
    parts = nodes_in(node) if isinstance(node, cst.CSTNode) else ()
    names = [part.value for part in parts if isinstance(part, cst.Name)]
    for name in names:
        if scope.not_builtin(name) and name not in scope.imports | scope.scalars.keys():
            raise NotUnderstood(scope.hints.get(name, f"the value of `{name}` is not known"))
    raise NotUnderstood("a whole number was expected here")


def bound_to_number(name: str, node: Known, scope: Scope) -> bool:
    """Bind a name to a whole-number expression; return whether it is one, as far as can be seen."""
    number = known(node, scope)
    if not isinstance(number, Expr):
        return False
    scope.bind_scalar(name, number)
    scope.started[name] = Scalar(to_text(number), PYTHON_INTEGER)
    return True


OF_SHAPES = frozenset({"numpy.shape", "numpy.size", "numpy.ndim"})
_READ = frozenset({"len", "int", "min", "max", "enumerate", "range", "reversed", "zip"})


def _called(node: cst.Call, scope: Scope) -> Known:
    """Return what builtin functions make of whole numbers and of tuples, and NumPy of shapes."""
    match node.args:
        case [cst.Arg(value=of, keyword=None, star="")]:
            asked = resolve(node.func, scope.imports) or ""
            if asked in OF_SHAPES:
                attribute = cst.Attribute(of, cst.Name(asked.removeprefix("numpy.")))
                found = known(attribute, scope)
                return node if found is attribute else found
    match node:
        case cst.Call(cst.Attribute(of, cst.Name("values" | "items" as asked)), []):
            table = known(of, scope)
            if isinstance(table, cst.Dict):
                pairs = [e for e in table.elements if isinstance(e, cst.DictElement)]
                values = [known(one.value, scope) for one in pairs]
                keys = [one.key for one in pairs]
                return tuple(values if asked == "values" else zip(keys, values, strict=True))
    if not node.args and (shown := scope.expanded(node)) is not None:
        made = known(shown, scope)
        return made if isinstance(made, Expr) else node
    name = node.func.value if isinstance(node.func, cst.Name) else ""
    if name not in _READ or any(argument.star for argument in node.args):
        return node
    given = [known(one.value, scope) for one in node.args if one.keyword is None]
    named = {one.keyword.value: known(one.value, scope) for one in node.args if one.keyword}
    rows = [one for one in given if isinstance(one, tuple)]
    numbers = [one for one in given if isinstance(one, Expr)]
    if scope.not_builtin(name) or named.keys() - {"start"} or (named and name != "enumerate"):
        return node
    match name, given:
        case "len", [tuple() | cst.Dict() as items]:
            return num(len(items.elements if isinstance(items, cst.Dict) else items))
        case "len", [cst.Name(value=array)] if scope.is_array(array) and scope.extents_of(array):
            return scope.extents_of(array)[0]
        case "len", [cst.Subscript(cst.Name(array), parts)] if scope.is_array(array):
            rest = scope.extents_of(array)[len(parts) :]
            slices = (part.slice for part in parts)
            places = [isinstance(one, cst.Index) and known(one.value, scope) for one in slices]
            if rest and all(isinstance(one, Expr) for one in places):
                return rest[0]
        case "len", [cst.Name(value=items)] if items in scope.listed:
            return scope.listed[items][0]
        case "len", [cst.Name(value=items)] if items in scope.lengths:
            return scope.lengths[items]
        case "len", [_] if (shown := scope.expanded(node)) is not None:
            return known(shown, scope)
        case "int", [Expr() as number]:
            return number
        case (("min" | "max"), [_, _, *_]) if len(numbers) == len(given):
            # kept as it is written: sizes of at least 1 are an assumption of prices, not a fact
            return minimum(*numbers) if name == "min" else maximum(*numbers)
        case "enumerate", [tuple() as items, *start]:
            first = whole_number((*start, named.get("start", ZERO))[0])
            if first is not None and len(start) <= 1:
                return tuple((num(first + at), item) for at, item in enumerate(items))
        case "range", _:
            bounds = [bound for bound in map(whole_number, given) if bound is not None]
            if 1 <= len(bounds) == len(given) <= 3 and (len(bounds) < 3 or bounds[2]):
                return tuple(num(at) for at in islice(range(*bounds), MOST_ITERATIONS + 1))
        case "reversed", [tuple() as items]:
            return items[::-1]
        case "zip", [_, *_] if len(rows) == len(given):
            return tuple(zip(*rows, strict=False))
    return node


def pairs(target: cst.BaseExpression, item: Known, scope: Scope) -> Iterator[tuple[str, Known]]:
    """Yield the names that one iteration binds, each with what stands for it.

    Raises
    ------
    NotUnderstood
        Where the names do not fit what is written.
    """
    if isinstance(target, cst.Name):
        yield target.value, item
        return
    if not isinstance(target, cst.Tuple | cst.List):
        raise NotUnderstood("a loop whose index is no name")
    starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
    if not isinstance(item, tuple) or starred or len(item) != len(target.elements):
        raise NotUnderstood("a loop over values that do not fit its names")
    for element, part in zip(target.elements, item, strict=True):
        yield from pairs(element.value, part, scope)


# What a loop goes through: ranges of whole numbers, also those that are written out.


Bounds = tuple[Expr, Expr, int | Expr]
"""First, end and step of a range."""


def range_of(node: cst.BaseExpression, scope: Scope) -> Bounds | None:
    """Return the bounds of a range; None for anything else.

    Raises
    ------
    NotUnderstood
        For a range whose bounds or step are not known.
    """
    if isinstance(node, cst.Tuple | cst.List):
        return _progression(known(node, scope))
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
    if len(values) == 1:
        return num(0), scalar(values[0], scope), 1
    by = scalar(values[2], scope) if len(values) == 3 else ONE
    literal = whole_number(by)
    step = by if literal is None else literal
    if literal is not None and literal < 1 and literal != -1:
        raise NotUnderstood("a range whose step is a negative number, and not -1")
    return scalar(values[0], scope), scalar(values[1], scope), step


def is_range(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether an expression is a range that counts up by one."""
    if not isinstance(node, cst.Call) or dotted(node.func) != "range":
        return False
    return not scope.not_builtin("range") and len(node.args) < 3


def is_prange(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether a loop's iterations may be shared by threads."""
    return isinstance(node, cst.Call) and resolve(node.func, scope.imports) == "numba.prange"


def _progression(items: Known) -> tuple[Expr, Expr, int] | None:
    """Return the range that written out numbers, such as ``(-1, 0, 1)``, are."""
    parts = items if isinstance(items, tuple) else ()
    numbers = [number for number in map(whole_number, parts) if number is not None]
    if not numbers or len(numbers) < len(parts):
        return None
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    if (step < 1 and step != -1) or any(b - a != step for a, b in pairwise(numbers)):
        return None
    return num(numbers[0]), num(numbers[-1] + (1 if step > 0 else -1)), step


# Subscripts, as regions.


def selection(
    elements: Sequence[cst.SubscriptElement], extents: tuple[Expr, ...], scope: Scope
) -> Selection:
    """Return what a subscript of an array of shape `extents` selects.

    Raises
    ------
    NotUnderstood
        For anything but whole numbers, slices, new axes and one ellipsis.
    """
    sizes = Sizes(scope.minima, scope.maxima, scope.starts)
    return selected([_entry(element, scope) for element in elements], extents, sizes)


def _entry(element: cst.SubscriptElement, scope: Scope) -> Entry:
    part = element.slice
    if is_new_axis(element):
        return None
    if isinstance(part, cst.Index):
        return ... if isinstance(part.value, cst.Ellipsis) else scalar(part.value, scope)
    assert isinstance(part, cst.Slice)
    step = 1 if part.step is None else whole_number(known(part.step, scope))
    low, high = (
        None if bound is None else scalar(bound, scope) for bound in (part.lower, part.upper)
    )
    return low, high, step


def is_new_axis(element: cst.SubscriptElement) -> bool:
    """Return whether an entry of a subscript puts in a dimension (``None``, ``np.newaxis``)."""
    entry = element.slice
    if not isinstance(entry, cst.Index):
        return False
    if isinstance(entry.value, cst.Attribute):
        return entry.value.attr.value == "newaxis"
    return isinstance(entry.value, cst.Name) and entry.value.value in ("None", "newaxis")
