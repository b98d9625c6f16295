"""``advise validate``: sections are made or skipped, and what they run is what is priced."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import fmean, mean
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.app import main
from advisor.report.style import Style
from advisor.report.validation import ValidationReport, as_json, as_text
from advisor.validation import remote
from advisor.validation.choices import CHOICES
from advisor.validation.crossover import Pair, rows_of, threshold
from advisor.validation.predicted import kernel_of
from advisor.validation.programs import DISTRIBUTED, Ready
from advisor.validation.ranks import (
    Job,
    Times,
    examples_folder,
    left_out,
    run_in_rounds,
    run_jobs,
)
from advisor.validation.sections import SECTIONS, Context, make_sections
from advisor.validation.worker import FEWEST, PATIENCE, WARM_UPS, Sample, timed, undisturbed
from costdb.machines import load_machine
from costdb.validation.results import CannotValidateError, Row, Section, Verdict, percent

ROOT = Path(__file__).parents[3]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
SCHEMA = json.loads((files("advisor") / "report" / "validation.schema.json").read_text())
needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="MPI is not installed")


@pytest.fixture(autouse=True)
def data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path))


texts = st.text("ab %.<é\n", max_size=8)
numbers = st.floats()
rows = st.builds(
    Row,
    texts, texts, texts, texts, texts, texts,
    st.sampled_from(list(Verdict)),
    st.dictionaries(texts, numbers, max_size=2),
    texts,
)  # fmt: skip
sections = st.builds(
    Section, texts, texts, st.lists(rows, max_size=3), st.tuples(texts), st.just("") | texts
)


@given(st.lists(sections, max_size=3))
def test_reports_hold_every_row_and_count_every_verdict(made: list[Section]) -> None:
    report = ValidationReport("here", "made up", "now", made)
    document = json.loads(as_json(report))
    jsonschema.validate(document, SCHEMA)
    every = [row for section in made for row in section.rows]
    assert sum(len(one["rows"]) for one in document["sections"]) == len(every)
    held = sum(row.verdict is Verdict.HOLDS for row in every)
    missed = sum(row.verdict is Verdict.MISSES for row in every)
    last = as_text(report, Style()).splitlines()[-1]
    assert last == f"{held} of {held + missed} figures hold, {missed} miss"


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


def test_what_was_found_is_stored_and_a_section_without_rows_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = Row("smp", "suite 2", "error", "7 %", "study", "5.1 %", Verdict.HOLDS, {"e": 0.051})
    made = {
        "smp": Section("smp", "S", [row, replace(row, values={"e": float("inf")})]),
        "sorts": Section("sorts", "T", skipped="needs two cores"),
    }
    for name, section in made.items():
        monkeypatch.setattr(f"advisor.validation.fits.{name}", lambda context, it=section: it)
    document = {**json.loads((ROOT / "machine_profiles" / "t3e.json").read_text()), "name": "here"}
    (tmp_path / "here.json").write_text(json.dumps(document))
    assert main(["machine", "import", str(tmp_path / "here.json")]) == 0
    assert main(["validate", "--only", "smp", "--only", "sorts"]) == 0
    capsys.readouterr()
    assert main(["machine", "show", "here", "--output-format", "json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["machine"]["results"]
    assert (kept["command"], kept["subject"]) == ("validate", "smp")
    assert [one["values"] for one in kept["found"]["rows"]] == [{"e": 0.051}, {"e": None}]
    assert main(["machine", "show", "here"]) == 0
    (shown, _) = [line for line in capsys.readouterr().out.splitlines() if "validate smp" in line]
    assert shown.split("  ")[0] == "validate smp: suite 2" and "holds" in shown


def test_an_explanation_tells_how_well_the_models_it_uses_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdicts = Verdict.HOLDS, Verdict.MISSES, Verdict.UNJUDGED, Verdict.HOLDS
    made = {
        model: Section(model, "T", [Row(model, "o", "f", "", "", "1", one) for one in verdicts])
        for model in ("lines", "smp")
    }
    for name, section in made.items():
        monkeypatch.setattr(f"advisor.validation.fits.{name}", lambda context, it=section: it)
    document = {**json.loads((ROOT / "machine_profiles" / "t3e.json").read_text()), "name": "here"}
    (tmp_path / "here.json").write_text(json.dumps(document))
    assert main(["machine", "import", str(tmp_path / "here.json")]) == 0
    place = f"{ROOT / 'examples' / 'box_sum.py'}:35"
    assert main(["explain", place]) == 0
    assert "how well" not in capsys.readouterr().out
    assert main(["validate", "--only", "lines", "--only", "smp"]) == 0
    capsys.readouterr()
    assert main(["explain", place, "--output-format", "json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    (said,) = finding["how_well"]
    assert said.startswith("lines: 2 of 3 figures hold (advise validate lines, 20")
    assert main(["explain", place]) == 0
    assert "found here  lines: 2 of 3 figures hold" in capsys.readouterr().out


def test_without_mpi_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.validation.ranks.find_spec", lambda name: None)
    with pytest.raises(CannotValidateError, match=r"kernel-advisor\[calibrate\]"):
        next(run_jobs([Job(("matmul held",), {"N": 4})]))


def test_a_section_that_fails_costs_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: Context) -> Section:
        raise ZeroDivisionError("of\nall things")

    monkeypatch.setattr("advisor.validation.fits.smp", broken)
    monkeypatch.setattr("advisor.validation.fits.lines", lambda context: Section("lines", "L"))
    made = list(make_sections(("smp", "lines"), Context(load_machine("t3e"))))
    assert [one.name for one in made] == ["smp", "lines"]
    assert made[0].skipped == "failed: ZeroDivisionError('of\\nall things')"
    assert not made[1].skipped


@pytest.mark.parametrize("cores", [None, 0.1, 0.9])
def test_a_disturbed_section_says_so(monkeypatch: pytest.MonkeyPatch, cores: float | None) -> None:
    monkeypatch.setattr("advisor.validation.fits.lines", lambda context: Section("lines", "L"))
    monkeypatch.setattr("advisor.validation.sections.Bystanders.busy_cores", lambda self: cores)
    (made,) = make_sections(("lines",), Context(load_machine("t3e")))
    assert ["0.9 cores busy" in note for note in made.notes] == ([True] if cores == 0.9 else [])


def test_every_section_can_be_found() -> None:
    from importlib import import_module

    for place in SECTIONS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


@given(st.dictionaries(st.integers(1, 30), st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_a_threshold_is_where_the_scan_begins_to_win(
    times: dict[int, tuple[int, int]],
) -> None:
    found = threshold([(b, *map(float, pair)) for b, pair in times.items()])
    limits = [*sorted(times), 99]

    def exceptions(limit: int) -> int:
        return sum((scan < shifts) != (b >= limit) for b, (shifts, scan) in times.items())

    least = min(map(exceptions, limits))
    wanted = next(limit for limit in limits if exceptions(limit) == least)
    assert found == (None if wanted == 99 else wanted)


def test_a_wrong_threshold_says_what_it_costs() -> None:
    pairs = [Pair(b, (1.0 * b, 5.5), (1.0 * b, 7.5)) for b in range(2, 12)]
    crossing, decisions = rows_of("box sum", pairs)
    assert crossing.verdict is Verdict.MISSES
    assert crossing.ours == "8, predicted 6"
    # at b = 6 the scan takes 7.5 and shifts 6; at 7 and 8 they are too near to be judged
    assert crossing.remark == "following the prediction costs at most 25%, at b = 6"
    assert decisions.values == {"right": 7.0, "judged": 8.0}


@pytest.mark.parametrize("choice", CHOICES, ids=lambda one: f"{one.program} {one.kernel}")
def test_ways_are_other_distributions_of_one_kernel_and_have_programs(choice: Any) -> None:
    path = examples_folder() / choice.file
    kernels = [kernel_of(path, choice.kernel, way.changes)[0] for way in choice.ways]
    specs = [{name: array.spec for name, array in one.arrays.items()} for one in kernels]
    assert specs[0] != specs[1] and kernels[0].body == kernels[1].body
    for way, kernel in zip(choice.ways, kernels, strict=True):
        assert way.program in DISTRIBUTED
        meshes = {array.spec.mesh.axes for array in kernel.arrays.values()}
        assert {extent for axes in meshes for _, extent in axes} <= {2, "P"}


def test_thresholds_agree_where_only_ties_lie_between() -> None:
    pairs = [Pair(b, (1.0 * b, 6.5), (1.0 * b, 7.2)) for b in range(2, 12)]
    crossing, _ = rows_of("box sum", pairs)
    assert crossing.ours == "8, predicted 7" and crossing.verdict is Verdict.HOLDS


def test_an_example_that_was_changed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "matmul.py"
    file.write_text((examples_folder() / "matmul.py").read_text().replace("rank=16", "rank=8"))
    with pytest.raises(CannotValidateError, match="another version"):
        kernel_of(file, "matmul", CHOICES[0].first.changes)


@needs_mpi
def test_programs_give_what_the_kernels_give_that_are_priced() -> None:
    done = subprocess.run(
        [MPIEXEC, "-n", "2", sys.executable, "tests/validation_twins.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the same on 2" in done.stdout


@needs_mpi
def samples(*calm: bool) -> list[Sample]:
    return [Sample(float(number), one) for number, one in enumerate(calm)]


@given(st.lists(st.booleans(), max_size=12))
def test_disturbed_repetitions_count_only_where_there_are_too_few_others(calm: list[bool]) -> None:
    kept = undisturbed(samples(*calm))
    expected = [number for number, one in enumerate(calm) if one]
    assert kept == (expected if len(expected) >= FEWEST else list(range(len(calm))))


class Alone:
    """A communicator of one rank, and a clock of the processor that a test stops."""

    def Barrier(self) -> None:  # noqa: N802
        pass

    def allreduce(self, value: Any, op: Any) -> Any:
        return value


def test_what_is_disturbed_is_done_again_until_patience_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("mpi4py")
    stolen = iter([0, 0, 9, 9, 9, *[0] * 99])  # 2 warm-ups, then 3 repetitions off the core
    clock = {"passed": 0, "ran": 0}

    def run() -> None:
        clock["ran"] += 1_000_000
        clock["passed"] += 1_000_000 * (1 + next(stolen))

    monkeypatch.setattr("time.perf_counter_ns", lambda: clock["passed"])
    monkeypatch.setattr("time.process_time_ns", lambda: clock["ran"])
    (taken,) = timed([Ready(run)], Alone(), seconds=0.03)
    assert [sample.calm for sample in taken[:4]] == [False] * 3 + [True]
    assert undisturbed(taken) == [1000.0] * (len(taken) - 3)
    assert sum(sample.calm for sample in taken) >= FEWEST
    stolen = iter([9] * 200)
    (taken,) = timed([Ready(run)], Alone(), seconds=0.1)
    assert undisturbed(taken) == [10_000.0] * len(taken)
    assert len(taken) + WARM_UPS == 1 + int(PATIENCE * 0.1 / 0.01)
    times = Times(1.0, 1.0, 1.0, 5, 3), Times(1.0, 1.0, 1.0, 7, 0)
    assert left_out(times[1:]) == () and "3 of 15" in left_out(times)[0]


def test_ways_of_a_job_are_timed_on_ranks_and_failures_told() -> None:
    jobs = [Job(("matmul gathered", "matmul held"), {"N": 8})]
    ((gathered, held),) = run_jobs(jobs, seconds=0.01)
    for times in (gathered, held):
        assert 0 < times.low_us <= times.median_us <= times.high_us
    found = run_jobs([*jobs, Job(("no such program",), {})], seconds=0.01)
    next(found)
    with pytest.raises(CannotValidateError, match=r"after 1 of 2 jobs: KeyError"):
        next(found)


def test_rounds_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # the first job is disturbed in the first round, the second one in the last
    rounds = [(9.0, 2.0), (3.0, 2.0), (2.0, 2.0), (4.0, 2.0), (3.0, 8.0)]
    asked: list[float] = []

    def run(jobs: Sequence[Job], seconds: float) -> Iterator[tuple[Times, ...]]:
        asked.extend([len(jobs), seconds])
        for us in (us for both in rounds for us in both):
            yield (Times(us, us - 1, us + 1, 5, 1, (us - 0.5, us + 0.5)),)

    monkeypatch.setattr("advisor.validation.ranks.run_jobs", run)
    jobs = [Job((name,), {}) for name in "ab"]
    told: list[float] = []
    assert run_in_rounds(jobs, told.append, 0.3) == [
        (Times(fmean([3.0, 3.0, 4.0]), 1.0, 10.0, 25, 5, (2.5, 3.5)),),
        (Times(2.0, 1.0, 9.0, 25, 5, (1.5, 2.5)),),
    ]
    assert asked == [10, pytest.approx(0.06)]
    assert told == [number / 10 for number in range(1, 11)]


@pytest.mark.parametrize(("drawn", "ranks"), [(1, 2), (3, 2), (4, 3)])
def test_the_slowest_rank_draws_most_elements_of_others(drawn: int, ranks: int) -> None:
    # draws of one rank, each of an element of its own (0) or of another rank, all as likely
    of_a_rank = [
        sum(owner > 0 for owner in all_of) for all_of in product(range(ranks), repeat=drawn)
    ]
    brute = mean(max(those) for those in product(of_a_rank, repeat=ranks))
    assert remote.most_of_others(drawn, ranks) == pytest.approx(brute)


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(remote, "_products", lambda: iter(()))
    monkeypatch.setattr(remote, "_edges", lambda: iter(()))
    yield


@needs_mpi
def test_remote_programs_are_run_and_judged(one_case: None) -> None:
    # a machine whose every remote reference takes decades of what this one needs
    told: list[float] = []
    machine = replace(load_machine("bupc"), name="here")
    section = remote.remote(Context(machine, lambda doing, share: told.append(share)))
    assert [row.verdict for row in section.rows] == [Verdict.MISSES] * 3
    assert all(row.values["predicted_us"] > row.values["private_us"] for row in section.rows)
    assert told[-1] == 1
    assert section.rows[0].paper == f"up to {percent(0.098)}"


def test_a_machine_without_rates_is_told() -> None:
    with pytest.raises(CannotValidateError):
        remote.remote(Context(load_machine("sp2")))


def test_of_box_sums_only_what_is_compared_is_run(monkeypatch) -> None:
    """Scans along one axis alone are proposed too, and took half of the time of the section."""
    from advisor.validation import crossover
    from advisor.verify import running

    machine = load_machine("t3e")
    kernel, _ = kernel_of(examples_folder() / "box_sum.py", "box_sum")
    ran: list[tuple[str, ...]] = []

    def measured(case, effort):
        ran.append(tuple(variant.title for variant in case.variants))
        return [running.Measured(1.0, 1.0, 1.0, True) for _ in case.variants]

    monkeypatch.setattr(running, "measure", measured)
    monkeypatch.setattr(crossover, "keep", lambda *_: None)
    assert [pair.b for pair in crossover._sequential(500, machine)] == list(crossover.BOXES)
    assert set(ran) == {("as written", crossover._by_scan(kernel)[1])}
