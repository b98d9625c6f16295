"""``advise validate``: sections are made or skipped, and what they run is what is priced."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.app import main
from advisor.report.style import Style
from advisor.validation import figures as doing
from advisor.validation.experiments import (
    CannotValidateError,
    Case,
    Experiment,
    Figure,
    Job,
    Kind,
    Outcome,
    Row,
    Section,
    Times,
    ValidationReport,
    Verdict,
    Way,
    as_json,
    as_text,
    load_experiment,
    run_in_rounds,
    run_jobs,
)
from advisor.validation.figures import make_sections, rows_of, threshold
from advisor.validation.worker import (
    FEWEST,
    MOST,
    Alone,
    repeated,
)
from costdb.evaluate import Estimate, Seconds
from costdb.machines import load_machine
from costdb.quantity import Provenance

ROOT = Path(__file__).parents[3]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
SCHEMA = json.loads((files("advisor") / "report" / "validation.schema.json").read_text())
needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="MPI is not installed")


@pytest.fixture(autouse=True)
def data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path))


def test_reports_hold_every_row_and_count_every_verdict() -> None:
    numbers = {"e": 0.05, "inf": float("inf"), "nan": float("nan")}
    rows = [
        Row("smp", "a b\n", "<f>", "7 %", "é", "5 %", one, numbers, "why") for one in Verdict
    ] * 2
    made = [Section("s", "S", rows, ("note",)), Section("t", "T", skipped="needs two cores")]
    report = ValidationReport("here", "made up", "now", made)
    document = json.loads(as_json(report))
    jsonschema.validate(document, SCHEMA)
    assert [len(one["rows"]) for one in document["sections"]] == [6, 0]
    assert document["sections"][0]["rows"][0]["values"] == {"e": 0.05, "inf": None, "nan": None}
    assert as_text(report, Style()).splitlines()[-1] == "2 of 4 figures hold, 2 miss"


def test_sections_that_cannot_be_made_are_told_and_the_exit_code_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["validate", "--machine", "here"]) == 2
    assert "not calibrated yet" in capsys.readouterr().err
    assert main(["validate", "--machine", "t3e", "--only", "nothing"]) == 2
    assert "no such section, only lines, smp" in capsys.readouterr().err
    asked = ["validate", "--machine", "t3e", "--only", "lines", "--only", "smp"]
    assert main([*asked, "--output-format", "json", "-o", str(tmp_path / "out.json")]) == 2
    err = capsys.readouterr().err
    assert "smp: skipped: no samples of supersteps are stored for t3e" in err
    document = json.loads((tmp_path / "out.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert [one["name"] for one in document["sections"]] == ["lines", "smp"]
    assert all(one["skipped"] and not one["rows"] for one in document["sections"])


def test_what_was_found_is_stored_and_explained_and_a_section_without_rows_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdicts = Verdict.HOLDS, Verdict.MISSES, Verdict.UNJUDGED, Verdict.HOLDS
    values = [{"e": 0.051}, {"e": float("inf")}, {}, {}]
    rows = [
        Row("lines", "suite 2", "error", "7 %", "study", "5.1 %", *one)
        for one in zip(verdicts, values, strict=True)
    ]
    made = {
        "lines": Section("lines", "S", rows),
        "sorts": Section("sorts", "T", skipped="needs two cores"),
    }
    monkeypatch.setattr(doing, "do", lambda name, *_: made[name])
    document = {**json.loads((ROOT / "machine_profiles" / "t3e.json").read_text()), "name": "here"}
    (tmp_path / "here.json").write_text(json.dumps(document))
    assert main(["machine", "import", str(tmp_path / "here.json")]) == 0
    place = f"{ROOT / 'examples' / 'box_sum.py'}:35"
    assert main(["explain", place]) == 0
    assert "how well" not in capsys.readouterr().out
    assert main(["validate", "--only", "lines", "--only", "sorts"]) == 0
    capsys.readouterr()
    assert main(["machine", "show", "here", "--output-format", "json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["machine"]["results"]
    assert (kept["command"], kept["subject"]) == ("validate", "lines")
    assert [one["values"] for one in kept["found"]["rows"]] == [{"e": 0.051}, {"e": None}, {}, {}]
    assert main(["machine", "show", "here"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if "validate lines" in line]
    assert shown[0].split("  ")[0] == "validate lines: suite 2" and "holds" in shown[0]
    assert main(["explain", place, "--output-format", "json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    (said,) = finding["how_well"]
    assert said.startswith("lines: 2 of 3 figures hold (advise validate lines, 20")
    assert main(["explain", place]) == 0
    assert "found here  lines: 2 of 3 figures hold" in capsys.readouterr().out


def test_without_mpi_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("costdb.launch.processes.find_spec", lambda name: None)
    with pytest.raises(CannotValidateError, match=r"kernel-advisor\[calibrate\]"):
        next(run_jobs([Job(("matmul held",), {"N": 4})], 2, 0.1))


def test_a_section_that_fails_costs_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def do(name: str, *_: object) -> Section:
        if name == "smp":
            raise ZeroDivisionError("of\nall things")
        return Section("lines", "L")

    monkeypatch.setattr(doing, "do", do)
    made = list(make_sections(("smp", "lines"), load_machine("t3e"), lambda *_: None))
    assert [one.name for one in made] == ["smp", "lines"]
    assert made[0].skipped == "failed: ZeroDivisionError('of\\nall things')"
    assert not made[1].skipped


@pytest.mark.parametrize("cores", [None, 0.1, 0.9])
def test_a_disturbed_section_says_so(monkeypatch: pytest.MonkeyPatch, cores: float | None) -> None:
    monkeypatch.setattr(doing, "do", lambda *_: Section("lines", "L"))
    monkeypatch.setattr("advisor.validation.figures.Bystanders.busy_cores", lambda self: cores)
    (made,) = make_sections(("lines",), load_machine("t3e"), lambda *_: None)
    assert ["0.9 cores busy" in note for note in made.notes] == ([True] if cores == 0.9 else [])


PROGRAM = """
from types import SimpleNamespace

def fast(comm, sizes):
    return SimpleNamespace(run=lambda: 1e-3 * sizes["n"])

def slow(comm, sizes):
    return SimpleNamespace(run=lambda: 4e-3)
"""


def test_an_experiment_of_ones_own_is_done_by_the_path_of_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advisor.validation.experiments.examples_folder", lambda: tmp_path)
    (tmp_path / "own.py").write_text(PROGRAM)
    group = {"count": "n*1000", "threads": 2, "pattern": "local"}
    ways = [
        {"name": name, "references": [group], "program": f"own.py:{name}"}
        for name in ("fast", "slow")
    ]
    case = {
        "operation": "mine",
        "sizes": {"n": [1, 2, 8]},
        "ways": ways,
        "figures": [{"kind": "order"}, {"kind": "error", "at_most": 0.5}],
    }
    stated = {"title": "t", "model": "pgas", "source": "s", "notes": [], "cases": [case]}
    (tmp_path / "own.json").write_text(json.dumps({**stated, "seconds": 0.01}))
    (made,) = make_sections((str(tmp_path / "own.json"),), load_machine("mupc"), lambda *_: None)
    assert not made.skipped and made.name == "own"
    # both are predicted alike, so the order is right where it says that the second is no faster
    assert [row.verdict.value for row in made.rows] == ["misses", "misses", "holds", "misses"]
    assert made.rows[0].here.startswith("fast < slow, 4.00x")
    assert made.rows[3].operation == "mine" and "over 6 runs" in made.rows[3].here


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "not JSON"),
        ('{"title": "t"}', '"model" is missing'),
        (
            '{"title": "t", "model": "m", "source": "s", "notes": [], "csaes": []}',
            "/csaes: unknown key: nearest are cases",
        ),
        (
            '{"title": "t", "model": "m", "source": "s", "notes": [], "cases": [{"operation": "o",'
            '"sizes": {"n": ["x"]}, "ways": [], "figures": []}]}',
            "/cases/0/sizes/n/0: expected a number",
        ),
    ],
)
def test_what_is_wrong_with_a_document_is_told_with_its_place(
    tmp_path: Path, wrong: str, said: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(wrong)
    with pytest.raises(CannotValidateError, match=said) as raised:
        load_experiment(str(path))
    assert str(raised.value).startswith(f"{path}: ") and "\n" not in str(raised.value)
    with pytest.raises(CannotValidateError, match="No such file"):
        load_experiment(str(tmp_path / "none.json"))


@given(st.dictionaries(st.integers(1, 30), st.booleans()))
def test_a_threshold_is_where_the_second_way_begins_to_win(wins: dict[int, bool]) -> None:
    limits = [*sorted(wins), 99]

    def exceptions(limit: int) -> int:
        return sum(won != (size >= limit) for size, won in wins.items())

    least = min(map(exceptions, limits))
    wanted = next(limit for limit in limits if exceptions(limit) == least)
    assert threshold(wins) == (None if wanted == 99 else wanted)


def estimate(seconds: float) -> Estimate:
    low, mid, high = (Seconds(seconds * factor) for factor in (0.9, 1, 1.1))
    return Estimate(low, mid, high, (), Provenance.MEASURED, True)


def figures(
    kind: Kind, at_b: dict[int, tuple[tuple[float, float], tuple[float, float]]], **more: Any
) -> list[Row]:
    """Return the figures of two ways, predicted and measured in seconds at each b."""
    figure = Figure(kind, **more)
    case = Case("box sum", {"b": tuple(at_b)}, (Way("shifts"), Way("scan")), (figure,))
    found = [
        Outcome(
            case,
            {"b": b},
            tuple(estimate(one) for one in predicted),
            tuple(Times(one, (one, one)) for one in taken),
        )
        for b, (predicted, taken) in at_b.items()
    ]
    return list(rows_of(Experiment("e", "t", "m", "s", (), 1, 1, 0.1, (case,), None), found))


def test_a_wrong_threshold_says_what_it_costs_and_ties_between_count_for_none() -> None:
    pairs = {b: ((1.0 * b, 5.5), (1.0 * b, 7.5)) for b in range(2, 12)}
    crossing, decisions = figures("threshold", pairs, over="b")
    assert crossing.verdict is Verdict.MISSES
    assert crossing.here == "8, predicted 6"
    # at b = 6 the scan takes 7.5 and shifts 6; at 7 and 8 they are too near to be judged
    assert crossing.remark == "following the prediction costs at most 25%, at b = 6"
    assert decisions.values == {"right": 7.0, "judged": 8.0}
    pairs = {b: ((1.0 * b, 6.5), (1.0 * b, 7.2)) for b in range(2, 12)}
    crossing, _ = figures("threshold", pairs, over="b")
    assert crossing.here == "8, predicted 7" and crossing.verdict is Verdict.HOLDS


times = st.floats(1e-6, 1e3)


@given(st.tuples(times, times), st.tuples(times, times))
def test_what_is_predicted_as_it_is_measured_holds(
    predicted: tuple[float, float], taken: tuple[float, float]
) -> None:
    for kind in ("order", "error", "inside"):
        for row in figures(kind, {1: (taken, taken)}, at_most=0.01):
            assert row.verdict is not Verdict.MISSES
    (order,) = figures("order", {1: (predicted, taken)})
    apart = max(taken) >= 1.1 * min(taken)
    same = (predicted[0] < predicted[1]) == (taken[0] < taken[1])
    assert order.verdict is (Verdict.of(same) if apart else Verdict.UNJUDGED)
    (error,) = figures("error", {1: (predicted, taken)}, at_most=0.2)
    mean = sum(abs(told / own - 1) for told, own in zip(predicted, taken, strict=True)) / 2
    assert error.values["mean_error"] == pytest.approx(mean)
    assert error.verdict is Verdict.of(mean <= 0.2)


def test_programs_are_repeated_for_so_long_and_a_few_times_at_least() -> None:
    for each_s, least in ((1e-2, FEWEST), (1e-4, FEWEST + 1)):
        taken = repeated(SimpleNamespace(run=lambda: each_s), Alone(), seconds=2e-3)  # noqa: B023
        assert least <= len(taken) <= MOST and set(taken) == {each_s}


@needs_mpi
def test_programs_of_a_job_are_timed_on_ranks_and_failures_told() -> None:
    file = "studies/distributions.py"
    jobs = [Job((f"{file}:matmul_gathered", f"{file}:matmul_held"), {"N": 8})]
    ((gathered, held),) = run_jobs(jobs, 2, seconds=0.01)
    for times in (gathered, held):
        assert 0 < times.taken_s[0] <= times.seconds <= times.taken_s[-1]
    found = run_jobs([*jobs, Job((f"{file}:no_such_program",), {})], 2, seconds=0.01)
    next(found)
    with pytest.raises(CannotValidateError, match=r"after 1 of 2 jobs: KeyError"):
        next(found)


def test_rounds_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # the first job is disturbed in the first round, the second one in the last
    rounds = [(9.0, 2.0), (3.0, 2.0), (2.0, 2.0), (4.0, 2.0), (3.0, 8.0)]
    asked: list[float] = []

    def run(jobs: Sequence[Job], ranks: int, seconds: float) -> Iterator[tuple[Times, ...]]:
        asked.extend([len(jobs), ranks, seconds])
        for taken in (one for both in rounds for one in both):
            yield (Times(taken, (taken,)),)

    monkeypatch.setattr("advisor.validation.experiments.run_jobs", run)
    jobs = [Job((name,), {}) for name in "ab"]
    told: list[float] = []
    assert run_in_rounds(jobs, 2, 0.3, 5, told.append) == [
        (Times(fmean([3.0, 3.0, 4.0]), (2.0, 3.0, 3.0, 4.0, 9.0)),),
        (Times(2.0, (2.0, 2.0, 2.0, 2.0, 8.0)),),
    ]
    assert asked == [10, 2, pytest.approx(0.06)]
    assert told == [number / 10 for number in range(1, 11)]
