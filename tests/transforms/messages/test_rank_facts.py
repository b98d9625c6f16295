"""What holds for all ranks of the programs that are tried holds for any number of ranks."""

from __future__ import annotations

import random

import pytest

from advisor.ir.spmd.ranks import Communicator
from costdb.expr import Expr, equal, evaluate, free_symbols, num, parse, sym
from costdb.expr.functions import Conditional, LessEqual
from costdb.expr.nodes import Mod
from tests.spmd.reading import program
from transforms.programs.rank_facts import TRIED_SIZES, follow, places, slope

MOST_RANKS = 64


@pytest.fixture(scope="module")
def world() -> Communicator:
    (function,) = program("x = np.zeros(9)\ncomm.Bcast(x)\n").functions
    return function.communicators[0]


def drawn(source: random.Random, world: Communicator) -> Expr:
    """A partner or a condition as programs write them, in some range of constants."""
    rank, size = world.rank, world.size
    near = source.choice((rank, rank, size, num(0))) + source.randint(-3, 3)
    kind = source.randrange(6)
    if kind == 0:
        return Mod(near, size)
    if kind == 1:
        return Mod(rank, num(2))
    if kind == 2:
        return equal(near, num(source.randint(0, 2)))
    if kind == 3:
        return LessEqual(near, size - source.randint(0, 2))
    if kind == 4:
        return Conditional(equal(Mod(rank, num(2)), num(0)), rank + 1, rank - 1)
    return near


def at(expr: Expr, rank: int, size: int, world: Communicator) -> int:
    (own,), (count,) = free_symbols(world.rank), free_symbols(world.size)
    return int(evaluate(expr, {own: rank, count: size}))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_alike_where_it_is_tried_is_alike_everywhere(
    seed: int, world: Communicator
) -> None:
    source = random.Random(seed)
    known = [one for _ in range(8) if slope(one := drawn(source, world), world) is not None]
    ranks = [(rank, size) for size in range(1, MOST_RANKS + 1) for rank in range(size)]
    tables = [[at(one, *place, world) for place in ranks] for one in known]
    tried = [follow(one, world) for one in known]
    for one, (values, few) in enumerate(zip(tables, tried, strict=True)):
        assert few == [v for v, (_, size) in zip(values, ranks, strict=True) if size in TRIED_SIZES]
        for other in range(one):
            assert (few == tried[other]) == (values == tables[other])
        # applied to what another one gives
        for other, inner in enumerate(tables):
            back = [
                not 0 <= rank_ < size or at(known[one], rank_, size, world) == rank
                for rank_, (rank, size) in zip(inner, ranks, strict=True)
            ]
            short = [b for b, (_, size) in zip(back, ranks, strict=True) if size in TRIED_SIZES]
            assert all(short) == all(back), (known[one], known[other])


@pytest.mark.parametrize(
    "text",
    [
        "2*rank",
        "rank + 9",
        "rank // 2",
        "rank % 3",
        "P - rank < rank",
        "rank * rank",
        "rank + other",
    ],
)
def test_of_anything_else_nothing_is_said(text: str, world: Communicator) -> None:
    (own,), (count,) = free_symbols(world.rank), free_symbols(world.size)
    left, comparison, right = text.partition(" < ")
    names = {"rank": world.rank, "P": world.size, "other": sym("other")}
    assert {own, count} == {"rank", "P"}
    expr = parse(left)
    if comparison:
        expr = LessEqual(expr, parse(right))
    assert free_symbols(expr) <= names.keys()
    assert slope(expr, world) is None and follow(expr, world) is None


def test_all_ranks_of_all_tried_sizes_are_places(world: Communicator) -> None:
    assert len(list(places(world))) == sum(TRIED_SIZES)
