"""Simplification: closed forms of reductions, and what the given facts decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from costdb.expr.facts import Facts
from costdb.expr.functions import (
    Conditional,
    Equal,
    Less,
    LessEqual,
    Log2,
    Max,
    Min,
    Reduction,
    Sum,
    conditional,
    less_equal,
    maximum_over,
    summation,
)
from costdb.expr.names import check_name, free_symbols, fresh_name
from costdb.expr.nodes import (
    ONE,
    ZERO,
    Add,
    CeilDiv,
    Division,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Sym,
    add,
    ceil_div,
    floor_div,
    modulo,
    multiply,
    num,
)
from costdb.expr.numbers import ExprError
from costdb.expr.polynomials import affine_in, at, coefficients_in, expand, sum_below, terms_of


def simplify(expr: Expr, positive: Iterable[str] = (), nonnegative: Iterable[str] = ()) -> Expr:
    """Return an expression of the same value, with reductions in closed form where known.

    Parameters
    ----------
    expr : Expr
    positive : iterable of str
        Sizes: names that stand for whole numbers of at least 1.
    nonnegative : iterable of str
        Names that stand for real numbers of at least 0.

    Notes
    -----
    Names in the bounds of reductions are taken to be whole numbers. Polynomials are summed up, and
    what only grows or only falls is greatest at an end; other reductions stay.
    """
    return _simplified(expr, frozenset(positive), frozenset(nonnegative))


@lru_cache(maxsize=4096)
def _simplified(expr: Expr, positive: frozenset[str], nonnegative: frozenset[str]) -> Expr:
    # variants of one kernel share most of their sums
    return _Simplifier(_facts(positive, nonnegative), {}).simplify(expr)


def _facts(positive: Iterable[str], nonnegative: Iterable[str]) -> Facts:
    return Facts(frozenset(map(check_name, positive)), frozenset(map(check_name, nonnegative)))


MAX_CLOSED_SIZE = 4000
"""Parts of a closed form; a larger one is left to enumeration."""


@dataclass(frozen=True, slots=True)
class _Simplifier:
    facts: Facts
    done: dict[Expr, Expr]

    def simplify(self, expr: Expr) -> Expr:
        known = self.done.get(expr)
        if known is None:
            known = self._simplify(expr)
            self.done[expr] = known
            self.done[known] = known
        return known

    def _simplify(self, expr: Expr) -> Expr:
        if not expr.children:
            return expr
        if isinstance(expr, Reduction):
            return self.reduction(expr)
        if isinstance(expr, Conditional):
            test = self.simplify(expr.test)
            if isinstance(test, Num):
                return self.simplify(expr.then if test.value else expr.orelse)
        try:
            expr = expr.rebuild(tuple([self.simplify(child) for child in expr.children]))
        except ExprError:
            # no value at all, as a division by zero: whoever evaluates it says so, if it is
            # ever chosen
            return expr
        return self.decided(expr)

    def decided(self, expr: Expr) -> Expr:
        """Apply what the facts decide at the top of `expr`."""
        facts = self.facts
        match expr:
            case Max():
                return facts.largest(expr.args)
            case Min():
                return facts.smallest(expr.args)
            case Less():
                if facts.proves_at_least(expr.left, expr.right):
                    return ZERO
                whole = (expr.left - expr.right).is_whole(facts.whole)
                if whole and facts.proves_at_least(expr.right, expr.left + 1):
                    return ONE
            case LessEqual():
                if facts.proves_at_least(expr.right, expr.left):
                    return ONE
                whole = (expr.left - expr.right).is_whole(facts.whole)
                if whole and facts.proves_at_least(expr.left, expr.right + 1):
                    return ZERO
            case Equal():
                whole = (expr.left - expr.right).is_whole(facts.whole)
                for one, other in ((expr.left, expr.right), (expr.right, expr.left)):
                    if whole and facts.proves_at_least(one, other + 1):
                        return ZERO
            case Division():
                return self.division(expr)
            case Conditional(then=Conditional() as inner) if inner.test == expr.test:
                return conditional(expr.test, inner.then, expr.orelse)
            case Conditional(orelse=Conditional() as inner) if inner.test == expr.test:
                return conditional(expr.test, expr.then, inner.orelse)
            case _:
                pass
        return expr

    def division(self, expr: Division) -> Expr:
        """Take whole multiples of the divisor out, and decide what is left."""
        facts, divisor = self.facts, expr.divisor
        multiples: list[Expr] = []
        rest: list[Expr] = []
        for term in terms_of(expand(expr.dividend)):
            times = term / divisor
            (multiples if times.is_whole(facts.whole) else rest).append(term)
        quotient = add(multiples) / divisor
        left = add(rest)
        small = facts.proves_at_least(left, ZERO) and facts.proves_at_least(divisor - 1, left)
        if isinstance(expr, Mod):
            return left if small else modulo(left, divisor)
        if isinstance(expr, FloorDiv):
            return expand(quotient) + (ZERO if small else floor_div(left, divisor))
        return expand(quotient) + ceil_div(left, divisor)

    def reduction(self, expr: Reduction) -> Expr:
        """Return a reduction without its loop where its value is known, else with less in it."""
        low, high = self.simplify(expr.low), self.simplify(expr.high)
        index, body = expr.index, expr.body
        taken = self.facts.names | free_symbols(low) | free_symbols(high)
        if index in taken:
            index = fresh_name(index, taken | free_symbols(body))
            body = at(body, expr.index, Sym(index))
        inside = _Simplifier(self.facts.inside(index, low, high), {})
        body = inside.simplify(body)
        make = summation if isinstance(expr, Sum) else maximum_over
        prepared = make(index, low, high, body)
        if not isinstance(prepared, Reduction):
            return prepared
        try:
            if isinstance(expr, Sum):
                return self.sum(prepared)
            largest = _largest(body, index, inside.facts, 1)
        except ExprError:
            # the closed form is too large to write down
            return prepared
        if largest is None:
            return prepared
        if not self.facts.proves_at_least(high, low):
            largest = conditional(less_equal(low, high), largest, ZERO)
        return self.simplify(largest)

    def sum(self, expr: Reduction) -> Expr:
        """Sum up the polynomials of a body, and take constant factors out of the rest."""
        index, low, high = expr.index, expr.low, expr.high
        closed: list[Expr] = []
        loops: list[Expr] = []
        for term in terms_of(expand(expr.body)):
            inside, outside = _parted(term, index)
            if coefficients_in(inside, index) is not None:
                closed.append(term)
            elif isinstance(inside, Conditional) and index not in free_symbols(inside.test):
                sides = [summation(index, low, high, one) for one in (inside.then, inside.orelse)]
                loops.append(outside * conditional(inside.test, *map(self.simplify, sides)))
            else:
                loops.append(outside * Sum(index, low, high, inside))
        if not closed:
            return add(loops)
        total = self.polynomial(index, low, high, add(closed))
        if total.size > MAX_CLOSED_SIZE:
            return expr
        return add([self.simplify(total), *loops])

    def polynomial(self, index: str, low: Expr, high: Expr, body: Expr) -> Expr:
        """Return the sum of a polynomial."""
        filled = self.facts.proves_at_least(high, low)
        last = high if filled else self.facts.largest((high, low - 1))
        if index not in free_symbols(body):
            total = body * (
                last - low + 1 if filled else self.facts.largest((high - low + 1, ZERO))
            )
        else:
            coefficients = coefficients_in(body, index)
            assert coefficients is not None
            total = sum_below(coefficients, last + 1) - sum_below(coefficients, low)
        if filled or not _may_fail(body, index, self.facts):
            return total
        return conditional(less_equal(low, high), total, ZERO)


def _parted(term: Expr, index: str) -> tuple[Expr, Expr]:
    """Return the factors of a term that hold an index, and the others."""
    factors = (*term.factors, num(term.coefficient)) if isinstance(term, Mul) else (term,)
    inside = [factor for factor in factors if index in free_symbols(factor)]
    return multiply(inside), multiply([one for one in factors if index not in free_symbols(one)])


def _may_fail(expr: Expr, index: str, facts: Facts) -> bool:
    """Tell whether a part without `index` could have no value, such as 1/N for N = 0.

    A sum does not evaluate its body over an empty range, so its closed form must not either.
    """
    if not expr.children:
        return False
    if index not in free_symbols(expr):
        doubtful: Expr = ONE
        if isinstance(expr, Pow):
            doubtful = ONE if _is_plain(expr) else expr.base
        elif isinstance(expr, Division):
            doubtful = expr.divisor
        elif isinstance(expr, Log2):
            doubtful = expr.argument
        if not isinstance(doubtful, Num) and not facts.proves_at_least(doubtful, ONE):
            return True
    return any(_may_fail(child, index, facts) for child in expr.children)


def _is_plain(expr: Pow) -> bool:
    return isinstance(expr.exponent, Num) and expr.exponent.value >= 0


def _largest(body: Expr, index: str, facts: Facts, direction: int) -> Expr | None:
    """Return the greatest value of a body over a range that is not empty, or with -1 the least.

    None where it is not known at which end of the range it lies. The `facts` know the range.
    """
    if index not in free_symbols(body):
        return body
    ends = facts.ranges[-1]
    if isinstance(body, Conditional) and index not in free_symbols(body.test):
        then = _largest(body.then, index, facts, direction)
        orelse = _largest(body.orelse, index, facts, direction)
        return None if then is None or orelse is None else conditional(body.test, then, orelse)
    if isinstance(body, Max if direction > 0 else Min):
        parts = [_largest(one, index, facts, direction) for one in body.children]
        known = [part for part in parts if part is not None]
        return body.rebuild(tuple(known)) if len(known) == len(parts) else None
    way = _trend(body, index, facts)
    if way is not None:
        return at(body, index, ends.high if way * direction > 0 else ends.low)
    inside, outside = _parted(body, index)
    if outside != ONE:
        sign = facts.sign(outside)
        found = None if sign is None else _largest(inside, index, facts, direction * sign)
        return None if found is None else outside * found
    fixed = [term for term in terms_of(body) if index not in free_symbols(term)]
    if fixed:
        moving = add([term for term in terms_of(body) if index in free_symbols(term)])
        found = _largest(moving, index, facts, direction)
        return None if found is None else add([*fixed, found])
    # what bends upwards only is greatest at one end or the other
    coefficients = coefficients_in(body, index)
    if coefficients is None or len(coefficients) != 3:
        return None
    if not facts.proves_at_least(coefficients[2] * direction, ZERO):
        return None
    both = at(body, index, ends.low), at(body, index, ends.high)
    return facts.largest(both) if direction > 0 else facts.smallest(both)


def _trend(expr: Expr, index: str, facts: Facts) -> int | None:
    """Return 1 where `expr` never falls with an index, -1 where it never rises, else None."""
    if index not in free_symbols(expr):
        return 0
    line = affine_in(expr, index)
    if line is not None:
        return facts.sign(line[0])
    match expr:
        case Add() | Max() | Min():
            ways = {_trend(child, index, facts) for child in expr.children} - {0}
            return ways.pop() if len(ways) == 1 else None
        case Mul():
            inside, outside = _parted(expr, index)
            sign = facts.sign(outside)
            if sign is None:
                return None
            if isinstance(inside, Mul):
                if not all(facts.sign(factor) == 1 for factor in inside.factors):
                    return None
                ways = {_trend(factor, index, facts) for factor in inside.factors} - {0}
                way = ways.pop() if len(ways) == 1 else None
            else:
                way = _trend(inside, index, facts)
            return None if way is None else sign * way
        case Pow() if _is_plain(expr) and facts.sign(expr.base) == 1:
            return _trend(expr.base, index, facts)
        case FloorDiv() | CeilDiv():
            steady = index not in free_symbols(expr.divisor) and facts.sign(expr.divisor) == 1
            return _trend(expr.dividend, index, facts) if steady else None
        case Log2():
            return _trend(expr.argument, index, facts)
        case _:
            return None
