"""Decisions for sizes that were not met before, without a price: what polynomials tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.selection.formulas import Formulas
from costdb.envelope.least import ELSEWHERE, Least, least_in
from costdb.envelope.region import NotBounded
from costdb.expr import ExprError

UNDECIDED = -1
"""The formulas themselves must tell."""

FIRST_MET = 3
"""Sizes of one cell that are priced in full before polynomials are made for it."""

MOST_PIECES = 8
"""Polynomials made for one cell: the formulas choose otherwise in each."""

_FAILURE = 4
"""Pieces as which one that could not be made counts."""

MOST_CELLS = 2000
"""Cells that are remembered, so that memory stays bounded."""


@dataclass(slots=True)
class Cell:
    """Sizes of the same number of binary digits, each.

    Attributes
    ----------
    met : int
        Sizes that were priced in full.
    pieces : list of function
        From sizes to the formula that is the least, each for a part of the cell.
    tried : int
        Pieces that were made, or could not be.
    """

    met: int = 0
    pieces: list[Least] = field(default_factory=list)
    tried: int = 0


class Cells:
    """What has been made of the formulas for the sizes that came."""

    def __init__(self, formulas: Formulas, tie: float) -> None:
        self._formulas = formulas
        self._tie = tie
        self._cells: dict[tuple[int, ...], Cell] = {}

    def taken(self, values: Sequence[int | float]) -> int:
        """Return the place of the formula that is certainly taken, or `UNDECIDED`."""
        try:
            cell = self._cells.get(tuple([value.bit_length() for value in values]))  # type: ignore[union-attr]
        except AttributeError:  # not a whole number
            return UNDECIDED
        if cell is not None and min(values) > 0:
            for piece in cell.pieces:
                found = piece(*values)
                if found != ELSEWHERE:
                    return found
        return UNDECIDED

    def met(self, values: Sequence[int | float]) -> None:
        """Learn from sizes that were priced in full, and within the calibrated range."""
        sizes = [value for value in values if type(value) is int and value > 0]
        if len(sizes) < len(values) or len(self._cells) >= MOST_CELLS:
            return
        cell = self._cells.setdefault(tuple([value.bit_length() for value in sizes]), Cell())
        cell.met += 1
        if cell.met < FIRST_MET or cell.tried >= MOST_PIECES or self._told(cell, sizes):
            return
        piece = self._piece(sizes)
        cell.tried += _FAILURE if piece is None else 1
        if piece is not None:
            cell.pieces = [*cell.pieces, piece]

    def _told(self, cell: Cell, sizes: Sequence[int]) -> bool:
        return any(piece(*sizes) != ELSEWHERE for piece in cell.pieces)

    def _piece(self, sizes: Sequence[int]) -> Least | None:
        names = self._formulas.names
        box = {
            name: (1 << size.bit_length() - 1, (1 << size.bit_length()) - 1)
            for name, size in zip(names, sizes, strict=True)
        }
        point = dict(zip(names, sizes, strict=True))
        times = [formula.time for formula in self._formulas.formulas]
        ranges = [
            (known.amount, known.low, known.high)
            for formula in self._formulas.formulas
            for known in formula.ranges
        ]
        try:
            return least_in(times, ranges, names, point, box, self._tie)
        except (NotBounded, ExprError):
            return None
