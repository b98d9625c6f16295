"""What iterations that belong to one rank each read at a place of another: fetched before them.

``for i in range(k + 1, n): a[i, :] -= a[i, k] * a[k, :]`` needs row ``k`` on every rank that has
rows below it, once, since no iteration changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.loops.turns import owned_by
from advisor.analysis.placed.operands import Operand, pairs_of
from advisor.analysis.transfers.fetches import fetched
from advisor.ir.dependence import carried
from advisor.ir.statements import Loop, Store, walk
from advisor.ir.values import (
    Copy,
    Elementwise,
    Point,
    Range,
    Read,
    Subscript,
    Value,
    reads,
    region_symbols,
)
from costdb.expr import free_symbols, sym
from costdb.process.terms import Process


@dataclass(frozen=True, slots=True)
class _Place:
    """A store whose owner changes with a loop's index, and the dimension along which it does."""

    store: Store
    dimension: int

    @property
    def others(self) -> tuple[Subscript, ...]:
        """What is stored to along the other dimensions."""
        region = self.store.region
        return (*region[: self.dimension], *region[self.dimension + 1 :])

    def over(self, loop: Loop) -> tuple[Subscript, ...]:
        """Return what all iterations store to."""
        part = self.store.region[self.dimension]
        assert isinstance(part, Point)
        offset = part.at - sym(loop.variable)
        whole = Range(loop.low + offset, loop.high + offset)
        return tuple(
            whole if d == self.dimension else other for d, other in enumerate(self.store.region)
        )


def fetched_before(loop: Loop, arrays: Arrays) -> tuple[list[Process], Loop]:
    """Return what is fetched before a loop, and the loop with that at hand.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    arrays : Arrays

    Raises
    ------
    NotPriced
        Where the ranks that need it have no closed form.
    """
    if any(isinstance(inner, Loop) for inner in loop.body):
        return [], loop
    if owned_by(loop, arrays) is None or carried(loop, arrays.facts.minima):
        return [], loop
    made: list[Process] = []
    body = []
    for statement in walk(loop.body):
        assert isinstance(statement, Store)
        place = _place(statement, loop, arrays)
        target, value = arrays.placement(statement.array), statement.value
        for read in dict.fromkeys(reads(value)):
            dimension = _fixed(read, place, loop, arrays)
            if dimension is None:
                continue
            region = place.over(loop)
            source = Operand(
                read.array, arrays.type_of(read.array), arrays.placement(read.array), read.region
            )
            pairs = [(source, pairs_of(source, region))]
            made += fetched(pairs, region, target, arrays.facts, arrays.halos)
            value = _at_hand(value, read, dimension, statement.region[place.dimension])
        body.append(replace(statement, value=value))
    return made, replace(loop, body=tuple(body)) if made else loop


def _place(store: Store, loop: Loop, arrays: Arrays) -> _Place:
    placement = arrays.placement(store.array)
    (dimension,) = (
        d
        for d, part in enumerate(store.region)
        if isinstance(part, Point)
        and placement.is_spread(d)
        and loop.variable in free_symbols(part.at)
    )
    return _Place(store, dimension)


def _fixed(read: Read, place: _Place, loop: Loop, arrays: Arrays) -> int | None:
    """Return the dimension along which one index is read that is the same in all iterations."""
    moving = region_symbols(read.region) | region_symbols(place.others)
    if loop.variable in moving:
        # what an iteration needs, or does, is another part of it each time
        return None
    source, target = arrays.placement(read.array), arrays.placement(place.store.array)
    spread = [d for d in range(len(read.region)) if source.is_spread(d)]
    if len(spread) != 1:
        return None
    if not isinstance(read.region[spread[0]], Point):
        return None
    return spread[0] if source.along_as(spread[0], target, place.dimension) else None


def _at_hand(value: Value, read: Read, dimension: int, here: Subscript) -> Value:
    """Return a value with what was read elsewhere read at the place of the owner."""
    if value == read:
        region = (*read.region[:dimension], here, *read.region[dimension + 1 :])
        return replace(read, region=region)
    if isinstance(value, Elementwise):
        parts = (_at_hand(part, read, dimension, here) for part in value.operands)
        return replace(value, operands=tuple(parts))
    if isinstance(value, Copy):
        return replace(value, operand=_at_hand(value.operand, read, dimension, here))
    return value
