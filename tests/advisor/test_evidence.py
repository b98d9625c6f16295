"""What was measured of a suggestion stands beside its prediction, in every report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.app import main
from advisor.evidence import AFTER, BEFORE, BUILT
from advisor.verify.cases import speed_up
from advisor.verify.running import keep
from costdb.documents import store_profile
from costdb.evaluate import Ratio
from costdb.machines import load_machine
from costdb.store.database import writing
from costdb.store.evidence import Evidence, add_evidence
from costdb.store.place import store_path
from tests.advisor.verify.commented_kernel import box_sum_text

KERNEL = box_sum_text(1000, 9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def store(
    size: int,
    measured: float,
    file: str = "kernel.py",
    machine: str = "t3e",
    title: str = "",
    **more: str,
) -> None:
    circumstances = {"date": "2026-11-21T10:00:00+00:00", "ranks": "1", "file": file}
    circumstances |= {"title": title, **more}
    ratio = Ratio(measured - 0.1, measured, measured + 0.1)
    one = Evidence(
        machine,
        "box_sum",
        "ADV201",
        {"N": size, "b": 9},
        Ratio(1.0, 1.9, 2.0),
        ratio,
        circumstances,
    )
    with writing() as connection:
        add_evidence(connection, one)


def test_an_edit_that_gave_other_results_is_not_offered_as_a_fix(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_finding() -> tuple[str, list[str]]:
        main(["kernel.py", "-m", "t3e", "--output-format", "json", "--select", "ADV201"])
        (one,) = json.loads(capsys.readouterr().out)["findings"]
        assert (one["fix"]["applicability"] == "display") == (
            "gave other results with it" in one["fix"]["legality"]
        )
        return one["fix"]["applicability"], one["evidence"]["measured"]

    assert of_finding()[0] == "unsafe"
    store(1000, 3.0, results="differ")
    # a speed-up of something else is no evidence, and a later run at other sizes takes nothing back
    store(2000, 3.0)
    applicability, measured = of_finding()
    assert applicability == "display" and "N = 1000" not in " ".join(measured)
    assert main(["kernel.py", "-m", "t3e", "--fix", "--unsafe-fixes", "--select", "ADV201"]) == 1
    assert (folder / "kernel.py").read_text() == KERNEL
    capsys.readouterr()
    store(1000, 3.0, results="equal")
    assert of_finding()[0] == "unsafe"


def shifts(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["kernel.py", "--machine", "t3e", "--output-format", "json", "--exit-zero"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    return next(one for one in findings if one["code"] == "ADV201")


def measured_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return shifts(capsys)["evidence"]["measured"]


def test_evidence_is_shown_at_its_sizes_and_the_cache_notices_new(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measured_lines(capsys) == []
    store(500, 1.4)
    assert measured_lines(capsys) == [
        "at other sizes: on t3e 2026-11-21 on 1 process, N = 500, b = 9: 1.40x (1.30x .. 1.50x),"
        " predicted 1.90x"
    ]
    store(1000, 2.1)
    wanted = (
        "on t3e 2026-11-21 on 1 process, N = 1000, b = 9: 2.10x (2.00x .. 2.20x), predicted 1.90x"
    )
    assert measured_lines(capsys) == [wanted]
    assert main(["kernel.py", "--machine", "t3e", "--exit-zero"]) == 0
    assert "  trust  on t3e 2026-11-21 on 1 process" in capsys.readouterr().out
    assert main(["explain", "kernel.py:8", "--machine", "t3e", "--output-format", "json"]) == 0
    explained = json.loads(capsys.readouterr().out)["findings"]
    assert [wanted] in [one["evidence"]["measured"] for one in explained]


@pytest.mark.parametrize(("measured", "word"), [(1.4, "confirmed"), (0.8, "contradicted")])
def test_a_run_of_the_built_program_confirms_or_contradicts(
    folder: Path, capsys: pytest.CaptureFixture[str], measured: float, word: str
) -> None:
    store(1000, measured, ranks="2", of=BUILT)
    (line,) = measured_lines(capsys)
    assert line.startswith(f"{word} by a run: on t3e 2026-11-21 on 2 ranks, N = 1000, b = 9: ")
    assert f"{measured:.2f}x of the built program" in line


def test_evidence_of_other_files_and_machines_is_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(1000, 2.1, file="other.py")
    store(1000, 2.2, machine="e5000")
    store(1000, 2.3, title="do something else")
    assert measured_lines(capsys) == []
    store(1000, 2.4, title=shifts(capsys)["message"].partition(": ")[2])
    assert len(measured_lines(capsys)) == 1


def test_a_lint_run_for_a_calibrated_machine_shows_what_was_measured_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(json.dumps(load_machine("t3e").document))
    store_profile({**document, "name": "here"}, "made up")
    store(1000, 2.1, machine="here")
    main(["kernel.py", "--no-cache", "--exit-zero"])
    assert "on here 2026-11-21 on 1 process" in capsys.readouterr().out


def test_a_damaged_store_costs_no_finding(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(1000, 2.1)
    with writing() as connection:
        connection.execute("UPDATE evidence SET measured = 'no ratio'")
    assert measured_lines(capsys) == []
    store_path().write_text("no database\n" * 900)
    assert measured_lines(capsys) == []


PLAIN = """\
import numpy as np

# advise: kernel N=300
# advise: a: f8[N, N]
def columns(a):
    out = np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        for i in range(a.shape[0]):
            out[j] += a[i, j]
    return out
"""


@pytest.mark.parametrize("form", ["json", "concise"])
def test_times_of_both_sides_take_the_place_of_predicted_ones(
    folder: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    (folder / "plain.py").write_text(PLAIN)
    command = ["plain.py", "--machine", "t3e", "--output-format", form, "--exit-zero"]
    assert main(command) == 0
    before = capsys.readouterr().out
    assert "ADV401" in before and "ADV501" in before
    machine = load_machine("t3e")
    keep_as = replace(machine, origin="made up")
    predicted = Ratio(1.0, 2.0, 3.0)

    def compared(code: str, times: tuple[float, float, float]) -> Evidence:
        original = (0.9, 1.0, 1.1)
        title = {"ADV401": "replace the loops over `j`, `i` by a `sum` of arrays"}.get(code, "")
        sides = {BEFORE: " ".join(map(str, original)), AFTER: " ".join(map(str, times))}
        circumstances = {"file": "plain.py", "title": title, **sides}
        gain = speed_up(original, times)
        return Evidence("", "columns", code, {"N": 300}, predicted, gain, circumstances)

    keep(keep_as, 1, [compared("ADV401", (0.1, 0.2, 0.4)), compared("ADV501", (0.99, 1.0, 1.2))])
    assert main(command) == 0
    after = capsys.readouterr().out
    # what was measured to gain nothing is no finding
    assert "ADV501" not in after
    if form == "concise":
        assert "ADV401 [+] GAIN 5.00x (2.25x to 11.0x), saves 800 ms" in after
        return
    (finding,) = json.loads(after)["findings"]
    assert finding["prediction"]["before_s"] == 1.0 and finding["prediction"]["after_s"] == 0.2
    assert finding["evidence"]["provenance"] == "measured"
    assert finding["message"].startswith("5.00x faster on t3e: ")
