"""What a loop accumulates: ``s += x[i]``, ``s = max(s, x[i])``, ``if x[i] > s: s = x[i]``.

Such a number may be reduced in parts where nothing in the loop sees what it holds on the way. It
is then an array of no dimensions that stores change; after the loop it is a number again.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import libcst as cst

from advisor.frontend.bindings import counted_names, names_in
from advisor.frontend.scope import function_of
from advisor.frontend.trees import nodes_in
from advisor.ir.dependence import slope_of
from advisor.ir.kernel import symbols, with_part
from advisor.ir.nests import index_name, of_parts
from advisor.ir.statements import (
    SET,
    Loop,
    Rename,
    Return,
    Scatter,
    Stated,
    Statement,
    Store,
    Unknown,
    mentioned,
    values_of,
    walk,
)
from advisor.ir.values import Copy, Elementwise, Point, Range, Read, Scalar, Value, parts_of
from advisor.numpy_table import PYTHON_FLOAT, PYTHON_INTEGER, ROWS
from advisor.source import Span
from costdb.expr import substitute
from costdb.records import IDENTIFIER, dataclass, grouped, only, replace

_REDUCED = {"add": "add", "subtract": "add", "multiply": "multiply"}
_EXTREMES = {"max": "maximum", "min": "minimum"}
_UFUNCS = {f"numpy.{name}": name for name in ("maximum", "minimum", "fmax", "fmin")}
_OF_PYTHON = frozenset({"builtins.max", "builtins.min"})
_SKIPPING = frozenset({"numpy.fmax", "numpy.fmin"})
_SAME = {"fmax": "maximum", "fmin": "minimum"}

Resolve = Callable[[cst.BaseExpression], str | None]
"""Gives the full name of a function; builtins are called ``builtins.NAME``."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One statement that combines a number with a value.

    Attributes
    ----------
    name : str
    operation : str
        How they are combined, as an operation an element.
    value : CSTNode
    condition : CSTNode or None
        Only where it holds.
    compared : {"first", "last", ""}
        Of extremes that Python finds, where the number stands: that decides what a NaN does.
    """

    name: str
    operation: str
    value: cst.BaseExpression
    condition: cst.BaseExpression | None = None
    compared: str = ""

    @property
    def reduction(self) -> str:
        """The operation that combines two parts of the whole."""
        return _REDUCED.get(self.operation, self.operation)


def combination(node: cst.CSTNode, resolve: Resolve) -> Combination | None:
    """Return how a statement combines a number with a value; None for any other statement."""
    found: Combination | None = None
    match node:
        case cst.AugAssign(target=cst.Name(value=name), operator=operator, value=value):
            operation = function_of(operator) or ""
            found = Combination(name, operation, value) if operation in _REDUCED else None
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            found = _assigned(name, value, resolve)
        case cst.If(orelse=None):
            found = _conditional(node, resolve)
    if found is None or found.name in names_in(found.value):
        return None
    return found


def _assigned(name: str, value: cst.BaseExpression, resolve: Resolve) -> Combination | None:
    match value:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            operation = function_of(operator) or ""
            if operation in _REDUCED and _is_name(left, name):
                return Combination(name, operation, right)
            if operation in ("add", "multiply") and _is_name(right, name):
                return Combination(name, operation, left)
        case cst.Call(args=[cst.Arg(keyword=None, star="") as one, cst.Arg(keyword=None) as two]):
            full = resolve(value.func) or ""
            operation = _EXTREMES.get(full.removeprefix("builtins.")) or _UFUNCS.get(full, "")
            for own, other in ((one, two), (two, one)):
                if operation and not two.star and _is_name(own.value, name):
                    of_python = ("first" if own is one else "last") if full in _OF_PYTHON else ""
                    compared = "first" if full in _SKIPPING else of_python
                    operation = _SAME.get(operation, operation)
                    return Combination(name, operation, other.value, compared=compared)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in _EXTREMES:
            # as edits of loops write it
            rest = [a for a in value.args if not _is_initial(a, name)]
            if len(rest) == len(value.args) - 1:
                return Combination(name, _EXTREMES[method], value.with_changes(args=rest))
    return None


def _is_initial(argument: cst.Arg, name: str) -> bool:
    keyword = argument.keyword is not None and argument.keyword.value == "initial"
    return keyword and _is_name(argument.value, name)


def _conditional(node: cst.If, resolve: Resolve) -> Combination | None:
    """Read ``if value > name: name = value``, and a combination under a condition."""
    only = only_statement(node.body)
    match _kept_extreme(only, node.test):
        case cst.Name(value=name), operation, value:
            return Combination(name, operation, value, compared="first")
    inner = None if only is None else combination(only, resolve)
    if inner is None or inner.condition is not None or inner.name in names_in(node.test):
        return None
    return Combination(inner.name, inner.operation, inner.value, node.test)


def extreme_of(node: cst.If) -> tuple[cst.Subscript, str, cst.BaseExpression] | None:
    """Return what ``if value < target: target = value`` stores to, by which operation, and what.

    None for any other condition.
    """
    only = only_statement(node.body) if node.orelse is None else None
    match _kept_extreme(only, node.test):
        case cst.Subscript() as target, operation, value:
            return target, operation, value
    return None


def _kept_extreme(
    only: cst.CSTNode | None, test: cst.BaseExpression
) -> tuple[cst.BaseExpression, str, cst.BaseExpression] | None:
    """Return what a statement changes under a test, the greater or lesser of which, and what to."""
    match only, test:
        case (
            cst.Assign(targets=[cst.AssignTarget(target=target)], value=value),
            cst.Comparison(left=left, comparisons=[cst.ComparisonTarget() as other]),
        ):
            operation = function_of(other.operator) or ""
            one, two = left, other.comparator
            if operation.startswith("less"):
                one, two, operation = two, one, operation.replace("less", "greater")
            if operation in ("greater", "greater_equal"):
                if _is_spelled(two, target) and one.deep_equals(value):
                    return target, "maximum", value
                if _is_spelled(one, target) and two.deep_equals(value):
                    return target, "minimum", value
    return None


def smalls_of(body: cst.BaseSuite) -> list[cst.CSTNode]:
    """Return the statements of a suite, also those that share a line."""
    lines = (one.body if isinstance(one, cst.SimpleStatementLine) else [one] for one in body.body)
    return [small for line in lines for small in line]


def only_statement(body: cst.BaseSuite) -> cst.CSTNode | None:
    """Return the one statement of a suite; None where there are more."""
    statements = smalls_of(body)
    return statements[0] if len(statements) == 1 else None


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _is_spelled(node: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Return whether two expressions are spelled alike; parentheses around names do not count."""
    return _is_name(node, other.value) if isinstance(other, cst.Name) else node.deep_equals(other)


def accumulated(loop: cst.For | cst.While, resolve: Resolve) -> frozenset[str]:
    """Return the names that a loop does nothing with but accumulate, each by one operation."""
    combined = ((combination(node, resolve), node) for node in _statements(loop.body))
    found = grouped((one.name, (one.reduction, node)) for one, node in combined if one is not None)
    everywhere = counted_names(loop) if found else {}
    return frozenset(
        name
        for name, its in found.items()
        if everywhere[name] == sum(counted_names(node)[name] for _, node in its)
        and len({reduction for reduction, _ in its}) == 1
    )


def passed_on(loop: cst.For | cst.While, resolve: Resolve) -> frozenset[str]:
    """Return the names that each iteration combines once, by one operation, and that it also uses.

    ``cur = max(cur, x[i]); m[i] = cur``: what they hold on the way is a scan.
    """
    found: dict[str, cst.CSTNode] = {}
    for node in smalls_of(loop.body):
        one = combination(node, resolve)
        if one is not None and (one.condition is None or one.operation in _REDUCED):
            found[one.name] = node
    assigned = Counter(
        target.value
        for node in only(cst.AssignTarget | cst.AugAssign | cst.NamedExpr | cst.For, nodes_in(loop))
        for target in only(cst.Name, nodes_in(node.target))
    )
    everywhere = counted_names(loop)
    return frozenset(
        name
        for name, node in found.items()
        if assigned[name] == 1 and everywhere[name] > counted_names(node)[name]
    )


@dataclass(frozen=True, slots=True)
class Search:
    """``if value < best: best = value; place = index``, of which the first one wins.

    Attributes
    ----------
    best, place, index : str
    operation : {"minimum", "maximum"}
    value : CSTNode
    """

    best: str
    place: str
    index: str
    operation: str
    value: cst.BaseExpression


def _is_plain(one: cst.BaseElement) -> bool:
    return isinstance(one, cst.Element)


def _one_by_one(body: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """Return an assignment of several values to as many names as one for each."""
    match body:
        case [
            cst.Assign([cst.AssignTarget(cst.Tuple(elements=targets))], cst.Tuple(elements=values))
        ] if len(targets) == len(values) and all(map(_is_plain, (*targets, *values))):
            names = [one.value for one in targets if isinstance(one.value, cst.Name)]
            if len(names) == len(targets):
                pairs = zip(names, values, strict=True)
                return [cst.Assign([cst.AssignTarget(one)], two.value) for one, two in pairs]
    return body


def search(node: cst.CSTNode) -> Search | None:
    """Return what a statement looks for; None for any other statement."""
    if not isinstance(node, cst.If) or node.orelse is not None:
        return None
    match node.test, _one_by_one(smalls_of(node.body)):
        case (
            cst.Comparison(
                comparisons=[cst.ComparisonTarget(operator=cst.LessThan() | cst.GreaterThan())]
            ),
            [cst.Assign() as one, cst.Assign() as other],
        ):
            pairs = ((one, other), (other, one))
        case _:
            return None
    for first, second in pairs:
        match _kept_extreme(first, node.test), second:
            case (
                (cst.Name(value=best), operation, value),
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=place))],
                    value=cst.Name(value=index),
                ),
            ) if best not in names_in(value) and place not in names_in(value):
                return Search(best, place, index, operation, value)
    return None


def searches(loop: cst.For | cst.While) -> Iterator[Search]:
    """Yield what a loop looks for and does nothing else with."""
    everywhere = counted_names(loop)
    for node in loop.body.body:
        found = search(node)
        if found is None or not isinstance(loop, cst.For) or found.best == found.place:
            continue
        own = counted_names(node)
        alone = all(everywhere[name] == own[name] for name in (found.best, found.place))
        if alone and _is_name(loop.target, found.index) and own[found.place] == 1:
            yield found


def _statements(body: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    """Yield the statements of a suite and of loops within it, none twice."""
    for part in smalls_of(body):
        if isinstance(part, cst.For | cst.While):
            yield from _statements(part.body)
        elif isinstance(part, cst.If) and only_statement(part.body) is None:
            # what it tests is none of its statements
            yield from _statements(part.body)
            match part.orelse:
                case cst.Else(body=body):
                    yield from _statements(body)
                case cst.If() as other:
                    yield from _statements(cst.IndentedBlock([other]))
        else:
            yield part


def is_by_element(loop: cst.For | cst.While) -> bool:
    """Return whether a loop slices nothing, so that its statements may be on single elements."""
    parts = [loop.body] if isinstance(loop, cst.For) else [loop.body, loop.test]
    return not any(isinstance(node, cst.Slice) for part in parts for node in nodes_in(part))


# Sums that one iteration of a loop makes for itself and stores in an element.
#
# ``s = 0.0; for j in ...: s += a[i, j]; y[i] = s`` does what adding to ``y[i]`` does, and whoever
# owns that element does it. Read as a number that all ranks have, every iteration of the outer loop
# would end in a reduction over the ranks.

_WORD = re.compile(IDENTIFIER)

Starts = Mapping[Span, Mapping[str, Scalar]]
"""For loops the numbers that they accumulate and that were set just before, with their values."""


def stored_totals(body: tuple[Statement, ...], starts: Starts) -> tuple[Statement, ...]:
    """Return the body of a loop with private sums accumulated where they end up.

    Those that end up elsewhere begin anew in each iteration.
    """
    names = {
        name: value
        for statement in only(Loop, body)
        for name, value in starts.get(statement.span, {}).items()
    }
    for name, value in names.items():
        body = _stored(body, name, value)
    made: list[Statement] = []
    for statement in body:
        for name, value in starts.get(statement.span, {}).items():
            if isinstance(statement, Loop) and _accumulates(statement, name):
                made.append(Store(name, (), value, value.span or statement.span))
        made.append(statement)
    return tuple(made)


def _stored(body: tuple[Statement, ...], name: str, start: Scalar) -> tuple[Statement, ...]:
    loops = [p for p, s in enumerate(body) if isinstance(s, Loop) and _accumulates(s, name)]
    uses = [p for p, s in enumerate(body) if _sees(s, name)]
    if not loops or len(uses) != 1 or uses[0] < loops[-1]:
        return body
    target = body[uses[0]]
    if not isinstance(target, Store) or not all(isinstance(p, Point) for p in target.region):
        return body
    if not target.region:
        return body
    between = body[loops[0] : uses[0]]
    if any(isinstance(s, Store) and s.array == target.array for s in walk(between)):
        return body
    place = Read(target.array, target.region)
    made: list[Statement] = []
    for position, statement in enumerate(body):
        if position == loops[0]:
            made.append(Store(target.array, target.region, start, target.span))
        if position in loops:
            made.append(_moved(statement, name, place))
        elif position == uses[0]:
            if target.value != Scalar(name, getattr(target.value, "dtype", "")):
                value = _with(target.value, name, place)
                if value is None:
                    return body
                made.append(Store(target.array, target.region, value, target.span))
        else:
            made.append(statement)
    return tuple(made)


def _accumulates(loop: Loop, name: str) -> bool:
    return any(isinstance(s, Store) and s.array == name and not s.region for s in walk((loop,)))


def _sees(statement: Statement, name: str) -> bool:
    """Return whether a statement may use what a number holds."""
    for one in walk((statement,)):
        parts = (part for value in values_of(one) for part in parts_of(value))
        texts = (part.text for part in parts if isinstance(part, Scalar))
        if any(name in _WORD.findall(text) for text in texts):
            return True
        if isinstance(one, Rename | Return | Stated | Unknown) and name in mentioned(one):
            return True
    return False


def _moved(statement: Statement, name: str, place: Read) -> Statement:
    """Return a loop that accumulates in an element instead."""
    if isinstance(statement, Loop):
        return replace(statement, body=tuple(_moved(s, name, place) for s in statement.body))
    if isinstance(statement, Store) and statement.array == name and not statement.region:
        value = with_part(statement.value, Read(name, ()), place)
        return replace(
            statement, array=place.array, region=place.region, value=value, variable=name
        )
    return statement


def _with(value: Value, name: str, place: Read) -> Value | None:
    """Return a value with an element in the place of a number; None where it has no form."""
    if isinstance(value, Scalar) and name in _WORD.findall(value.text):
        return _computed(ast.parse(value.text, mode="eval").body, value.dtype, name, place)
    if not isinstance(value, Elementwise):
        return value
    return of_parts(value, lambda part: _with(part, name, place))


def _computed(node: ast.expr, dtype: str, name: str, place: Read) -> Value | None:
    """Return what the text of a number says, with an element in the place of another number."""
    match node:
        case ast.Name(id=known) if known == name:
            return place
        case ast.Call(ast.Name(operation), args) if operation in ROWS:
            parts = [_computed(one, dtype, name, place) for one in args]
            made = tuple(part for part in parts if part is not None)
            return Elementwise(operation, made) if len(made) == len(parts) else None
        case ast.UnaryOp(ast.USub(), operand):
            inner = _computed(operand, dtype, name, place)
            return None if inner is None else Elementwise("negative", (inner,))
        case ast.Constant(int()):
            return Scalar(ast.unparse(node), PYTHON_INTEGER)
        case ast.Constant(float()):
            return Scalar(ast.unparse(node), PYTHON_FLOAT)
        case ast.Name() | ast.BinOp() if name not in _WORD.findall(ast.unparse(node)):
            return Scalar(ast.unparse(node), dtype)
    return None


# Loops of single increments at places that only the data know, as one scattered increment.


def scattered_at_once(loop: Loop) -> Statement:
    """Return the increment of all iterations of a loop; the loop itself where it is none.

    Iterations that increment elements along one axis may come in any order, as far as work goes.
    """
    if len(loop.body) != 1 or loop.step != 1:
        return loop
    (only,) = loop.body
    if not isinstance(only, Scatter) or not only.by_element:
        return loop
    if only.others or only.operation == SET:
        return loop
    places, value = _widened(only.places, loop), _widened(only.value, loop)
    if places is None or value is None:
        return loop
    return replace(only, places=places, value=value, span=loop.span)


def _widened(value: Value, loop: Loop) -> Value | None:
    """Return a value over all iterations; None where its elements do not follow the index."""
    match value:
        case Scalar(text):
            return None if index_name(loop.variable) in _WORD.findall(text) else value
        case Read(array, region):
            moving = [d for d, part in enumerate(region) if loop.variable in symbols(part)]
            later = [d for d, part in enumerate(region) if not isinstance(part, Point)]
            if len(moving) != 1 or any(d < moving[0] for d in later):
                return None
            part = region[moving[0]]
            if not isinstance(part, Point) or slope_of(part.at, loop.variable) != 1:
                return None
            low, high = (substitute(part.at, {loop.variable: e}) for e in (loop.low, loop.high))
            at = moving[0]
            return Read(array, (*region[:at], Range(low, high), *region[at + 1 :]))
        case Copy(operand, dtype):
            inner = _widened(operand, loop)
            return None if inner is None else Copy(inner, dtype)
        case Elementwise(operation, parts):
            made = [_widened(part, loop) for part in parts]
            known = tuple(part for part in made if part is not None)
            return Elementwise(operation, known) if len(known) == len(made) else None
    return None
