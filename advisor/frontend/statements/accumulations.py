"""Numbers that a loop accumulates: ``s += x[i]``, ``s = max(s, x[i])``, ``if x[i] > s: s = x[i]``.

Such a number may be reduced in parts where nothing in the loop sees what it holds on the way. It
is then an array of no dimensions that stores change; after the loop it is a number again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from advisor.frontend.expressions.operations import AUGMENTED, OPERATORS
from advisor.frontend.naming.bindings import NameVisitor, names_in
from advisor.frontend.syntax.walking import show

_REDUCED = {"add": "add", "subtract": "add", "multiply": "multiply"}
_EXTREMES = {"max": "maximum", "min": "minimum"}
_UFUNCS = {f"numpy.{name}": name for name in ("maximum", "minimum", "fmax", "fmin")}
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
    """

    name: str
    operation: str
    value: cst.BaseExpression
    condition: cst.BaseExpression | None = None

    @property
    def reduction(self) -> str:
        """The operation that combines two parts of the whole."""
        return _REDUCED.get(self.operation, self.operation)


def combination(node: cst.CSTNode, resolve: Resolve) -> Combination | None:
    """Return how a statement combines a number with a value; None for any other statement."""
    found: Combination | None = None
    match node:
        case cst.AugAssign(target=cst.Name(value=name), operator=operator, value=value):
            operation = AUGMENTED.get(type(operator), "")
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
            operation = OPERATORS.get(type(operator), "")
            if operation in _REDUCED and _is_name(left, name):
                return Combination(name, operation, right)
            if operation in ("add", "multiply") and _is_name(right, name):
                return Combination(name, operation, left)
        case cst.Call(args=[cst.Arg(keyword=None, star="") as one, cst.Arg(keyword=None) as two]):
            full = resolve(value.func) or ""
            operation = _EXTREMES.get(full.removeprefix("builtins.")) or _UFUNCS.get(full, "")
            for own, other in ((one, two), (two, one)):
                if operation and not two.star and _is_name(own.value, name):
                    return Combination(name, _SAME.get(operation, operation), other.value)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in _EXTREMES:
            rest = [a for a in value.args if not _is_initial(a, name)]
            if len(rest) == len(value.args) - 1:
                return Combination(name, _EXTREMES[method], value.with_changes(args=rest))
    return None


def _is_initial(argument: cst.Arg, name: str) -> bool:
    keyword = argument.keyword is not None and argument.keyword.value == "initial"
    return keyword and _is_name(argument.value, name)


def _conditional(node: cst.If, resolve: Resolve) -> Combination | None:
    """Read ``if value > name: name = value``, and a combination under a condition."""
    only = _only_statement(node.body)
    match _kept_extreme(only, node.test):
        case cst.Name(value=name), operation, value:
            return Combination(name, operation, value)
    inner = None if only is None else combination(only, resolve)
    if inner is None or inner.condition is not None or inner.name in names_in(node.test):
        return None
    return Combination(inner.name, inner.operation, inner.value, node.test)


def extreme_of(node: cst.If) -> tuple[cst.Subscript, str, cst.BaseExpression] | None:
    """Return what ``if value < target: target = value`` stores to, by which operation, and what.

    None for any other condition.
    """
    only = _only_statement(node.body) if node.orelse is None else None
    match _kept_extreme(only, node.test):
        case cst.Subscript() as target, operation, value:
            return target, operation, value
    return None


def _kept_extreme(
    only: cst.BaseSmallStatement | None, test: cst.BaseExpression
) -> tuple[cst.BaseExpression, str, cst.BaseExpression] | None:
    """Return what a statement changes under a test, the greater or lesser of which, and what to."""
    match only, test:
        case (
            cst.Assign(targets=[cst.AssignTarget(target=target)], value=value),
            cst.Comparison(left=left, comparisons=[cst.ComparisonTarget() as other]),
        ):
            operation = OPERATORS.get(type(other.operator), "")
            one, two = left, other.comparator
            if operation.startswith("less"):
                one, two, operation = two, one, operation.replace("less", "greater")
            if operation in ("greater", "greater_equal"):
                if _is_spelled(two, target) and one.deep_equals(value):
                    return target, "maximum", value
                if _is_spelled(one, target) and two.deep_equals(value):
                    return target, "minimum", value
    return None


def _only_statement(body: cst.BaseSuite) -> cst.BaseSmallStatement | None:
    if isinstance(body, cst.IndentedBlock):
        if len(body.body) != 1 or not isinstance(body.body[0], cst.SimpleStatementLine):
            return None
        body_line = body.body[0].body
    else:
        assert isinstance(body, cst.SimpleStatementSuite)
        body_line = body.body
    return body_line[0] if len(body_line) == 1 else None


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _is_spelled(node: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Return whether two expressions are spelled alike; parentheses around names do not count."""
    return _is_name(node, other.value) if isinstance(other, cst.Name) else node.deep_equals(other)


class _Counted(NameVisitor):
    """Counts how often names stand in a piece of source."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def name_seen(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


def _counts(node: cst.CSTNode) -> dict[str, int]:
    visitor = _Counted()
    show(node, visitor)
    return visitor.counts


def accumulated(loop: cst.For | cst.While, resolve: Resolve) -> frozenset[str]:
    """Return the names that a loop does nothing with but accumulate, each by one operation."""
    found: dict[str, list[Combination]] = {}
    within: dict[str, int] = {}
    for node in _statements(loop.body):
        one = combination(node, resolve)
        if one is not None:
            found.setdefault(one.name, []).append(one)
            within[one.name] = within.get(one.name, 0) + _counts(node)[one.name]
    if not found:
        return frozenset()
    everywhere = _counts(loop)
    return frozenset(
        name
        for name, its in found.items()
        if everywhere[name] == within[name] and len({one.reduction for one in its}) == 1
    )


def _statements(body: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    """Yield the statements of a suite and of loops within it, none twice."""
    for part in body.body:
        if isinstance(part, cst.SimpleStatementLine):
            yield from part.body
        elif isinstance(part, cst.For | cst.While):
            yield from _statements(part.body)
        else:
            yield part


class _Slices(cst.CSTVisitor):
    """Looks for slices."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_Slice(self, node: cst.Slice) -> None:  # noqa: N802
        self.found = True


def is_by_element(loop: cst.For | cst.While) -> bool:
    """Return whether a loop slices nothing, so that its statements may be on single elements."""
    visitor = _Slices()
    show(loop, visitor)
    return not visitor.found
