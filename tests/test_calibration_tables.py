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
from benchmarks.calibration_tables import Count, Figure

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
    log.unlink()
    stub.write_text(STUB.format(log=str(log), broken="pgas"))
    assert calibrations.main() == 1
    assert len(calls(log)) == 16 and calls(log)[0].startswith("calibrate --report")
    assert json.loads((folder / "1" / "calibrate.json").read_text())["seconds"] > 0
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
