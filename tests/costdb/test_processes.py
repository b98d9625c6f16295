"""The one runner of processes: answers come as they are given, and failures in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from costdb.launch.processes import JobFailedError, answers

WORKER = """\
import sys, time
from costdb.launch.processes import begin

def main(arguments):
    job, answer = begin(arguments)
    print("lost")
    answer({"twice": 2 * job["number"]})
    answer("é")
    if job["then"] == "fail":
        raise ValueError("of\\nits own")
    if job["then"] == "wait":
        time.sleep(60)
    return 3 if job["then"] == "quietly" else 0
"""


@pytest.mark.parametrize(
    ("then", "why"),
    [("end", ""), ("fail", "its own"), ("wait", "took more than 2 s"), ("quietly", "ended with 3")],
)
def test_answers_come_before_a_failure_is_told(tmp_path: Path, then: str, why: str) -> None:
    (tmp_path / "made_worker.py").write_text(WORKER)
    more = {"PYTHONPATH": str(tmp_path)}
    said = ""
    found: list[object] = []
    try:
        found += answers(
            "made_worker", {"number": 21, "then": then}, 2.0 if then == "wait" else 60.0, more=more
        )
    except JobFailedError as error:
        said = str(error)
    assert (found, said) == ([{"twice": 42}, "é"], why)


OWNER = """\
from costdb.launch.processes import answers

for found in answers("made_worker", {"number": 1, "then": "wait"}, 60.0, RANKS):
    print(found, flush=True)
"""


@pytest.mark.parametrize("ranks", [0, 2])
def test_processes_end_with_the_one_that_started_them(tmp_path: Path, ranks: int) -> None:
    worker = WORKER.replace('"é"', "__import__('os').getpid()")
    (tmp_path / "made_worker.py").write_text(worker)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.replace("RANKS", str(ranks))],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    said: list[str] = [owner.stdout.readline() for _ in range(2 * max(1, ranks))]
    workers = [int(line) for line in said if line.strip().isdecimal()]
    assert len(workers) == max(1, ranks)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    until = time.monotonic() + 20
    while any(map(is_there, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(is_there, workers))


def is_there(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    return status.exists() and "State:\tZ" not in status.read_text()
