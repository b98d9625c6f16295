"""Regions that shrink or grow from step to step, against counting every rank's elements."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.facts import Facts
from advisor.analysis.lower import lower
from advisor.analysis.placed.along import Along, dealt, in_blocks, taking_part
from advisor.distribution import AxisMap, BlockDim, CyclicDim
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from costdb.expr import Expr, evaluate, free_symbols, num, simplify, summation, sym
from tests.advisor.analysis.tally import Tally
from tests.advisor.ownership import owner

DIMS: tuple[AxisMap, ...] = (BlockDim(("r",)), *(CyclicDim(("r",), k) for k in (1, 2, 3, 5)))
MOVING, FIXED = sym("i"), sym("H")


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 8), st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_ends_that_move(low: int, high: int, piece: int, ranks: int) -> None:
    facts = Facts()
    bound = {"B": piece, "P": ranks}
    blocks = max(Counter(i // piece for i in range(low, high)).values(), default=0)
    turns = max(Counter(i // piece % ranks for i in range(low, high)).values(), default=0)
    with facts.within("i", 0, sym("M")):
        for ends, values in (
            ((MOVING, FIXED), {"i": low, "H": high}),
            ((FIXED, MOVING), {"H": low, "i": high}),
        ):
            counted = in_blocks(*ends, sym("B"), facts)
            assert evaluate(counted, {**bound, **values}) == blocks
            counted = dealt(*ends, sym("B"), sym("P"), facts)
            assert evaluate(counted, {**bound, **values}) == turns


@pytest.mark.parametrize("ends", [(MOVING, FIXED), (num(3), MOVING)])
def test_sums_of_blocks_over_the_moving_end(
    ends: tuple[Expr, Expr],
) -> None:
    facts = Facts()
    with facts.within("i", 0, FIXED):
        low, high = ends
        counted = in_blocks(low, high, num(16), facts)
    total = simplify(summation("i", 3, FIXED - 1, counted))
    for size in (3, 4, 15, 16, 17, 50):
        ranges = (range(i, size) if low is MOVING else range(3, i) for i in range(3, size))
        most = (max(Counter(j // 16 for j in one).values(), default=0) for one in ranges)
        assert evaluate(total, {"H": size}) == sum(most)
    assert free_symbols(total) == {"H"}


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_that_take_part(dim: AxisMap, ranks: int) -> None:
    extent = 10
    owners = [owner(i, extent, ranks, dim) for i in range(extent)]
    for at in range(extent):
        for low in range(extent):
            for high in range(low + 1, extent + 1):
                region = Along(num(low), num(high), num(extent), num(ranks), dim)
                told = evaluate(taking_part(num(at), region, Facts()), {})
                really = len({owners[at], *owners[low:high]})
                assert really <= told <= really + 1
                if low - 1 <= at <= high:
                    assert told == really


def eliminating(text: str) -> Kernel:
    source = f"""\
import numpy as np

# advise: kernel
# advise: a: f8[N, N] over (none, {text}) on mesh(r=P)
def eliminate(a, N: int):
    for k in range(N - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, None, k + 1 :]
"""
    (kernel,) = read_kernels("eliminate.py", source)
    return kernel


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.integers(1, 5), st.sampled_from(DIMS))
def test_elimination_waits_for_the_busiest_rank_of_every_step(
    size: int, ranks: int, dim: AxisMap
) -> None:
    text = f"cyclic(r, {dim.k})" if isinstance(dim, CyclicDim) else "block(r)"
    told = Tally(lower(eliminating(text)), {"N": size, "P": ranks})
    owners = [owner(j, size, ranks, dim) for j in range(size)]
    stores = operations = 0
    broadcasts: Counter[tuple[str, int, int]] = Counter()
    for k in range(size - 1):
        below = size - k - 1
        most = max(Counter(owners[k + 1 :]).values())
        stores += below + below * most
        operations += below + 2 * below * most
        taking = len(set(owners[k:]))
        broadcasts["broadcast", taking, below] += 1
    assert told.totals["stores"] == stores
    assert told.totals["operations"] == operations
    # the pivot is used by its owner alone; the column goes to the owners of what is left
    assert told.collectives == broadcasts
