"""Expressions of an SPMD program, as abstract values; calls leave steps behind."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import replace
from functools import lru_cache
from typing import Any

import libcst as cst

from advisor.frontend.bindings import dotted
from advisor.frontend.indices import calculated
from advisor.frontend.scope import OF_SYNTAX
from advisor.frontend.spmd import builtin_calls, communicators, operations
from advisor.frontend.spmd.builtin_calls import PARSER
from advisor.frontend.spmd.door import WEAK, operation
from advisor.frontend.spmd.functions import arguments, enter, has_decorator, instantiate
from advisor.frontend.spmd.joining import condition_of, entry, join
from advisor.frontend.spmd.numpy_calls import NumPy
from advisor.frontend.spmd.numpy_created import dtype_name
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.subscripts import (
    comprehension,
    dictionary,
    dictionary_of_rounds,
    promoted,
    subscript,
)
from advisor.frontend.spmd.values import (
    COMMAND_LINE,
    Argument,
    Arguments,
    Array,
    Class,
    Comm,
    Datatype,
    External,
    Function,
    Method,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Range,
    Record,
    Request,
    Sequence,
    Sibling,
    Slice,
    Text,
    Value,
    Window,
)
from advisor.ir.spmd.steps import Branch
from advisor.numpy_table import REDUCTIONS, dtype_of, promote, result_dtype
from advisor.source import Span
from costdb.expr import Expr, conditional, logical_not, num

# --- operators ------------------------------------------------------------------------------------
# Operators on abstract values: numbers by the expression language, arrays as NumPy has it.


_OF_PYTHON = ("bool", "int", "float", "complex")
_OF_ARRAYS = {**OF_SYNTAX, "MatrixMultiply": "matmul"}


def combine(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a binary or boolean operator, by LibCST's name of it."""
    match operator, left, right:
        case (_, Array(), _) | (_, _, Array()):
            if operator in _OF_ARRAYS:
                return operation(_OF_ARRAYS[operator], (left, right), run, span)
            return Opaque("one of two things, by the truth of an array", varies=True)
        case ("Or", Nothing(), _) | ("Or", Opaque(expr=None), Comm()):
            # ``comm or MPI.COMM_WORLD``
            return right
        case ("Or", Comm(), _):
            return left
        case (_, Number(), Number()):
            return _numbers(operator, left, right, run)
        case ("Add", Sequence(), Sequence()):
            known = left.items is not None and right.items is not None
            items = (*(left.items or ()), *(right.items or ())) if known else None
            element = None if known else left.element or right.element
            return Sequence(items, element, None, left.is_list)
        case ("Multiply", Sequence() as parts, Number() as times) | (
            "Multiply",
            Number() as times,
            Sequence() as parts,
        ):
            return _repeated(parts, times, run)
        case (("Add" | "Modulo" | "Multiply"), Text(), _):
            return Text(None)
    found = calculated(operator, run.number(left), run.number(right))
    varies = run.varies(left, right)
    return Opaque("the operands are not known", found, varies=varies)


def _numbers(operator: str, left: Number, right: Number, run: Run) -> Number:
    if operator == "And" and num(0) in (left.expr, right.expr):
        return Number(num(0), "bool")
    dtype = _wider(left.dtype, right.dtype)
    if operator in ("And", "Or"):
        dtype = "bool"
    elif operator == "Divide" and dtype in _OF_PYTHON:
        dtype = "complex" if dtype == "complex" else "float"
    elif operator == "Divide":
        dtype = result_dtype("divide", (dtype,)) or dtype
    varies = run.varies(left, right)
    found = calculated(operator, left.expr, right.expr)
    return Number(found, dtype, left.nobody or right.nobody, varies and found is None)


def _wider(one: str, other: str) -> str:
    if one in _OF_PYTHON and other in _OF_PYTHON:
        return max(one, other, key=_OF_PYTHON.index)
    return promote(WEAK.get(one, one), WEAK.get(other, other))


def compare(operator: str, left: Value, right: Value, run: Run, span: Span) -> Value:
    """Return the result of a comparison, 1 or 0 as an expression where it can be said."""
    match left, right:
        case (Array(), _) | (_, Array()) if operator in OF_SYNTAX:
            return operation(OF_SYNTAX[operator], (left, right), run, span)
        case (Array() | NeighbourRank() | External(), _) | (
            _,
            Array() | NeighbourRank() | External(),
        ):
            return Number(None, "bool", varies=True)
        case (Text(str() as one), Text(str() as other)) if operator in ("Equal", "NotEqual"):
            return Number(num(int((one == other) == (operator == "Equal"))), "bool")
        case (Nothing(), Nothing()) if operator in ("Is", "Equal"):
            return Number(num(1), "bool")
    varies = run.varies(left, right)
    found = calculated(operator, run.number(left), run.number(right))
    return Number(found, "bool", varies=varies)


def negate(operator: str, operand: Value, run: Run, span: Span) -> Value:
    """Return the result of a unary operator, by LibCST's name of it."""
    if isinstance(operand, Array):
        if operator in _OF_ARRAYS:
            return operation(_OF_ARRAYS[operator], (operand,), run, span)
        return Number(None, "bool", varies=True)
    value, varies = run.number(operand), run.varies(operand)
    if operator == "Not":
        return Number(None if value is None else logical_not(value), "bool", varies=varies)
    minus = -value if value is not None and operator == "Minus" else None
    match operand:
        case Number() if operator == "Plus":
            return operand
        case Number():
            known = minus is not None
            return Number(minus, operand.dtype, known and operand.nobody, varies and not known)
    return Opaque("the operand is not known", minus, varies=varies)


def _repeated(parts: Sequence, times: Number, run: Run) -> Sequence:
    count, items = run.integer(times), parts.items
    if items is not None and count is not None and 0 <= count * len(items) <= 16:
        return Sequence(items * count, is_list=parts.is_list)
    if items is not None and len(items) == 1:
        return Sequence(None, items[0], times.expr, parts.is_list)
    return Sequence(None, None, None, parts.is_list)


# --- expressions ----------------------------------------------------------------------------------


_BUILTINS = frozenset(dir(builtins))
_LITERALS: dict[str, Value] = {
    "None": Nothing(),
    "True": Number(num(1), "bool"),
    "False": Number(num(0), "bool"),
}


def evaluate(node: cst.BaseExpression, run: Run) -> Value:
    """Return what an expression may denote; the steps that it takes are added to the block.

    Raises
    ------
    TooMuch
        When the file takes too long to follow.
    """
    run.spend()
    follow = _FOLLOWED.get(type(node))
    if follow is None:
        return Opaque("this kind of expression is not followed")
    return follow(node, run)


_OPERATORS = {
    "MatrixMultiply": "__matmul__",
    "Add": "__add__",
    "Subtract": "__sub__",
    "Multiply": "__mul__",
    "Divide": "__truediv__",
}


def _binary(node: cst.BinaryOperation | cst.BooleanOperation, run: Run) -> Value:
    left, right = evaluate(node.left, run), evaluate(node.right, run)
    operator = type(node.operator).__name__
    own = own_method(_OPERATORS.get(operator, ""), left)
    if own is not None:
        span = run.span(node.right)
        given = Arguments([Argument(right, None, span, span, run.text_of(span))])
        return enter(run, own, given, run.span(node))
    return combine(operator, left, right, run, run.span(node))


def _unary(node: cst.UnaryOperation, run: Run) -> Value:
    operand = evaluate(node.expression, run)
    return negate(type(node.operator).__name__, operand, run, run.span(node))


def _written_out(
    node: cst.Integer | cst.Float | cst.Imaginary | cst.SimpleString, run: Run
) -> Value:
    match _literal(node.value):
        case int() as value:
            return Number(num(value))
        case float() as value:
            # sizes are whole; other numbers matter by their type alone
            whole = num(int(value)) if abs(value) < 2**53 and value == int(value) else None
            return Number(whole, "float", text=node.value)
        case complex():
            return Number(None, "complex")
        case str() as text:
            return Text(text)
    return Number(None) if isinstance(node, cst.Integer) else Text(None)


@lru_cache(maxsize=512)
def _literal(text: str) -> object:
    """Return what a number or a string spells; None where Python itself would refuse it."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None


def _assigned(node: cst.NamedExpr, run: Run) -> Value:
    found = evaluate(node.value, run)
    if isinstance(node.target, cst.Name):
        run.bind(node.target.value, found)
    return found


def _name(node: cst.Name, run: Run) -> Value:
    name = node.value
    found = run.lookup(name)
    found = run.duck_typed(name, found) or found
    if found is not None:
        return found
    if name in _LITERALS:
        return _LITERALS[name]
    if name in _BUILTINS:
        return External(f"builtins.{name}")
    return Opaque(f"nothing binds `{name}`", text=name)


def _display(node: cst.Tuple | cst.List | cst.Set, run: Run) -> Value:
    items: list[Value] = []
    for element in node.elements:
        found = evaluate(element.value, run)
        if isinstance(element, cst.StarredElement):
            if isinstance(found, Sequence) and found.items is not None:
                items.extend(found.items)
                continue
            return Sequence(None, None, None, isinstance(node, cst.List))
        items.append(found)
    return Sequence(tuple(items), is_list=isinstance(node, cst.List))


def _attribute(node: cst.Attribute, run: Run) -> Value:
    owner = evaluate(node.value, run)
    name = node.attr.value
    spelled = dotted(node) or ""
    found = attribute(owner, name, spelled, run, node)
    return run.duck_typed(spelled, found) or found


def _subscript(node: cst.Subscript, run: Run) -> Value:
    owner = evaluate(node.value, run)
    index = slices(node.slice, run)
    if isinstance(owner, Record):
        return entry(owner, index, run) or Opaque("an entry of a dictionary")
    if isinstance(owner, External) and owner.path == "sys.argv":
        name = run.target or f"argv{run.integer(index) or ''}"
        given = run.symbols.unknown(name, COMMAND_LINE, run.span(node))
        return Opaque("an argument of the command line", given)
    owner = promoted(owner, index, node.value, run)
    return subscript(owner, index, run, run.span(node), run.text(node))


def slices(elements: Many[cst.SubscriptElement], run: Run) -> Value:
    """Return a subscript as a value: a tuple for several dimensions."""
    found: list[Value] = []
    for element in elements:
        part = element.slice
        if isinstance(part, cst.Slice):
            low, high, step = (
                Nothing() if bound is None else evaluate(bound, run)
                for bound in (part.lower, part.upper, part.step)
            )
            found.append(Slice(low, high, step))
        else:
            found.append(evaluate(part.value, run) if isinstance(part, cst.Index) else Nothing())
    return found[0] if len(found) == 1 else Sequence(tuple(found), is_list=False)


def _comparison(node: cst.Comparison, run: Run) -> Value:
    left = evaluate(node.left, run)
    result: Value | None = None
    for target in node.comparisons:
        right = evaluate(target.comparator, run)
        found = compare(type(target.operator).__name__, left, right, run, run.span(node))
        result = found if result is None else combine("And", result, found, run, run.span(node))
        left = right
    return result or Opaque("a comparison")


def _either(node: cst.IfExp, run: Run) -> Value:
    span = run.span(node)
    condition = condition_of(node.test, range(span.start_line, span.end_line + 1), run)
    with run.block() as first:
        then = evaluate(node.body, run)
    with run.block() as second:
        orelse = evaluate(node.orelse, run)
    decided = condition.value
    if decided in (num(0), num(1)):
        run.steps[-1].extend(first if decided == num(1) else second)
        return then if decided == num(1) else orelse
    if first or second:
        run.emit(Branch(condition, tuple(first), tuple(second), span))
    match then, orelse:
        case (Number(expr=Expr() as one), Number(expr=Expr() as other)) if decided is not None:
            return Number(conditional(decided, one, other), then.dtype, then.nobody)
    return join(then, orelse, run.target or "value", run)


# Calls and attributes, by what is called or owns them.


def attribute(owner: Value, name: str, spelled: str, run: Run, node: cst.Attribute) -> Value:
    """Return what an attribute of a value denotes."""
    match owner:
        case External(path=path) if name == "itemsize" and path.startswith("numpy."):
            dtype = dtype_name(owner)
            return Number(None if dtype is None else num(dtype_of(dtype).itemsize_bytes))
        case Datatype(basic=str() as basic) if name in ("size", "extent"):
            return Number(num(dtype_of(basic).itemsize_bytes))
        case External(path=path):
            return communicators.external(f"{path}.{name}", run)
        case Comm(communicator):
            return communicators.attribute(communicator, name, run) or Method(owner, name)
        case Sibling(name=module):
            context = run.context(module)
            member = None if context is None else context.frame.names.get(name)
            return member or Opaque(f"`{spelled}` is not followed", text=spelled)
        case Array(view):
            return NumPy(run, run.span(node)).attribute(view, name) or Method(owner, name)
        case Record(number=number, cls=cls):
            known = run.entry(number, name)
            if known is not None:
                return known
            method = None if cls is None else cls.method(name)
            if method is not None:
                of_class = has_decorator(method.node, "classmethod")
                bound = replace(method, owner=cls if of_class else owner)
                if has_decorator(method.node, "property", "cached_property"):
                    return enter(run, bound, Arguments(), run.span(node))
                return bound
            if cls is None or cls.name == PARSER:
                return Method(owner, name)
            return cls.constant(name) or Opaque(f"`{spelled}`", text=spelled)
        case Class():
            method = owner.method(name)
            if method is not None and has_decorator(method.node, "classmethod"):
                return replace(method, owner=owner)
            return method or owner.constant(name) or Opaque(spelled, text=spelled)
        case Opaque():
            text = f"{owner.text}.{name}" if owner.text else spelled
            return replace(owner, expr=None, text=text)
        case Number() | NeighbourRank() | Nothing():
            return Opaque(f"`{spelled}` of a number", foreign=True)
        case Text() | Sequence() | Range() | Request() | Window() | Datatype():
            return Method(owner, name)
    return Opaque(f"`{spelled}` is not followed", text=spelled, foreign=True)


_STATUS_METHODS = frozenset(
    {"Get_source", "Get_tag", "Get_count", "Get_elements", "Get_error", "Is_cancelled"}
)
"""Methods of a status, which take no time to speak of."""


def _call(node: cst.Call, run: Run) -> Value:
    """Return what a call gives; what it does is added to the block."""
    function = evaluate(node.func, run)
    given, span = arguments(node, run), run.span(node)
    match function:
        case Method(Comm(communicator), name):
            place = span, span
            if isinstance(node.func, cst.Attribute):
                place = run.span(node.func.value), run.span(node.func.attr)
            return operations.communicate(communicator, name, given, run, span, place)
        case Function():
            return enter(run, function, given, span)
        case Class():
            return instantiate(run, function, given, span)
        case Record() if (own := own_method("__call__", function)) is not None:
            return enter(run, own, given, span)
        case Method(Array(view), name):
            return NumPy(run, span).member(view, name, given)
        case Method(owner, name):
            target = node.func.value if isinstance(node.func, cst.Attribute) else node.func
            return builtin_calls.method(owner, name, given, run, span, target)
        case External(path=path) if path.startswith("numpy."):
            return NumPy(run, span).call(path.removeprefix("numpy."), given)
        case External(path=path) if path.startswith("mpi4py."):
            return operations.construct(path, given, run, span)
        case External(path=path):
            return builtin_calls.call(path, given, run, span)
    return _foreign_call(function, node, given, run)


def _foreign_call(function: Value, node: cst.Call, given: Arguments, run: Run) -> Value:
    called = dotted(node.func) or "an expression"
    why = f"the result of `{called}` is not known"
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    if name in _STATUS_METHODS:
        return Opaque(why, foreign=True, varies=True)
    if name in REDUCTIONS and isinstance(function, Opaque):
        # of an array, most likely: whatever else has such a method, it changes nothing
        span = run.span(node)
        owner = Argument(function, None, span, span, called)
        return NumPy(run, span).called(name, None, Arguments([owner, *given.all]))
    mentions = frozenset(a.text for a in given.all if isinstance(a.value, Array))
    run.unknown(f"the call of `{called}` is not followed", run.span(node), mentions)
    for argument in given.all:
        builtin_calls.forget(argument.value, run)
    foreign = not isinstance(function, Opaque) or function.foreign
    return Opaque(why, foreign=foreign, varies=run.varies(*(a.value for a in given.all)))


def own_method(name: str, owner: Value) -> Function | None:
    """Return a method of an instance of a class of the file, for that instance."""
    if not isinstance(owner, Record) or owner.cls is None:
        return None
    method = owner.cls.method(name)
    return None if method is None else replace(method, owner=owner)


_FOLLOWED: dict[type[cst.CSTNode], Callable[[Any, Run], Value]] = {
    cst.Name: _name,
    cst.Integer: _written_out,
    cst.Float: _written_out,
    cst.Imaginary: _written_out,
    cst.SimpleString: _written_out,
    cst.Ellipsis: lambda node, run: External("builtins.Ellipsis"),
    cst.ConcatenatedString: lambda node, run: Text(None),
    cst.FormattedString: lambda node, run: Text(None),
    cst.Tuple: _display,
    cst.List: _display,
    cst.Set: _display,
    cst.Dict: dictionary,
    cst.ListComp: comprehension,
    cst.GeneratorExp: comprehension,
    cst.SetComp: comprehension,
    cst.DictComp: dictionary_of_rounds,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: _call,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.BooleanOperation: _binary,
    cst.IfExp: _either,
    cst.NamedExpr: _assigned,
    cst.Lambda: lambda node, run: Opaque("a lambda"),
    cst.StarredElement: lambda node, run: evaluate(node.value, run),
}
"""By kind of expression; to ask each for every class in turn takes most of the time."""
