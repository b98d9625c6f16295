"""Functions of rows, columns and windows give what they gave one iteration at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.loops.typed_loops import edited, results, source

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: {t}[N]
# advise: a: {t}[M, N]
# advise: c: f8[M, N]
# advise: u: f8[M]
# advise: v: f8[N]
def f(x, a, c, u, v, w: int):
"""
FUNCTIONS = [
    "np.mean({})", "{}.std()", "np.std({}, ddof=1)", "np.var({})", "np.median({})", "{}.max()",
    "np.sum({})", "np.ptp({})", "np.percentile({}, 30)", "np.prod({})", "np.nanmax({})",
    "np.linalg.norm({})", "{}.argmax()", "np.argmin({})",
]  # fmt: skip
LOOPS = {
    "rows": "for i in range(a.shape[0]):\n    u[i] = {}".replace("{}", "{}"),
    "columns": "for j in range(a.shape[1]):\n    v[j] = {}",
    "windows": "for i in range(len(x) - w + 1):\n    v[i] = {}",
    "trailing": "for i in range(w - 1, len(x)):\n    v[i] = {}",
    "short": "for i in range(1, len(x) - 1):\n    v[i] = {}",
    "squares": (
        "for i in range(1, a.shape[0] - 1):\n    for j in range(1, a.shape[1] - 1):\n"
        "        c[i, j] = {}"
    ),
}
PARTS = {
    "rows": "a[i, :]", "columns": "a[:, j]", "windows": "x[i:i + w]",
    "trailing": "x[i - w + 1:i + 1]", "short": "x[i - 1:i + 2]",
    "squares": "a[i - 1:i + 2, j - 1:j + 2]",
}  # fmt: skip


def arguments(rows: int, columns: int, width: int, dtype: str, seed: int, nan: bool) -> list[Any]:
    draw = np.random.default_rng(seed)

    def made(*shape: int) -> Any:
        values = (draw.standard_normal(shape) * 5).astype(dtype)
        if nan and np.dtype(dtype).kind == "f" and values.size:
            values.flat[draw.integers(values.size)] = np.nan
        # not contiguous
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]

    return [
        made(columns), made(rows, columns), np.zeros((rows, columns)), np.zeros(rows),
        np.zeros(columns), width,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_along_axes_come_to_the_same(kind: str, function: str) -> None:
    turn = FUNCTIONS.index(function) + list(LOOPS).index(kind)
    for dtype in ("f8", ("f4", "i8", "i2")[turn % 3]):
        text = source(HEAD, LOOPS[kind].format(function.format(PARTS[kind])), dtype)
        offered = edited(text)
        place = "arg" in function and kind == "squares"
        assert offered or place, text
        for number, (rows, columns, width) in enumerate(
            [(5, 7, 3), (3, 3, 1), (4, 9, 9), (1, 1, 1)]
        ):
            for nan in (False, True):
                values = arguments(rows, columns, width, dtype, number, nan)
                before = results(text, values)
                for one, after in offered:
                    some = {"squares": min(rows, columns) - 2, "short": columns - 2}.get(kind, 1)
                    stated = "if no loop of it is empty" in one.legality.argument
                    if isinstance(before, type) or (stated and some < 1):
                        continue
                    found = results(after, values)
                    assert not isinstance(found, type), after
                    for mine, theirs in zip(found, before, strict=True):
                        np.testing.assert_allclose(mine, theirs, 1e-4 if dtype == "f4" else 1e-10)


@given(
    st.integers(0, 6), st.integers(0, 6), st.integers(0, 4), st.booleans(), st.integers(0, 99),
    st.sampled_from([
        "for i in range(a.shape[0]):\n    e = np.exp(a[i] - a[i].max())\n    c[i] = e / e.sum()",
        "for j in range(a.shape[1]):\n    m = a[:, j].mean()\n    s = a[:, j].std()\n"
        "    c[:, j] = (a[:, j] - m) / s",
        "for j in range(a.shape[1]):\n    c[:, j] -= v[j]\n    c[:, j] /= x[j]",
        "for i in range(a.shape[0]):\n    e = a[i] * 2\n    e += 1\n    e /= e.sum()\n    c[i] = e",
        "for i in range(a.shape[0]):\n    c[i] = np.sort(a[i])",
        "for i in range(a.shape[0]):\n    c[i] = np.cumsum(a[i])",
        "for i in range(w, len(x)):\n    s = x[i - w:i]\n    v[i] = (x[i] - s.mean()) / s.std()",
    ]),
)  # fmt: skip
def test_what_an_iteration_binds_is_put_where_it_is_used(
    rows: int, columns: int, width: int, nan: bool, seed: int, body: str
) -> None:
    text = source(HEAD, body)
    offered = edited(text)
    assert offered
    values = arguments(rows, columns, width, "f8", seed, nan)
    before = results(text, values)
    if isinstance(before, type):
        return
    for one, after in offered:
        argument = one.legality.argument
        if "no loop of it is empty" in argument and (columns <= width or not rows * columns):
            continue
        if "positive" in argument and not width:
            continue
        found = results(after, values)
        if isinstance(found, type) and not rows * columns:
            # of no elements there is no extreme, not even of no rows
            continue
        assert not isinstance(found, type), after
        for mine, theirs in zip(found, before, strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-9, 1e-9)


@given(
    st.integers(0, 5), st.integers(0, 5), st.integers(0, 99),
    st.sampled_from([
        "u[0] = 0\nfor i in range(a.shape[0]):\n    for j in range(i + 1, a.shape[0]):\n"
        "        r = a[i] - a[j]\n        u[0] -= v[0] / np.sqrt(r @ r + 0.1)",
        "for i in range(a.shape[0]):\n    for j in range(a.shape[0]):\n        r = a[j] - a[i]\n"
        "        d = (r ** 2).sum() + 0.1\n        c[i] += u[j] * r / d",
        "e = 0.0\nfor i in range(a.shape[0]):\n    e += 0.5 * u[i] * np.sum(a[i] ** 2)\nv[0] = e",
        "w = 0.0\nfor i in range(a.shape[0]):\n    d = a[i].max() - a[i].min()\n"
        "    if d > w:\n        w = d\nv[0] = w",
        "for j in range(a.shape[1]):\n    a[:, j] = a[:, j] / np.linalg.norm(a[:, j])",
        "for j in range(a.shape[1]):\n    for k in range(a.shape[1]):\n        acc = 0.0\n"
        "        for i in range(a.shape[0]):\n            acc += (a[i, j] - 1) * (a[i, k] - 1)\n"
        "        v[j] = acc / 3",
    ]),
)  # fmt: skip
def test_what_rows_and_pairs_add_up_to(rows: int, columns: int, seed: int, body: str) -> None:
    text = source(HEAD, body)
    offered = edited(text)
    assert offered, text
    values = arguments(rows, columns, 1, "f8", seed, nan=False)
    before = results(text, values)
    if isinstance(before, type):
        return
    for one, after in offered:
        found = results(after, values)
        if not rows * columns and (isinstance(found, type) or "empty" in one.legality.argument):
            # of no elements there is no extreme, not even of no rows
            continue
        assert not isinstance(found, type), after
        for mine, theirs in zip(found, before, strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-9, 1e-9)


VECTORS = (
    *("np.arange(5)", "np.arange(1, 6)", "np.arange(0, 5)", "np.arange(2, 12, 2)"),
    *("np.arange(-2, 3)", "np.arange(i, i + 5)", "np.arange(k, k + 5)"),
    *("np.arange(w, w + 5)", "np.arange(5.0)"),
    *("np.arange(4, -1, -1)", "np.arange(1, 6, 1)", "np.linspace(0, 1, 5)", "np.linspace(0, i, 5)"),
    *("np.linspace(0, 9, 5, dtype=int)", "np.linspace(0, 1, 5, endpoint=False)"),
    *("np.eye(5, dtype=bool)[1]", "np.eye(5, k=1, dtype=bool)[1]", "np.full(5, i)"),
)  # fmt: skip


@pytest.mark.parametrize("loops", [1, 2])
@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_vectors_of_numbers_are_those_that_the_source_makes(number: int, loops: int) -> None:
    one, other = VECTORS[number], VECTORS[(number + 1) % len(VECTORS)]
    body = (
        "for i in range(a.shape[0]):\n    k = 2 * i\n"
        f"    u[i] = np.sum({one} * a[i, 0]) + np.sum({other} * x[0])"
        if loops == 1
        else "for i in range(a.shape[0]):\n    k = 2 * i\n    for j in range(a.shape[1]):\n"
        f"        c[i, j] = np.sum({one} * a[i, j])"
    )
    text = source(HEAD, body)
    values = arguments(4, 6, 3, "f8", number, False)
    before = results(text, values)
    for _, after in edited(text):
        found = results(after, values)
        assert not isinstance(found, type), after
        for mine, theirs in zip(found, before, strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-10)
