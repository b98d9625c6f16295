"""What work and which symbols a process holds, and how many ranks do it at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from advisor.analysis.placed.placement import Placement, ranks_of
from costdb.expr import ONE, Expr
from costdb.expr.nodes import Num
from costdb.process.terms import Branch, Leaf, Parallel, ParLoop, Process, SeqLoop, Sequential
from costdb.work import Collective, PrefixScan, Statement, Work


def works(process: Process) -> Iterator[Work]:
    """Yield all work of a process, in order."""
    match process:
        case Leaf(work):
            yield work
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from works(part)
        case SeqLoop(body=body) | ParLoop(body=body):
            yield from works(body)
        case Branch(_, then, orelse):
            yield from works(then)
            yield from works(orelse)


def meets(process: Process) -> bool:
    """Return whether ranks meet in a collective operation."""
    return any(isinstance(work, Collective | PrefixScan) for work in works(process))


# Under owner-computes all ranks of the mesh do their part at once and share caches and memory; in a
# recurrence over a distributed axis they take turns.


def ranks_together(placements: Iterable[Placement]) -> Expr:
    """Return how many ranks the largest mesh of a kernel has; 1 where nothing is distributed.

    Of several meshes whose sizes are not all known the first such counts.
    """
    found = [ranks_of(p.mesh, tuple(axis for axis, _ in p.mesh.axes)) for p in placements]
    known = [ranks for ranks in found if isinstance(ranks, Num)]
    if len(known) < len(found):
        return next(ranks for ranks in found if not isinstance(ranks, Num))
    return max(known, key=lambda ranks: ranks.value, default=ONE)


def in_turn(process: Process) -> Process:
    """Return work that one rank does after another."""
    return together(process, ONE)


def together(process: Process, ranks: Expr) -> Process:
    """Return work that so many ranks do at once, where no other number is stated already."""
    match process:
        case Leaf(Statement(together=None) as work):
            return Leaf(replace(work, together=ranks))
        case Sequential(parts) | Parallel(parts):
            return replace(process, parts=tuple(together(part, ranks) for part in parts))
        case SeqLoop(body=body) | ParLoop(body=body):
            return replace(process, body=together(body, ranks))
        case Branch(condition, then, orelse):
            return Branch(condition, together(then, ranks), together(orelse, ranks))
    return process
