"""Array expressions of the source, as values of the intermediate form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import libcst as cst

from advisor.dtypes import Kind
from advisor.frontend.expressions.arguments import Given, function_of
from advisor.frontend.expressions.calls import METHODS, Calls
from advisor.frontend.expressions.indices import Known, Selection, known, selection
from advisor.frontend.expressions.kernel_door import KernelDoor
from advisor.frontend.naming.names import dotted, resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.nests import is_of_elements
from advisor.ir.shapes import ArrayType, is_whole, kind_of_or_none, whole
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Flip,
    Gather,
    Read,
    Scalar,
    Transpose,
    Value,
)
from advisor.numpy_table import PYTHON_FLOAT, PYTHON_INTEGER
from costdb.expr import Expr, to_text


def value_of(node: Known, scope: Scope) -> Value:
    """Return the value of an expression over arrays and numbers.

    Raises
    ------
    NotUnderstood
        For anything outside the understood language.
    """
    if isinstance(node, Expr):
        return Scalar(to_text(node), PYTHON_INTEGER)
    value = _value_of(node, scope)
    if not isinstance(value, Scalar) or not isinstance(node, cst.CSTNode):
        return value
    return Scalar(value.text, value.dtype, scope.span(node))


def _value_of(node: Known, scope: Scope) -> Value:
    match node:
        case cst.Name(value=name):
            return _named(name, scope)
        case cst.Integer():
            return Scalar(node.value, PYTHON_INTEGER)
        case cst.Float():
            return Scalar(node.value, PYTHON_FLOAT)
        case cst.UnaryOperation(operator=cst.Not()):
            return _truth("logical_not", [value_of(node.expression, scope)], scope)
        case cst.UnaryOperation():
            return _signed(node, scope)
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            left, right = value_of(node.left, scope), value_of(node.right, scope)
            return Calls(_door(scope)).product(left, right)
        case cst.BinaryOperation():
            return _operation(function_of(node.operator), (node.left, node.right), scope)
        case cst.Comparison():
            nodes = [node.left, *(part.comparator for part in node.comparisons)]
            made = [
                _operation(function_of(part.operator), pair, scope)
                for part, pair in zip(node.comparisons, pairwise(nodes), strict=True)
            ]
            return made[0] if len(made) == 1 else _truth("logical_and", made, scope)
        case cst.BooleanOperation():
            operation = "logical_and" if isinstance(node.operator, cst.And) else "logical_or"
            sides = [value_of(node.left, scope), value_of(node.right, scope)]
            return _truth(operation, sides, scope)
        case cst.Subscript():
            return _subscripted(node, scope)
        case cst.IfExp():
            return _chosen(node, scope)
        case cst.Call():
            return _call(node, scope)
        case cst.Attribute():
            return _attribute(node, scope)
    raise NotUnderstood("this kind of expression is not understood")


def _truth(operation: str, parts: Sequence[Value], scope: Scope) -> Value:
    """Return what joins truth values of single elements."""
    if any(scope.type_of(part) != ArrayType("bool", ()) for part in parts):
        raise NotUnderstood("the truth of something other than a comparison of numbers")
    made = parts[0] if len(parts) > 1 else Elementwise(operation, tuple(parts))
    for part in parts[1:]:
        made = Elementwise(operation, (made, part))
    return made


def _signed(node: cst.UnaryOperation, scope: Scope) -> Value:
    """Return what one of Python's operators before an operand makes of it."""
    operation, operand = function_of(node.operator), value_of(node.expression, scope)
    if operation is None or (operation == "invert" and isinstance(operand, Scalar)):
        raise NotUnderstood("this operator is not understood on numbers")
    if operation == "positive":
        known = isinstance(operand, Scalar)
        return operand if known else Copy(operand, scope.type_of(operand).dtype)
    if isinstance(operand, Scalar):
        return Scalar("-" + operand.text, operand.dtype)
    return Elementwise(operation, (operand,))


def whole_read(name: str, scope: Scope) -> Read:
    """Return all of what an array's name denotes."""
    return scope.select(name, whole(scope.extents_of(name)))


def _named(name: str, scope: Scope) -> Value:
    if scope.is_array(name):
        return whole_read(name, scope)
    if name in scope.scalars:
        return Scalar(name, PYTHON_INTEGER)
    if name in scope.numbers:
        return Scalar(name, scope.numbers[name])
    if name in scope.elements:
        return scope.elements[name]
    raise scope.unknown(name)


def _attribute(node: cst.Attribute, scope: Scope) -> Value:
    full = resolve(node, scope.imports)
    if full in ("numpy.pi", "numpy.e", "numpy.inf", "math.pi", "math.e"):
        return Scalar(full, PYTHON_FLOAT)
    if node.attr.value == "T":
        operand = value_of(node.value, scope)
        dimensions = len(scope.type_of(operand).extents)
        return Transpose(operand, tuple(reversed(range(dimensions))))
    return _number(node, scope, f"attribute `{node.attr.value}` is not understood")


def _number(node: cst.BaseExpression, scope: Scope, otherwise: str) -> Value:
    """Return what stands for an expression in a written-out tuple or a shape, and whole numbers."""
    found = known(node, scope)
    if found is node or isinstance(found, tuple):
        raise NotUnderstood(otherwise)
    return value_of(found, scope)


def _operation(operation: str | None, nodes: tuple[cst.BaseExpression, ...], scope: Scope) -> Value:
    if operation is None:
        raise NotUnderstood("this operator is not understood on arrays")
    return _door(scope).made(Elementwise(operation, tuple(value_of(n, scope) for n in nodes)))


def _chosen(node: cst.IfExp, scope: Scope) -> Value:
    """Return one of two numbers, as elements of arrays decide: both count as computed."""
    made = _operation("where", (node.test, node.body, node.orelse), scope)
    if isinstance(made, Scalar) or scope.type_of(made).extents or not scope.by_element:
        raise NotUnderstood("a choice between two values by something other than elements")
    if isinstance(made, Elementwise):
        condition, *ways = made.operands
        return replace(made, operands=(as_mask(condition, scope), *ways))
    return made


def as_mask(value: Value, scope: Scope) -> Value:
    """Return what decides a choice as booleans: a number does so where it is not 0."""
    if isinstance(value, Scalar) or scope.type_of(value).dtype == "bool":
        return value
    return Elementwise("not_equal", (value, Scalar("0", PYTHON_INTEGER)))


def _subscripted(node: cst.Subscript, scope: Scope) -> Value:
    if isinstance(node.value, cst.Name) and scope.is_array(node.value.value):
        name = node.value.value
        extents = scope.extents_of(name)
        places = _places(node.slice, scope)
        if places is not None and len(extents) == 1:
            return Gather(whole_read(name, scope), places)
        try:
            found = selection(node.slice, extents, scope)
        except NotUnderstood as refused:
            place = element_place(node.slice, scope)
            if mask_of(node, scope) is not None:
                raise NotUnderstood(MASKED) from refused
            if place is None or len(extents) != 1:
                raise refused
            return Gather(whole_read(name, scope), place)
        return _selected(scope.select(name, found.region), found, scope)
    if known(node, scope) is not node:
        return _number(node, scope, "a tuple")
    inner = value_of(node.value, scope)
    extents = scope.type_of(inner).extents
    found = selection(node.slice, extents, scope)
    if not is_whole(found.region, extents):
        raise NotUnderstood("a subscript of an expression")
    return _selected(inner, found, scope)


def _selected(value: Value, found: Selection, scope: Scope) -> Value:
    """Return a value with axes reversed and put in."""
    for axis in found.flipped:
        value = _door(scope).made(Flip(value, axis))
    return reduce(Expand, found.expanded, value)


MASKED = "elements that a mask chooses: only the data know how many"


def _index(
    elements: Sequence[cst.SubscriptElement], scope: Scope
) -> tuple[Value, ArrayType] | None:
    """Return the only index of a subscript with its type; None where it is no single value."""
    if len(elements) != 1 or not isinstance(elements[0].slice, cst.Index):
        return None
    try:
        value = value_of(elements[0].slice.value, scope)
        return value, scope.type_of(value)
    except NotUnderstood:
        return None


def mask_of(node: cst.Subscript, scope: Scope) -> Value | None:
    """Return the truth values that choose elements of a whole array; None for another subscript."""
    if not isinstance(node.value, cst.Name) or not scope.is_array(node.value.value):
        return None
    found = _index(node.slice, scope)
    return (
        found[0]
        if found and found[1] == ArrayType("bool", scope.extents_of(node.value.value))
        else None
    )


def element_place(elements: Sequence[cst.SubscriptElement], scope: Scope) -> Value | None:
    """Return the place of ``x[places[i]]``, which only the data know; None for any other."""
    place, found = _index(elements, scope) or (None, None)
    if place is None or found is None or isinstance(place, Scalar) or found.extents:
        return None
    is_place = kind_of_or_none(found.dtype) is Kind.INTEGER and is_of_elements(place)
    return place if is_place else None


def _places(elements: Sequence[cst.SubscriptElement], scope: Scope) -> Value | None:
    """Return the array of places of ``x[places]``; None where it is another subscript."""
    node = getattr(elements[0].slice, "value", None)
    if len(elements) != 1 or not isinstance(node, cst.Name) or not scope.is_array(node.value):
        return None
    places = whole_read(node.value, scope)
    found = scope.type_of(places)
    if found.dtype == "bool":
        raise NotUnderstood(MASKED)
    if len(found.extents) != 1 or kind_of_or_none(found.dtype) is not Kind.INTEGER:
        raise NotUnderstood("an array as subscript that is no vector of whole numbers")
    return places


def _door(scope: Scope) -> KernelDoor:
    return KernelDoor(scope, lambda node: value_of(node, scope))


def _call(node: cst.Call, scope: Scope) -> Value:
    full = resolve(node.func, scope.imports)
    if full is not None and full.startswith("numpy."):
        return Calls(_door(scope)).function(full.removeprefix("numpy."), _given(node.args))
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in METHODS:
        receiver = value_of(node.func.value, scope)
        if not isinstance(receiver, Scalar):
            return Calls(_door(scope)).method(node.func.attr.value, receiver, _given(node.args))
    if full in _OF_MATH and len(node.args) == 1 and not node.args[0].star:
        operand = value_of(node.args[0].value, scope)
        if isinstance(operand, Scalar):
            return Scalar(f"{full}({operand.text})", PYTHON_FLOAT)
        if not scope.type_of(operand).extents:
            return Elementwise(full.removeprefix("math."), (Copy(operand, "float64"),))
    if isinstance(node.func, cst.Name) and not scope.not_builtin(node.func.value):
        if node.func.value == "len":
            return _number(node, scope, "a length that is not known")
        made = _builtin(node.func.value, node.args, scope)
        if made is not None:
            return made
    called = dotted(node.func) or "this expression"
    raise NotUnderstood(f"the call of `{called}` is not understood")


_OF_MATH = frozenset({"math.sqrt", "math.exp", "math.log", "math.sin", "math.cos"})


_EXTREMES = {"min": "minimum", "max": "maximum"}


def _builtin(name: str, given: Sequence[cst.Arg], scope: Scope) -> Value | None:
    """Return the value of a call of a builtin function; None for those that are not read."""
    if any(argument.keyword or argument.star for argument in given):
        return None
    nodes = tuple(argument.value for argument in given)
    if name == "abs" and len(nodes) == 1:
        return _operation("absolute", nodes, scope)
    if name in ("float", "int") and len(nodes) == 1:
        operand = value_of(nodes[0], scope)
        if not isinstance(operand, Scalar) and not scope.type_of(operand).extents:
            return Copy(operand, "float64" if name == "float" else "int64")
    if name in _EXTREMES and len(nodes) > 1:
        parts = [value_of(node, scope) for node in nodes]
        if any(scope.type_of(part).extents for part in parts):
            raise NotUnderstood(f"`{name}` of whole arrays")
        return reduce(lambda a, b: _door(scope).made(Elementwise(_EXTREMES[name], (a, b))), parts)
    return None


def _given(arguments: Sequence[cst.Arg]) -> list[Given[Known]]:
    return [
        Given(one.value, None if one.keyword is None else one.keyword.value, bool(one.star))
        for one in arguments
    ]
