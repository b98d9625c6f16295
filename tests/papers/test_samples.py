"""Models on stored samples: laws that were put in come out, as the studies' figures say."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from advisor.validation.experiments import Section, Verdict
from advisor.validation.figures import do
from costdb.calibration.campaign import Measured
from costdb.calibration.messages import LINE_BYTES, region_of
from costdb.calibration.messages import SECTION as MESSAGES
from costdb.calibration.section import Effort, Point
from costdb.calibration.section import Section as Calibrated
from costdb.calibration.supersteps import SECTION as SUPERSTEPS
from costdb.expr import evaluate
from costdb.lines.coefficients import bytes_of, region_line_bounds
from costdb.machines import load_machine
from costdb.store.database import MEASURED, Result, add_result, writing
from tests.costdb.hosts import EPYC

HERE = replace(load_machine("powerchallenge"), name="here")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path))
    with writing() as connection:
        yield connection


def keep(
    connection: sqlite3.Connection, section: Calibrated, law_us: Callable[[Point], float]
) -> None:
    """Store a calibration of one section, whose every sample is what a law says."""
    points = section.points(Effort.FULL, 2, EPYC)
    visits = [(at, [law_us(point)] * 3) for at, point in enumerate(points)]
    stated = [(one.operation, dict(one.features), one.held_out) for one in points]
    found = Measured("now 1", "quick", "1", stated, [{"setting": {}, "visits": visits}])
    add_result(connection, Result("here", MEASURED, section.name, asdict(found)))


def made(name: str) -> Section:
    return do(name, HERE, lambda *_: None)


def message_us(point: Point) -> float:
    region = region_of(point)
    lower, upper = (float(evaluate(one, {})) for one in region_line_bounds(region, LINE_BYTES))
    return 10 + 1e-3 * float(evaluate(bytes_of(region), {})) + 0.02 * (lower + upper) / 2


def test_a_law_of_lines_is_found_where_messages_follow_one(store: sqlite3.Connection) -> None:
    keep(store, MESSAGES, message_us)
    section = made("lines")
    assert "no samples of collectives" in section.skipped
    rows = {row.operation: row for row in section.rows}
    for operation in ("message.column", "message.stride"):
        assert rows[operation].values["mean_relative_error"] < 0.05
        assert rows[operation].verdict is Verdict.UNJUDGED


def superstep_us(point: Point) -> float:
    hr, hw, total = (float(point.features[name]) for name in ("hr", "hw", "accesses"))
    factor = 1.0 if point.features["family"] == "good" else 20.0
    return 30 + factor * (0.002 * hr + 0.001 * hw + 0.0003 * total)


def test_functions_of_supersteps_are_found_and_judged(store: sqlite3.Connection) -> None:
    keep(store, SUPERSTEPS, superstep_us)
    rows = made("smp").rows
    assert {row.operation for row in rows} == {"superstep.good.p2", "superstep.bad.p2"}
    for row in rows:
        assert row.values["mean_relative_error"] < 1e-3 and row.verdict is Verdict.HOLDS


def test_a_law_that_the_functions_do_not_follow_misses(store: sqlite3.Connection) -> None:
    keep(
        store, SUPERSTEPS, lambda point: superstep_us(point) * (1 + float(point.features["h"]) % 3)
    )
    assert Verdict.MISSES in {row.verdict for row in made("smp").rows}


def test_a_store_without_samples_says_what_to_measure(store: sqlite3.Connection) -> None:
    assert "advise calibrate --name here --only supersteps" in made("smp").skipped
    section = made("lines")
    assert not section.rows and "no samples of messages" in section.skipped
