"""Simplification: closed forms of reductions, and what is known of the names decides.

Sizes are whole numbers of at least 1, and inside a reduction its index lies in its range. With
``N = 1 + n`` a polynomial whose coefficients are then all of one sign has that sign. Proofs are
one-sided: True is certain, False means not proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from costdb.expr.functions import (
    Conditional,
    Extreme,
    Log2,
    Max,
    Min,
    Reduction,
    Sum,
    check_name,
    conditional,
    free_symbols,
    fresh_name,
    less_equal,
    maximum,
    maximum_over,
    minimum,
    substitute,
    summation,
)
from costdb.expr.nodes import (
    ZERO,
    Division,
    Expr,
    ExprError,
    Mod,
    Mul,
    Num,
    Pow,
    Rational,
    Sym,
    add,
    multiply,
    num,
    split_coefficient,
)
from costdb.expr.polynomials import affine_in, at, coefficients_in, expand, sum_below, terms_of
from costdb.records import dataclass, replace

_MAX_PROVED_SIZE = 150
_MAX_COMPARED = 16


@dataclass(frozen=True, slots=True)
class Range:
    """Inside a reduction its index lies in ``low..high``, which is then not empty."""

    index: str
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Facts:
    """Assumptions about names.

    Attributes
    ----------
    positive : frozenset of str
        Whole numbers that are at least 1.
    nonnegative : frozenset of str
        Real numbers that are at least 0.
    ranges : tuple of Range
        Indices of the enclosing reductions, the outermost first.
    """

    positive: frozenset[str] = frozenset()
    nonnegative: frozenset[str] = frozenset()
    ranges: tuple[Range, ...] = ()

    def inside(self, index: str, low: Expr, high: Expr) -> Facts:
        """Return the facts that hold for one step of a reduction."""
        return replace(self, ranges=(*self.ranges, Range(index, low, high)))

    @property
    def names(self) -> frozenset[str]:
        """Every name that something is known about."""
        found = self.positive | self.nonnegative
        for known in self.ranges:
            found |= {known.index} | free_symbols(known.low) | free_symbols(known.high)
        return found

    @property
    def whole(self) -> frozenset[str]:
        """Names that are certainly whole numbers."""
        return self.positive | {known.index for known in self.ranges}

    def proves_at_least(self, left: Expr, right: Expr) -> bool:
        """Tell whether ``left >= right`` is certain."""
        return _is_nonnegative(left - right, self)

    def largest(self, args: Iterable[Expr]) -> Expr:
        """Return the maximum of `args` without those that another one certainly covers."""
        return maximum(*self._undominated(list(args), 1))

    def smallest(self, args: Iterable[Expr]) -> Expr:
        """Return the minimum of `args` without those that another one certainly covers."""
        return minimum(*self._undominated(list(args), -1))

    def _undominated(self, args: list[Expr], sign: int) -> list[Expr]:
        if len(args) > _MAX_COMPARED:
            return args
        kept: list[Expr] = []
        for arg in args:
            if not any(self.proves_at_least(sign * other, sign * arg) for other in kept):
                kept = [o for o in kept if not self.proves_at_least(sign * arg, sign * o)] + [arg]
        return kept


@lru_cache(maxsize=4096)
def _is_nonnegative(expr: Expr, facts: Facts) -> bool:
    # the terms of one price ask the same of the same sizes over and over
    if isinstance(expr, Num):
        return expr.value >= 0
    if expr.size > _MAX_PROVED_SIZE:
        return False
    for number, known in reversed(list(enumerate(facts.ranges))):
        line = affine_in(expr, known.index) if known.index in free_symbols(expr) else None
        if line is not None:
            outside = replace(facts, ranges=facts.ranges[:number])
            if _is_nonnegative(line[0], outside):
                expr = at(expr, known.index, known.low)
            elif _is_nonnegative(-line[0], outside):
                expr = at(expr, known.index, known.high)
            else:
                return False
    # With N = 1 + n, whole numbers N >= 1 become n >= 0, and signs of coefficients decide.
    shift = {name: Sym(name) + 1 for name in facts.positive & free_symbols(expr)}
    ranges = facts.ranges
    if shift:
        ranges = tuple(
            Range(r.index, substitute(r.low, shift), substitute(r.high, shift)) for r in ranges
        )
    shifted = Facts(frozenset(), facts.nonnegative | facts.positive, ranges)
    return all(
        coefficient >= 0 and all(_is_term_nonnegative(factor, shifted) for factor in factors)
        for coefficient, factors in map(_parts, terms_of(expand(substitute(expr, shift))))
    )


def _parts(term: Expr) -> tuple[Rational, tuple[Expr, ...]]:
    if isinstance(term, Num):
        return term.value, ()
    coefficient, rest = split_coefficient(term)
    return coefficient, rest.factors if isinstance(rest, Mul) else (rest,)


def _is_term_nonnegative(factor: Expr, facts: Facts) -> bool:
    """Tell whether a factor that is no constant is certainly not negative."""

    def nonnegative(part: Expr) -> bool:
        return _is_nonnegative(part, facts)

    match factor:
        case Sym():
            if factor.name in facts.nonnegative:
                return True
            return any(r.index == factor.name and nonnegative(r.low) for r in facts.ranges)
        case Pow():
            return nonnegative(factor.base)
        case Max():
            return any(map(nonnegative, factor.args))
        case Extreme():
            return all(map(nonnegative, factor.args))
        case Conditional():
            return nonnegative(factor.then) and nonnegative(factor.orelse)
        case Reduction() if factor.index not in facts.names:
            return _is_nonnegative(factor.body, facts.inside(factor.index, factor.low, factor.high))
        case _:
            return False


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
    facts = Facts(frozenset(map(check_name, positive)), frozenset(map(check_name, nonnegative)))
    return _Simplifier(facts, {}).simplify(expr)


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
            case Division():
                quotient = expand(expr.dividend / expr.divisor)
                if not quotient.is_whole(facts.whole):
                    return expr
                return ZERO if isinstance(expr, Mod) else quotient
            case _:
                return expr

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
        if filled or not _may_fail(body):
            return total
        return conditional(less_equal(low, high), total, ZERO)


def _parted(term: Expr, index: str) -> tuple[Expr, Expr]:
    """Return the factors of a term that hold an index, and the others."""
    factors = (*term.factors, num(term.coefficient)) if isinstance(term, Mul) else (term,)
    inside = [factor for factor in factors if index in free_symbols(factor)]
    return multiply(inside), multiply([one for one in factors if index not in free_symbols(one)])


def _may_fail(expr: Expr) -> bool:
    """Tell whether a part could have no value, such as 1/N for N = 0.

    A sum does not evaluate its body over an empty range, so its closed form must not either.
    """
    partial = isinstance(expr, Division | Log2) or (
        isinstance(expr, Pow) and not (isinstance(expr.exponent, Num) and expr.exponent.value >= 0)
    )
    return partial or any(map(_may_fail, expr.children))


def _largest(body: Expr, index: str, facts: Facts) -> Expr | None:
    """Return the greatest value of a body over a range that is not empty; the `facts` know it.

    None where the body is no line whose slope has a known sign.
    """
    line, inner = affine_in(body, index), facts.ranges[-1]
    if line is None:
        return None
    if facts.proves_at_least(line[0], ZERO):
        return at(body, index, inner.high)
    return at(body, index, inner.low) if facts.proves_at_least(-line[0], ZERO) else None
