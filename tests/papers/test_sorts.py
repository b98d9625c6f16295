"""Three sorts as supersteps: the published counts, intervals over n and p, and their order."""

import json
import tomllib
from pathlib import Path

import pytest

from costdb.documents import load_description, supersteps_of
from costdb.evaluate import Estimate, Missing, evaluate_price
from costdb.expr import evaluate, num, parse
from costdb.machines import load_machine
from costdb.work import Leaf, SeqLoop, Superstep

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "tests" / "data" / "smp_power_challenge.json").read_text())
DESCRIBED = ROOT / "examples" / "sorts" / "sorts.toml"
SORTS = ("radix", "sample", "column")
MACHINE = load_description(DESCRIBED).on(load_machine("powerchallenge"))
PRICES = {sort: MACHINE.price({"algorithm": sort}) for sort in SORTS}
SIZES = [2**exponent for exponent in range(16, 25)]


def estimate(sort: str, n: int, p: int) -> Estimate:
    priced = PRICES[sort]
    assert not isinstance(priced, Missing)
    return evaluate_price(priced, {"n": n, "p": p})


def supersteps(sort: str) -> list[tuple[Superstep, int]]:
    """Return the supersteps of a described sort, each with how often it is done."""
    program = supersteps_of(tomllib.loads(DESCRIBED.read_text()), str(DESCRIBED))
    found = []
    for part in program.process({"algorithm": sort}).parts:
        times, leaf = (part.high, part.body) if isinstance(part, SeqLoop) else (num(1), part)
        assert isinstance(leaf, Leaf)
        found.append((leaf.work, evaluate(times, {})))
    return found


@pytest.mark.parametrize("sort", SORTS)
def test_the_supersteps_have_the_published_counts(sort: str) -> None:
    rows = PUBLISHED["supersteps"][sort]
    for (step, times), row in zip(supersteps(sort), rows, strict=True):
        for n, p in ((1 << 20, 2), (1 << 20, 8), (720_720, 11), (720_720, 12)):
            size = {"n": n, "p": p}
            for mine, theirs in ((step.reads, "hr"), (step.writes, "hw"), (step.total, "M")):
                assert evaluate(mine, size) == evaluate(parse(row[theirs]), size)
        assert times == (6 if sort == "radix" else 1)


@pytest.mark.parametrize("sort", SORTS)
def test_a_ragged_share_is_rounded_up(sort: str) -> None:
    last, _ = supersteps(sort)[-1]
    assert evaluate(last.writes, {"n": 10, "p": 4}) == 3


@pytest.mark.parametrize("p", [2, 3, 4, 6, 8, 12])
def test_both_predictions_put_the_sorts_in_the_same_order(p: int) -> None:
    for n in SIZES:
        found = {sort: estimate(sort, n, p) for sort in SORTS}
        by_good = sorted(SORTS, key=lambda sort: found[sort].low)
        by_bad = sorted(SORTS, key=lambda sort: found[sort].high)
        assert by_good == by_bad == ["sample", "column", "radix"]


@pytest.mark.parametrize("sort", SORTS)
def test_an_interval_grows_with_n_and_adds_up(sort: str) -> None:
    for p in (2, 5, 8, 12):
        before = estimate(sort, SIZES[0], p)
        for n in SIZES[1:]:
            now = estimate(sort, n, p)
            assert before.low < now.low <= now.mid <= now.high
            assert before.high < now.high
            assert sum(term.mid for term in now.terms) == pytest.approx(now.mid)
            before = now


def test_tiny_supersteps_are_marked_as_extrapolations() -> None:
    assert estimate("column", 2**20, 8).in_range
    for sort in ("radix", "sample"):
        remarks = estimate(sort, 2**20, 8).remarks
        assert remarks
        assert all("outside the calibrated 5000 to 1.9e+06" in remark for remark in remarks)


def test_one_sort_by_hand() -> None:
    # Column sort of 2**20 keys on 8 processors: five supersteps, hr = hw = 131072, M = 2**21.
    h, total = 131_072, 2**21
    good = 5 * (140 + 0.0184 * h + 0.0087 * h + 5e-05 * total)
    bad = 5 * (16_566 + 0.4612 * h + 0.7708 * h + 0.1113 * total)
    found = estimate("column", 2**20, 8)
    assert found.low == pytest.approx(good * 1e-6, rel=1e-12)
    assert found.high == pytest.approx(bad * 1e-6, rel=1e-12)


def test_a_machine_without_the_model_cannot_price_a_sort() -> None:
    missing = load_description(DESCRIBED).on(load_machine("bupc")).price({"algorithm": "radix"})
    assert isinstance(missing, Missing)
