"""What findings are worth: classes, time saved, shares, whose time it is, and what was not seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.effective import Effective
from advisor.engine import FileResult, Options, check_source
from advisor.finding import (
    GAIN_FROM,
    NOISE_S,
    SEEN_S,
    SMALL_SHARE,
    Finding,
    Prediction,
    Verdict,
)
from advisor.ranking.worth import Whole, weighed
from tests.advisor.report.report_samples import SHIFTS

ROOT = Path(__file__).parents[3]


def checked(source: str, *, details: bool = True) -> FileResult:
    options = Options("t3e", {}, (), (), None, details=details, plans=details)
    return check_source("program.py", source, options)


# classes


def predicted(before_s: float, after_s: float, low: float, high: float) -> Prediction:
    speedup = before_s / after_s
    ends = (before_s, before_s, after_s, after_s)
    return Prediction(before_s, after_s, speedup, low, high, *ends, True)


@given(
    before_s=st.floats(1e-8, 10),
    part=st.floats(0.01, 0.99),
    low=st.floats(0.1, 1),
    whole_s=st.floats(1e-8, 1000),
    times=st.none() | st.floats(1, 1e4),
    complete=st.booleans(),
    plan=st.booleans(),
)
def test_a_gain_is_sure_and_known_to_matter(
    before_s: float,
    part: float,
    low: float,
    whole_s: float,
    times: float | None,
    complete: bool,
    plan: bool,
) -> None:
    speedup = 1 / part
    prediction = predicted(before_s, before_s * part, 1 + (speedup - 1) * low, speedup)
    whole = Whole(whole_s, complete, times, "as 2 ranks of t3e")
    found = weighed(replace(SHIFTS, prediction=prediction), whole, plan=plan)
    assert found.priced_as == whole.priced_as
    assert found.saves_s == pytest.approx(before_s * (1 - part) * (times or 1))
    if found.verdict is Verdict.GAIN:
        assert prediction.low > GAIN_FROM and not plan
        # of a whole that is not known a gain saves what anybody sees
        assert (found.share or 1.0) >= SMALL_SHARE
        assert found.share is not None or found.saves_s >= SEEN_S
        assert found.saves_s >= NOISE_S
    assert plan == (found.verdict is Verdict.PLAN)
    if times is None or not complete:
        # what is not known in full is told only where it is too small even so
        assert found.share is None or found.share < SMALL_SHARE


def fails(finding: Finding, fail_above: float | None) -> bool:
    options = Options("t3e", {}, (), (), None)
    return Effective(options, "", fail_above, {}).fails(finding)


# whose program


def test_a_change_of_an_inert_annotation_is_a_plan_and_fails_no_bar() -> None:
    for example in ("gauss", "sample_sort", "spectral"):
        source = (ROOT / "examples" / f"{example}.py").read_text()
        for finding in checked(source, details=False).findings:
            assert finding.verdict is Verdict.PLAN
            assert not fails(finding, 1.0)


# what was not seen


def calm(result: FileResult) -> bool:
    """Whether nothing is found and nothing was left unseen."""
    coverage = result.coverage
    return not (
        result.findings or coverage.not_understood or coverage.unsupported or coverage.unpriced
    )


THREADS = """\
import numba
import numpy as np


@numba.njit(parallel=True)
def scale(x: np.ndarray, y: np.ndarray) -> None:
    for i in numba.prange(x.shape[0]):
        y[i] = 2 * x[i]


scale(np.zeros(10**6), np.zeros(10**6))
"""


def test_parallel_loops_on_a_machine_without_threads_are_not_fine() -> None:
    result = checked(THREADS)
    assert not calm(result)
    assert any("no price on t3e" in told for told in result.coverage.unpriced)


@pytest.mark.parametrize(
    "library", ["cupy", "jax", "jax.numpy", "torch", "tensorflow", "dask.array", "cudf"]
)
def test_other_array_libraries_are_named(library: str) -> None:
    text = f"import os\nimport {library} as xp\n\n\ndef f(n):\n    return xp.zeros(n) + 1\n"
    result = checked(text)
    assert result.coverage.unsupported == (f"program.py uses {library.partition('.')[0]}",)
    assert not calm(result)


def test_plain_numpy_is_named_and_plain_python_is_fine() -> None:
    text = "import numpy as np\n\n\ndef f(a):\n    return np.sort(a)\n\n\ndef g(n):\n    return n\n"
    (one,) = checked(text).coverage.not_understood
    assert (one.line, one.text) == (5 - 1, "def f(a):")
    assert "sizes" in one.reason
    assert calm(checked("def g(n):\n    return n\n"))


def test_other_texts_are_named() -> None:
    options = Options("t3e", {}, (), (), None)
    assert not calm(check_source("notes.txt", "dear all, this is text\n", options))
