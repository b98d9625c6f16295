"""What loops of array statements become besides one statement: the text, and equal results."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np
import pytest

from advisor.source import apply_edits
from tests.transforms.case_files import CASES, sections
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
# advise: m: f8[R, R]
def f(x, w, a, b, t, m):
"""
FORMS = dict(sections(CASES / "loops" / "forms.txt"))
"""Bodies, and below ``---`` how the program ends where they are rewritten."""


def _given(seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    shapes = [(2, 7, 6, 3), (3, 2, 3, 4), (5, 4), (5, 4)]
    arrays: list[Any] = [draw.standard_normal(shape) for shape in shapes]
    return [*arrays, draw.integers(0, 9, (6, 6), dtype=np.int32), draw.random((6, 6))]


@pytest.mark.parametrize("title", FORMS)
def test_loops_of_array_statements_take_other_forms(title: str) -> None:
    body, wanted = (indent(part, "    ") for part in FORMS[title].split("---\n"))
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


@pytest.mark.parametrize(
    "body",
    [
        # each row waits for the one above as far as its own end
        "t[i, j] -= t[i, :j] @ t[:j, j] + t[i - 1, j + 1]",
        # and for what comes above in its column
        "t[i, j] -= t[i, j - 1] + t[j + 1, j]",
    ],
)
def test_triangles_that_wait_either_way_are_left_alone(body: str) -> None:
    lines = f"""\
    for i in range(1, t.shape[0] - 1):
        for j in range(i):
            {body}
        t[i, i] += t[i + 1, i]
"""
    offered = TRANSFORM.propose(only_kernel(HEAD + lines))
    assert not [one for one in offered if "within the loop over `i`" in one.title]


ROWS = """\
import numpy as np

# advise: kernel
# advise: p: {p}[R]
# advise: cols: i4[K]
# advise: v: f8[K]
# advise: x: f8[N]
def f(p, cols, v, x):
    y = np.zeros(p.shape[0] - 1)
    for i in range(p.shape[0] - 1):
        row = v[p[i]:p[i + 1]]
        y[i] = {term}
    return y
"""


@pytest.mark.parametrize(
    "term", ["row @ x[cols[p[i]:p[i + 1]]]", "(2 * row).sum()", "row[row > 0] @ row"]
)
def test_rows_between_pointers_are_groups(term: str) -> None:
    source = ROWS.format(p="u4", term=term)
    texts = [apply_edits(source, one.edits()) for one in TRANSFORM.propose(only_kernel(source))]
    assert bool(texts) == ("row > 0" not in term)
    draw = np.random.default_rng(1)
    for lengths in ([0, 3, 0, 2, 0], [4], [0]):
        p = np.cumsum([0, *lengths], dtype=np.uint32)
        given = (p, draw.integers(0, 6, p[-1]), draw.random(p[-1]), draw.random(6))
        for text in texts:
            assert "np.bincount(np.repeat(np.arange(p.shape[0] - 1), p[1:] - p[:-1])" in text
            wanted = function_of(source, "f")(*given)
            np.testing.assert_allclose(function_of(text, "f")(*given), wanted, 1e-12)


@pytest.mark.parametrize(
    "line",
    ["row[:] = 0", "row *= 2", "row = row[1:]", "v = 2 * v", "p[1] = 0"],
)
def test_rows_that_change_are_left_alone(line: str) -> None:
    source = ROWS.format(p="u4", term=f"row.sum()\n        {line}\n        y[i] += row.sum()")
    assert not [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]
    source = ROWS.format(p="u8", term="row.sum()")
    assert not [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]
