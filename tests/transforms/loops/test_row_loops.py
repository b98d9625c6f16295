"""What loops of array statements become besides one statement: the text, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.source import apply_edits
from tests.transforms.checks import function_of, only_kernel
from transforms.loops.raised import TRANSFORM
from transforms.loops.vectorise import TRANSFORM as ELEMENTS

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: f8[B, H, W, C]
# advise: w: f8[K, L, C, D]
# advise: a: f8[M, N]
# advise: b: f8[M, N]
# advise: t: i4[N, N]
def f(x, w, a, b, t):
"""
FORMS = [
    (
        """\
    K = w.shape[0]
    L = w.shape[1]
    down = x.shape[1] - K + 1
    across = x.shape[2] - L + 1
    y = np.empty((x.shape[0], down, across, w.shape[3]))
    for i in range(down):
        for j in range(across):
            y[:, i, j, :] = np.sum(
                x[:, i:i + K, j:j + L, :, None] * w[None, :, :, :], axis=(1, 2, 3))
    return y
""",
        """\
    y[:] = 0
    for p in range(K):
        for q in range(L):
            y += x[:, p:p + down, q:q + across, :] @ w[p, q, :, :]
    return y
""",
    ),
    (
        """\
    y = np.empty(a.shape)
    for i in range(a.shape[0] - 2):
        y[i, :] = a[i:i + 3, :].max(axis=0)
    return y[:-2]
""",
        """\
    y[:a.shape[0] - 2, :] = np.maximum(np.maximum(a[:-2, :], a[1:-1, :]), a[2:, :])
    return y[:-2]
""",
    ),
    (
        """\
    y = np.zeros((a.shape[1], a.shape[1]))
    for i in range(a.shape[1]):
        y[i:, i] = y[i, i:] = a[:, i] @ a[:, i:] / 3.0
    return y
""",
        """\
    y[:] = a.T @ a / 3.0
    return y
""",
    ),
    (
        """\
    for i in range(1, a.shape[0]):
        a[i, :] = a[i - 1, :] * 0.5 + (b[i, :] - b[i - 1, :]) * 0.25
    return a
""",
        """\
    terms = (b[1:, :] - b[:a.shape[0] - 1, :]) * 0.25
    for i in range(1, a.shape[0]):
        a[i, :] = a[i - 1, :] * 0.5 + terms[i - 1, :]
    return a
""",
    ),
    (
        """\
    for i in range(t.shape[0] - 1, -1, -1):
        for j in range(i + 1, t.shape[0]):
            for k in range(i + 1, j):
                t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])
    return t
""",
        """\
            t[i, j] = (t[i, i + 1:j] + t[i + 2:j + 1, j]).max(initial=t[i, j])
    return t
""",
    ),
]


def _given(seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    shapes = [(2, 7, 6, 3), (3, 2, 3, 4), (5, 4), (5, 4)]
    arrays: list[Any] = [draw.standard_normal(shape) for shape in shapes]
    return [*arrays, draw.integers(0, 9, (6, 6), dtype=np.int32)]


@pytest.mark.parametrize(("body", "wanted"), FORMS)
def test_loops_of_array_statements_take_other_forms(body: str, wanted: str) -> None:
    source = HEAD + body
    kernel = only_kernel(source)
    offered = [*TRANSFORM.propose(kernel), *ELEMENTS.propose(kernel)]
    texts = [apply_edits(source, one.edits()) for one in offered if one.edits()]
    assert any(text.endswith(wanted) for text in texts), texts
    for seed in range(3):
        before = function_of(source, "f")(*_given(seed))
        for text in texts:
            np.testing.assert_allclose(function_of(text, "f")(*_given(seed)), before, 1e-12, 1e-12)


def test_halves_of_what_is_not_symmetric_are_left_alone() -> None:
    body = """\
    for i in range(t.shape[0]):
        t[i:, i] = t[i, i:] = a[:, i] @ b[:, i:]
"""
    assert not [one for one in TRANSFORM.propose(only_kernel(HEAD + body)) if one.edits()]
