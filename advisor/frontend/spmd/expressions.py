"""Expressions of an SPMD program, as abstract values; calls leave steps behind."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from collections.abc import Sequence as Many
from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from advisor.frontend.names import dotted
from advisor.frontend.spmd import (
    array_members,
    builtin_calls,
    communicators,
    numpy_calls,
    operations,
)
from advisor.frontend.spmd.arithmetic import combine, compare, negate
from advisor.frontend.spmd.attributes import attribute
from advisor.frontend.spmd.entries import MOST_ENTRIES, entry, items_of, key_of
from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.iteration import iteration, loop_over
from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.run import COMMAND_LINE, Argument, Run
from advisor.frontend.spmd.values import (
    Array,
    ArrayMethod,
    Class,
    Comm,
    CommMethod,
    External,
    Function,
    Method,
    Nothing,
    Number,
    Opaque,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.ranks import CommKind
from advisor.ir.spmd.steps import LoopKind
from advisor.source import Span
from costdb.expr import Expr, conditional, num

_BUILTINS = frozenset(dir(builtins))
_STATUS_METHODS = frozenset(
    {"Get_source", "Get_tag", "Get_count", "Get_elements", "Get_error", "Is_cancelled"}
)
"""Methods of a status, which take no time to speak of."""

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
    match node:
        case cst.Name(value=name):
            return _name(name, run)
        case cst.Integer():
            return Number(num(node.evaluated_value))
        case cst.Float():
            # sizes are whole; other numbers matter by their type alone
            return Number(_whole(node), "float")
        case cst.Ellipsis():
            return External("builtins.Ellipsis")
        case cst.Imaginary():
            return Number(None, "complex")
        case cst.SimpleString():
            literal = node.evaluated_value
            return Text(literal if isinstance(literal, str) else None)
        case cst.ConcatenatedString() | cst.FormattedString():
            return Text(None)
        case cst.Tuple() | cst.List() | cst.Set():
            return _display(node, run)
        case cst.Dict():
            return _dictionary(node, run)
        case cst.ListComp() | cst.GeneratorExp() | cst.SetComp():
            return _comprehension(node, run)
        case cst.DictComp():
            return _dictionary_of_rounds(node, run)
        case cst.Attribute():
            return _attribute(node, run)
        case cst.Subscript():
            return _subscript(node, run)
        case cst.Call():
            return _call(node, run)
        case cst.BinaryOperation():
            left, right = evaluate(node.left, run), evaluate(node.right, run)
            own = _own_operator(type(node.operator).__name__, left)
            if own is not None:
                span = run.span(node.right)
                given = [Argument(right, None, span, span, run.text_of(span))]
                return run.functions.enter(run, own, given, run.span(node))
            return combine(type(node.operator).__name__, left, right, run, run.span(node))
        case cst.UnaryOperation():
            operand = evaluate(node.expression, run)
            return negate(type(node.operator).__name__, operand, run, run.span(node))
        case cst.Comparison():
            return _comparison(node, run)
        case cst.BooleanOperation():
            left, right = evaluate(node.left, run), evaluate(node.right, run)
            return combine(type(node.operator).__name__, left, right, run, run.span(node))
        case cst.IfExp():
            return _either(node, run)
        case cst.NamedExpr(target=cst.Name(value=name)):
            found = evaluate(node.value, run)
            run.bind(name, found)
            return found
        case cst.Lambda():
            return Opaque("a lambda")
        case cst.StarredElement():
            return evaluate(node.value, run)
    return Opaque("this kind of expression is not followed")


_OPERATORS = {
    "MatrixMultiply": "__matmul__",
    "Add": "__add__",
    "Subtract": "__sub__",
    "Multiply": "__mul__",
    "Divide": "__truediv__",
}


def _own_operator(operator: str, left: Value) -> Function | None:
    """Return the method by which an instance of a class of the file defines an operator."""
    return _own_method(_OPERATORS.get(operator, ""), left)


def _own_method(name: str, owner: Value) -> Function | None:
    if not isinstance(owner, Record) or owner.cls is None:
        return None
    method = owner.cls.method(name)
    return None if method is None else replace(method, owner=owner)


def _whole(node: cst.Float) -> Expr | None:
    value = float(node.evaluated_value)
    return num(int(value)) if abs(value) < 2**53 and value == int(value) else None


def _name(name: str, run: Run) -> Value:
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
    star = run.frames[0].names.get("*")
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


def _dictionary(node: cst.Dict, run: Run) -> Value:
    record = run.record()
    for element in node.elements:
        if isinstance(element, cst.DictElement):
            key = key_of(evaluate(element.key, run), run)
            with _named_entry(key, run):
                value = evaluate(element.value, run)
            run.heap[record.number, key] = value
    return record


@contextmanager
def _named_entry(key: object, run: Run) -> Iterator[None]:
    """Let what is made now be called as an entry of the dictionary that is being made."""
    saved = run.targets
    run.targets = tuple(f"{name}[{key!r}]" for name in saved[:1] if key is not None)
    yield
    run.targets = saved


def _dictionary_of_rounds(node: cst.DictComp, run: Run) -> Value:
    """Return the dictionary of a comprehension: by its keys where they are few and known."""
    saved = dict(run.frame.names)
    record = run.record()
    over = evaluate(node.for_in.iter, run)
    plain = node.for_in.inner_for_in is None and not node.for_in.ifs
    items = items_of(over, run) if plain else None
    if items is not None and len(items) <= MOST_ENTRIES:
        for item in items:
            assign(node.for_in.target, item, run)
            key = key_of(evaluate(node.key, run), run)
            with _named_entry(key, run):
                run.heap[record.number, key] = evaluate(node.value, run)
    else:
        element, _ = _rounds([node.for_in], node.value, run)
        run.heap[record.number, None] = element
    run.frame.names = saved
    return record


def _comprehension(node: cst.ListComp | cst.GeneratorExp | cst.SetComp, run: Run) -> Value:
    saved = dict(run.frame.names)
    loops = [node.for_in]
    while loops[-1].inner_for_in is not None:
        loops.append(loops[-1].inner_for_in)
    element, length = _rounds(loops, node.elt, run)
    index = None
    if len(loops) == 1 and not node.for_in.ifs and isinstance(element, Number):
        index = _index_of(node.for_in, run)
    run.frame.names = saved
    return Sequence(None, element, length, index=index)


def _index_of(loop: cst.CompFor, run: Run) -> tuple[str, Expr] | None:
    """Return the symbol that counts the entries of a comprehension, and where it begins."""
    made = iteration(evaluate(loop.iter, run), loop.target, run, run.text(loop.iter))
    counted = made.kind is LoopKind.COUNTED and made.step == 1 and made.stride is None
    return (made.variable, made.low) if counted else None


def _rounds(
    loops: Many[cst.CompFor], elt: cst.BaseExpression, run: Run
) -> tuple[Value, Expr | None]:
    made = iteration(evaluate(loops[0].iter, run), loops[0].target, run, run.text(loops[0].iter))
    run.frame.depth += 1
    with run.block() as body:
        assign(loops[0].target, made.element, run)
        for condition in loops[0].ifs:
            evaluate(condition.test, run)
        if len(loops) > 1:
            element, inner = _rounds(loops[1:], elt, run)
        else:
            element, inner = evaluate(elt, run), num(1)
        steps = tuple(body)
    run.frame.depth -= 1
    if steps:
        run.emit(loop_over(made, steps, run.span(loops[0])))
    filtered = any(loop.ifs for loop in loops)
    length = None if filtered or made.trips is None or inner is None else made.trips * inner
    return element, length


def assign(target: cst.BaseExpression, value: Value, run: Run) -> None:
    """Let a target without side effects (a name, a tuple of names) denote a value."""
    if isinstance(target, cst.Name):
        run.bind(target.value, value)
    elif isinstance(target, cst.Tuple | cst.List):
        for position, element in enumerate(target.elements):
            assign(element.value, part_of(value, position, len(target.elements), run), run)
    elif isinstance(target, cst.Attribute):
        owner = evaluate(target.value, run)
        if isinstance(owner, Record):
            run.heap[owner.number, target.attr.value] = value


def part_of(value: Value, position: int, parts: int, run: Run) -> Value:
    """Return one of the values that an unpacking assignment takes from another."""
    match value:
        case Sequence(items=items) if items is not None and len(items) == parts:
            return items[position]
        case Sequence(items=None) if value.element is not None:
            return value.element
        case Array():
            return subscript(value, Number(num(position)), run, run.statement, "")
        case Opaque():
            return Opaque(value.why, varies=value.varies)
    return Opaque("part of something that is not followed")


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


def promoted(owner: Value, index: Value, node: cst.BaseExpression, run: Run) -> Value:
    """Return an unknown object as an array where a subscript shows that it is one."""
    if not isinstance(owner, Opaque) or owner.foreign:
        return owner
    rank = _slices_in(index)
    if not rank:
        return owner
    text = owner.text or run.text(node)
    made = Array(run.given_array(text, run.span(node), rank, None))
    run.rebind(node, made)
    return made


def _slices_in(index: Value) -> int:
    """Return how many dimensions a subscript shows, 0 where it need not be one of an array."""
    if isinstance(index, Sequence) and index.items is not None:
        if any(isinstance(i, External) and i.path == "slice" for i in index.items):
            return len(index.items)
        if any(isinstance(i, Sequence) and i.is_list is False for i in index.items):
            return len(index.items)
    return 0


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
    given = arguments(node, run)
    span = run.span(node)
    match function:
        case CommMethod(communicator, name):
            place = (
                (run.span(node.func.value), run.span(node.func.attr))
                if isinstance(node.func, cst.Attribute)
                else (span, span)
            )
            return operations.communicate(communicator, name, given, run, span, place)
        case Function():
            return run.functions.enter(run, function, given, span)
        case Class():
            return run.functions.instantiate(run, function, given, span)
        case Record() if (called := _own_method("__call__", function)) is not None:
            return run.functions.enter(run, called, given, span)
        case ArrayMethod(view, name):
            return array_members.method(view, name, given, run, span)
        case Method(owner, name):
            target = node.func.value if isinstance(node.func, cst.Attribute) else node.func
            return builtin_calls.method(owner, name, given, run, span, target)
        case External(path=path):
            return _external(path, given, run, span)
    return _foreign_call(function, node, given, run)


def _external(path: str, given: list[Argument], run: Run, span: Span) -> Value:
    if path.startswith("numpy."):
        return numpy_calls.call(path.removeprefix("numpy."), given, run, span)
    if path.startswith("mpi4py."):
        return communicators.construct(path, given, run, span)
    return builtin_calls.call(path, given, run, span)


def _foreign_call(function: Value, node: cst.Call, given: list[Argument], run: Run) -> Value:
    called = dotted(node.func) or "an expression"
    if called.rpartition(".")[2] in _STATUS_METHODS:
        return Opaque(f"the result of `{called}` is not known", foreign=True, varies=True)
    mentions = frozenset(a.text for a in given if isinstance(a.value, Array))
    run.unknown(f"the call of `{called}` is not followed", run.span(node), mentions)
    for argument in given:
        builtin_calls.forget(argument.value, run)
    foreign = not isinstance(function, Opaque) or function.foreign
    varies = any(_varies(a.value, run) for a in given)
    return Opaque(f"the result of `{called}` is not known", foreign=foreign, varies=varies)


def _varies(value: Value, run: Run) -> bool:
    match value:
        case Number():
            return value.varies or run.symbols.varies(value.expr)
        case Opaque():
            return value.varies
        case Sequence(items=tuple() as items):
            return any(_varies(item, run) for item in items)
    return False
