"""How many steps the textbook algorithms of collectives take on their longest path."""

from __future__ import annotations

from costdb.expr import Expr, ceil, conditional, floor, less, log2
from costdb.work import CollectiveKind


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
        case CollectiveKind.BROADCAST | CollectiveKind.REDUCE:
            return doubling_steps(ranks)
        case CollectiveKind.ALLREDUCE:
            return allreduce_steps(ranks)[0]
        case (
            CollectiveKind.ALLGATHER
            | CollectiveKind.ALLTOALL
            | CollectiveKind.GATHER
            | CollectiveKind.SCATTER
        ):
            return ranks - 1
