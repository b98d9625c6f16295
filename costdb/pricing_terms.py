"""Named parts and calibrated ranges of a process, put together as the process is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import TypeAlias

from costdb.estimate import Domain, Term
from costdb.expr import (
    Expr,
    conditional,
    free_symbols,
    less_equal,
    logical_not,
    maximum,
    maximum_over,
    minimum,
    num,
    simplify,
    substitute,
    summation,
    sym,
)
from costdb.expr.functions import Sum
from costdb.expr.nodes import Add, Mul, add
from costdb.expr.polynomials import coefficients_in, is_polynomial_in, sum_below

SYMBOLIC = "symbolic"
ZERO = num(0)

Over: TypeAlias = Callable[[str, Expr, Expr, Expr], Expr]
"""What becomes of a formula over a loop: of its index, its ends and the formula."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Terms, at most one for each label and model, and the ranges that their use relies on."""

    terms: tuple[Term, ...] = ()
    domains: tuple[Domain, ...] = ()

    @classmethod
    def stated(cls, label: str, microseconds: Expr) -> Parts:
        """Return the part for time that a process states itself."""
        return cls() if microseconds == num(0) else cls((Term(label, SYMBOLIC, microseconds),))


def of_sequence(parts: Iterable[Parts]) -> Parts:
    """Return parts one after the other: terms add up."""
    return _merged(parts, add)


def of_parallel(parts: Iterable[Parts]) -> Parts:
    """Return parts side by side: of each term, the longest counts."""
    return _merged(parts, lambda exprs: maximum(*exprs))


def of_loop(variable: str, low: Expr, high: Expr, body: Parts, over: Over) -> Parts:
    """Return a body for each `variable` in ``low..high``, each term put together by `over`.

    Calibrated ranges are asked for at both ends of the loop, and not at all where it is empty.
    """
    runs = less_equal(low, high)
    at_ends = (
        replace(domain, quantity=substitute(domain.quantity, {variable: end}))
        for domain in body.domains
        for end in (low, high)
    )
    return Parts(
        tuple(
            replace(term, microseconds=over(variable, low, high, term.microseconds))
            for term in body.terms
        ),
        tuple(dict.fromkeys(_only_if(runs, domain) for domain in at_ends)),
    )


def weighted(condition: Expr, body: Parts) -> Parts:
    """Return a body that happens with some probability, or under a condition."""
    return Parts(
        tuple(
            replace(term, microseconds=when(condition, term.microseconds)) for term in body.terms
        ),
        tuple(_only_if(condition, domain) for domain in body.domains),
    )


def total_over(variable: str, low: Expr, high: Expr, expr: Expr) -> Expr:
    """Return the sum of `expr` over ``low..high``, in closed form where one is known."""
    if variable not in free_symbols(expr):
        return maximum(0, high - low + 1) * expr
    turned, rest = turned_over(variable, low, high, expr)
    if turned != ZERO:
        return turned + total_over(variable, low, high, rest)
    return simplify(summation(variable, low, high, expr))


def added_over(variable: str, low: Expr, high: Expr, expr: Expr) -> Expr:
    """Return the sum of `expr` over ``low..high``, in closed form where that is seen at once."""
    if variable not in free_symbols(expr):
        return maximum(0, high - low + 1) * expr
    turned, rest = turned_over(variable, low, high, expr)
    if turned != ZERO:
        return turned + added_over(variable, low, high, rest)
    # expanding what is no polynomial takes longer than all else that is done to it
    coefficients = coefficients_in(expr, variable) if is_polynomial_in(expr, variable) else None
    if coefficients is None:
        return summation(variable, low, high, expr)
    return sum_below(coefficients, maximum(high + 1, low)) - sum_below(coefficients, low)


def turned_over(variable: str, low: Expr, high: Expr, expr: Expr) -> tuple[Expr, Expr]:
    """Return the sums of an expression's inner sums over triangles, and what is left of it.

    An inner sum whose terms do not depend on the outer index, but one of whose ends moves with
    it, has each of its terms as often as there are outer indices that reach it: one sum instead
    of two, one within the other.
    """
    turned, rest = ZERO, ZERO
    for term in (*expr.terms, num(expr.constant)) if isinstance(expr, Add) else (expr,):
        factors = term.factors if isinstance(term, Mul) else (term,)
        sums = [factor for factor in factors if isinstance(factor, Sum)]
        one = _turned(variable, low, high, sums[0]) if len(sums) == 1 else None
        others = term.coefficient if isinstance(term, Mul) else 1
        scale = num(others) * prod(factor for factor in factors if factor not in sums)
        if one is None or variable in free_symbols(scale):
            rest = rest + term
        else:
            turned = turned + scale * one
    return turned, rest


def _turned(variable: str, low: Expr, high: Expr, inner: Sum) -> Expr | None:
    """Return a sum over ``low..high`` of an inner sum as one sum; None where it is no triangle."""
    outer, place = sym(variable), sym(inner.index)
    around = free_symbols(low) | free_symbols(high)
    if variable in free_symbols(inner.body) or inner.index in around:
        return None
    if variable not in free_symbols(inner.high):
        lag = inner.low - outer
        times = minimum(high, place - lag) - low + 1
        first, last = low + lag, inner.high
    elif variable not in free_symbols(inner.low):
        lag = inner.high - outer
        times = high - maximum(low, place - lag) + 1
        first, last = inner.low, high + lag
    else:
        return None
    if variable in free_symbols(lag) or inner.index in free_symbols(lag):
        return None
    return summation(inner.index, first, last, maximum(0, times) * inner.body)


def longest_over(variable: str, low: Expr, high: Expr, expr: Expr) -> Expr:
    """Return the largest `expr` over ``low..high``, 0 where that is empty."""
    if variable not in free_symbols(expr):
        return conditional(less_equal(low, high), expr, 0)
    return simplify(maximum_over(variable, low, high, expr))


def when(condition: Expr, expr: Expr) -> Expr:
    """Return `expr` weighed by a probability, or chosen by a comparison.

    What a comparison does not choose need not have a value.
    """
    return conditional(condition, expr, 0) if condition.is_whole() else condition * expr


def opposite(condition: Expr) -> Expr:
    """Return the probability that `condition` is not so."""
    return logical_not(condition) if condition.is_whole() else num(1) - condition


def _merged(parts: Iterable[Parts], together: Callable[[Sequence[Expr]], Expr]) -> Parts:
    terms: dict[tuple[str, str], list[Expr]] = {}
    domains: dict[Domain, None] = {}
    for part in parts:
        for term in part.terms:
            terms.setdefault((term.label, term.model), []).append(term.microseconds)
        domains.update(dict.fromkeys(part.domains))
    return Parts(
        tuple(
            Term(label, model, exprs[0] if len(exprs) == 1 else together(exprs))
            for (label, model), exprs in terms.items()
        ),
        tuple(domains),
    )


def _only_if(test: Expr, domain: Domain) -> Domain:
    # What does not happen is in range, which any value inside says.
    inside = next((end for end in (domain.low, domain.high) if isfinite(end)), 0.0)
    return replace(domain, quantity=conditional(test, domain.quantity, num(inside)))
