"""How many ranks do each statement of a kernel at the same time.

Under owner-computes all ranks of the mesh do their part at once and share caches and memory; in a
recurrence over a distributed axis they take turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from advisor.analysis.placed.placement import Placement, ranks_of
from costdb.expr import ONE, Expr
from costdb.expr.nodes import Num
from costdb.process.terms import Branch, Leaf, Parallel, ParLoop, Process, SeqLoop, Sequential
from costdb.work import Statement


def ranks_together(placements: Iterable[Placement]) -> Expr:
    """Return how many ranks the largest mesh of a kernel has; 1 where nothing is distributed.

    Of several meshes whose sizes are not all known the first such counts.
    """
    found = [ranks_of(p.mesh, tuple(axis for axis, _ in p.mesh.axes)) for p in placements]
    open_ones = [ranks for ranks in found if not isinstance(ranks, Num)]
    if open_ones:
        return open_ones[0]
    known = [ranks for ranks in found if isinstance(ranks, Num)]
    return max(known, key=lambda ranks: ranks.value, default=ONE)


def in_turn(process: Process) -> Process:
    """Return work that one rank does after another."""
    return together(process, ONE)


def together(process: Process, ranks: Expr) -> Process:
    """Return work that so many ranks do at once, where no other number is stated already."""
    match process:
        case Leaf(Statement(together=None) as work):
            return Leaf(replace(work, together=ranks))
        case Sequential(parts):
            return Sequential(tuple(together(part, ranks) for part in parts))
        case Parallel(parts):
            return Parallel(tuple(together(part, ranks) for part in parts))
        case SeqLoop(variable, low, high, body):
            return SeqLoop(variable, low, high, together(body, ranks))
        case ParLoop(variable, low, high, body):
            return ParLoop(variable, low, high, together(body, ranks))
        case Branch(condition, then, orelse):
            return Branch(condition, together(then, ranks), together(orelse, ranks))
    return process
