"""ADV301: blocks of neighbours give what elements dealt out in turn gave, for less."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.edits import apply_edits
from advisor.engine import Options, check_source
from advisor.finding import Applicability
from advisor.frontend.spmd.reader import read_program
from costdb.estimate import Priced
from costdb.evaluate import evaluate_price
from costdb.expr import evaluate, num
from costdb.machines import load_machine
from costdb.smp.functions import price_superstep
from costdb.work import Spacing, Superstep
from tests.transforms.generated.dealt_programs import (
    MADE,
    proposals,
    source_of,
    superstep_of,
)
from transforms.loops.interleaved_writes import TRANSFORM


def test_what_is_written() -> None:
    source = source_of(BODY, before=MADE)
    (only,) = proposals(source)
    assert apply_edits(source, only.edits()).splitlines()[9:14] == [
        "    for t in prange(parts):",
        "        chunk = (n + parts - 1) // parts",
        "        for i in range(t * chunk, min((t + 1) * chunk, n)):",
        "            y[i] = 2.0 * x[i]",
        "    return y",
    ]
    assert only.legality.applicability is Applicability.SAFE


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


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("parts", [1, 2, 5, 16, 40])
def test_what_lies_between_is_that_of_the_indices(parts: int, dtype: str) -> None:
    made = f"    y = np.zeros(n, dtype=np.{dtype})\n"
    source = source_of(["y[i] = 1.0"], before=made, n=400, parts=parts)
    offered = proposals(source)
    if parts == 1:
        assert not offered
        return
    (only,) = offered
    before, after = superstep_of(only.before), superstep_of(only.after)
    for step, indices in (
        (before, [range(t, 400, parts) for t in range(parts)]),
        (after, [range(400)[t * -(-400 // parts) :][: -(-400 // parts)] for t in range(parts)]),
    ):
        size = np.dtype(dtype).itemsize
        assert sorted(i for own in indices for i in own) == list(range(400))
        between = {(own[k + 1] - own[k] - 1) * size for own in indices for k in range(len(own) - 1)}
        assert step.spacing is not None and step.spacing.element_bytes == size
        values = {"parts": parts, "n": 400, "threads": parts}
        assert {evaluate(step.spacing.between_bytes, values)} == between
        alone = evaluate(step.spacing.between_bytes, {**values, "threads": 1})
        assert alone == 0, "one thread shares its lines with nobody"
        assert evaluate(step.processors, values) == parts
        assert evaluate(step.writes, values) == max(map(len, indices)) * size / 4


@pytest.mark.parametrize("element", [4, 8])
def test_prices_lie_between_good_and_bad_as_lines_do(element: int) -> None:
    """Each further thread begins more lines, until every access is on a line of its own."""
    machine = load_machine("powerchallenge")

    def priced(spacing: Spacing | None) -> tuple[float, float, float]:
        step = Superstep(num(8), num(90_000), num(90_000), num(8 * 180_000), spacing=spacing)
        found = price_superstep(step, machine)
        assert isinstance(found, Priced)
        price = evaluate_price(found, {})
        return price.low, price.mid, price.high

    good, middle, bad = priced(None)
    assert priced(Spacing(element, num(128)))[0] == pytest.approx(bad)
    blocks = priced(Spacing(element, num(0)))
    assert blocks[0] == pytest.approx(good)
    assert blocks[2] == pytest.approx(good + (bad - good) * element / 128)
    turns = [priced(Spacing(element, num((t - 1) * element))) for t in range(2, 34)]
    assert [low for low, _, _ in turns] == sorted(low for low, _, _ in turns)
    assert all(high == pytest.approx(bad) for _, _, high in turns)
    assert middle < turns[0][1] < turns[-1][1]


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


def test_loops_that_deal_out_tell_how_many_threads_there_are() -> None:
    source = source_of(BODY, n=100_000, parts=6)
    (finding,) = check_source(
        "f.py", source, Options("powerchallenge", {}, (), (), 1.0, everything=True)
    ).findings
    given = Options("powerchallenge", {"threads": 6}, (), (), 1.0, everything=True)
    (stated,) = check_source("f.py", source, given).findings
    assert finding.speedup == stated.speedup > 1
    alone = Options("powerchallenge", {"threads": 1}, (), (), 1.0, everything=True)
    assert not check_source("f.py", source, alone).findings
    read = read_program("f.py", source)
    assert read is not None and read.sizes["threads"].value == 6


def test_no_more_threads_work_than_have_an_iteration() -> None:
    (only,) = proposals(source_of(BODY, n=100_000, parts=6))
    for step in (superstep_of(only.before), superstep_of(only.after)):
        used = [evaluate(step.processors, {"threads": t, "parts": 6}) for t in (1, 4, 6, 9)]
        assert used == [1, 4, 6, 6]


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
