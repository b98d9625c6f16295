"""Polynomials within expressions: expanding, reading coefficients, summing powers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeAlias

from costdb.expr.functions import (
    Conditional,
    Extreme,
    Gcd,
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
    ONE,
    ZERO,
    Add,
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
    exact,
    multiply,
    num,
    split_coefficient,
)
from costdb.records import dataclass, replace

MAX_TERMS = 400
"""Terms of an expanded polynomial; larger ones are left in factors."""

MAX_DEGREE = 12
"""Highest power whose sums are closed."""


def terms_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the terms of a sum, its constant among them."""
    if isinstance(expr, Add):
        return (*expr.terms, Num(expr.constant)) if expr.constant else expr.terms
    return (expr,)


def expand(expr: Expr) -> Expr:
    """Multiply out products and whole powers of sums, as far as `MAX_TERMS` allows."""
    if isinstance(expr, Add):
        return add([expand(term) for term in terms_of(expr)])
    if isinstance(expr, Pow):
        count = _whole_exponent(expr)
        base = expand(expr.base)
        if count is None or not isinstance(base, Add):
            return expr
        if len(terms_of(base)) ** count > MAX_TERMS:
            return expr
        product = _expand_product([base] * count)
        return expr if product is None else product
    if isinstance(expr, Mul):
        product = _expand_product([expand(factor) for factor in expr.factors])
        return (
            expr
            if product is None
            else add([Num(expr.coefficient) * term for term in terms_of(product)])
        )
    return expr


def _expand_product(factors: list[Expr]) -> Expr | None:
    terms: list[Expr] = [ONE]
    for factor in factors:
        parts = terms_of(factor)
        if len(terms) * len(parts) > MAX_TERMS:
            return None
        terms = list(terms_of(add([left * right for left in terms for right in parts])))
    return add(terms)


def _whole_exponent(expr: Pow) -> int | None:
    if isinstance(expr.exponent, Num) and isinstance(expr.exponent.value, int):
        return expr.exponent.value if 0 < expr.exponent.value <= MAX_DEGREE else None
    return None


def is_polynomial_in(expr: Expr, name: str) -> bool:
    """Return whether `name` occurs only in sums, products and whole powers; nothing is expanded."""
    if name not in free_symbols(expr) or isinstance(expr, Sym):
        return True
    if isinstance(expr, Pow):
        return _whole_exponent(expr) is not None and is_polynomial_in(expr.base, name)
    return isinstance(expr, Add | Mul) and all(is_polynomial_in(p, name) for p in expr.children)


def coefficients_in(expr: Expr, name: str) -> tuple[Expr, ...] | None:
    """Return ``(c0, c1, ...)`` with ``expr == c0 + c1*name + ...``, or None if not such."""
    by_degree: dict[int, list[Expr]] = {0: []}
    for term in terms_of(expand(expr)):
        split = _split_power(term, name)
        if split is None or split[0] > MAX_DEGREE:
            return None
        by_degree.setdefault(split[0], []).append(split[1])
    top = max(by_degree)
    found = [add(by_degree.get(degree, [])) for degree in range(top + 1)]
    while len(found) > 1 and found[-1] == ZERO:
        found.pop()
    return tuple(found)


def _split_power(term: Expr, name: str) -> tuple[int, Expr] | None:
    if name not in free_symbols(term):
        return 0, term
    degree = 0
    rest: list[Expr] = []
    if isinstance(term, Mul):
        rest.append(Num(term.coefficient))
    for factor in term.factors if isinstance(term, Mul) else (term,):
        base, count = factor, 1
        if isinstance(factor, Pow):
            base, count = factor.base, _whole_exponent(factor) or 0
        if base == Sym(name) and count:
            degree += count
        elif name in free_symbols(factor):
            return None
        else:
            rest.append(factor)
    return degree, multiply(rest)


def affine_in(expr: Expr, name: str) -> tuple[Expr, Expr] | None:
    """Return ``(slope, rest)`` with ``expr == slope*name + rest``, or None if not such."""
    found = coefficients_in(expr, name)
    if found is None or len(found) > 2:
        return None
    return (found[1] if len(found) == 2 else ZERO), found[0]


@cache
def power_sum_coefficients(degree: int) -> tuple[Rational, ...]:
    """Return the polynomial in n that is ``sum(i**degree for i in 0..n-1)``, by degree.

    From Bernoulli numbers (Faulhaber's formula); ``0**0`` counts as 1. As a polynomial it
    telescopes over negative n too.
    """
    found: list[Rational] = [0] * (degree + 2)
    for k in range(degree + 1):
        weight = Fraction(math.comb(degree + 1, k), degree + 1) * _bernoulli(k)
        found[degree + 1 - k] = exact(weight)
    return tuple(found)


@cache
def _bernoulli(n: int) -> Fraction:
    if n == 0:
        return Fraction(1)
    total = sum((math.comb(n + 1, k) * _bernoulli(k) for k in range(n)), Fraction(0))
    return -total / (n + 1)


def sum_below(coefficients: tuple[Expr, ...], bound: Expr) -> Expr:
    """Return the sum over ``i < bound`` of a polynomial in i, counted from i = 0.

    Differences of two such sums are sums over the range between, wherever it lies.
    """
    total: list[Expr] = []
    for degree, coefficient in enumerate(coefficients):
        for power, weight in enumerate(power_sum_coefficients(degree)):
            if weight:
                total.append(coefficient * Num(weight) * bound**power)
    return expand(add(total))


@lru_cache(maxsize=4096)
def closed_sum(expr: Sum) -> Expr | None:
    """Return a sum without its loop; None where its body is no polynomial in its index."""
    if not is_polynomial_in(expr.body, expr.index):
        return None
    coefficients = coefficients_in(expr.body, expr.index)
    if coefficients is None:
        return None
    total = sum_below(coefficients, expr.high + 1) - sum_below(coefficients, expr.low)
    return conditional(less_equal(expr.low, expr.high), total, ZERO)


def at(expr: Expr, name: str, value: Expr) -> Expr:
    """Return `expr` with `value` for `name`."""
    return substitute(expr, {name: value})


# Formulas as sums of products of some of their symbols, each with a factor of its own.

MOST_PRODUCTS = 2_000
"""Products that a formula is taken apart into at most."""

Names: TypeAlias = tuple[str, ...]
Factors: TypeAlias = dict[Names, Expr]


def by_products(expr: Expr, symbols: frozenset[str]) -> Factors | None:
    """Return the factor of every product of `symbols` in a formula; the number has no symbol.

    None where a symbol stands elsewhere than in sums, products, sides of choices and what is summed
    over a range, occurs twice in a product, or where there are too many products.
    """
    used = free_symbols(expr) & symbols
    # sums share most of their terms with others, whatever symbols those have besides
    return _by_products(expr, used) if used else {(): expr}


@lru_cache(maxsize=4096)
def _by_products(expr: Expr, symbols: frozenset[str]) -> Factors | None:
    match expr:
        case Sym():
            return {(expr.name,): ONE}
        case Add():
            total: dict[Names, list[Expr]] = {(): [Num(expr.constant)]}
            for term in expr.terms:
                part = by_products(term, symbols)
                if part is None:
                    return None
                for names, factor in part.items():
                    total.setdefault(names, []).append(factor)
            return _few({names: add(factors) for names, factors in total.items()})
        case Mul():
            product: Factors | None = {(): Num(expr.coefficient)}
            for factor in expr.factors:
                product = _multiplied(product, by_products(factor, symbols))
            return product
        case Conditional() if free_symbols(expr.test).isdisjoint(symbols):
            then, orelse = by_products(expr.then, symbols), by_products(expr.orelse, symbols)
            if then is None or orelse is None:
                return None
            return _few(
                {
                    names: conditional(expr.test, then.get(names, ZERO), orelse.get(names, ZERO))
                    for names in dict.fromkeys((*then, *orelse))
                }
            )
        case Sum() if symbols.isdisjoint(
            {expr.index} | free_symbols(expr.low) | free_symbols(expr.high)
        ):
            body = by_products(expr.body, symbols)
            if body is None:
                return None
            return {
                names: summation(expr.index, expr.low, expr.high, factor)
                for names, factor in body.items()
            }
        case _:
            return None


def _multiplied(left: Factors | None, right: Factors | None) -> Factors | None:
    if left is None or right is None or len(left) * len(right) > MOST_PRODUCTS:
        return None
    total: dict[Names, list[Expr]] = {}
    for names, factor in left.items():
        for others, other in right.items():
            together = tuple(sorted((*names, *others)))
            if len(set(together)) < len(together):
                return None
            total.setdefault(together, []).append(factor * other)
    return {names: add(factors) for names, factors in total.items()}


def _few(factors: Factors) -> Factors | None:
    kept = {names: factor for names, factor in factors.items() if not names or factor != ZERO}
    return kept if len(kept) <= MOST_PRODUCTS else None


# --- simplify -------------------------------------------------------------------------------------
# Simplification: closed forms of reductions, and what is known of the names decides.
#
# Sizes are whole numbers of at least 1, and inside a reduction its index lies in its range. With
# ``N = 1 + n`` a polynomial whose coefficients are then all of one sign has that sign. Proofs are
# one-sided: True is certain, False means not proved.


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
        case Gcd():
            return True
        case Mod():
            return nonnegative(factor.divisor)
        case Division():
            return nonnegative(factor.dividend) and nonnegative(factor.divisor)
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
