"""The one runner of processes: answers come as they are given, and failures in one line."""

from __future__ import annotations

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
