"""What a condition says about the values that its names can have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from costdb.expr import Expr
from costdb.expr.functions import Conditional, Equal, Less, LessEqual
from costdb.expr.nodes import Mul, Num, Sym, split_coefficient

_LARGEST_FACTORED = 10**12


def possible_values(condition: Expr, most: int) -> Mapping[str, Sequence[int]]:
    """Return values outside which `condition` cannot hold, for each name that it bounds.

    All names are taken to be whole numbers of at least 1. Read are comparisons, joined by
    ``and``, of a product of names with a number, such as ``PX*PY == 64 and PX <= 8``: a name
    is at most the number, and divides it where the two are equal. Other parts bound nothing.
    Of a longer range only ``most + 1`` values are returned.
    """
    greatest: dict[str, int] = {}
    divided: dict[str, int] = {}
    for part in _joined(condition):
        for names, limit in _limits(part):
            for name in names:
                greatest[name] = min(math.floor(limit), greatest.get(name, math.floor(limit)))
                if isinstance(part, Equal) and limit.denominator == 1:
                    divided[name] = math.gcd(divided.get(name, 0), limit.numerator)
    return {
        name: [divisor for divisor in _divisors(divided[name]) if divisor <= limit]
        if 1 <= divided.get(name, 0) <= _LARGEST_FACTORED
        else range(1, min(limit, most + 1) + 1)
        for name, limit in greatest.items()
    }


def _joined(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Conditional) and condition.orelse == Num(0):
        yield from _joined(condition.test)
        yield from _joined(condition.then)
    else:
        yield condition


def _limits(part: Expr) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    if not isinstance(part, Equal | Less | LessEqual):
        return
    sides = [(part.left, part.right)]
    if isinstance(part, Equal):
        sides.append((part.right, part.left))
    for product, bound in sides:
        coefficient, rest = split_coefficient(product)
        factors = rest.factors if isinstance(rest, Mul) else (rest,)
        names = tuple(factor.name for factor in factors if isinstance(factor, Sym))
        if isinstance(bound, Num) and coefficient > 0 and len(names) == len(factors):
            yield names, Fraction(bound.value) / coefficient


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})
