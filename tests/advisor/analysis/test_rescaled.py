"""Restriction and prolongation: what is sent for reads with another step than their target's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.concrete import at_sizes
from advisor.ir.kernel import Kernel
from tests.advisor.analysis.simulate import Simulation
from tests.advisor.analysis.tally import Tally
from tests.advisor.analysis.test_communication import COUNTS


def two_levels(step: int, ranks: int, line: str, extra: int = 0, rows: bool = False) -> Kernel:
    """Return a kernel over an array and another one that is longer by a factor."""
    fine = f"{step}*N" if not extra else f"{step}*N - {extra}"
    other, dims = (", 3", ", none") if rows else ("", "")
    source = f"""
import numpy as np

# advise: kernel
# advise: c: f8[N{other}] over (block(x){dims}) on mesh(x={ranks})
# advise: f: f8[{fine}{other}] over (block(x){dims}) on mesh(x={ranks})
def program(c, f, N: int):
    {line}
"""
    (kernel,) = read_kernels("program.py", source)
    return kernel


def check(kernel: Kernel, size: int, *, exact: bool) -> None:
    sizes = {"N": size}
    simulated, told = Simulation(kernel, sizes).run(), Tally(lower(at_sizes(kernel, sizes)), sizes)
    for name in COUNTS:
        most = max(rank.totals()[name] for rank in simulated.ranks)
        assert most <= told.totals[name], (name, most, told.totals[name])
        if exact:
            assert most == told.totals[name], (name, most, told.totals[name])


@st.composite
def restrictions(draw: st.DrawFn) -> tuple[int, int, int, str, bool]:
    step, ranks, size = draw(st.integers(2, 4)), draw(st.integers(1, 5)), draw(st.integers(8, 40))
    rows = draw(st.booleans())
    offsets = draw(st.lists(st.integers(-step - 1, step + 1), min_size=1, max_size=3, unique=True))
    low, high = 2, size - 3
    behind = ", :" if rows else ""
    if draw(st.booleans()):
        reads = [f"f[{step * low + o}:{step * (high - 1) + o + 1}:{step}{behind}]" for o in offsets]
        line = f"c[{low}:{high}{behind}] = {' + '.join(reads)}"
    else:
        rest = draw(st.integers(0, step - 1))
        near = [o for o in offsets if -2 <= o <= 2] or [0]
        reads = [f"c[{low + o}:{high + o}{behind}]" for o in near]
        place = f"f[{step * low + rest}:{step * (high - 1) + rest + 1}:{step}{behind}]"
        line = f"{place} = {' + '.join(reads)}"
    return step, ranks, size, line, rows


@settings(max_examples=150, deadline=None)
@given(restrictions())
def test_no_rank_does_more_than_is_told(made: tuple[int, int, int, str, bool]) -> None:
    step, ranks, size, line, rows = made
    check(two_levels(step, ranks, line, rows=rows), size, exact=False)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.integers(3, 5), st.integers(2, 6), st.integers(0, 3), st.booleans())
def test_blocks_that_lie_beside_one_another(
    step: int, ranks: int, block: int, rest: int, rows: bool
) -> None:
    """Where blocks are multiples of the step, only what is read beyond an edge is sent."""
    behind = ", :" if rows else ""
    inside = f"f[{min(rest, step - 1)}::{step}{behind}]"
    for line in (f"c[:{behind}] = {inside}", f"{inside} = c[:{behind}]"):
        check(two_levels(step, ranks, line, rows=rows), block * ranks, exact=True)


def test_what_a_statement_makes_of_every_other_element() -> None:
    lines = "w = f[::2] + f[1::2]; c[:] = w"
    told = Tally(lower(two_levels(2, 4, lines)), {"N": 64})
    assert not told.sizes
    assert told.totals["stores"] == 32


def test_what_is_made_of_every_other_element_lies_beside_it() -> None:
    lines = "w = f[1::2] - f[::2]; f[::2] = w"
    told = Tally(lower(two_levels(2, 4, lines)), {"N": 64})
    assert not told.sizes
    assert told.totals["stores"] == 32


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("c[:5] = f[:10:2]", "extents differ by another factor"),
        ("f[:30:6] = c[:10:2]", "different steps along a distributed dimension"),
    ],
)
def test_what_is_not_priced_says_why(line: str, reason: str) -> None:
    with pytest.raises(Unpriced, match=reason):
        lower(two_levels(3, 4, line))
