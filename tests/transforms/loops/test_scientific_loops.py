"""Loops of scientific programs that nobody declared: what is written comes to the same.

They run on none, one and more rows, where every warning is an error.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.source import apply_edits

OPTIONS = Options(machine="node2026", sizes={}, select=(), ignore=(), min_speedup=1.05)
HEAD = "import numpy as np\n\n"
BODIES = """\
def f(x, mass):
    n = len(x)
    acc = np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            d = x[j] - x[i]
            r = np.sqrt(d[0]**2 + d[1]**2 + d[2]**2)
            acc[i] += mass[j] * d / r**3
    return acc
"""
_GUARD = """\
            if i == j:
                continue
"""
SOFT = BODIES.replace(_GUARD, "").replace("d[2]**2)", "d[2]**2) + 1e-9")
FORCES = """\
def f(x, mass):
    n = len(x)
    forces = np.zeros_like(x)
    for i in range(n):
        for j in range(n):
            if i != j:
                r = x[i] - x[j]
                r2 = np.sum(r**2)
                s6 = (0.3**2 / r2)**3
                forces[i] += 24 * (2 * s6**2 - s6) / r2 * r
    return forces
"""
RADIAL = """\
def f(x, mass):
    n = x.shape[0]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            diff = x[i] - x[j]
            out[i, j] = np.exp(-0.5 * np.dot(diff, diff))
    return out
"""
CALL = "\nf(np.ones((300, 3)), np.ones(300))\n"
PROGRAMS = {"bodies": BODIES, "soft": SOFT, "forces": FORCES, "radial": RADIAL}
EXPECTED = """\
    d = x - x[:, None, :]
    mask = np.arange(n)[:, None] != np.arange(n)
    acc += np.where(mask[:, :, None], mass[:, None] * d / (np.sqrt(np.where(mask, d[:, :, 0] ** 2\
 + d[:, :, 1] ** 2 + d[:, :, 2] ** 2, 1)) ** 3)[:, :, None], 0).sum(axis=1)
"""


@cache
def _edits(text: str) -> list[tuple[str, str]]:
    """Return what edits make of a program, with what is told of each."""
    found = check_source("program.py", HEAD + text + CALL, OPTIONS).findings
    fixes = [one.fix for one in found if one.fix is not None and one.fix.edits]
    return [(apply_edits(HEAD + text + CALL, fix.edits), fix.legality) for fix in fixes]


def _result(text: str, x: Any, mass: Any) -> Any:
    names: dict[str, Any] = {}
    exec(text.removesuffix(CALL), names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return names["f"](x.copy(), mass.copy())


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_statements_come_to_the_same(name: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    x, mass = rng.normal(size=(rows, 3)), rng.normal(size=rows)
    made = _edits(PROGRAMS[name])
    assert made
    known = _result(HEAD + PROGRAMS[name] + CALL, x, mass)
    for text, legality in made:
        assert "for j" not in text or "np.dot(r, r)" in text
        found = _result(text, x, mass)
        assert found.dtype == known.dtype and found.shape == known.shape
        np.testing.assert_allclose(found, known, rtol=1e-11, atol=1e-11)
        assert "in another order" in legality and "as in the file's calls" in legality


def test_a_name_comes_back_with_its_elements() -> None:
    (text, legality), *_ = _edits(BODIES)
    assert EXPECTED in text
    # three columns are those of the call alone
    assert "if shapes and element types are as in the file's calls" in legality


def test_extents_that_are_shown_to_differ_are_not_taken_to_agree() -> None:
    other = BODIES.replace("np.zeros((n, 3))", "np.zeros((n, 4))")
    assert not _edits(other)
