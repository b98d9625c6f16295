"""ADV508: loops over lists of Python's numbers give what loops over elements of arrays gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.finding import Applicability
from advisor.source import apply_edits
from tests.transforms.checks import comments, only_kernel, outcome
from transforms.loops.listed import TRANSFORM

HEAD = """\
import numpy as np

# advise: kernel
# advise: x: {t}[N]
# advise: y: {t}[N]
# advise: m: {t}[N, M]
# advise: k: i8[N]
# advise: h: float
def f(x, y, m, k, h):
    n = len(x)
    s = {zero}
"""
LISTED = {
    "a recurrence": ("for i in range(1, n):\n    x[i] = x[i - 1] // 3 + y[i]  # each\n", "f8 i8"),
    "a row": (
        "for i in range(1, n):\n    m[i] += m[i - 1]\n    for j in range(1, m.shape[1]):\n"
        "        m[i, j] += m[i, j - 1]\n        m[i, j] -= 1\n",
        "f8 i8",
    ),
    "a table": (
        "for i in range(1, n):\n    for j in range(1, m.shape[1]):\n"
        "        if x[i] == y[j]:\n            m[i, j] = m[i - 1][j - 1] + 1\n"
        "        else:\n            m[i, j] = max(m[i - 1, j], m[i, j - 1])\n",
        "f8 i8 i4",
    ),
    "all elements in turn": (
        "for a in x:\n    if s % 3 == 1:\n        s = s * 2 + a\n    else:\n        s = s - a\n",
        "i8 i4",
    ),
    "places that data tell": (
        "p = 0\nfor i in range(n):\n    p = k[p]\n    x[p] = x[p] * h + y[i]\n    s = s + x[p]\n",
        "f8",
    ),
    "bits": (
        "s = 255\nfor a in x:\n    b = 63 & a\n    for _ in range(4):\n"
        "        if (s ^ b) & 1:\n            s = (s >> 1) ^ 184\n        else:\n"
        "            s >>= 1\n        b >>= 1\n",
        "u1 u2 i8",
    ),
    "a power of a whole number": ("for i in range(1, n):\n    x[i] = x[i - 1] ** 2 - y[i]\n", "f8"),
}
QUIET = {
    "whole numbers that wrap around": ("for i in range(1, n):\n    x[i] = x[i - 1] + y[i]\n", "u1"),
    "narrow ones": ("for i in range(1, n):\n    x[i] = x[i - 1] * h + y[i]\n", "f4"),
    "numbers with a sign": ("for i in range(1, n):\n    x[i] = -x[i - 1] & y[i]\n", "u1"),
    "a fraction": ("for i in range(1, n):\n    x[i] = x[i - 1] / 2 + y[i]\n", "i8"),
    "a number of NumPy's": (
        "for i in range(1, n):\n    s = s * h + x[i]\nreturn s.astype(int)\n",
        "f8",
    ),
    "one that is given": (
        "c = np.exp(-h)\nfor i in range(1, n):\n    x[i] = c * x[i - 1] + y[i]\n",
        "f8",
    ),
    "what may be zero in some iteration": (
        "for i in range(1, n):\n    x[i] = x[i - 1] / y[i]\n",
        "f8",
    ),
    "a slice": ("for i in range(1, n):\n    x[i] = x[i - 1] + y[:i].sum()\n", "f8"),
    "an array that is called with": (
        "for i in range(1, n):\n    x[i] = x[i - 1] + np.dot(x, y)\n",
        "f8",
    ),
    "roots that are complex": ("for i in range(1, n):\n    x[i] = x[i - 1] ** 0.5 + y[i]\n", "f8"),
    "what rounds otherwise": (
        "for i in range(1, n):\n    x[i] = round(x[i - 1] + y[i], 2)\n",
        "f8",
    ),
    "the end of the function": (
        "for i in range(1, n):\n    x[i] = x[i - 1] + y[i]\n    if x[i] > 9:\n        return 1\n",
        "f8",
    ),
    "a view of what changes": (
        "r = m[0]\nfor j in range(1, m.shape[1]):\n    r[j] = r[j - 1] + m[0, j]\n",
        "f8",
    ),
    "another name of a view": (
        "r = m[0]\nfor j in range(1, m.shape[1]):\n    for a in r:\n"
        "        m[0, j] = m[0, j - 1] // 3 + a\n",
        "f8",
    ),
    "a loop that ends early": (
        "for i in range(1, n):\n    x[i] = x[i - 1] // 3 + y[i]\n"
        "    if x[i] > 50:\n        break\n",
        "f8",
    ),
    "a table of names": (
        "w = [1.0, 2.0]\nfor i in range(1, n):\n    x[i] = x[i - 1] // 3 + w[i % 2]\n",
        "f8",
    ),
    "sums of truth values": (
        "for i in range(1, n):\n    x[i] = x[i - 1] // 3 + ((x[i] > 0) + (y[i] > 0))\n",
        "f8",
    ),
    "a statement for all": ("for i in range(n):\n    x[i] = x[i] * h + y[i]\n", "f8"),
    "what the loop around it leaves as it is": (
        "for i in range(1, n):\n    m[i] += m[i - 1]\n    for j in range(1, n):\n"
        "        y[j] = y[j - 1] // 3 + x[j]\n",
        "f8",
    ),
    "a comment between places": (
        "for j in range(1, m.shape[1]):\n    m[0,  # first\n      j] = m[0, j - 1] * h + m[0, j]\n",
        "f8",
    ),
}


def program(body: str, dtype: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return HEAD.format(t=dtype, zero="0.0" if dtype == "f8" else "0") + lines + "    return s\n"


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed)
    if dtype == "f8":
        return drawn.normal(size=shape)
    return drawn.integers(0, 100, shape).astype(dtype)


def run(source: str, dtype: str, rows: int, columns: int, seed: int) -> Any:
    names = dict[str, Any]()
    exec(compile(source, "f.py", "exec"), names)
    shapes = (rows,), (rows,), (rows, columns)
    x, y, m = (numbers(dtype, shape, seed + n) for n, shape in enumerate(shapes))
    k = np.random.default_rng(seed).integers(0, max(rows, 1), rows)
    return outcome(names["f"], [x, y, m, k, 0.75])


CASES = [(name, dtype) for name, (_, types) in LISTED.items() for dtype in types.split()]


@pytest.mark.parametrize(("name", "dtype"), CASES)
@settings(max_examples=25, deadline=None)
@given(rows=st.integers(0, 9), columns=st.integers(0, 9), seed=st.integers(0, 2**20))
def test_results_are_equal_to_the_bit(
    name: str, dtype: str, rows: int, columns: int, seed: int
) -> None:
    source = program(LISTED[name][0], dtype)
    (found,) = TRANSFORM.propose(only_kernel(source))
    assert found.legality.applicability is Applicability.UNSAFE
    fixed = apply_edits(source, found.edits())
    assert ".tolist()" in fixed and comments(fixed) == comments(source)
    assert not list(TRANSFORM.propose(only_kernel(fixed)))
    before, after = (run(text, dtype, rows, columns, seed) for text in (source, fixed))
    if before is None:
        return
    assert after is not None
    assert after.result == before.result or np.isnan(before.result)
    for one, other in zip(before.arguments, after.arguments, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("name", QUIET)
def test_quiet_where_numbers_would_be_others(name: str) -> None:
    body, dtype = QUIET[name]
    assert not list(TRANSFORM.propose(only_kernel(program(body, dtype))))


def test_arrays_that_overlap_are_told_of() -> None:
    (found,) = TRANSFORM.propose(only_kernel(program(LISTED["a recurrence"][0], "f8")))
    assert "`x` and `y` do not overlap in memory" in found.legality.argument


def test_what_leaves_a_type_is_told_of_and_raises_or_differs() -> None:
    source = program("for i in range(1, n):\n    x[i] = x[i - 1] * y[i]\n", "i8")
    (found,) = TRANSFORM.propose(only_kernel(source))
    assert "none leaves its element type" in found.legality.argument
    names = dict[str, Any]()
    exec(compile(apply_edits(source, found.edits()), "f.py", "exec"), names)
    large = np.full(9, 2**40)
    with pytest.raises(OverflowError):
        names["f"](large, large, np.zeros((9, 1), int), np.zeros(9, int), 1.0)


def test_a_division_by_zero_raises_as_is_told() -> None:
    source = program("for i in range(1, n):\n    x[i] = x[i - 1] / h\n", "f8")
    (found,) = TRANSFORM.propose(only_kernel(source))
    assert "divided by zero, which raises" in found.legality.argument
    names = dict[str, Any]()
    exec(compile(apply_edits(source, found.edits()), "f.py", "exec"), names)
    with pytest.raises(ZeroDivisionError):
        names["f"](np.ones(9), np.zeros(9), np.zeros((9, 1)), np.zeros(9, int), 0.0)
