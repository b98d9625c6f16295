"""Many files: the same answers in the same order, whatever the number of processes."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from advisor.cache import Question
from advisor.cli import checking, common
from advisor.cli.checking import FEWEST_FILES, Refusal, answers
from advisor.engine import FileResult, Options
from costdb.calibration import section

ROOT = Path(__file__).parents[3]
PAGE = """\
# advise: ignore-file
import numpy as np


# advise: kernel N={n}
# advise: a: f8[N]
def smooth(a):
    a[1:] += a[:-1]
"""
OPTIONS = Options("t3e", {}, (), (), 1.05)


def tasks(count: int) -> list[Question]:
    pages = [Question(f"{n}.py", PAGE.format(n=n + 2), OPTIONS, "") for n in range(count)]
    pages[1] = Question("1.py", "# advise: kernel\ndef broken(:\n", OPTIONS, "")
    return pages


def test_processes_answer_as_one_does() -> None:
    pages = tasks(6)
    serial = list(answers(pages, 1))
    threads = threading.active_count()
    assert list(answers(pages, 2)) == serial
    # a pool that still closes its pipes while the interpreter ends writes a traceback
    assert threading.active_count() == threads
    assert isinstance(serial[1], Refusal) and serial[1].line.startswith("1.py:2:")
    assert all(isinstance(one, FileResult) for one in serial[2:])


class _EndsItsReader(str):
    """Text that ends the process that it is sent to."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (1,)


def test_a_worker_that_dies_costs_no_answer() -> None:
    pages = tasks(5)
    serial = list(answers(pages, 1))
    pages[3] = Question(pages[3].path, _EndsItsReader(pages[3].source), OPTIONS, "")
    assert list(answers(pages, 2)) == serial


def test_few_files_are_not_worth_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section, "usable_cores", lambda: 8)
    assert checking._worth(FEWEST_FILES - 1) == 1
    assert checking._worth(FEWEST_FILES) == 2
    assert checking._worth(10_000) == 8
    monkeypatch.setattr(section, "usable_cores", lambda: 1)
    assert checking._worth(10_000) == 1


def test_the_installed_program_runs_side_by_side(tmp_path: Path) -> None:
    """Spawned processes import the main program again, which must not start a second run."""
    program = tmp_path / "advise"  # as pip installs it, without a suffix
    program.write_text(
        "import sys\nfrom advisor.cli.app import run\nif __name__ == '__main__':\n    run()\n"
    )
    source = (ROOT / "examples/box_sum.py").read_text()
    folder = tmp_path / "d"
    folder.mkdir()
    for number in range(2):
        (folder / f"k{number}.py").write_text(source)

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(program), ".", "--machine", "t3e", "--no-cache", "--isolated",
             "--output-format", "json", *options],
            cwd=folder, capture_output=True, text=True, check=False,
            env={"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    together, alone = run("-j", "2"), run("-j", "1")
    assert together.stderr == alone.stderr == ""
    assert together.stdout == alone.stdout
    paths = [finding["path"] for finding in json.loads(alone.stdout)["findings"]]
    assert paths == sorted(paths) and len(set(paths)) == 2


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "terminal, patience_s, shown",
    [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)],
)
def test_progress_is_for_terminals_and_for_waiting(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, patience_s: float, shown: bool
) -> None:
    stream = _Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(common, "PATIENCE_S", patience_s)
    assert list(common.watched([1, 2, 3], "files")) == [1, 2, 3]
    assert ("0 of 3 files" in stream.getvalue()) == shown
    assert not shown or stream.getvalue().endswith("\r\x1b[K")
