"""Expressions of an SPMD program, as abstract values; calls leave steps behind."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Callable
from collections.abc import Sequence as Many
from functools import lru_cache
from typing import Any

import libcst as cst

from advisor.frontend.naming.names import dotted
from advisor.frontend.spmd import communicators, numpy_calls
from advisor.frontend.spmd.calling import attribute, called, own_method
from advisor.frontend.spmd.elementwise import combine, compare, negate
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.iteration import (
    comprehension,
    dictionary,
    dictionary_of_rounds,
    promoted,
)
from advisor.frontend.spmd.joining import entry, join
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.symbols import COMMAND_LINE
from advisor.frontend.spmd.values import (
    Comm,
    External,
    Function,
    Nothing,
    Number,
    Opaque,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.ranks import CommKind
from costdb.expr import conditional, num

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


def _binary(node: cst.BinaryOperation, run: Run) -> Value:
    left, right = evaluate(node.left, run), evaluate(node.right, run)
    own = _own_operator(type(node.operator).__name__, left)
    if own is not None:
        span = run.span(node.right)
        given = [Argument(right, None, span, span, run.text_of(span))]
        return run.functions.enter(run, own, given, run.span(node))
    return combine(type(node.operator).__name__, left, right, run, run.span(node))


def _own_operator(operator: str, left: Value) -> Function | None:
    """Return the method by which an instance of a class of the file defines an operator."""
    return own_method(_OPERATORS.get(operator, ""), left)


def _unary(node: cst.UnaryOperation, run: Run) -> Value:
    operand = evaluate(node.expression, run)
    return negate(type(node.operator).__name__, operand, run, run.span(node))


def _boolean(node: cst.BooleanOperation, run: Run) -> Value:
    left, right = evaluate(node.left, run), evaluate(node.right, run)
    return combine(type(node.operator).__name__, left, right, run, run.span(node))


def _integer(node: cst.Integer, run: Run) -> Value:
    value = _literal(node.value)
    return Number(num(value) if isinstance(value, int) else None)


@lru_cache(maxsize=512)
def _literal(text: str) -> object:
    """Return what a number or a string spells; None where Python itself would refuse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about the text are not ours to tell
            return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None


def _float(node: cst.Float, run: Run) -> Value:
    # sizes are whole; other numbers matter by their type alone
    value = float(node.value)
    whole = num(int(value)) if abs(value) < 2**53 and value == int(value) else None
    return Number(whole, "float")


def _string(node: cst.SimpleString, run: Run) -> Value:
    literal = _literal(node.value)
    return Text(literal if isinstance(literal, str) else None)


def _assigned(node: cst.NamedExpr, run: Run) -> Value:
    found = evaluate(node.value, run)
    if isinstance(node.target, cst.Name):
        run.bind(node.target.value, found)
    return found


def _name(node: cst.Name, run: Run) -> Value:
    name = node.value
    found = run.lookup(name)
    if run.is_duck_typed(name, found):
        made = run.communicator(CommKind.GIVEN, name, run.statement, duck_typed=True)
        return Comm(made)
    if found is not None:
        return found
    if name in _LITERALS:
        return _LITERALS[name]
    if name in _BUILTINS:
        return External(f"builtins.{name}")
    star = run.of_module("*")
    if isinstance(star, External):
        full = f"{star.path}.{name}"
        known = communicators.constant(full, run)
        if known is not None:
            return known
        if star.path == "numpy" and numpy_calls.is_known(name):
            return External(full)
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
    if run.is_duck_typed(spelled, found):
        made = run.communicator(CommKind.GIVEN, spelled, run.statement, duck_typed=True)
        return Comm(made)
    return found


def _subscript(node: cst.Subscript, run: Run) -> Value:
    owner = evaluate(node.value, run)
    index = slices(node.slice, run)
    if isinstance(owner, Record):
        return entry(owner, index, run) or Opaque("an entry of a dictionary")
    if isinstance(owner, External) and owner.path == "sys.argv":
        name = run.targets[0] if run.targets else f"argv{run.integer(index) or ''}"
        given = run.symbols.unknown(name, COMMAND_LINE, run.span(node))
        return Opaque("an argument of the command line", given)
    owner = promoted(owner, index, node.value, run)
    return subscript(owner, index, run, run.span(node), run.text(node))


def slices(elements: Many[cst.SubscriptElement], run: Run) -> Value:
    """Return a subscript as a value: a tuple for several dimensions, ``SLICE`` tuples for slices.

    A slice is a tuple of its three parts within a tuple, so that it is told from an index.
    """
    found: list[Value] = []
    for element in elements:
        part = element.slice
        if isinstance(part, cst.Slice):
            bounds = tuple(
                Nothing() if bound is None else evaluate(bound, run)
                for bound in (part.lower, part.upper, part.step)
            )
            found.append(Sequence((External("slice"), *bounds), is_list=False))
        else:
            found.append(evaluate(part.value, run) if isinstance(part, cst.Index) else Nothing())
    if len(found) == 1 and isinstance(elements[0].slice, cst.Index):
        return found[0]
    return Sequence(tuple(found), is_list=False)


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
    test = evaluate(node.test, run)
    then, orelse = evaluate(node.body, run), evaluate(node.orelse, run)
    if isinstance(test, Number) and test.expr is not None:
        decided = test.expr
        if decided == num(1):
            return then
        if decided == num(0):
            return orelse
        one = then.expr if isinstance(then, Number) else None
        other = orelse.expr if isinstance(orelse, Number) else None
        if isinstance(then, Number) and one is not None and other is not None:
            return Number(conditional(decided, one, other), then.dtype, then.nobody)
    name = run.targets[0] if run.targets else "value"
    return join(then, orelse, name, run)


def arguments(node: cst.Call, run: Run) -> list[Argument]:
    """Return the evaluated arguments of a call, left to right."""
    found: list[Argument] = []
    saved, run.targets = run.targets, ()
    for argument in node.args:
        value = evaluate(argument.value, run)
        keyword = None if argument.keyword is None else argument.keyword.value
        span = run.span(argument.value)
        place = run.span(argument)
        found.append(Argument(value, keyword, span, place, run.text_of(span), argument.star))
    run.targets = saved
    return found


def _call(node: cst.Call, run: Run) -> Value:
    function = evaluate(node.func, run)
    return called(function, node, arguments(node, run), run)


_FOLLOWED: dict[type[cst.CSTNode], Callable[[Any, Run], Value]] = {
    cst.Name: _name,
    cst.Integer: _integer,
    cst.Float: _float,
    cst.Ellipsis: lambda node, run: External("builtins.Ellipsis"),
    cst.Imaginary: lambda node, run: Number(None, "complex"),
    cst.SimpleString: _string,
    cst.ConcatenatedString: lambda node, run: Text(None),
    cst.FormattedString: lambda node, run: Text(None),
    cst.Tuple: _display,
    cst.List: _display,
    cst.Set: _display,
    cst.Dict: lambda node, run: dictionary(node, run, evaluate),
    cst.ListComp: lambda node, run: comprehension(node, run, evaluate),
    cst.GeneratorExp: lambda node, run: comprehension(node, run, evaluate),
    cst.SetComp: lambda node, run: comprehension(node, run, evaluate),
    cst.DictComp: lambda node, run: dictionary_of_rounds(node, run, evaluate),
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: _call,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.BooleanOperation: _boolean,
    cst.IfExp: _either,
    cst.NamedExpr: _assigned,
    cst.Lambda: lambda node, run: Opaque("a lambda"),
    cst.StarredElement: lambda node, run: evaluate(node.value, run),
}
"""By kind of expression; to ask each for every class in turn takes most of the time."""
