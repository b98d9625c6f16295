"""What is known of the bounds of slices within loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.ir.dependence import slope_of
from advisor.ir.kernel import Kernel
from advisor.ir.signs import non_negative_within
from advisor.ir.statements import Loop
from costdb.expr import Expr, evaluate, free_symbols, num, substitute, sym
from costdb.expr.nodes import Num, Sym

ZERO = num(0)
_TRIED = 16
"""Values of an index that are tried one by one."""


@dataclass(slots=True)
class Proofs:
    """What holds wherever some loops are running.

    Attributes
    ----------
    minima : dict of str to int
        Least values of symbols; of any other symbol nothing is known.
    extents : frozenset of Expr
        Of arrays, none of which is negative.
    least, greatest : dict of str to Expr
        Values of the indices of the loops, outermost first.
    """

    minima: dict[str, int]
    extents: frozenset[Expr] = frozenset()
    least: dict[str, Expr] = field(default_factory=dict)
    greatest: dict[str, Expr] = field(default_factory=dict)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        lowest = self._lowest(expr)
        gaps = (lowest - extent for extent in (num(0), *self.extents))
        if any(isinstance(gap, Num) and gap.value >= 0 for gap in gaps):
            return True
        named = set(free_symbols(expr))
        for index in reversed(self.greatest):
            if index in named:
                named |= free_symbols(self.greatest[index])
        return named <= self.minima.keys() and non_negative_within(expr, self.minima, self.greatest)

    def _lowest(self, expr: Expr) -> Expr:
        """Return the least value of an expression over the loops, as far as it is affine."""
        for index in reversed(self.greatest):
            slope = slope_of(expr, index)
            if slope:
                end = self.least if slope > 0 else self.greatest
                expr = substitute(expr, {index: end[index]})
        return expr

    def empty_when_negative(self, start: Expr, stop: Expr, extent: Expr) -> bool:
        """Return whether ``start:stop`` selects nothing whenever `stop` is negative.

        A negative bound counts from the end, so it does only where the array is as short.
        """
        symbols = free_symbols(start) | free_symbols(stop) | free_symbols(extent)
        for index in symbols & self.greatest.keys():
            least, most = self.least[index], self.greatest[index]
            if not (isinstance(least, Num) and isinstance(most, Num)):
                return False
            values = range(int(least.value), int(most.value) + 1)[:_TRIED]
            tried = [{index: num(value)} for value in values]
            return most.value - least.value < _TRIED and all(
                self.empty_when_negative(*(substitute(e, one) for e in (start, stop, extent)))
                for one in tried
            )
        if len(symbols) != 1:
            return False
        (name,) = symbols
        if name not in free_symbols(stop):
            return isinstance(stop, Num) and stop.value >= 0
        if not isinstance(stop - sym(name), Num) or name not in self.minima:
            return False
        for size in range(self.minima[name], -int(evaluate(stop - sym(name), {}))):
            first, last, length = (int(evaluate(e, {name: size})) for e in (start, stop, extent))
            if range(*slice(first, last).indices(length)):
                return False
        return True


def proofs(kernel: Kernel, running: Sequence[Loop]) -> Proofs:
    """Return what is known within some loops of a kernel, outermost first."""
    minima = {
        extent.name: 0
        for array in kernel.arrays.values()
        for extent in array.extents
        if isinstance(extent, Sym)
    }
    extents = {e for name in (*kernel.arrays, *kernel.locals) for e in kernel.extents(name)}
    known = Proofs(minima, frozenset(extents))
    for loop in running:
        if loop.stated:
            # a pragma says how often it runs, not how far its index goes
            continue
        low = loop.low
        if isinstance(low, Num):
            minima[loop.variable] = int(low.value)
        elif known.non_negative(low):
            minima[loop.variable] = 0
        known.least[loop.variable], known.greatest[loop.variable] = low, loop.high - 1
    return known
