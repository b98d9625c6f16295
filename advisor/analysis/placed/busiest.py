"""How many indices of a range the rank has that has most of them.

A range with one end that a loop moves and one that it does not, as eliminations work on, is
counted from the fixed end. No remainder of the moving end is then needed, and sums over the loop
have closed forms.
"""

from __future__ import annotations

from advisor.analysis.sizes.facts import Bounds
from costdb.expr import (
    Expr,
    ceil_div,
    floor_div,
    free_symbols,
    maximum,
    minimum,
    num,
)

ZERO = num(0)
ONE = num(1)


def in_blocks(low: Expr, high: Expr, piece: Expr, bounds: Bounds) -> Expr:
    """Return the most indices of ``low <= i < high`` that lie in one of consecutive blocks.

    Parameters
    ----------
    low, high : Expr
    piece : Expr
        Length of a block, at least 1; the first begins at 0.
    bounds : Bounds
    """
    length = _length(low, high, bounds)
    if _moves(low, bounds) and not _moves(high, bounds):
        # the blocks that end below `high`, and what is left of `high` above the last of them
        last = floor_div(high, piece) * piece
        return minimum(piece, maximum(last - low, minimum(high - last, length)))
    if _moves(high, bounds) and low != ZERO and not _moves(low, bounds):
        first = ceil_div(low, piece) * piece
        return minimum(piece, maximum(high - first, minimum(first - low, length)))
    return largest_part(low, length, piece)


def dealt(low: Expr, high: Expr, piece: Expr, ranks: Expr, bounds: Bounds) -> Expr:
    """Return the most indices of ``low <= i < high`` that one of `ranks` owns in turn.

    Parameters
    ----------
    low, high : Expr
    piece : Expr
        Indices that are dealt at a time, at least 1.
    ranks : Expr
    bounds : Bounds
    """
    length = _length(low, high, bounds)
    if piece == ONE:
        return ceil_div(length, ranks)
    if _moves(low, bounds) and not _moves(high, bounds):
        return _from_end(length, (high - 1) % piece + 1, piece, ranks, bounds)
    if _moves(high, bounds) and not _moves(low, bounds):
        return _from_end(length, piece - low % piece, piece, ranks, bounds)
    return busiest(low, length, piece, ranks)


def largest_part(low: Expr, length: Expr, piece: Expr) -> Expr:
    """Return the most of `length` indices from `low` on that lie in one piece."""
    if low == ZERO:
        return minimum(length, piece)
    head = minimum(length, piece - low % piece)
    return maximum(head, minimum(piece, length - head))


def busiest(low: Expr, length: Expr, piece: Expr, ranks: Expr) -> Expr:
    """Return the most of `length` indices from `low` on that one of `ranks` owns in turn.

    Every rank owns one piece of each whole round; of what is left, a rank owns a piece, or
    what there is of one.
    """
    if piece == ONE:
        return ceil_div(length, ranks)
    around = piece * ranks
    return floor_div(length, around) * piece + largest_part(low, length % around, piece)


def _from_end(length: Expr, begun: Expr, piece: Expr, ranks: Expr, bounds: Bounds) -> Expr:
    """Count pieces dealt from the end of a range whose first piece has `begun` indices.

    With that piece taken for whole, its owner has a piece of each round and lacks what was
    not there; the owner of the next piece lacks nothing, but comes one piece later.
    """
    lacking = piece - begun
    around = piece * ranks
    place = length + lacking
    rounds, rest = floor_div(place, around) * piece, place % around
    first = minimum(rest, piece) - lacking
    second = minimum(maximum(rest - piece, 0), piece)
    most = rounds + maximum(first, second)
    # a single rank has no other after it
    return most if bounds.non_negative(ranks - 2) else minimum(length, most)


def _length(low: Expr, high: Expr, bounds: Bounds) -> Expr:
    length = high - low
    return length if bounds.non_negative(length) else maximum(0, length)


def _moves(expr: Expr, bounds: Bounds) -> bool:
    return not bounds.maxima.keys().isdisjoint(free_symbols(expr))
