"""How many steps the textbook algorithms of collectives take on their longest path."""

from __future__ import annotations

from costdb.expr import Expr, ceil, conditional, floor, less, log2, maximum, num
from costdb.work import CollectiveKind, Region


def doubling_steps(ranks: Expr) -> Expr:
    """Return the steps of an algorithm that doubles distances: ``ceil(log2 p)``."""
    return ceil(log2(ranks))


def allreduce_steps(ranks: Expr) -> tuple[Expr, Expr]:
    """Return the steps of recursive doubling that send, and those that combine.

    One step more before and after where the number of ranks is no power of two.
    """
    doubling = floor(log2(ranks))
    odd = conditional(less(doubling, log2(ranks)), 1, 0)
    return doubling + 2 * odd, doubling + odd


def collective_steps(kind: CollectiveKind, ranks: Expr) -> Expr:
    """Return the messages on the longest path of a collective."""
    match kind:
        case (
            CollectiveKind.BROADCAST
            | CollectiveKind.REDUCE
            | CollectiveKind.REDUCE_SCATTER
            | CollectiveKind.PREFIX
        ):
            return doubling_steps(ranks)
        case CollectiveKind.ALLREDUCE:
            return allreduce_steps(ranks)[0]
        case (
            CollectiveKind.ALLGATHER
            | CollectiveKind.ALLGATHERV
            | CollectiveKind.ALLTOALL
            | CollectiveKind.ALLTOALLV
            | CollectiveKind.GATHER
            | CollectiveKind.SCATTER
        ):
            return ranks - 1


def pieces_in_a_step(kind: CollectiveKind, ranks: Expr) -> Expr:
    """Return how many of a collective's regions one of its steps carries, on average.

    Reduce-scatter by recursive halving sends half of the array, then a quarter and so on: all
    pieces but one, in ``ceil(log2 p)`` steps. Pairwise exchange sends as much in more steps.
    """
    if kind is not CollectiveKind.REDUCE_SCATTER:
        return num(1)
    return (ranks - 1) / maximum(1, doubling_steps(ranks))


def step_region(kind: CollectiveKind, ranks: Expr, region: Region) -> Region:
    """Return what one step of a collective carries: its region, or several in one run."""
    pieces = pieces_in_a_step(kind, ranks)
    if pieces == num(1):
        return region
    for count in region.counts:
        pieces = pieces * count
    return Region(region.itemsize_bytes, (pieces,), (num(region.itemsize_bytes),))
