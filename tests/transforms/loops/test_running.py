"""What numbers hold on the way through a loop is a scan, or the loop is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.finding import Applicability
from tests.transforms.case_files import bodies
from tests.transforms.loops.typed_loops import edited, results, source

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: {t}[N]
# advise: y: {t}[N]
# advise: a: {t}[M, N]
# advise: c: {t}[M, N]
def f(x, y, a, c):
"""
STARTS = ["cur = 0", "cur = 0.0", "cur = x[0]", "cur = -np.inf", "cur = 100"]
STEPS = {
    "cur = max(cur, x[i])": "extreme",
    "cur = min(cur, x[i])": "extreme",
    "cur = max(x[i], cur)": "extreme",
    "cur = np.maximum(cur, x[i])": "extreme",
    "cur = np.fmin(cur, x[i])": "extreme",
    "if x[i] > cur:\n        cur = x[i]": "extreme",
    "if cur >= x[i]:\n        cur = x[i]": "extreme",
    "cur += x[i]": "sum",
    "cur = cur + 2 * x[i]": "sum",
    "if x[i] > 0:\n        cur += x[i]": "sum",
    "cur *= x[i]": "product",
}
LEFT = bodies("loops/running.txt", "stays")


def arrays(length: int, dtype: str, draw: Any, nan: list[int]) -> list[Any]:
    made = [
        (draw.standard_normal(shape) * 40).astype(dtype) for shape in (length, length, (3, length))
    ]
    if np.dtype(dtype).kind == "f":
        for one in nan:
            if length:
                made[0][one % length] = np.nan
    return [*made, np.zeros((3, length), dtype)]


@pytest.mark.parametrize("step", STEPS)
@given(
    st.sampled_from(STARTS), st.sampled_from(["f8", "f4", "i8", "i4", "u1", "i2"]),
    st.integers(0, 7), st.lists(st.integers(0, 6), max_size=2), st.integers(0, 999),
    st.sampled_from(["y[i] = cur", "y[i] = x[i] - cur"]),
)  # fmt: skip
def test_scans_hold_what_the_number_did(
    step: str, start: str, dtype: str, length: int, nan: list[int], seed: int, use: str
) -> None:
    text = source(HEAD, f"{start}\nfor i in range(len(x)):\n    {step}\n    {use}", dtype)
    offered = edited(text)
    if dtype == "f8":
        assert offered, text
    values = arrays(length, dtype, np.random.default_rng(seed), nan)
    before = results(text, values)
    if isinstance(before, type):
        return
    for one, after in offered:
        argument = one.legality.argument
        if "where no element is NaN" in argument and np.isnan(values[0]).any():
            continue
        if "is not NaN when" in argument and "x[0]" in start and np.isnan(values[0][:1]).any():
            continue
        found = results(after, values)
        assert not isinstance(found, type), after
        exact = STEPS[step] == "extreme" or one.legality.applicability is Applicability.SAFE
        for mine, theirs in zip(found, before, strict=True):
            if exact:
                np.testing.assert_array_equal(mine, theirs, after)
            else:
                np.testing.assert_allclose(mine, theirs, 1e-3 if dtype == "f4" else 1e-9, 1e-6)


@pytest.mark.parametrize("title", LEFT)
def test_what_is_reset_clamped_or_used_later_stays_a_loop(title: str) -> None:
    assert not [after for _, after in edited(source(HEAD, LEFT[title][0]))]


def test_rows_are_scanned_along_their_axis() -> None:
    body = (
        "for i in range(a.shape[0]):\n    cur = 0.0\n    for j in range(a.shape[1]):\n"
        "        cur += a[i, j]\n        c[i, j] = cur"
    )
    texts = [after for _, after in edited(source(HEAD, body))]
    assert "    c[:] = np.cumsum(a, axis=1)\n" in texts[0]
    values = arrays(5, "f8", np.random.default_rng(1), [])
    for text in texts:
        for mine, theirs in zip(
            results(text, values), results(source(HEAD, body), values), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)


@given(st.integers(0, 9), st.sampled_from(["np.max", "np.sum", "np.min", "np.prod"]))
def test_ever_longer_slices_are_scans(length: int, function: str) -> None:
    body = f"for i in range(len(x)):\n    y[i] = {function}(x[:i + 1])"
    text = source(HEAD, body)
    texts = [after for _, after in edited(text)]
    assert texts
    values = arrays(length, "f8", np.random.default_rng(length), [])
    for after in texts:
        for mine, theirs in zip(results(after, values), results(text, values), strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-12)
