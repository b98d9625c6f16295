"""Proofs about sizes and indices, for rewrites that must hold whatever the caller passes.

Prices may assume that sizes are at least 1. Rewrites may not: the extents of arrays are at least
0, and of any other whole number nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.ir.kernel import Kernel
from advisor.ir.signs import known_non_negative
from advisor.ir.statements import Loop
from costdb.expr import Expr, evaluate, free_symbols, substitute, sym
from costdb.expr.nodes import Num, Sym


@dataclass(slots=True)
class Proofs:
    """What holds wherever some loops are running.

    Attributes
    ----------
    minima : dict of str to int
        Least values of symbols; of any other symbol nothing is known.
    greatest : dict of str to Expr
        Greatest values of the indices of the loops, outermost first.
    """

    minima: dict[str, int]
    greatest: dict[str, Expr] = field(default_factory=dict)

    def non_negative(self, expr: Expr) -> bool:
        """Return whether an expression is surely at least 0."""
        minima = dict(self.minima)
        if not free_symbols(expr) <= minima.keys():
            return False
        if known_non_negative(expr, minima):
            return True
        for index in reversed(self.greatest):
            if index in free_symbols(expr):
                # counted down from its greatest value, which the symbol then stands for
                expr = substitute(expr, {index: self.greatest[index] - sym(index)})
                minima[index] = 0
                if not free_symbols(expr) <= minima.keys():
                    return False
                if known_non_negative(expr, minima):
                    return True
        return False

    def empty_when_negative(self, start: Expr, stop: Expr, extent: Expr) -> bool:
        """Return whether ``start:stop`` selects nothing whenever `stop` is negative.

        A negative bound counts from the end, so it does only where the array is as short.
        """
        symbols = free_symbols(start) | free_symbols(stop) | free_symbols(extent)
        if len(symbols) != 1 or symbols & self.greatest.keys():
            return False
        (name,) = symbols
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
    known = Proofs(minima)
    for loop in running:
        if loop.stated:
            # a pragma says how often it runs, not how far its index goes
            continue
        low = loop.low
        if isinstance(low, Num):
            minima[loop.variable] = int(low.value)
        elif known.non_negative(low):
            minima[loop.variable] = 0
        known.greatest[loop.variable] = loop.high - 1
    return known
