"""Arrays that loops let grow, as lists that are joined once: held to what both return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability
from tests.transforms.checks import first_rewrite, function_of
from transforms.loops.grown import TRANSFORM

HEAD = """\
import numpy as np

# advise: kernel
# advise: a: {dtype}[M, N]
# advise: start: f8[N]
def kernel(a, start):
"""

LOOP = """\
    x = {first}
    for i in range(a.shape[0]):
        {piece}
    return x
"""


ROWS, COLUMNS = "np.zeros((0, a.shape[1]))", "np.zeros((a.shape[1], 0))"


def _source(first: str, piece: str, dtype: str = "f8") -> str:
    return HEAD.format(dtype=dtype) + LOOP.format(first=first, piece=piece)


@pytest.mark.parametrize(
    ("first", "piece", "wanted"),
    [
        ("np.array([])", "x = np.append(x, a[i, 0] * 2)", "np.ravel(a[i, 0] * 2)"),
        ("np.array([])", "x = np.append(x, a[i])", "np.array(a[i])"),
        ("np.array([])", "x = np.append(x, a)", "np.ravel(np.array(a))"),
        ("np.array([])", "x = np.append(x, [a[i]])", "np.ravel(np.array([a[i]]))"),
        (ROWS, "x = np.append(x, [a[i] + 1], axis=0)", "np.array([a[i] + 1])"),
        (ROWS, "x = np.vstack([x, a[i] + 1])", "a[i] + 1"),
        (ROWS, "x = np.vstack((x, a[i]))", "np.array(a[i])"),
        ("np.zeros(0)", "x = np.hstack([x, a[i].sum()])", "a[i].sum()"),
        ("np.zeros(0)", "x = np.concatenate([x, np.sqrt(a[i, i:])])", "np.sqrt(a[i, i:])"),
        (COLUMNS, "x = np.concatenate([x, a.T], axis=1)", "np.array(a.T)"),
        (COLUMNS, "x = np.append(x, a.T, 1)", "np.array(a.T)"),
        ("start", "x = np.append(x, a[i])", "np.array(a[i])"),
        ("np.array([])", "if a[i, 0] > 0.5:\n            x = np.append(x, 2)", "np.ravel(2)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_lists_joined_once_hold_the_same(first: str, piece: str, wanted: str, dtype: str) -> None:
    made = first_rewrite(_source(first, piece, dtype), TRANSFORM)
    assert made is not None
    assert f"x_parts.append({wanted})" in made.rewritten
    is_safe = made.proposal.legality.applicability is Applicability.SAFE
    assert is_safe == (first != "start")
    for shape in ((5, 5), (1, 1), (0, 3)):
        draw = np.random.default_rng(7)
        given = (3 * draw.random(shape)).astype(dtype), draw.random(shape[1])
        before, after = (
            function_of(text, "kernel")(*given) for text in (made.source, made.rewritten)
        )
        assert before.dtype == after.dtype
        assert before.shape == after.shape
        assert before.tobytes() == after.tobytes()


@pytest.mark.parametrize(
    "piece",
    [
        # it is looked at while it grows
        "x = np.append(x, a[i, 0] + len(x))",
        "x = np.append(x, a[i]); y = x[-1]",
        # another one grows, or in front
        "x = np.append(start, a[i])",
        "x = np.append(a[i], x)",
        # a function within sees it, or what catches an error
        "f = lambda: x\n        x = np.append(x, a[i])",
        "try:\n            x = np.append(x, a[i])\n        finally:\n            start += 1",
        # what options ask for, a list would not do
        "x = np.concatenate([x, a[i]], dtype='f4')",
    ],
)
def test_arrays_that_something_else_needs_are_left_alone(piece: str) -> None:
    assert first_rewrite(_source("np.array([])", piece), TRANSFORM) is None


def test_an_array_that_nobody_knows_before_may_grow() -> None:
    # what the second loop is given, the first one may have made anything of
    first = "for k in range(2):\n        x = np.vstack([x, a * k]) if k else x[1:]\n    "
    loop = LOOP.replace("for", f"{first}for", 1).format(
        first=ROWS, piece="x = np.vstack([x, a[i]])"
    )
    made = first_rewrite(HEAD.format(dtype="f8") + loop, TRANSFORM)
    assert made is not None
    assert made.rewritten.count("x_parts = [x]") == 1


@pytest.mark.parametrize(
    "piece",
    [
        "x = np.append(x, np.repeat(i, 3 * a[i, 0]))",
        "p = start.tolist()[i:]\n        x = np.append(x, p)",
        "x = np.append(x, [give(a, i)])",
        "x = np.hstack((x, np.sort(give(a, i), axis=None)))",
        # nobody knows what it does, but it has no way to what grows
        "x = np.append(x, a[i])\n        give(a, i).sort()",
    ],
)
def test_pieces_that_are_not_read_are_joined_as_well(piece: str) -> None:
    given = "\n\n\ndef give(a, i):\n    a += i\n    return a[i] if i % 2 else a.T[i:, 0]\n"
    made = first_rewrite(_source("np.array([])", piece) + given, TRANSFORM)
    assert made is not None
    unread = "one element type" in made.proposal.legality.argument
    assert unread == ("sort()" not in piece)
    a = np.arange(9).reshape(3, 3)
    before, after = (
        function_of(text, "kernel")(a.copy(), np.ones(3)) for text in (made.source, made.rewritten)
    )
    assert before.dtype == after.dtype
    assert before.tobytes() == after.tobytes()


def test_pieces_are_kept_as_they_were() -> None:
    source = _source(ROWS, "start += a[i]\n        x = np.vstack([x, start])")
    made = first_rewrite(source, TRANSFORM)
    assert made is not None
    a: Any = np.arange(6.0).reshape(3, 2)
    results = [function_of(text, "kernel")(a, np.ones(2)) for text in (made.source, made.rewritten)]
    np.testing.assert_array_equal(*results)
    assert len({*map(tuple, results[0])}) == 3


def test_a_loop_around_that_does_no_more_is_taken_too() -> None:
    piece = "for j in range(i):\n            x = np.append(x, a[i, j])"
    made = first_rewrite(_source("np.array([])", piece), TRANSFORM)
    assert made is not None
    lines = made.rewritten.splitlines()
    assert lines[-1:] == ["    return x"]
    assert lines[-2] == "    x = np.concatenate(x_parts)"
    a: Any = np.arange(16.0).reshape(4, 4)
    results = [function_of(text, "kernel")(a, np.ones(4)) for text in (made.source, made.rewritten)]
    np.testing.assert_array_equal(*results)
