"""Whole-number expressions of the source, as symbolic expressions over sizes."""

from __future__ import annotations

from itertools import pairwise

import libcst as cst

from advisor.frontend.naming.literals import literal_int
from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.naming.written_out import entry_of
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.values import Scalar
from advisor.numpy_table import PYTHON_INTEGER
from costdb.expr import Expr, ExprError, floor_div, maximum, minimum, num, to_text


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
    try:
        match node.operator:
            case cst.Add():
                return left + right
            case cst.Subtract():
                return left - right
            case cst.Multiply():
                return left * right
            case cst.FloorDivide():
                return floor_div(left, right)
            case cst.Modulo():
                return left % right
            case cst.Power() if isinstance(node.right, cst.Integer):
                return left**right
    except ExprError as error:
        raise NotUnderstood(str(error)) from error
    raise NotUnderstood("this operation does not give a whole number")


def _shape_entry(node: cst.Subscript | cst.Attribute, scope: Scope) -> Expr:
    """Return ``x.shape[i]`` or ``x.size``."""
    if isinstance(node, cst.Attribute):
        if node.attr.value == "size" and isinstance(node.value, cst.Name):
            extents = _extents(node.value, scope)
            total = num(1)
            for extent in extents:
                total = total * extent
            return total
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
