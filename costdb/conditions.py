"""What a condition says about how large its names can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from costdb.expr import Expr
from costdb.expr.functions import Conditional, Equal, Less, LessEqual
from costdb.expr.nodes import Mul, Num, Sym, split_coefficient


def greatest_values(condition: Expr) -> Mapping[str, int]:
    """Return the greatest whole value that each name can have where `condition` holds.

    All names are taken to be whole numbers of at least 1. Read are comparisons, joined by
    ``and``, of a product of names with a number, such as ``PX*PY == 64 and PX <= 8``; other
    parts bound nothing.
    """
    found: dict[str, int] = {}
    for part in _joined(condition):
        for names, limit in _limits(part):
            for name in names:
                found[name] = min(limit, found.get(name, limit))
    return found


def _joined(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Conditional) and condition.orelse == Num(0):
        yield from _joined(condition.test)
        yield from _joined(condition.then)
    else:
        yield condition


def _limits(part: Expr) -> Iterator[tuple[tuple[str, ...], int]]:
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
            yield names, int(Fraction(bound.value) / coefficient // 1)
