"""What the occupancy analysis needs to know about the form of an expression."""

from __future__ import annotations

from costdb.expr import Expr, free_symbols, num
from costdb.expr.functions import Extreme, Sum
from costdb.expr.nodes import (
    Add,
    CeilDiv,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Rational,
    Sym,
    is_reciprocal,
)

ZERO = num(0)
ONE = num(1)


def linear_in(expr: Expr, variable: str) -> tuple[Expr, Expr] | None:
    """Return ``(a, b)``, free of `variable`, with ``expr == a * variable + b``, if visible."""
    slope, rest = ZERO, ZERO
    terms = (*expr.terms, num(expr.constant)) if isinstance(expr, Add) else (expr,)
    for term in terms:
        if variable not in free_symbols(term):
            rest = rest + term
            continue
        factor = _slope(term, variable)
        if factor is None:
            return None
        slope = slope + factor
    return slope, rest


def _slope(term: Expr, variable: str) -> Expr | None:
    if isinstance(term, Sym):
        return ONE
    if not isinstance(term, Mul):
        return None
    slope = num(term.coefficient)
    found = False
    for factor in term.factors:
        if variable not in free_symbols(factor):
            slope = slope * factor
        elif isinstance(factor, Sym) and not found:
            found = True
        else:
            return None
    return slope


def constant_of(expr: Expr) -> Rational | None:
    """Return the value of a constant, else None."""
    return expr.value if isinstance(expr, Num) else None


def is_whole(expr: Expr) -> bool:
    """Tell whether `expr` is whole, given that sizes and loop variables are."""
    return expr.is_whole(free_symbols(expr))


def is_positive(expr: Expr) -> bool:
    """Tell whether `expr` is positive, given that sizes (bare symbols) are."""
    if isinstance(expr, Num):
        return expr.value > 0
    if isinstance(expr, Sym):
        return True
    if isinstance(expr, Mul):
        return expr.coefficient > 0 and all(isinstance(f, Sym) for f in expr.factors)
    return False


def divides_by_sizes_only(expr: Expr) -> bool:
    """Tell whether every divisor in `expr` is visibly positive."""
    if isinstance(expr, FloorDiv | CeilDiv | Mod):
        safe = is_positive(expr.divisor)
    elif isinstance(expr, Pow):
        safe = not is_reciprocal(expr) or is_positive(expr.base)
    else:
        safe = True
    return safe and all(map(divides_by_sizes_only, expr.children))


def is_monotone(expr: Expr, variable: str) -> bool:
    """Tell whether `expr` visibly only rises, or only falls, as `variable` grows."""
    if variable not in free_symbols(expr):
        return True
    if linear_in(expr, variable) is not None:
        return True
    if isinstance(expr, Sum):
        return expr.index not in free_symbols(expr.body) and grows_by_its_range(expr, variable)
    if isinstance(expr, FloorDiv | CeilDiv):
        fixed = variable not in free_symbols(expr.divisor)
        return fixed and is_monotone(expr.dividend, variable)
    if isinstance(expr, Add | Mul | Extreme):
        varying = [child for child in expr.children if variable in free_symbols(child)]
        return len(varying) == 1 and is_monotone(varying[0], variable)
    return False


def grows_by_its_range(expr: Expr, variable: str) -> bool:
    """Tell whether `variable` moves just one end, in one direction, of the range of a sum.

    Such a sum is monotone in `variable` when its summands all have one sign.
    """
    if not isinstance(expr, Sum) or expr.index == variable:
        return False
    if variable in free_symbols(expr.body):
        return False
    ends = [end for end in (expr.low, expr.high) if variable in free_symbols(end)]
    return len(ends) == 1 and is_monotone(ends[0], variable)
