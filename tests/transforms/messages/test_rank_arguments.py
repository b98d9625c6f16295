"""What is argued of ranks holds on each of 1 to 64 of them, for all sizes, ragged ones too."""

from __future__ import annotations

import random

import pytest

from advisor.ir.spmd.ranks import Communicator
from costdb.expr import (
    Expr,
    ExprError,
    conditional,
    equal,
    evaluate,
    floor_div,
    less,
    less_equal,
    logical_not,
    minimum,
    num,
    sym,
)
from costdb.expr.nodes import Mod
from tests.spmd.reading import program
from transforms.kit.ranks import ALL, Move, Ranks, move_of, own_block, ranks_where

EVERYWHERE = [(rank, size) for size in range(1, 65) for rank in range(size)]


@pytest.fixture(scope="module")
def world() -> Communicator:
    (function,) = program("x = np.zeros(9)\ncomm.Bcast(x)\n").functions
    return function.communicators[0]


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


def value(expr: Expr, rank: int, size: int) -> int:
    return int(evaluate(expr, {"rank": rank, "P": size}))


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
            assert holds_on(found, *place) == bool(value(condition, *place)), (condition, place)
    assert said > 5


@pytest.mark.parametrize("seed", range(8))
def test_partners_are_where_they_are_said_to_be(seed: int, world: Communicator) -> None:
    source = random.Random(seed)
    moves: list[Move] = []
    for _ in range(40):
        partner = drawn_partner(source, world)
        where = ranks_where(drawn_condition(source, world), world) if seed % 2 else ALL
        if where is None:
            continue
        move = move_of(partner, world, where)
        if move is None:
            continue
        moves.append(move)
        for rank, size in EVERYWHERE:
            if holds_on(where, rank, size):
                there = value(partner, rank, size)
                assert there == (move.sign * rank + value(move.by, rank, size)) % size
    assert len(moves) > 5
    for one in moves:
        for other in moves:
            if one.follows(other, world):
                for rank, size in EVERYWHERE:
                    there = (other.sign * rank + value(other.by, rank, size)) % size
                    assert (one.sign * there + value(one.by, rank, size)) % size == rank


def test_half_way_round_is_no_way_back(world: Communicator) -> None:
    half = move_of(Mod(world.rank + floor_div(world.size, num(2)), world.size), world)
    assert half is not None and not half.follows(half, world)


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


@pytest.mark.parametrize("size", range(1, 65))
def test_blocks_lie_one_behind_the_other(size: int, world: Communicator) -> None:
    rank, n, each = world.rank, sym("n"), floor_div(sym("n"), world.size)
    blocks = [
        (rank * n, (rank + 1) * n),
        (rank * each, rank * each + each),
        (2 * n * rank, 2 * n + 2 * n * rank),
    ]
    for low, high in blocks:
        length = own_block(low, high, rank)
        assert length is not None
        for n_ in (size, 3 * size, 3 * size + 1, 7):
            end = 0
            for own in range(size):
                at = {"rank": own, "P": size, "n": n_}
                assert (evaluate(low, at), evaluate(high, at)) == (end, end + evaluate(length, at))
                end = evaluate(high, at)


def test_other_blocks_are_no_own_ones(world: Communicator) -> None:
    rank, size, n = world.rank, world.size, sym("n")
    each = floor_div(n, size)
    for low, high in [
        (rank * each, minimum((rank + 1) * each, n)),
        (floor_div(rank * n, size), floor_div((rank + 1) * n, size)),
        (rank * each + 1, (rank + 1) * each + 1),
        (rank * each, (rank + 2) * each),
        (n, n + each),
    ]:
        try:
            assert own_block(low, high, rank) is None
        except ExprError:
            pytest.fail("an error where nothing is to be said")
