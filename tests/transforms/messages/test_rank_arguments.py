"""What is argued of ranks holds on each of 1 to 64 of them, for all sizes, ragged ones too."""

from __future__ import annotations

import random
import re
from functools import lru_cache

import numpy as np
import pytest

from advisor.ir.spmd.steps import Communicator
from costdb.expr import (
    Expr,
    conditional,
    equal,
    floor_div,
    less,
    less_equal,
    logical_not,
    num,
    sym,
)
from costdb.expr.evaluate import Evaluator
from costdb.expr.nodes import Mod
from tests.spmd.reading import program
from tests.transforms.messages.test_message_cases import CASES
from tests.transforms.simulated_ranks import results
from tests.transforms.spmd_running import proposals, rewritten
from transforms.kit.ranks import Move, Ranks, move_of, ranks_where

EVERYWHERE = [(rank, size) for size in range(1, 65) for rank in range(size)]


@pytest.fixture(scope="module")
def world() -> Communicator:
    (function,) = program("x = np.zeros(9)\ncomm.Bcast(x)\n").functions
    ((_, broadcast),) = function.operations()
    return broadcast.communicator


def drawn_condition(source: random.Random, world: Communicator) -> Expr:
    sides = [world.rank + source.randint(-3, 3), num(0), world.size + source.randint(-3, 3)]
    one, other = source.sample(sides, 2)
    made = source.choice((equal, less, less_equal))(one, other)
    return logical_not(made) if source.random() < 0.3 else made


def drawn_partner(source: random.Random, world: Communicator) -> Expr:
    rank, size = world.rank, world.size
    kind = source.randrange(7)
    if kind == 0:
        return Mod(rank + source.randint(-9, 9), size)
    if kind == 1:
        return Mod(rank + floor_div(size, num(2)), size)
    if kind == 2:
        return size - 1 - rank
    if kind == 3:
        return conditional(drawn_condition(source, world), rank - 1, size - 1)
    if kind == 4:
        return conditional(drawn_condition(source, world), rank + 1, num(0))
    if kind == 5:
        return conditional(equal(Mod(rank, num(2)), num(0)), rank + 1, rank - 1)
    return source.choice((rank, size, num(0))) + source.randint(-3, 3)


@lru_cache(8)
def values(expr: Expr) -> dict[tuple[int, int], int]:
    """Return the values of an expression on each rank of each number of them."""
    evaluator = Evaluator((expr,))
    return {
        (rank, size): int(found)
        for size in range(1, 65)
        for rank, found in enumerate(evaluator.along("rank", range(size), {"P": size})[0])
    }


def holds_on(ranks: Ranks, rank: int, size: int) -> bool:
    at = [
        (one.low.ranks * size + one.low.constant, one.high.ranks * size + one.high.constant)
        for one in ranks
    ]
    return any(low <= rank < high for low, high in at)


@pytest.mark.parametrize("seed", range(8))
def test_conditions_hold_on_the_ranks_that_are_named(seed: int, world: Communicator) -> None:
    source = random.Random(seed)
    said = 0
    for _ in range(25):
        condition = drawn_condition(source, world)
        found = ranks_where(condition, world)
        if found is None:
            continue
        said += 1
        for place in EVERYWHERE:
            assert holds_on(found, *place) == bool(values(condition)[place]), (condition, place)
    assert said >= 7


@pytest.mark.parametrize("seed", range(8))
def test_partners_are_where_they_are_said_to_be(seed: int, world: Communicator) -> None:
    source = random.Random(seed)
    moves: list[Move] = []
    for _ in range(40):
        partner = drawn_partner(source, world)
        move = move_of(partner, world)
        if move is None:
            continue
        moves.append(move)
        for rank, size in EVERYWHERE:
            there = values(partner)[rank, size]
            assert there == (move.sign * rank + values(move.by)[rank, size]) % size
    assert len(moves) >= 7
    ends = [
        {(r, p): (one.sign * r + values(one.by)[r, p]) % p for r, p in EVERYWHERE} for one in moves
    ]
    for one, back in zip(moves, ends, strict=True):
        for other, there in zip(moves, ends, strict=True):
            if one.follows(other, world):
                assert all(back[there[rank, p], p] == rank for rank, p in EVERYWHERE)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda rank, size: rank + 1,
        lambda rank, size: rank - 1,
        lambda rank, size: 2 * rank,
        lambda rank, size: floor_div(rank, num(2)),
        lambda rank, size: Mod(rank, num(3)),
        lambda rank, size: Mod(rank * 2, size),
        lambda rank, size: rank * rank,
        lambda rank, size: rank + sym("other"),
        lambda rank, size: conditional(equal(Mod(rank, num(2)), num(0)), rank + 1, rank - 1),
        lambda rank, size: num(3),
    ],
)
def test_of_anything_else_nothing_is_said(drawn, world: Communicator) -> None:  # type: ignore[no-untyped-def]
    assert move_of(drawn(world.rank, world.size), world) is None


REWRITTEN = [
    name
    for name, case in CASES.items()
    if name.startswith("ADV607") and case.is_rewritten
    if not re.search(r"[.](?:send|recv|sendrecv|bcast|scatter)[(]", case.source)
]


def both(name: str) -> tuple[str, str]:
    case = CASES[name]
    return case.source, rewritten(case.source, proposals(case.source, case.rule))


@pytest.mark.parametrize("name", REWRITTEN)
def test_the_same_comes_to_the_same_places_on_any_number_of_ranks(name: str) -> None:
    """What ranks receive of messages is what they have of the collective, on 1 to 64 of them."""
    shorter = {"240": "64", "40": "3", "70000": "3", "range(3)": "range(1)"}
    source, after = (
        re.sub(r"\b(240|40|70000|range\(3\))", lambda found: shorter[found[1]], text)
        for text in both(name)
    )
    sizes = [*range(1, 12), 15, 16, 17, 32, 33, 63, 64]
    for size in sizes:
        assert same(results(source, size), results(after, size)), size


def same(one: object, other: object) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.allclose(one, other, rtol=1e-12))  # type: ignore[arg-type]


def test_other_programs_are_told_from_those_that_were_rewritten() -> None:
    source, after = both("ADV607_gather")
    assert not same(results(source, 5), results(after.replace("comm.Gather(x", "comm.Gather(y"), 5))
    assert len(REWRITTEN) >= 7
