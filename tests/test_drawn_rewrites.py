"""Pairs that are drawn to try the ranking: they come to the same, and are judged as they should."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import pytest

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import at_sizes
from advisor.numpy_table import itemsize_of
from advisor.ranking.compare import bind_sizes
from advisor.ranking.worth import as_one_process
from advisor.verify.cases import ORIGINAL, Variant
from advisor.verify.running import Measured
from benchmarks.drawn_kernels import drawn
from benchmarks.drawn_rewrites import case_for, families, rewritables
from benchmarks.drawn_twins import CHOICES, Twins, drawn_twins
from benchmarks.unseen_exchanges import Trial, judged, trials
from benchmarks.unseen_rewrites import Pair, Run
from costdb.evaluate import Ratio
from costdb.expr import evaluate
from costdb.machines import load_machine
from costdb.work import NOTHING
from tests.transforms.generated.message_programs import IDIOMS

SEED = 7
SMALL = {"N": 256, "M": 17, "T": 3}


def results(source: str, sizes: Mapping[str, int], seed: int) -> list[np.ndarray]:
    (kernel,) = read_kernels("twin.py", source)
    generator = np.random.default_rng(seed)
    typed = [
        (generator.integers(1, 99, [int(evaluate(n, sizes)) for n in array.extents]) / 3).astype(
            array.dtype
        )
        for array in kernel.arrays.values()
    ]
    names: dict[str, object] = {}
    exec(compile(source, "twin.py", "exec"), names)
    function = names["kernel"]
    assert callable(function)
    numbers = [sizes[name] for name in kernel.sizes]
    return [*function(*typed, *numbers)]


@pytest.mark.parametrize("number", range(2 * len(CHOICES)))
def test_twins_come_to_the_same(number: int) -> None:
    made = drawn_twins(SEED, number)
    for seed in range(2):
        one, other = (results(text, SMALL, seed) for text in (made.one, made.other))
        for left, right in zip(one, other, strict=True):
            assert left.dtype == right.dtype
            np.testing.assert_allclose(right, left, 1e-12, 1e-12, err_msg=made.other)


def test_twins_are_drawn_by_seed_and_read_and_lowered() -> None:
    drawn: list[Twins] = [drawn_twins(SEED, number) for number in range(len(CHOICES))]
    assert drawn == [drawn_twins(SEED, number) for number in range(len(CHOICES))]
    assert drawn != [drawn_twins(SEED + 1, number) for number in range(len(CHOICES))]
    assert {one.name for one in drawn} == set(CHOICES)
    for made in drawn:
        for source in (made.one, made.other):
            (kernel,) = read_kernels("twin.py", source)
            bound = bind_sizes(kernel, {}).values
            assert made.sizes.items() >= bound.items()
            assert lower(at_sizes(as_one_process(kernel), bound)) != NOTHING, source


@pytest.mark.parametrize("family", families())
def test_programs_of_every_family_have_rewrites_or_a_twin(family: str) -> None:
    machine = load_machine("t3e")
    made = list(rewritables(family, SEED, 1, machine))
    assert made
    for one in made:
        case = case_for(one, machine, every=True)
        assert len(case.variants) > 1, one.source
        assert case.variants[0].title == ORIGINAL
        sizes = [prod(array.shape) * itemsize_of(array.dtype) for array in case.arrays]
        assert max(sizes) < 4e7


def pair(measured: list[tuple[float, float]], low: float, mid: float, high: float) -> Pair:
    before, after = (
        Run(
            Variant(code, code or ORIGINAL, code, True, None, None),
            tuple(Measured(times[side], equal=True) for times in measured),
        )
        for side, code in enumerate(("", "ADV999"))
    )
    return Pair("p", before, after, Ratio(low, mid, high))


def test_two_are_apart_where_every_round_says_so() -> None:
    assert pair([(2, 1), (3, 2)], 1, 2, 3).apart
    assert pair([(1, 2), (2, 3)], 1, 2, 3).apart
    assert not pair([(2, 1), (1.05, 1)], 1, 2, 3).apart
    assert not pair([(2, 1), (1, 2)], 1, 2, 3).apart


def test_a_gain_that_is_predicted_the_other_way_is_wrong_and_untold() -> None:
    gain = [(2.0, 1.0)] * 3
    assert pair(gain, 1.5, 2, 2.5).right and pair(gain, 1.5, 2, 2.5).inside
    tie = pair(gain, 0.5, 1, 3)
    assert tie.tie and not tie.right and tie.untold and not tie.surely_wrong
    assert not pair(gain, 1.0, 1.0, 1.0).surely_wrong
    wrong = pair(gain, 0.5, 0.7, 0.9)
    assert not wrong.right and wrong.untold and wrong.surely_wrong and not wrong.inside
    loss = pair([(1.0, 2.0)] * 3, 1.1, 1.3, 1.5)
    assert not loss.right and loss.surely_wrong and not loss.untold
    assert loss.what == "ADV999"


# SPMD programs that are drawn to try the ranking: rewritten, and told apart as they should be.


def test_programs_of_every_idiom_are_drawn_and_rewritten() -> None:
    machine = load_machine("t3e")
    made = list(trials(3, 1, machine, 2))
    assert [one.made.idiom for one in made] == sorted(IDIOMS)
    for one in made:
        assert one.after != one.made.source
        compile(one.after, "after.py", "exec")
        compile(one.without, "without.py", "exec")
        assert one.made.source.startswith(one.without.rpartition("\n    return")[0])
    assert made == list(trials(3, 1, machine, 2))
    assert made != list(trials(4, 1, machine, 2))


@pytest.mark.parametrize(
    ("before", "after", "predicted", "ranked"),
    [
        (2.0, 1.0, (2.0, 1.0, 1.5, 2.5), "right"),
        (2.0, 1.0, None, "UNTOLD"),
        (1.0, 2.0, None, "right"),
        (1.0, 2.0, (2.0, 1.0, 1.5, 2.5), "WRONG"),
        (1.0, 1.05, (2.0, 1.0, 1.5, 2.5), "not apart"),
    ],
)
def test_gains_are_right_wrong_or_untold(
    before: float, after: float, predicted: tuple[float, float, float, float] | None, ranked: str
) -> None:
    first = next(iter(trials(3, 1, load_machine("t3e"), 2)))
    one = Trial(first.made, 9, 9, "", "", predicted)
    found, (ratio, *_) = judged(one, [[before] * 4, [after] * 4, [0.5] * 4])
    assert found == ranked
    assert ratio == f"{(before - 0.5) / (after - 0.5):.2f}"


# Kernels that are drawn to hold predictions against: all of them are read and lowered.


KERNELS_SEED, COUNT = 7, 60


def test_drawn_kernels_are_read_and_lowered() -> None:
    for number in range(COUNT):
        one = drawn(KERNELS_SEED, number)
        (kernel,) = read_kernels(one.name, one.source)
        concrete = at_sizes(as_one_process(kernel), bind_sizes(kernel, {}).values)
        assert lower(concrete) != NOTHING, one.source


def test_the_same_seed_gives_the_same_kernels_and_another_one_others() -> None:
    first = [drawn(KERNELS_SEED, number).source for number in range(COUNT)]
    assert first == [drawn(KERNELS_SEED, number).source for number in range(COUNT)]
    assert not set(first) & {drawn(KERNELS_SEED + 1, number).source for number in range(COUNT)}
    for word in ("for ", "np.where", ".sum(", "cumsum", " @ ", ".T", "np.roll", "s[idx]", "a, b ="):
        assert any(word in source for source in first), word
