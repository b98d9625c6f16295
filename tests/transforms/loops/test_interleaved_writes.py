"""ADV301: blocks of neighbours give what elements dealt out in turn gave, for less."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.finding import Applicability
from advisor.frontend.spmd.reader import read_program
from advisor.source import apply_edits
from tests.transforms.generated.dealt_programs import (
    MADE,
    proposals,
    source_of,
)
from transforms.loops.interleaved_writes import TRANSFORM

BODY = ["y[i] = 2.0 * x[i]"]

QUIET = {
    "blocks already": source_of(BODY).replace(
        "range(t, n, parts)", "range(t * n // parts, (t + 1) * n // parts)"
    ),
    "another number of threads": source_of(BODY).replace("prange(parts)", "prange(parts + 1)"),
    "from one element further": source_of(BODY).replace("range(t,", "range(t + 1,"),
    "only read in turn": source_of(["y[t] += x[i]"]),
    "not threads": source_of(BODY).replace("in prange", "in range"),
    "rows of their own": source_of(
        ["for j in range(n):", "    y[i, j] = x[i]"], before="    y = np.zeros((n, n))\n"
    ),
}


@pytest.mark.parametrize("source", QUIET.values(), ids=QUIET.keys())
def test_quiet_where_threads_have_no_neighbours_of_others(source: str) -> None:
    read = read_program("f.py", source)
    assert read is None or not list(TRANSFORM.propose_program(read))


SHOWN = {
    "an element of another iteration": ["y[i] = y[i - parts]"],
    "the next one is written, too": ["y[i] = x[i]", "y[i + 1] = 0.0"],
    "carried from one to the next": ["y[i] = s", "s = x[i]"],
    "a sum of the thread": ["s += x[i]", "y[i] = s"],
    "the thread's number": ["y[i] = x[i] * t"],
    "a call of something else": ["y[i] = other(x[i])"],
    "a function that may draw numbers": ["y[i] = np.random.rand()"],
    "the number of threads changes": ["y[i] = x[i]", "parts = 2"],
    "an early end": ["y[i] = x[i]", "if y[i] > 2:", "    break"],
    "the index of an inner loop stays": ["for j in range(n):", "    pass", "y[i] = j"],
    "the whole array": ["y[i] = np.sum(y)"],
    "another place of it": ["y[i] = x[i]", "y[n - i] = 1.0"],
}


@pytest.mark.parametrize("body", SHOWN.values(), ids=SHOWN.keys())
def test_near_misses_get_no_edit(body: list[str]) -> None:
    for proposal in proposals(source_of(body, before="    s = 0.0\n")):
        assert proposal.legality.applicability is Applicability.DISPLAY
        assert proposal.edits() == ()


@pytest.mark.parametrize(
    ("before", "behind"),
    [("", "    return i"), ("    s = 0.0\n", "    return s"), ("    min = 3\n", "    return y")],
)
def test_what_a_loop_leaves_in_names_is_kept(before: str, behind: str) -> None:
    (only,) = proposals(source_of(["s = x[i]", "y[i] = s"], before=before, behind=behind))
    assert only.legality.applicability is Applicability.DISPLAY


def test_a_view_of_what_is_made_is_not_another_array() -> None:
    before = f"{MADE}    z = y[2:]\n"
    (only,) = proposals(source_of(["y[i] = z[i]"], before=before))
    assert only.legality.applicability is Applicability.UNSAFE
    assert "`y`, `z`" in only.legality.argument


def test_profiles_without_supersteps_say_so() -> None:
    source = source_of(BODY, n=100_000)
    told = check_source(
        "f.py", source, Options("t3e", {"threads": 4}, (), (), 1.0, everything=True)
    )
    assert not told.findings
    assert any("interleaved-writes" in remark.message for remark in told.remarks)
    found = check_source(
        "f.py", source, Options("powerchallenge", {"threads": 4}, (), (), 1.0, everything=True)
    )
    assert [finding.code for finding in found.findings] == ["ADV301"]


def test_real_threads_give_equal_results() -> None:
    numba = pytest.importorskip("numba")
    source = source_of(["y[i] = 2.0 * x[i]"], before=MADE)
    (only,) = proposals(source)
    results = []
    for text in (source, apply_edits(source, only.edits())):
        names: dict[str, object] = {"np": np, "njit": numba.njit, "prange": numba.prange}
        exec(compile(text.partition("\n\nwork(")[0], "f.py", "exec"), names)
        x = np.arange(10_001.0)
        results.append(names["work"](x, x, 10_001, 7))  # type: ignore[operator]
    assert np.array_equal(*results)
    assert np.array_equal(results[0], 2 * np.arange(10_001.0))
