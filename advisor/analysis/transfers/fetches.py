"""What brings the operands of an array statement to where it is computed: halos, exchanges."""

from __future__ import annotations

from advisor.analysis.placed.along import Along
from advisor.analysis.placed.operands import Operand, Pairs, called
from advisor.analysis.placed.placement import Placement, Progression, low_of
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.analysis.transfers.communication import Gathered, Source, exchange
from advisor.analysis.transfers.halos import Halos
from advisor.analysis.transfers.requests import OneRead, Reach
from advisor.analysis.transfers.stepped_reads import (
    RelativeRead,
    Rescaled,
    in_steps_of,
    stepped_messages,
)
from advisor.ir.shapes import length_of
from advisor.ir.values import Strided, Subscript, step_of
from costdb.expr import Expr
from costdb.process.terms import Process


def fetched(
    operands: list[tuple[Operand, Pairs]],
    region: tuple[Subscript, ...],
    placement: Placement,
    facts: Facts,
    halos: Halos,
) -> list[Process]:
    """Return what brings operands to where a region is computed."""
    made: list[Process] = []
    together: dict[tuple[object, ...], tuple[Operand, dict[int, Along], list[OneRead]]] = {}
    stepped: dict[tuple[object, ...], list[RelativeRead]] = {}
    for operand, pairs in operands:
        read, apart = _relative(operand, pairs, region, placement)
        for dimension in apart:
            made += _exchanged(operand, dict(pairs), dimension, region, placement, facts, halos)
        if not read.spread or apart:
            continue
        key = operand.name, None if operand.name else id(operand), *sorted(read.spread.items())
        spread = {d: along for d, along in read.spread.items() if isinstance(along, Along)}
        if len(spread) < len(read.spread) or read.remainders or read.rescaled:
            stepped.setdefault((*key, *read.remainders), []).append(read)
        else:
            one = OneRead(read.offsets, read.ranges)
            together.setdefault(key, (operand, spread, []))[2].append(one)
    for operand, spread, reads in together.values():
        reach = Reach(operand.array, operand.placement, spread, tuple(reads))
        made += halos.fetch(operand.name, reach, facts)
    for alike in stepped.values():
        made += stepped_messages(alike, facts)
    return made


def _exchanged(
    operand: Operand,
    going: dict[int, int | None],
    dimension: int,
    region: tuple[Subscript, ...],
    placement: Placement,
    facts: Facts,
    halos: Halos,
) -> list[Process]:
    source = Source(operand.array, operand.placement, operand.region, going)
    work = exchange(source, dimension, placement, region, facts)
    what = Gathered(dimension, operand.region, tuple(sorted(going.items())))
    return halos.gather(operand.name, what, work)


def _relative(
    operand: Operand,
    pairs: Pairs,
    region: tuple[Subscript, ...],
    placement: Placement,
) -> tuple[RelativeRead, list[int]]:
    """Return where an operand lies relative to the elements that are computed from it.

    The last part names the distributed dimensions along which it does not lie with them.
    """
    source = operand.placement
    apart: list[int] = []
    spread: dict[int, Along | Progression] = {}
    starts: dict[int, Expr] = {}
    rescaled: list[Rescaled] = []
    for own, target in pairs:
        part = operand.region[own]
        if not source.is_spread(own):
            continue
        if target is None or source.dims[own] != placement.dims[target]:
            apart.append(own)
            continue
        computed = region[target]
        if step_of(part) != step_of(computed):
            if length_of(part) != length_of(computed):
                raise NotPriced(f"{called(operand)} is read across its distributed dimensions")
            spread[own], starts[own], one = in_steps_of(
                source, own, part, placement, target, computed
            )
            rescaled.append(one)
            continue
        if not source.along_as(own, placement, target):
            raise NotPriced(
                f"{called(operand)} is distributed otherwise than the array computed from it"
            )
        if length_of(part) != length_of(computed):
            raise NotPriced(f"{called(operand)} is read across its distributed dimensions")
        spread[own] = (
            placement.progression(target, computed)
            if isinstance(computed, Strided)
            else placement.along(target, computed)
        )
        starts[own] = low_of(part) + source.origin[own]
    return RelativeRead(operand, spread, starts, tuple(rescaled)), apart
