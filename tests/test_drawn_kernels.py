"""Kernels that are drawn to hold predictions against: all of them are read and lowered."""

from __future__ import annotations

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.concrete import at_sizes
from advisor.ranking.sizes import bind_sizes
from advisor.verify.cases import alone
from benchmarks.drawn_kernels import drawn
from costdb.process.terms import NOTHING

SEED, COUNT = 7, 60


def test_drawn_kernels_are_read_and_lowered() -> None:
    for number in range(COUNT):
        one = drawn(SEED, number)
        (kernel,) = read_kernels(one.name, one.source)
        concrete = at_sizes(alone(kernel), bind_sizes(kernel, {}).values)
        assert lower(concrete) != NOTHING, one.source


def test_the_same_seed_gives_the_same_kernels_and_another_one_others() -> None:
    first = [drawn(SEED, number).source for number in range(COUNT)]
    assert first == [drawn(SEED, number).source for number in range(COUNT)]
    assert not set(first) & {drawn(SEED + 1, number).source for number in range(COUNT)}
    for word in ("for ", "np.where", ".sum(", "cumsum", " @ ", ".T", "np.roll", "s[idx]", "a, b ="):
        assert any(word in source for source in first), word
