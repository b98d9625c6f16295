"""The studies' experiments: what runs is what is priced, and figures are those printed."""

from __future__ import annotations

import json
import math
import runpy
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from advisor.validation import experiments as cases
from advisor.validation.experiments import (
    SECTIONS,
    CannotValidateError,
    Case,
    Verdict,
    examples_folder,
    kernel_of,
    load_experiment,
    outcomes,
    percent,
)
from advisor.validation.figures import do
from advisor.verify import running
from costdb.machines import load_machine
from tests.ranks import needs_mpi, on_ranks

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "examples" / "studies"
DATA = ROOT / "tests" / "data"
CHOICES = load_experiment("choices").cases


@pytest.fixture(autouse=True)
def data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path))


@pytest.mark.parametrize("name", SECTIONS)
def test_every_program_and_subject_of_an_experiment_is_there(name: str) -> None:
    experiment = load_experiment(name)
    assert bool(experiment.cases) != bool(experiment.samples)
    for case in experiment.cases:
        for way in case.ways:
            for program in filter(None, (way.program, way.private)):
                file, _, function = program.partition(":")
                text = (ROOT / "examples" / file).read_text()
                assert f"{function}" in text
            if case.subject.partition(":")[0].endswith(".py"):
                assert kernel_of(case, way).name == case.subject.partition(":")[2]


@pytest.mark.parametrize("case", CHOICES, ids=lambda one: one.operation)
def test_ways_are_other_distributions_of_one_kernel(case: Case) -> None:
    kernels = [kernel_of(case, way) for way in case.ways]
    specs = [{name: array.spec for name, array in one.arrays.items()} for one in kernels]
    assert specs[0] != specs[1] and kernels[0].body == kernels[1].body
    for kernel in kernels:
        meshes = {array.spec.mesh.axes for array in kernel.arrays.values()}
        assert {extent for axes in meshes for _, extent in axes} <= {case.ranks, "P"}


def test_an_example_that_was_changed_is_refused() -> None:
    case = CHOICES[0]
    way = replace(case.ways[0], changes=(("rank=17", "rank=2"),))
    with pytest.raises(CannotValidateError, match="another version"):
        kernel_of(case, way)


def test_figures_beside_are_those_printed() -> None:
    printed = {}
    for platform in ("mupc", "mupc-cache", "bupc", "gupc-t3e"):
        stated = load_machine(platform).section("pgas", "published_precision_percent")
        for name, found in stated.items():
            several = found if isinstance(found, list) else [found]
            errors = [abs(one) for one in several if isinstance(one, int | float)]
            printed.setdefault(name, []).extend(errors)
    of = {"histogram": "histogram_12_threads", "matmul": "matmul_greatest"}
    for case in load_experiment("pgas").cases:
        name = case.ways[0].name
        greatest = max(printed[of.get(name, "sobel_greatest")])
        assert case.figures[0].paper == f"up to {percent(greatest / 100)}"
    samples = load_experiment("smp").samples
    assert samples is not None
    power = json.loads((DATA / "smp_power_challenge.json").read_text())["validation"]
    good = (
        power["good_fit_suite1_on_suite2"]["HrHwM-c"],
        power["good_fit_suite1_on_suite3"]["HrHwM-c"],
    )
    bad = power["bad_fit_suite2_on_suite1"]["HrHwM"], power["bad_fit_suite2_on_suite3"]["HrHwM"]
    errors = [*(error for one in good for row in one.values() for error in row)]
    errors += [error for row in bad for error in row]
    assert max(errors) <= samples.at_most
    assert samples.paper == f"{percent(min(errors))} to {percent(max(errors)).replace('.0', '')}"


@pytest.mark.parametrize(("drawn", "ranks"), [(1, 2), (3, 2), (4, 3)])
def test_the_slowest_rank_draws_most_elements_of_others(drawn: int, ranks: int) -> None:
    # draws of one rank, each of an element of its own (0) or of another rank, all as likely
    of_a_rank = [
        sum(owner > 0 for owner in all_of) for all_of in product(range(ranks), repeat=drawn)
    ]
    brute = mean(max(those) for those in product(of_a_rank, repeat=ranks))
    assert most_of_others(drawn, ranks) == pytest.approx(brute)


def most_of_others(drawn: int, ranks: int) -> float:
    """Return how many of so many random elements the rank with the most has of others, expected."""
    share = 1 - 1 / ranks
    at_most, expected = 0.0, 0.0
    for count in range(drawn):
        way = math.lgamma(drawn + 1) - math.lgamma(count + 1) - math.lgamma(drawn - count + 1)
        way += count * math.log(share) + (drawn - count) * math.log1p(-share)
        at_most += math.exp(way)
        expected += 1 - min(at_most, 1.0) ** ranks
    return expected


def test_histograms_state_what_the_slowest_rank_is_expected_to_draw() -> None:
    for case in load_experiment("pgas").cases[:3]:
        (sizes,) = case.points
        assert sizes["far"] == round(most_of_others(sizes["increments"], case.ranks))


@needs_mpi
def test_programs_give_what_the_kernels_give_that_are_priced() -> None:
    assert "the same on 2" in on_ranks(2, "tests/papers/validation_twins.py")


@needs_mpi
def test_remote_programs_are_run_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    # a machine whose every remote reference takes decades of what this one needs
    whole = load_experiment("pgas")
    few = replace(whole, cases=whole.cases[:1], rounds=1)
    monkeypatch.setattr("advisor.validation.figures.load_experiment", lambda name: few)
    told: list[float] = []
    machine = replace(load_machine("bupc"), name="here")
    section = do("pgas", machine, lambda doing, share: told.append(share))
    (row,) = section.rows
    assert row.verdict is Verdict.MISSES and row.values["predicted_us"] > row.values["measured_us"]
    assert told[-1] == 1


def test_a_machine_without_rates_is_told() -> None:
    assert do("pgas", load_machine("sp2"), lambda *_: None).skipped


def test_of_box_sums_only_what_is_compared_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scans along one axis alone are proposed too, and took half of the time of the section."""
    whole = load_experiment("crossover")
    (case, _) = whole.cases
    few = replace(whole, cases=(replace(case, sizes={"N": case.sizes["N"][:1], "b": (2, 3, 4)}),))
    ran: list[tuple[str, ...]] = []

    def measured(case, effort):
        ran.append(tuple(variant.title for variant in case.variants))
        return [running.Measured(1.0, 1.0, 1.0, True) for _ in case.variants]

    monkeypatch.setattr(cases, "measure", measured)
    found = list(outcomes(few, load_machine("t3e"), lambda share: None, pytest.fail))
    assert [one.sizes["b"] for one in found] == [2, 3, 4]
    ((_, rewrite),) = set(ran)
    assert rewrite == "sum its windows by prefix scans, not by repeated shifts"
    # t3e is the machine on which scans win from b = 3 on
    assert [one.mids_s[1] < one.mids_s[0] for one in found][1:] == [True, True]


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
def test_sorts_sort_and_their_supersteps_take_time() -> None:
    made = runpy.run_path(str(STUDIES / "sorts.py"))
    random = np.random.default_rng(5)
    for processors, count in ((2, 400), (2, 6000), (1, 3600)):
        keys = random.integers(0, 2**32, count)
        for sort in made["SORTS"]:
            found, run = made["run_sort"](sort, keys, processors)
            np.testing.assert_array_equal(found, np.sort(keys), sort)
            assert run.microseconds > 0


def test_the_examples_are_found() -> None:
    assert examples_folder() == ROOT / "examples"
