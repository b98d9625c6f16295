"""Loops whose iterations belong to one rank each: in turn, or side by side.

``for j in ...: x[:, j] = ...`` with columns dealt out gives each iteration to the owner of its
column. Where iterations need nothing of one another, all owners work at the same time, and the
loop takes as long as the owner with most to do; where one waits for another, they take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.placed.along import ONE, ZERO, Along
from advisor.distribution import CyclicDim
from advisor.ir.dependence import carried
from advisor.ir.statements import Loop, Store, walk
from advisor.ir.values import Point
from costdb.expr import Expr, equal, floor_div, free_symbols, maximum, minimum, sym
from costdb.process.terms import (
    NOTHING,
    Branch,
    Delay,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
    Use,
)
from costdb.work import Collective, PrefixScan


def side_by_side(loop: Loop, body: Process, arrays: Arrays) -> Process | None:
    """Return a loop with its iterations done by their owners at the same time.

    None where they take turns, where an iteration belongs to several ranks, or where they meet
    in a collective operation.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    body : Process
        The work of one iteration.
    arrays : Arrays
    """
    owned = owned_by(loop, arrays)
    if owned is None or meets(body) or carried(loop, arrays.facts.minima):
        return None
    if loop.variable not in process_symbols(body):
        return SeqLoop(loop.variable, ONE, owned.count(arrays.facts), body)
    rank = f"{loop.variable}.owner"
    return ParLoop(rank, ZERO, owned.ranks - 1, of_rank(loop, body, owned, sym(rank)))


def of_rank(loop: Loop, body: Process, owned: Along, rank: Expr) -> Process:
    """Return the iterations of a loop that one rank owns."""
    shift, last = owned.low - loop.low, loop.high - 1
    if isinstance(owned.dim, CyclicDim):
        owner = floor_div(sym(loop.variable) + shift, owned.piece) % owned.ranks
        mine = Branch(equal(owner, rank), body, NOTHING)
        return SeqLoop(loop.variable, loop.low, last, mine)
    begin = rank * owned.piece - shift
    first = begin if loop.low == ZERO and shift == ZERO else maximum(loop.low, begin)
    return SeqLoop(loop.variable, first, minimum(last, begin + owned.piece - 1), body)


def owned_by(loop: Loop, arrays: Arrays) -> Along | None:
    """Return which indices of a distributed dimension decide who does an iteration."""
    found: set[Along] = set()
    for statement in walk(loop.body):
        if isinstance(statement, Loop):
            continue
        if not isinstance(statement, Store):
            return None
        placement = arrays.placement(statement.array)
        places = [
            (dimension, part.at)
            for dimension, part in enumerate(statement.region)
            if isinstance(part, Point) and placement.is_spread(dimension)
        ]
        moving = [(d, at) for d, at in places if loop.variable in free_symbols(at)]
        if len(moving) != 1 or len(places) != 1:
            return None
        dimension, at = moving[0]
        offset = at - sym(loop.variable) + placement.origin[dimension]
        if loop.variable in free_symbols(offset):
            return None
        found.add(
            Along(
                loop.low + offset,
                loop.high + offset,
                placement.template[dimension],
                placement.ranks(dimension),
                placement.dims[dimension],
            )
        )
    return found.pop() if len(found) == 1 else None


def meets(process: Process) -> bool:
    """Return whether ranks meet in a collective operation."""
    return any(isinstance(work, Collective | PrefixScan) for work in works(process))


def works(process: Process) -> Iterator[object]:
    """Yield all work of a process, in order."""
    match process:
        case Leaf(work):
            yield work
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from works(part)
        case SeqLoop(_, _, _, body) | ParLoop(_, _, _, body):
            yield from works(body)
        case Branch(_, then, orelse):
            yield from works(then)
            yield from works(orelse)
        case Delay() | Use():
            return


def process_symbols(part: object) -> frozenset[str]:
    """Return every symbol of the expressions in a process and its work."""
    if isinstance(part, Expr):
        return free_symbols(part)
    inner: tuple[object, ...] = ()
    if isinstance(part, tuple):
        inner = part
    elif is_dataclass(part):
        inner = tuple(getattr(part, field.name) for field in fields(part))
    return frozenset().union(*map(process_symbols, inner))
