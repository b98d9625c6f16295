"""The tables of several calibrations: medians, what is missing, and what is not made again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import calibrations
from benchmarks.calibration_tables import Count, Figure, Run, markdown
from benchmarks.regression_tables import told

STUB = """
import json, sys
at = sys.argv
open({log!r}, "a").write(" ".join(at[4:]) + "\\n")
if {broken!r} and {broken!r} in at:
    sys.exit(3)
if "-o" in at:
    name = at[at.index("--only") + 1] if "--only" in at else ""
    rows = [dict(operation="Sobel", figure="f", verdict="holds", values=dict(error=-0.05))]
    section = dict(name=name, rows=rows, others_busy_cores=0.25)
    summary = dict(median_error=0.1, judged=4, inside=3, median_half_width=0.2, unlike=0, right=0)
    document = dict(summary=summary, others_busy_cores=0.0, sections=[section])
    open(at[at.index("-o") + 1], "w").write(json.dumps(document))
"""


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=5))
def test_the_middle_is_the_median_of_what_is_known(values: list[float | None]) -> None:
    figure = Figure("error", values, str, "50 %", lambda error: error < 0.5)
    known = [value for value in values if value is not None]
    assert figure.middle == (median(known) if known else None)
    assert figure.verdict == ("" if not known else "yes" if median(known) < 0.5 else "NO")


@given(st.lists(st.integers(0, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
                min_size=1, max_size=5))  # fmt: skip
def test_the_middle_of_counts_is_one_of_them(pairs: list[tuple[int, int]]) -> None:
    counts = [Count(*pair) for pair in pairs]
    middle = Figure("inside", counts, str).middle
    assert isinstance(middle, Count) and middle in counts
    assert 2 * sum(one.share < middle.share for one in counts) <= len(counts)
    assert 2 * sum(one.share > middle.share for one in counts) <= len(counts)


def pieces(r2: float, standard: float, error: float, *ends: float) -> dict[str, object]:
    values = {"r2": r2, "r2_standard": standard, "median_error": error}
    values |= dict(zip(("r2_difference_low", "r2_difference_high"), ends, strict=False))
    return {"operation": "message.row", "figure": "R2", "verdict": "holds", "values": values}


def test_lines_are_better_worse_or_the_same_and_what_is_missing_is_a_dash() -> None:
    def line(*rows: dict[str, object]) -> list[str]:
        made = [{"lines": {"rows": [row] if row else [], "others_busy_cores": 0}} for row in rows]
        runs = [Run(str(n), None, None, sections) for n, sections in enumerate(made)]
        (found,) = [one for one in markdown(runs).splitlines() if one.startswith("| message.row")]
        return [cell.strip() for cell in found.split("|")[2:-1]]

    less, more = pieces(0.1, 0.4, 0.02), pieces(0.5, 0.3, 0.3)
    assert line(less)[-4:] == ["0.4 / 0.1, 2.0 %", "-", "yes", "yes"]
    assert line(more, {}, more)[:3] == ["0.3 / 0.5, 30 %", "-", "0.3 / 0.5, 30 %"]
    assert line(more, {}, more)[-2:] == ["NO", "NO"]
    assert line(less, more, less)[-4:] == ["0.4 / 0.1, 2.0 %", "-", "yes", "yes"]
    assert line(pieces(0.2, 0.2, 0.02))[-2:] == ["same by construction", "yes"]
    assert line(pieces(0.1, 0.4, 0.02, -0.5, 0.1))[-2] == "within noise"
    assert line(pieces(0.5, 0.4, 0.02, -0.1, 0.3))[-2] == "within noise"
    assert line(pieces(0.5, 0.4, 0.02, 0.01, 0.3))[-2] == "NO"
    assert line(pieces(0.1, 0.4, 0.02, -0.4, -0.2))[-2] == "yes"


def judged(error: tuple[float, float], r2: tuple[float, float]) -> str:
    ends = {"r2_difference_low": r2[0], "r2_difference_high": r2[1]}
    ends |= {"median_error_difference_low": error[0], "median_error_difference_high": error[1]}
    return told({"r2": 0.1, "r2_standard": 0.1, "median_error": 0.02, **ends})


def test_the_median_error_tells_what_r2_does_not_and_never_against_it() -> None:
    assert judged((-0.3, -0.1), (-0.1, 0.1)) == "yes, by median error"
    assert judged((-0.3, -0.1), (-0.2, -0.1)) == "yes"
    assert judged((-0.3, -0.1), (0.1, 0.2)) == judged((0.1, 0.3), (-0.2, -0.1)) == "NO"
    assert judged((-0.3, 0.1), (-0.1, 0.1)) == "within noise"
    # two R2 that are alike are of one model only where both figures always are
    assert judged((0.0, 0.0), (0.0, 0.0)) == "same by construction"


def test_operations_and_families_have_tables_and_counts_of_their_own() -> None:
    def row(operation: str, scope: float, r2: float, error: float) -> dict[str, object]:
        values = {"scope": scope, "r2": r2, "r2_standard": 0.4, "median_error": error}
        values |= {"repeats_within": 0.03}
        return {"operation": operation, "figure": "R2", "verdict": "holds", "values": values}

    rows = [
        row("message.row", 1, 0.1, 0.02), row("copy float64", 1, 0.1, 0.02),
        row("copy int32", 1, 0.5, 0.12), row("copy", 2, 0.3, 0.04), row("scans", 3, 0.2, 0.05),
    ]  # fmt: skip
    said = markdown([Run("1", None, None, {"lines": {"rows": rows, "others_busy_cores": 0}})])
    for scope, less, under in (
        ("operations and types", "2 of 3", "2 of 3"),
        ("operations, all types", "2 of 2", "2 of 2"),
        ("families of operations", "1 of 1", "1 of 1"),
    ):
        assert f"| {scope}: lines leave less than bytes or elements alone | {less} |" in said
        assert f"| {scope}: median error under 10 %, held out | {under} |" in said
    line = "0.4 / 0.5, 12 % | 0.4 / 0.5, 12 % | 3.0 % | NO | NO |"
    assert f"| copy int32 | {line}" in said
    assert said.count("| message.row |") == 2


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_what_a_directory_has_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, stub, folder = tmp_path / "log", tmp_path / "stub.py", tmp_path / "runs"
    asked = ["calibrations", "--runs", "2", "--dir", str(folder)]
    monkeypatch.setattr(sys, "argv", [*asked, "--under", f"{sys.executable} {stub}"])
    stub.write_text(STUB.format(log=str(log), broken="calibrate"))
    assert calibrations.main() == 1
    assert len(calls(log)) == 2  # without a profile nothing else is begun
    spent = float((folder / "1" / "calibrate.spent").read_text())
    log.unlink()
    stub.write_text(STUB.format(log=str(log), broken="pgas"))
    assert calibrations.main() == 1
    assert len(calls(log)) == 16 and calls(log)[0].startswith("calibrate --report")
    assert json.loads((folder / "1" / "calibrate.json").read_text())["seconds"] > spent > 0
    capsys.readouterr()
    (folder / "1" / "verify.json").unlink()
    assert calibrations.main() == 1
    assert len(calls(log)) == 19
    said = capsys.readouterr()
    assert "7 of 16" in said.err and "ended with 3" in said.err
    assert "| one-sided programs within 15 % | - | - | - | all |  |" in said.out
    stub.write_text(STUB.format(log=str(log), broken=""))
    assert calibrations.main() == 0
    assert len(calls(log)) == 21 and all("pgas" in line for line in calls(log)[19:])
    made = capsys.readouterr().out
    assert "| one-sided programs within 15 % | 1 of 1 | 1 of 1 | 1 of 1 | all | yes |" in made
    assert "| measured times inside the interval | 3 of 4 | 3 of 4 | 3 of 4 | 90 % | NO |" in made
    folders = [str(folder / name) for name in "12"]
    monkeypatch.setattr(sys, "argv", ["calibrations", "--from", *folders])
    assert calibrations.main() == 0
    assert capsys.readouterr().out == made and len(calls(log)) == 21
