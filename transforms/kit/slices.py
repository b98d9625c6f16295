"""What is known of the bounds of slices within loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.ir.kernel import Kernel
from advisor.ir.signs import non_negative_within
from advisor.ir.statements import Loop
from costdb.expr import Expr, evaluate, free_symbols, num, sym
from costdb.expr.nodes import Num, Sym
from costdb.wording import IDENTIFIER

ZERO = num(0)
_NAME = re.compile(IDENTIFIER)


# --- what is known within loops -----------------------------------------------------------------


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
        named = set(free_symbols(expr))
        for index in reversed(self.greatest):
            if index in named:
                named |= free_symbols(self.greatest[index])
        return named <= self.minima.keys() and non_negative_within(expr, self.minima, self.greatest)

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
