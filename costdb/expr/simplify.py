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
    lines are greatest at an end; other reductions stay.
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
            largest = _largest(body, index, inside.facts)
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


def _largest(body: Expr, index: str, facts: Facts) -> Expr | None:
    """Return the greatest value of a body over a range that is not empty; the `facts` know it.

    None where the body is no line whose slope has a known sign.
    """
    line = affine_in(body, index)
    way = None if line is None else facts.sign(line[0])
    if way is None:
        return None
    return at(body, index, facts.ranges[-1].high if way > 0 else facts.ranges[-1].low)
