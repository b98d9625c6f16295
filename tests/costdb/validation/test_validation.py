"""Validation of stored samples: laws that were put in come out, as the papers' figures say."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb import published
from costdb.calibration.ranks.collectives import SECTION as COLLECTIVES
from costdb.calibration.ranks.message_fit import LINE_BYTES, region_of
from costdb.calibration.ranks.messages import SECTION as MESSAGES
from costdb.calibration.recording import record
from costdb.calibration.section import Effort, Point
from costdb.calibration.section import Section as Measured
from costdb.calibration.threads.supersteps import SECTION as SUPERSTEPS
from costdb.expr import evaluate
from costdb.lines.regions import bytes_of
from costdb.lines.symbolic import region_line_bounds
from costdb.machines import load_machine
from costdb.smp.sorts import Sort
from costdb.store.database import writing
from costdb.store.place import store_path
from costdb.store.runs import Launch, begin_launch, begin_run, finish_launch, finish_run
from costdb.validation.lines import validate_lines
from costdb.validation.results import CannotValidateError, Row, Verdict
from costdb.validation.sorts import MOST_RUNS, RUNS, calmest
from costdb.validation.supersteps import validate_supersteps
from tests.costdb.hosts import EPYC

PRINTED = json.loads((Path(__file__).parents[2] / "data" / "lines_published.json").read_text())
HERE = replace(load_machine("powerchallenge"), name="here")
SETTING = {"library": "none", "library_version": "1", "ranks": 2, "nodes": 1, "pinning": "none"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path))
    with writing(store_path()) as connection:
        yield connection


def keep(
    connection: sqlite3.Connection, section: Measured, law_us: Callable[[Point], float]
) -> None:
    """Store a calibration of one section, whose every sample is what a law says."""
    run = begin_run(connection, "here", "quick", 2, "1", [section.name])
    number = begin_launch(connection, run, section.name, SETTING)
    launch = Launch(run.id, section.name, number, SETTING, False)
    points = section.points(Effort.FULL, 2, EPYC)
    record(connection, run, launch, [(point, [law_us(point)] * 3, None) for point in points])
    finish_launch(connection, launch)
    finish_run(connection, run)


def rows_of(rows: list[Row], operation: str) -> dict[str, Row]:
    return {row.figure: row for row in rows if row.operation == operation}


def test_the_figures_of_the_lines_paper_are_those_printed() -> None:
    assert list(published.PLATFORMS) == PRINTED["columns"]
    assert {name: list(row) for name, row in published.MESSAGE_R2.items()} == PRINTED["R2"]
    low, high = published.message_ratios("S1")
    # the range that the paper itself states
    assert (round(low, 2), round(high, 1)) == (1.25, 9.7)
    for model in published.MESSAGE_R2:
        assert published.message_ratios(model, model) == (1, 1)


def message_us(point: Point) -> float:
    region = region_of(point)
    lower, upper = (float(evaluate(one, {})) for one in region_line_bounds(region, LINE_BYTES))
    return 10 + 1e-3 * float(evaluate(bytes_of(region), {})) + 0.02 * (lower + upper) / 2


def test_a_law_of_lines_is_found_where_messages_follow_one(store: sqlite3.Connection) -> None:
    keep(store, MESSAGES, message_us)
    section = validate_lines(store, "here")
    assert "no samples of collectives" in section.skipped and "of arrays" in section.skipped
    for operation in ("message", "message.column", "message.stride"):
        rows = rows_of(list(section.rows), operation)
        assert rows["R2 of M1"].values["r2"] < 1e-12
        assert rows["R2 of S1"].values["r2"] > 1e-3
        assert rows["R2 of S1"].verdict is Verdict.HOLDS
    low, high = published.message_ratios("S1")
    assert rows["R2 of S1"].paper == f"{low:.2f} .. {high:.2f} of M1"


def test_a_law_without_lines_misses_what_the_paper_claims(store: sqlite3.Connection) -> None:
    noise = random.Random(3)

    def bytes_only(point: Point) -> float:
        size = float(evaluate(bytes_of(region_of(point)), {}))
        return (10 + 1e-3 * size) * noise.uniform(0.9, 1.1)

    keep(store, MESSAGES, bytes_only)
    rows = rows_of(list(validate_lines(store, "here").rows), "message.stride")
    left = {name: rows[f"R2 of {name}"].values["r2"] for name in published.MESSAGE_R2}
    ratio = left["S1"] / left["M1"]
    wanted = Verdict.UNJUDGED if abs(ratio - 1) <= 0.01 else Verdict.of(ratio > 1)
    assert rows["R2 of S1"].verdict is wanted
    assert rows["R2 of M3"].verdict is Verdict.of(min(left.values()) == left["M3"])
    assert max(left["S1"], left["M1"]) < 0.1


def test_scans_are_told_apart_by_their_columns(store: sqlite3.Connection) -> None:
    def law(point: Point) -> float:
        given = point.features
        if "rows" not in given:
            return 5 + 1e-3 * float(given["bytes"])
        rows, columns = float(given["rows"]), float(given["columns"])
        crowded = rows if point.operation == "scan.along" else columns / 16
        return 20 + 1e-3 * rows * columns + 0.5 * crowded

    keep(store, COLLECTIVES, law)
    rows = rows_of(list(validate_lines(store, "here").rows), "scan")
    assert rows["R2, standard over lines model"].verdict is Verdict.HOLDS
    assert "over 100 on the T3E" in {row.paper for row in rows.values()}


def superstep_us(point: Point) -> float:
    hr, hw, total = (float(point.features[name]) for name in ("hr", "hw", "accesses"))
    factor = 1.0 if point.features["family"] == "good" else 20.0
    return 30 + factor * (0.002 * hr + 0.001 * hw + 0.0003 * total)


def test_functions_of_supersteps_are_found_and_judged_by_suite(store: sqlite3.Connection) -> None:
    keep(store, SUPERSTEPS, superstep_us)
    section = validate_supersteps(store, HERE)
    refitted = [row for row in section.rows if "fitted to suite" in row.figure]
    assert {row.operation.split(",")[0] for row in refitted} == {"good", "bad"}
    for row in refitted:
        assert row.values["mean_relative_error"] < 1e-6 and row.verdict is Verdict.HOLDS
        assert row.paper
    # this machine is no Power Challenge
    other = [row for row in section.rows if "profile" in row.figure]
    assert other and all(row.verdict is Verdict.MISSES for row in other)


def test_a_store_without_samples_says_what_to_measure(store: sqlite3.Connection) -> None:
    with pytest.raises(CannotValidateError, match="advise calibrate --name here --only supersteps"):
        validate_supersteps(store, HERE)
    section = validate_lines(store, "here")
    assert not section.rows and "no samples of messages" in section.skipped


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
def test_sorts_sort_and_their_supersteps_take_time() -> None:
    import numpy as np

    from costdb.validation.sort_kernels import run_sort

    random = np.random.default_rng(5)
    for processors, count in ((2, 400), (2, 6000), (1, 3600)):
        keys = random.integers(0, 2**32, count)
        for sort in Sort:
            found, run = run_sort(sort, keys, processors)
            np.testing.assert_array_equal(found, np.sort(keys), str(sort))
            assert run.microseconds > 0 and run.displaced >= 0


@dataclass
class Made:
    microseconds: float
    displaced: int


@given(st.lists(st.integers(0, 3), min_size=MOST_RUNS, max_size=MOST_RUNS))
def test_the_calmest_runs_of_a_sort_count_and_no_more_are_made_than_needed(
    displaced: list[int],
) -> None:
    made: list[Made] = []

    def runs() -> Iterator[Made]:
        for number, times in enumerate(displaced):
            made.append(Made(float(number), times))
            yield made[-1]

    kept = calmest(runs())
    counts = [displaced[int(number)] for number in kept]
    assert len(kept) == RUNS == len(set(kept))
    assert sorted(one.displaced for one in made)[:RUNS] == counts
    calm = [number for number, times in enumerate(displaced) if not times]
    assert len(made) == (calm[RUNS - 1] + 1 if len(calm) >= RUNS else MOST_RUNS)
