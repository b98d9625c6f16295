"""Programs with numba's parallel loops as they are: what their own calls tell, and what is kept."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import FileResult, Options, check_source
from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.frontend.spmd.called import called
from advisor.ir.statements import Loop, Threads
from advisor.observed import Seen, SeenArray, SeenLoop
from advisor.source import apply_edits
from tests.transforms.generated.loop_programs import Program, equal_bits, nests, results
from transforms.loops.loop_order import TRANSFORM

HEAD = """\
import numpy as np
from numba import njit, prange


@njit(parallel=True)
def smooth(a, b):
    n, m = a.shape
    for j in prange(1, m - 1):
        for i in range(1, n - 1):
            b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


"""
ROWS = HEAD.replace(
    "    for j in prange(1, m - 1):\n        for i in range(1, n - 1):",
    "    for i in prange(1, n - 1):\n        for j in range(1, m - 1):",
)
CALLED = "x = np.random.rand(2000, 1000)\ny = np.zeros((2000, 1000))\nsmooth(x, y)\n"


def check(source: str, *observed: Seen) -> FileResult:
    return check_source("f.py", source, Options("t3e", {}, (), (), None, observed=observed))


def codes(source: str) -> list[str]:
    return [finding.code for finding in check(source).findings]


def test_arrays_of_the_calls_are_what_the_loops_walk_through() -> None:
    (finding,) = check(HEAD + CALLED).findings
    assert (finding.code, finding.span.start_line) == ("ADV501", 8)
    assert {(a.name, a.value, a.origin) for a in finding.assumptions} == {
        ("n", 2000, "line 13: np.random.rand(2000, 1000)"),
        ("m", 1000, "line 13: np.random.rand(2000, 1000)"),
    }
    assert any("`prange` of line 8 may run in parallel" in r for r in finding.evidence.remarks)
    (assumed,) = check(HEAD).findings
    assert assumed.condition is not None, "nothing says how the arrays lie in memory"
    assert "arrays in C order" in assumed.condition.text


def test_the_edit_keeps_prange_outside_and_is_made_once() -> None:
    source = HEAD + CALLED
    (finding,) = check(source).findings
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "do not overlap" in finding.fix.legality
    rewritten = apply_edits(source, finding.fix.edits)
    assert rewritten == ROWS + CALLED
    assert codes(rewritten) == []


CALLS = {
    # what is called, whether the walk is against the storage order
    "by rows": (CALLED, True),
    "Fortran order": (
        "x = np.zeros((2000, 1000), order='F')\ny = np.empty_like(x)\nsmooth(x, y)\n",
        False,
    ),
    "transposed": (
        "x = np.random.rand(1000, 2000)\ny = np.zeros((1000, 2000))\nsmooth(x.T, y.T)\n",
        False,
    ),
    "transposed twice": (CALLED.replace("smooth(x, y)", "smooth(x.T.T, y.T.T)"), True),
    "whole rows of more": (
        "x = np.random.rand(3000, 1000)\ny = np.zeros((3000, 1000))\nsmooth(x[:2000], y[:2000])\n",
        True,
    ),
    "with strides": (CALLED.replace("smooth(x, y)", "smooth(x[:, ::2], y[:, ::2])"), False),
    "of one file": ("x = np.load('x.npy')\nsmooth(x, np.zeros_like(x))\n", False),
    "by a function": (
        "def run(u):\n    v = np.zeros_like(u)\n    smooth(u, v)\n    return v\n\n\n"
        "run(np.ones((2000, 1000)))\n",
        True,
    ),
    "by keyword": (CALLED.replace("smooth(x, y)", "smooth(b=y, a=x)"), True),
    "twice alike": (CALLED + "smooth(y, x)\n", True),
    "in place": (CALLED.replace("smooth(x, y)", "smooth(x, x)"), False),
    "in place once": (CALLED + "smooth(y, y)\n", False),
    "over halves of one array": (
        CALLED.replace("smooth(x, y)", "smooth(x[:1000], x[1000:])"),
        False,
    ),
    "by turns": (
        "u, v = np.ones((900, 800)), np.ones((900, 800))\nfor _ in range(9):\n"
        "    smooth(u, v)\n    u, v = v, u\nsmooth(u, v)\n",
        True,
    ),
    "in one order and the other": (
        CALLED + "smooth(np.asfortranarray(x), np.asfortranarray(y))\n",
        False,
    ),
    "with other elements": (
        CALLED + "smooth(np.zeros((2000, 1000), 'f4'), np.zeros((2000, 1000), 'f4'))\n",
        False,
    ),
    "with an array and without": (CALLED + "import sys\nsmooth(sys.argv, y)\n", False),
}


@pytest.mark.parametrize(("calls", "is_found"), CALLS.values(), ids=CALLS.keys())
def test_the_order_is_that_of_every_call(calls: str, is_found: bool) -> None:
    result = check(HEAD + calls)
    assert [finding.code for finding in result.findings] == ["ADV501"] * is_found
    assert result.remarks == (), "nobody asked about the function"


def test_sizes_that_calls_differ_in_stay_open() -> None:
    other = "smooth(np.zeros((64, 32)), np.zeros((64, 32)))\n"
    (finding,) = check(HEAD + CALLED + other).findings
    assert finding.prediction is None
    assert finding.condition is not None
    assert set(finding.condition.open_sizes) == {"n", "m"}


DECORATORS = {
    "@njit(parallel=True)": True,
    "@njit(parallel=True, cache=True)": True,
    "@njit(parallel=True, fastmath=False)": True,
    "@njit(parallel=True, fastmath=True)": False,
}


@pytest.mark.parametrize(("decorator", "is_edited"), DECORATORS.items())
def test_edits_are_left_to_the_author_where_compiling_may_change_results(
    decorator: str, is_edited: bool
) -> None:
    source = (HEAD + CALLED).replace("@njit(parallel=True)", decorator)
    (finding,) = check(source).findings
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.UNSAFE) == is_edited


OTHERS = {
    "signatures of its own": "@njit('void(f8[:, :], f8[:, :])', parallel=True)",
    "options from elsewhere": "@njit(parallel=True, **options)",
    "somebody else's decorator": "@njit(parallel=True)\n@traced",
}


@pytest.mark.parametrize("decorator", OTHERS.values(), ids=OTHERS.keys())
def test_calls_say_nothing_of_what_is_not_compiled_for_them(decorator: str) -> None:
    assert called("f.py", (HEAD + CALLED).replace("@njit(parallel=True)", decorator)) == ()


DEPENDENT = {
    # one row needs the row before: the inner loop, once outside, may not be shared out
    "the inner loop": "b[i, j] = b[i - 1, j] + a[i, j]",
    # columns need one another: what the source leaves is up to chance already
    "the outer loop": "b[i, j] = b[i, j - 1] + a[i, j]",
    "both": "b[i, j] = b[i - 1, j - 1] + a[i, j]",
    "a row that all write": "b[i, 0] = a[i, j]",
    "a column that all write": "b[0, j] = a[i, j]",
}
STATEMENT = "b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])"


@pytest.mark.parametrize("statement", DEPENDENT.values(), ids=DEPENDENT.keys())
def test_iterations_that_need_one_another_are_not_shared_out(statement: str) -> None:
    assert "ADV501" not in codes(HEAD.replace(STATEMENT, statement) + CALLED)


def test_numba_takes_no_prange_with_a_step() -> None:
    assert codes((HEAD + CALLED).replace("range(1, n - 1)", "range(1, n - 1, 2)")) == []


SHUFFLED = random.Random(5)


def prange(*bounds: int) -> Iterator[int]:
    """Give a range in any order, as threads that share it may."""
    return iter(SHUFFLED.sample(range(*bounds), len(range(*bounds))))


def with_prange(made: Program) -> Program:
    outer, inner = made.source.split("range(", 1)
    return replace(made, source=f"from numba import prange\n{outer}prange({inner}")


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 3).flatmap(lambda depth: nests(depth, statements=2)), st.integers(0, 99))
def test_every_order_offered_may_be_run_in_any_order(made: Program, seed: int) -> None:
    made = with_prange(made)
    plain = results(made.source, made, 7, seed, prange=range)
    for proposal in TRANSFORM.propose(made.kernel):
        source = apply_edits(made.source, proposal.edits())
        (loop,) = (part for part in read_kernels("f.py", source)[0].body if isinstance(part, Loop))
        assert loop.threads is Threads.ASKED
        assert source.count("prange(") == 1
        for _ in range(2):
            assert equal_bits(plain, results(source, made, 7, seed, prange=prange)), source


def test_real_threads_leave_the_same_bits() -> None:
    import numpy as np

    source = HEAD + CALLED.replace("2000, 1000", "37, 23")
    (finding,) = check(HEAD + CALLED).findings
    assert finding.fix is not None
    rewritten = apply_edits(source, finding.fix.edits)
    assert rewritten != source
    left = []
    for text in (source, rewritten):
        names: dict[str, object] = {}
        exec(compile(text.replace("smooth(x, y)", ""), "f.py", "exec"), names)
        given = np.random.default_rng(3).standard_normal((37, 23))
        out = np.zeros_like(given)
        smooth = names["smooth"]
        assert callable(smooth)
        smooth(given, out)
        left.append(out)
    assert left[0].any()
    assert left[0].tobytes() == left[1].tobytes()


def seen(*loops: SeenLoop, line: int = 5) -> Seen:
    arrays = tuple(SeenArray(name, "float64", 2, "C", (2000, 1000)) for name in "ab")
    return Seen("smooth", line, "numba", arrays, loops=loops)


@pytest.mark.parametrize(
    ("facts", "decorator", "wanted"),
    [
        (seen(SeenLoop(8, 1, "static")), "@njit(parallel=True)", "became parallel"),
        # the file was shorter by two lines when it ran
        (seen(SeenLoop(6, 1, "static"), line=3), "@njit(parallel=True)", "became parallel"),
        (seen(SeenLoop(9, 1, "static")), "@njit(parallel=True)", "did not become parallel"),
        # functions from numba's cache come without loops
        (seen(), "@njit(parallel=True)", "may run in parallel"),
        (seen(), "@njit", "did not become parallel"),
        (None, "@njit", "did not become parallel"),
        (None, "@njit(parallel=False)", "did not become parallel"),
        (None, "@njit(parallel=flag)", "may run in parallel"),
    ],
)
def test_what_became_of_a_parallel_loop_is_told(
    facts: Seen | None, decorator: str, wanted: str
) -> None:
    source = (HEAD + CALLED).replace("@njit(parallel=True)", decorator)
    (finding,) = check(source, *([] if facts is None else [facts])).findings
    (line,) = [r for r in finding.evidence.remarks if "prange" in r]
    assert wanted in line
