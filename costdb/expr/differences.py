"""The exact difference of two prices at many sizes: amounts in whole numbers, coefficients at last.

Two prices that are equal, or nearly so, have to be told apart exactly. Evaluated as they are
written, nearly every step of a price is a product of fractions; taken apart, amounts follow from
sizes alone in whole numbers, and there is a product of fractions for each coefficient of which one
price has more than the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational
from costdb.expr.names import free_symbols
from costdb.expr.nodes import Expr
from costdb.expr.products import Factors, Names, by_products
from costdb.expr.scalar import compile_exactly
from costdb.expr.whole_sums import stay_exact

Difference = Callable[[int], Rational | None]
"""From a value of the variable; None where that has to be evaluated as it is written."""


def difference_along(
    one: Expr, other: Expr, variable: str, values: Mapping[str, Rational]
) -> Difference | None:
    """Return a function for ``one - other``, compiled when it is first asked.

    Parameters
    ----------
    one, other : Expr
    variable : str
        What varies, over whole numbers.
    values : mapping of str to int or Fraction
        Of all other symbols.

    Returns
    -------
    callable or None
        None where the formulas are not made of such products, or hold what has no exact value.
    """
    factors = frozenset(name for name, value in values.items() if not isinstance(value, int))
    factors -= {variable}
    parts = by_products(one, factors), by_products(other, factors)
    if parts[0] is None or parts[1] is None:
        return None
    if not all(stay_exact(part.values()) for part in parts if part is not None):
        return None
    left, right = _Amounts(parts[0], variable, values), _Amounts(parts[1], variable, values)

    def difference(value: int) -> Rational | None:
        try:
            more, less = left.at(value), right.at(value)
        except ExprError:
            # which the choices within may keep from mattering
            return None
        if more is None or less is None:
            return None
        total: Rational = 0
        for names in dict.fromkeys((*more, *less)):
            amount = more.get(names, 0) - less.get(names, 0)
            if amount:
                for name in names:
                    amount *= values[name]
                total += amount
        return total

    return difference


class _Amounts:
    """What every product of factors is multiplied by, at sizes of which one varies."""

    def __init__(self, parts: Factors, variable: str, values: Mapping[str, Rational]) -> None:
        self.names: tuple[Names, ...] = tuple(parts)
        self.amounts = tuple(parts.values())
        self.used = tuple(sorted(frozenset().union(*map(free_symbols, self.amounts))))
        self.given = [values.get(name, 0) for name in self.used]
        self.place = self.used.index(variable) if variable in self.used else None

    def at(self, value: int) -> dict[Names, Rational] | None:
        """Return the amounts; None where one of them is a float.

        Raises
        ------
        ExprError
            One of them has no value.
        """
        if self.place is not None:
            self.given[self.place] = value
        found = compile_exactly(self.amounts, self.used)(*self.given)
        amounts = [one for one in found if not isinstance(one, float)]
        if len(amounts) < len(found):
            return None
        return dict(zip(self.names, amounts, strict=True))
