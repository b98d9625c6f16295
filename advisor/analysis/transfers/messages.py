"""Messages that bring neighbours' elements.

There is one message from each owner, for each direction, and for each corner that a diagonal
offset needs. A message is counted where it is received.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.placed.placement import local_extents, pitches_bytes
from advisor.analysis.transfers.halos import Halos, Reach, Request, Side, requests, weaker_sides
from advisor.analysis.transfers.layers import Layers, block_layers, cyclic_layers, periodic_layers
from advisor.distribution import CyclicDim
from advisor.dtypes import itemsize_of
from advisor.ir.signs import largest, smallest
from advisor.ir.values import ceil_steps
from costdb.expr import ONE, ZERO, Expr, less, logical_and, maximum, minimum
from costdb.process.terms import NOTHING, Branch, Leaf, Process, SeqLoop
from costdb.work import Message, Region


def fetch(name: str | None, reach: Reach, facts: Facts, halos: Halos) -> list[Process]:
    """Return the messages for what is read of one array and not held, and hold what they bring.

    Parameters
    ----------
    name : str or None
        None for an array that only one statement reads.
    reach : Reach
    facts : Facts
    halos : Halos

    Raises
    ------
    NotPriced
        Where owners cannot be told in closed form.
    """
    made: list[Process] = []
    wanted = requests(reach, facts)
    weaker = weaker_sides(wanted)
    for request in wanted:
        if not halos.has(name, request, facts):
            sent = _messages(request, reach, facts, weaker)
            halos.hold(name, request, sent)
            made += sent
    return made


def _messages(
    request: Request, reach: Reach, facts: Facts, weaker: frozenset[tuple[int, int]]
) -> list[Process]:
    """Return the messages that answer a request; `weaker` sides count from three ranks on."""
    counts, condition = _across(request, facts)
    for dimension, _ in weaker & set(request.direction):
        condition = logical_and(condition, less(2, reach.spread[dimension].ranks))
    made: list[Process] = []
    for chosen in product(*(_layers(side, request, reach) for side in request.sides)):
        by_side = {s.dimension: layers for s, layers in zip(request.sides, chosen, strict=True)}
        layered = {dimension: layers.count for dimension, layers in by_side.items()}
        region = _region({**counts, **layered}, reach, facts)
        sent: Process = Leaf(Message(region, request.label))
        when = condition
        for layers in chosen:
            if layers.owners is None:
                when = logical_and(when, layers.when)
            else:
                sent = SeqLoop(*layers.owners, _only_if(layers.when, sent))
        if when != ZERO:
            made.append(_only_if(when, sent))
    return made


def _only_if(test: Expr, sent: Process) -> Process:
    return sent if test == ONE else Branch(test, sent, NOTHING)


def _layers(side: Side, request: Request, reach: Reach) -> list[Layers]:
    along = reach.spread[side.dimension]
    if isinstance(along.dim, CyclicDim):
        shifted = [offset for _, offsets in request.across for offset in offsets if offset != ZERO]
        if len(request.sides) > 1 or shifted:
            raise NotPriced("a diagonal shift along a cyclically distributed dimension")
        if request.wraps_after is not None:
            raise NotPriced("a periodic shift along a cyclically distributed dimension")
        found = (cyclic_layers(along, depth * side.sign) for depth in side.depths)
        return [layers for each in found for layers in each]
    if request.wraps_after is not None:
        return periodic_layers(along, side.depths[0], request.wraps_after)
    return block_layers(along, side.sign, side.depths, f"owner.axis{side.dimension}")


def _across(request: Request, facts: Facts) -> tuple[dict[int, Expr], Expr]:
    """Return how much is read along the dimensions without a side, and when there is any."""
    counts = {dimension: high - low for dimension, low, high in request.ranges}
    regions = dict(request.regions)
    condition = ONE
    for dimension, offsets in request.across:
        along = regions[dimension]
        own = along.count(facts)
        if offsets != (ZERO,):
            if isinstance(along.dim, CyclicDim):
                raise NotPriced("a diagonal shift along a cyclically distributed dimension")
            own = _own_part(own, along.piece, offsets, facts)
            if ZERO not in offsets:
                condition = logical_and(condition, less(0, own))
        counts[dimension] = own
    return counts, condition


def _own_part(count: Expr, piece: Expr, offsets: tuple[Expr, ...], facts: Facts) -> Expr:
    """Return how much of a block is read within it, at some offsets from what is computed."""
    whole = count == piece
    if ZERO in offsets and whole:
        return piece
    parts: list[Expr] = []
    for sign in (1, -1):
        depths = [offset * sign for offset in offsets if facts.non_negative(offset * sign)]
        if not depths or depths == [ZERO]:
            continue
        nearest = smallest(depths, facts.minima)
        left = maximum(0, piece - nearest)
        if not whole:
            left = minimum(left, count + largest(depths, facts.minima) - nearest)
        parts.append(left)
    return parts[0] if len(parts) == 1 else minimum(piece, parts[0] + parts[1])


def _region(counts: Mapping[int, Expr], reach: Reach, facts: Facts) -> Region:
    """Return where the elements of a message lie in their owner's memory."""
    itemsize = itemsize_of(reach.array.dtype)
    extents = local_extents(reach.placement, reach.array.extents, facts)
    pitches = pitches_bytes(extents, reach.placement.order, itemsize)
    return Region(
        itemsize,
        tuple(ceil_steps(counts[d], reach.thinned.get(d, 1)) for d in range(len(pitches))),
        tuple(pitch * reach.steps.get(d, ONE) for d, pitch in enumerate(pitches)),
    )
