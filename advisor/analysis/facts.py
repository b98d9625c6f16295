"""What is known of sizes while a kernel is lowered: bounds of symbols, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from advisor.ir.signs import Sign, known_non_negative, sign
from costdb.expr import Expr, free_symbols, substitute, sym


class NotPriced(Exception):
    """Something understood that no rule lowers to work yet, with the reason."""


@dataclass(slots=True)
class Facts:
    """Bounds of symbols; every size is at least 1 unless something else is said.

    Attributes
    ----------
    minima : dict of str to int
        Least values of symbols, where they are not 1.
    maxima : dict of str to Expr
        Greatest values of the indices of the loops around, outermost first.
    """

    minima: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, Expr] = field(default_factory=dict)

    @contextmanager
    def within(self, index: str, least: int, greatest: Expr) -> Iterator[None]:
        """Know the bounds of a loop's index for as long as its body is looked at."""
        before = self.minima.get(index)
        self.minima[index] = least
        self.maxima[index] = greatest
        try:
            yield
        finally:
            del self.maxima[index]
            if before is None:
                del self.minima[index]
            else:
                self.minima[index] = before

    def sign(self, expr: Expr) -> Sign:
        """Return the sign of an expression, as far as it is known."""
        return sign(expr, self.minima)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        minima = dict(self.minima)
        if known_non_negative(expr, minima):
            return True
        for index in reversed(self.maxima):
            if index in free_symbols(expr):
                # counted down from its greatest value, which the symbol then stands for
                expr = substitute(expr, {index: self.maxima[index] - sym(index)})
                minima[index] = 0
                if known_non_negative(expr, minima):
                    return True
        return False

    def ascending(self, values: Iterable[Expr]) -> tuple[Expr, ...] | None:
        """Return values in ascending order, None where their order is not known."""
        ordered: list[Expr] = []
        for value in values:
            place = len(ordered)
            while place and not self.non_negative(value - ordered[place - 1]):
                if not self.non_negative(ordered[place - 1] - value):
                    return None
                place -= 1
            ordered.insert(place, value)
        return tuple(ordered)
