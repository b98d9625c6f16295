"""Searches by loops find what ``argmin`` and ``argmax`` find, or stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.case_files import bodies
from tests.transforms.loops.typed_loops import edited, results, source

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: {t}[N]
# advise: g: {t}[M]
# advise: p: f8[N, K]
# advise: c: f8[M, K]
# advise: out: i8[N]
# advise: far: f8[N]
def f(x, g, p, c, out, far):
"""
ONE = """\
{start}
for i in range({low}, len(x)):
    if x[i] {sign} best:
        best = x[i]
        k = i
out[0] = k
far[0] = best
"""
ROW = """\
for i in range(len(x)):
    k = -1
    best = np.inf
    for j in range(len(g)):
        d = abs(x[i] - g[j])
        if d < best:
            k = j
            best = d
    out[i] = k
    far[i] = best
"""
POINTS = """\
for i in range(p.shape[0]):
    k = 0
    best = 1e9
    for j in range(c.shape[0]):
        d = np.sqrt(np.sum((p[i] - c[j]) ** 2))
        if d < best:
            best = d
            k = j
    out[i] = k
"""
LEFT = bodies("loops/searched.txt", "stays")


def arrays(rows: int, others: int, dtype: str, seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    # with ties
    return [
        draw.integers(-3, 4, rows).astype(dtype), draw.integers(-3, 4, others).astype(dtype),
        draw.integers(-3, 4, (rows, 2)).astype(float), draw.integers(-3, 4, (others, 2)) * 1.0,
        np.zeros(rows, int), np.zeros(rows),
    ]  # fmt: skip


def same(text: str, values: list[Any]) -> None:
    offered = edited(text)
    assert offered, text
    before = results(text, values)
    assert not isinstance(before, type)
    for one, after in offered:
        assert "NaN" in one.legality.argument or "rounded" in one.legality.argument
        found = results(after, values)
        assert not isinstance(found, type)
        for mine, theirs in zip(found, before, strict=True):
            np.testing.assert_array_equal(mine, theirs, after)


@given(
    st.integers(1, 9), st.sampled_from(["<", ">"]), st.sampled_from(["f8", "f4", "i8"]),
    st.sampled_from(
        [("best = {0}np.inf\nk = 0", 0), ("best = x[0]\nk = 0", 1), ("best = x[0]\nk = 0", 0)]
    ),
    st.integers(0, 99),
)  # fmt: skip
def test_a_search_finds_the_first_of_equal_ones(
    rows: int, sign: str, dtype: str, start: tuple[str, int], seed: int
) -> None:
    begun = start[0].format("" if sign == "<" else "-")
    text = source(HEAD, ONE.format(start=begun, low=start[1], sign=sign), dtype)
    same(text, arrays(rows, 2, dtype, seed))


@pytest.mark.parametrize("body", [ROW, POINTS])
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_searches_of_all_rows_are_one(body: str, rows: int, others: int, seed: int) -> None:
    same(source(HEAD, body), arrays(rows, others, "f8", seed))


@pytest.mark.parametrize("title", LEFT)
def test_other_searches_stay(title: str) -> None:
    text = source(HEAD, LEFT[title][0])
    assert not [after for _, after in edited(text) if "arg" in after]
