"""Decisions for sizes that were not met before, without a price: what samples around them tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from advisor.selection.decisions import PREDICTED, prices_at
from advisor.selection.plans import Plan

CLEARLY = 1.1
"""Where one variant is faster by this factor at all samples, nothing between them is priced."""

MOST_SIZES = 4
"""With more, a cell has too many corners to be sampled."""

MOST_CELLS = 2000
"""Cells that are remembered, so that memory stays bounded."""


class Cells:
    """What samples tell of sizes of the same number of binary digits, each.

    What they tell follows from the sizes alone and not from those that came before, so that
    processes that never talk decide alike.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cells: dict[tuple[int, ...], int | None] = {}

    def taken(self, values: Sequence[int | float]) -> int | None:
        """Return the place of the variant that is clearly fastest, or None: prices must tell."""
        try:
            cell = tuple([value.bit_length() for value in values])  # type: ignore[union-attr]
        except AttributeError:  # not a whole number
            return None
        if min(values, default=0) <= 0:
            return None
        if cell not in self._cells:
            if len(self._cells) >= MOST_CELLS:
                self._cells.clear()
            self._cells[cell] = self._sampled(cell)
        return self._cells[cell]

    def _sampled(self, cell: tuple[int, ...]) -> int | None:
        """Return the variant that is clearly fastest at the corners of a cell and in its middle."""
        if len(cell) > MOST_SIZES:
            return None
        ends = [((1 << bits - 1), (1 << bits) - 1) for bits in cell]
        middle = tuple([(low + high) // 2 for low, high in ends])
        taken: int | None = None
        for values in dict.fromkeys((middle, *product(*ends))):
            prices = prices_at(self._plan, values)
            best, *others = sorted(prices.times_us) or [0.0]
            if prices.why != PREDICTED or (others and others[0] < best * CLEARLY):
                return None
            if taken not in (None, prices.variant):
                return None
            taken = prices.variant
        return taken
