"""Simplification: closed forms of reductions, and what the given facts decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from costdb.expr.closing import Closing, NotClosed, Span
from costdb.expr.facts import Facts
from costdb.expr.functions import (
    Conditional,
    Equal,
    Less,
    LessEqual,
    Max,
    Min,
    Reduction,
    Sum,
    conditional,
    less_equal,
    summation,
)
from costdb.expr.maxima import close_max
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
    Sym,
    add,
    ceil_div,
    floor_div,
    modulo,
    multiply,
)
from costdb.expr.numbers import ExprError
from costdb.expr.polynomials import at, expand, terms_of
from costdb.expr.sums import close_sum


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A reduction without enumeration, and where it is valid.

    Attributes
    ----------
    expr : Expr
        Equal to the reduction wherever `condition` holds and all names in its bounds, and
        beside its index in divisions, are whole numbers.
    condition : Expr
        Nonzero where `expr` is valid; the constant 1 where it always is.
    """

    expr: Expr
    condition: Expr


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
    Names in the bounds of reductions, and beside an index in a division or a remainder, are
    taken to be whole numbers. A closed form that is valid only under a condition is chosen by
    that condition, with the enumeration as the other choice.
    """
    return _simplified(expr, frozenset(positive), frozenset(nonnegative))


@lru_cache(maxsize=4096)
def _simplified(expr: Expr, positive: frozenset[str], nonnegative: frozenset[str]) -> Expr:
    # variants of one kernel share most of their sums
    return _Simplifier(_facts(positive, nonnegative), {}).simplify(expr)


def closed_form(
    expr: Expr, positive: Iterable[str] = (), nonnegative: Iterable[str] = ()
) -> ClosedForm | None:
    """Return the closed form of a reduction with its domain, or None if none is known.

    Raises
    ------
    ExprError
        If `expr` is not a reduction.
    """
    if not isinstance(expr, Reduction):
        raise ExprError("only a reduction has a closed form")
    inner = _Simplifier(_facts(positive, nonnegative), {})
    prepared = inner.prepare(expr)
    if not isinstance(prepared, Reduction):
        return ClosedForm(prepared, ONE)
    try:
        return inner.close(prepared)
    except (NotClosed, ExprError):
        return None


def _facts(positive: Iterable[str], nonnegative: Iterable[str]) -> Facts:
    return Facts(frozenset(map(check_name, positive)), frozenset(map(check_name, nonnegative)))


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
            prepared = self.prepare(expr)
            return self.reduction(prepared) if isinstance(prepared, Reduction) else prepared
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

    def prepare(self, expr: Reduction) -> Expr:
        """Simplify bounds and body, the body knowing its index, under a name of its own."""
        low, high = self.simplify(expr.low), self.simplify(expr.high)
        index, body = expr.index, expr.body
        taken = self.facts.names | free_symbols(low) | free_symbols(high)
        if index in taken:
            index = fresh_name(index, taken | free_symbols(body))
            body = at(body, expr.index, Sym(index))
        inside = _Simplifier(self.facts.inside(index, low, high), {})
        body = inside.simplify(body)
        return type(expr)(index, low, high, ZERO).rebuild((low, high, body))

    def close(self, expr: Reduction) -> ClosedForm:
        """Return the closed form of a prepared reduction, or raise `NotClosed`."""
        span = Span(expr.index, expr.low, expr.high)
        if isinstance(expr, Sum):
            closing = Closing(self.facts)
            total = close_sum(span, expr.body, closing)
            # What the conditions let it assume is only true under them.
            return ClosedForm(_Simplifier(closing.facts, {}).simplify(total), closing.condition())
        largest = close_max(span, expr.body, self.facts)
        if not self.facts.proves_at_least(expr.high, expr.low):
            largest = conditional(less_equal(expr.low, expr.high), largest, ZERO)
        return ClosedForm(self.simplify(largest), ONE)

    def reduction(self, expr: Reduction) -> Expr:
        try:
            closed = self.close(expr)
        except (NotClosed, ExprError):
            # An ExprError here: the closed form exists and is too large to write down.
            return self.by_terms(expr) if isinstance(expr, Sum) else expr
        if closed.condition == ONE:
            return closed.expr
        return conditional(closed.condition, closed.expr, expr)

    def by_terms(self, expr: Sum) -> Expr:
        """Close those terms of a sum that can be, and take constant factors out of the rest."""
        terms = terms_of(expand(expr.body))
        if len(terms) > 1:
            parts = [summation(expr.index, expr.low, expr.high, term) for term in terms]
            return add([self.reduction(part) if isinstance(part, Sum) else part for part in parts])
        term = terms[0]
        factors = (*term.factors, Num(term.coefficient)) if isinstance(term, Mul) else (term,)
        outside = [f for f in factors if expr.index not in free_symbols(f)]
        inside = [f for f in factors if expr.index in free_symbols(f)]
        return multiply([*outside, Sum(expr.index, expr.low, expr.high, multiply(inside))])
