"""Parts of a loop's range in each of which conditions on its index come out one way.

``if i == 0: ... elif i < n - 1: ... else: ...`` asks where an index is. A loop over such conditions
is read as loops over parts of its range, one after another, where they need not be asked: most
often one for the inner part and one for each end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import libcst as cst

from advisor.frontend.bindings import assigned_names, names_in
from advisor.frontend.indices import bound_to_number, known
from advisor.frontend.scope import Scope
from advisor.frontend.trees import nodes_in
from advisor.ir.dependence import non_negative_within
from costdb.expr import ONE, ZERO, Expr, free_symbols, maximum, minimum, substitute
from costdb.expr.polynomials import affine_in

MOST_ENDS = 6
"""A range has so many ends of parts at most."""

_LARGE = 64
"""Ends are in the order that they have where sizes are at least that."""

_FLIPPED = {
    "LessThan": "GreaterThan",
    "LessThanEqual": "GreaterThanEqual",
    "GreaterThan": "LessThan",
    "GreaterThanEqual": "LessThanEqual",
}

_PLACES = {
    "LessThan": (0,),
    "LessThanEqual": (1,),
    "GreaterThan": (1,),
    "GreaterThanEqual": (0,),
    "Equal": (0, 1),
    "NotEqual": (0, 1),
}
"""How far behind what an index is compared with parts begin."""


def ends_of_parts(node: cst.For, index: str, low: Expr, high: Expr, scope: Scope) -> list[Expr]:
    """Return where parts of a loop's range begin, and its end; only these two where it has one.

    Parameters
    ----------
    node : For
        A loop whose name of the index is bound.
    index : str
        The symbol of that.
    low, high : Expr
        Its range.
    scope : Scope
    """
    ends, changed = [low, high], assigned_names(node.body)
    tests = (one.test for one in nodes_in(node.body) if isinstance(one, cst.If | cst.IfExp))
    reads_others = _reads_others(node)
    for test in tests:
        if decided(test, scope) is not None:
            continue
        for part in nodes_in(test):
            if not isinstance(part, cst.Comparison) or names_in(part) & changed:
                continue
            for operator, place in _relations(part, index, scope):
                for more in _PLACES[operator]:
                    within = free_symbols(place).isdisjoint(scope.maxima) or reads_others
                    if not within or not _put(place + more, ends, scope):
                        return [low, high]
    return ends


def _reads_others(node: cst.For) -> bool:
    """Return whether iterations read elements that only another iteration can have written.

    ``if i != j: a[j] -= f[j] * a[i]`` over ``j`` does, so all at once needs the parts around ``i``.
    """
    stored = [one.target for one in nodes_in(node.body) if isinstance(one, _STORES)]
    arrays = {_array_of(one) for one in stored} - {""}
    index = names_in(node.target)
    return any(
        _array_of(one) in arrays and one not in stored and names_in(one).isdisjoint(index)
        for one in nodes_in(node.body)
    )


_STORES = cst.AssignTarget | cst.AugAssign


def _array_of(node: cst.CSTNode) -> str:
    """Return the name of what a subscript is of, or ""."""
    match node:
        case cst.Subscript(value=cst.Name(value=name)):
            return name
    return ""


def _put(place: Expr, ends: list[Expr], scope: Scope) -> bool:
    """Put a place where it belongs among some; return whether that is known."""
    if place in ends:
        return True
    after = [_precedes(end, place, scope) for end in ends]
    at = after.count(True)
    if after != [True] * at + [False] * (len(ends) - at):
        return False
    if 0 < at < len(ends):
        ends.insert(at, place)
    return len(ends) <= MOST_ENDS


def _precedes(one: Expr, other: Expr, scope: Scope) -> bool | None:
    gap = other - one
    sizes = free_symbols(gap) - scope.maxima.keys()
    large = {**scope.minima, **dict.fromkeys(sizes, _LARGE)}
    if non_negative_within(gap, large, scope.maxima, scope.starts):
        return True
    return False if non_negative_within(-gap, large, scope.maxima, scope.starts) else None


_OPPOSITE = {
    "LessThan": "GreaterThanEqual",
    "LessThanEqual": "GreaterThan",
    "GreaterThan": "LessThanEqual",
    "GreaterThanEqual": "LessThan",
}


_TELLING = frozenset({"len", "int", "abs", "min", "max"})


def guarded(
    node: cst.For, index: str, low: Expr, high: Expr, scope: Scope
) -> tuple[Expr, Expr, dict[cst.CSTNode, bool]]:
    """Return the part of a range in which a loop does anything, and conditions that hold there.

    ``for t in range(n): if t - lag >= 0: ...`` goes from ``lag`` on. The name of the index is
    bound, and numbers that are named before the condition become so.
    """
    known_there: dict[cst.CSTNode, bool] = {}
    free = assigned_names(node.body)
    body = list(node.body.body)
    while body:
        first, *rest = body
        match first:
            case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)]):
                if not names_in(value) & free and bound_to_number(name, value, scope):
                    free -= {name}
                elif _calls(value):
                    break
                body = rest
                continue
            case cst.For(body=inner, orelse=None) if not rest:
                body = list(inner.body)
                continue
            case cst.If(test, body=inner, orelse=None) if not _calls(test) and (
                not rest or _skips(inner)
            ):
                for one, holds in _parts_that(test, not _skips(inner)):
                    found = list(_relations(one, index, scope))
                    if names_in(one) & free or len(found) < len(one.comparisons):
                        continue
                    if not all(operator in _OPPOSITE for operator, _ in found):
                        continue
                    if not holds and len(found) > 1:
                        continue
                    known_there[one] = holds
                    for operator, place in found:
                        kept = operator if holds else _OPPOSITE[operator]
                        place += _PLACES[kept][0]
                        if kept.startswith("Less"):
                            high = _nearer(high, place, scope, minimum)
                        else:
                            low = _nearer(low, place, scope, maximum)
        break
    return low, high, known_there


def _calls(node: cst.CSTNode) -> bool:
    """Return whether an expression calls what may do more than tell of sizes."""
    calls = (one.func for one in nodes_in(node) if isinstance(one, cst.Call))
    return not all(isinstance(one, cst.Name) and one.value in _TELLING for one in calls)


def _skips(body: cst.BaseSuite) -> bool:
    """Return whether a suite leaves out the rest of an iteration, and does nothing else."""
    match body.body:
        case [cst.SimpleStatementLine([cst.Continue()])] | [cst.Continue()]:
            return True
    return False


def _parts_that(test: cst.BaseExpression, holds: bool) -> Iterator[tuple[cst.Comparison, bool]]:
    """Yield comparisons that have to come out so for a condition to hold, or not to."""
    match test:
        case cst.Comparison():
            yield test, holds
        case cst.BooleanOperation(left, operator, right) if isinstance(operator, cst.And) == holds:
            yield from _parts_that(left, holds)
            yield from _parts_that(right, holds)
        case cst.UnaryOperation(cst.Not(), inner):
            yield from _parts_that(inner, not holds)


def _nearer(end: Expr, place: Expr, scope: Scope, nearer: Callable[..., Expr]) -> Expr:
    """Return the greater of two ends of a range, or the smaller one, as far as that is known."""
    for one, other in ((end, place), (place, end)):
        if non_negative_within(one - other, scope.minima, scope.maxima, scope.starts):
            return one if nearer is maximum else other
    return nearer(end, place)


def decided(test: cst.BaseExpression, scope: Scope) -> bool | None:
    """Return how a condition comes out in the parts that are read; None where that is open."""
    match test:
        case cst.Comparison() if test in scope.holding:
            return scope.holding[test]
        case cst.Comparison(
            left, [cst.ComparisonTarget(cst.Equal() | cst.NotEqual() as operator, right)]
        ) if (same := _same_text(left, right, scope)) is not None:
            return same is isinstance(operator, cst.Equal)
        case cst.Comparison():
            found = [one for split in scope.splits for one in _outcomes(test, split, scope)]
            pairs = len(test.comparisons)
            return False if False in found else True if found.count(True) == pairs else None
        case cst.BooleanOperation(left, operator, right):
            sides = [decided(left, scope), decided(right, scope)]
            ends = isinstance(operator, cst.Or)
            return ends if ends in sides else None if None in sides else not ends
        case cst.UnaryOperation(cst.Not(), inner):
            holds = decided(inner, scope)
            return None if holds is None else not holds
    return None


def _same_text(left: cst.BaseExpression, right: cst.BaseExpression, scope: Scope) -> bool | None:
    """Return whether two texts that are written out are equal; None for anything else."""
    one, other = known(left, scope), known(right, scope)
    if isinstance(one, cst.SimpleString) and isinstance(other, cst.SimpleString):
        return one.evaluated_value == other.evaluated_value
    return None


def _outcomes(node: cst.Comparison, index: str, scope: Scope) -> Iterator[bool | None]:
    split = scope.splits[index]
    for operator, place in _relations(node, index, scope):
        below, beyond = split.is_below(place), split.is_below(place + ONE)
        equal = True if below is False and beyond is True else None
        equal = False if below is True or beyond is False else equal
        match operator:
            case "LessThan":
                yield below
            case "LessThanEqual":
                yield beyond
            case "GreaterThan":
                yield None if beyond is None else not beyond
            case "GreaterThanEqual":
                yield None if below is None else not below
            case "Equal":
                yield equal
            case "NotEqual":
                yield None if equal is None else not equal


def _relations(node: cst.Comparison, index: str, scope: Scope) -> Iterator[tuple[str, Expr]]:
    """Yield how an index is compared, and with what."""
    sides = [node.left, *(one.comparator for one in node.comparisons)]
    for part, (one, other) in zip(node.comparisons, pairwise(sides), strict=True):
        left, right, operator = known(one, scope), known(other, scope), type(part.operator).__name__
        if not isinstance(left, Expr) or not isinstance(right, Expr) or operator not in _PLACES:
            continue
        slope, _ = affine_in(left - right, index) or (ZERO, ZERO)
        if slope == ONE:
            yield operator, substitute(right - left, {index: ZERO})
        elif slope == -ONE:
            yield _FLIPPED.get(operator, operator), substitute(left - right, {index: ZERO})
