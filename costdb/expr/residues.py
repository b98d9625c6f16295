"""Bodies whose divisions are by constants, one residue of their common period at a time."""

from __future__ import annotations

from collections.abc import Iterator

from costdb.expr.closing import NotClosed
from costdb.expr.names import free_symbols
from costdb.expr.nodes import (
    Division,
    Expr,
    FloorDiv,
    Mod,
    Num,
    Sym,
    ceil_div,
    floor_div,
    modulo,
)
from costdb.expr.polynomials import affine_in

MAX_RESIDUES = 16
"""Longest constant period that is taken apart residue by residue."""


def common_period(body: Expr, index: str) -> int:
    """Return how often the divisions in `body` repeat.

    Raises
    ------
    NotClosed
        For divisions that are not by constants, or a period above `MAX_RESIDUES`.
    """
    period = 1
    for atom in _divisions(body, index):
        period = _common_period(period, atom, index)
    return period


def _divisions(expr: Expr, index: str) -> Iterator[Division]:
    if isinstance(expr, Division) and index in free_symbols(expr):
        yield expr
        return
    for child in expr.children:
        yield from _divisions(child, index)


def _common_period(period: int, atom: Division, index: str) -> int:
    divisor = atom.divisor
    line = affine_in(atom.dividend, index)
    if line is None or not isinstance(divisor, Num) or not isinstance(line[0], Num):
        raise NotClosed
    # The smallest p with slope*p/divisor whole.
    ratio = line[0] / divisor
    denominator = ratio.value.denominator if isinstance(ratio, Num) else 1
    common = period
    while common % denominator:
        common += period
        if common > MAX_RESIDUES:
            raise NotClosed
    return common


def by_residue(expr: Expr, step: str) -> Expr:
    """Take the whole multiples that `step` makes out of the divisions in `expr`."""
    if step not in free_symbols(expr):
        return expr
    if isinstance(expr, Division):
        line = affine_in(expr.dividend, step)
        if line is None:
            raise NotClosed
        times = line[0] / expr.divisor
        if not times.is_whole():
            raise NotClosed
        if isinstance(expr, Mod):
            return modulo(line[1], expr.divisor)
        rounded = floor_div if isinstance(expr, FloorDiv) else ceil_div
        return times * Sym(step) + rounded(line[1], expr.divisor)
    if isinstance(expr, Sym | Num):
        return expr
    return expr.rebuild(tuple([by_residue(child, step) for child in expr.children]))
