"""What an edit rests on that a function is given is said, and what it makes itself needs no word.

Each program is run with what is usual, and its edits with what is not: other types of numbers,
other dimensions, nothing at all. Where the original runs, a safe edit gives the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.source import apply_edits
from tests.transforms.test_plain_functions import fixes
from tests.transforms.test_seen_names import executed, looked_at
from transforms.distributions.mesh_shape import TRANSFORM as MESH_SHAPE

HEAD = "import numpy as np\n\n\n"
RAMP = """\
def told(n, c):
    a = np.zeros(n)
    for i in range(n):
        a[i] = i * c
    return a


def run():
    return told(300, 2.0)
"""
SETTING = """\
STATE = {"k": 2.0}


def told(n):
    a = np.zeros(n)
    k = STATE["k"]
    for i in range(n):
        a[i] = i * k
    return a


def run():
    return told(300)
"""
PREFIX = """\
def told(x):
    return np.cumsum(x, axis=0)


def run():
    return told(np.ones((30, 30)))
"""
ROWS = """\
def told(n, m):
    a = np.ones((n, m))
    out = np.zeros((n, m), dtype=complex)
    for i in range(n):
        out[i] = np.fft.fft(a[i])
    return out


def run():
    return told(30, 40)
"""
ADDED = """\
def told(n):
    a = np.arange(n)
    s = 0
    for i in range(n):
        s += a[i]
    return s


def run():
    return told(300)
"""
MADE = """\
def told(n):
    a = np.arange(n)
    b = np.zeros(n, dtype=np.int64)
    for i in range(n):
        b[i] = a[i] * 2
    return b


def run():
    return told(300)
"""
WINDOWED = """\
def told(n, b):
    a = np.asfortranarray(np.arange(n * n).reshape(n, n))
    s = np.zeros((n, n), dtype=np.int64)
    for k in range(b):
        s += np.roll(a, -k, axis=0)
    return s


def run():
    return told(30, 9)
"""
SAID = {
    "a number": (RAMP, "if c is a float"),
    "a number that a run showed": (SETTING, "if k is a float"),
    "dimensions": (PREFIX, "if x is a plain array (2-d)"),
    "functions that refuse empty axes": (ROWS, "if no loop of it is empty"),
    "a sum of nothing": (ADDED, "becomes a number of NumPy"),
}


@pytest.mark.parametrize("title", SAID)
def test_what_is_given_is_said(title: str, tmp_path: Path) -> None:
    program, words = SAID[title]
    _, seen = looked_at(HEAD + program, tmp_path)
    offered = list(fixes(HEAD + program, *(one for one in seen if one.function == "told")))
    assert offered
    for _, fix in offered:
        assert fix.applicability is Applicability.UNSAFE
        assert words in fix.legality


@pytest.mark.parametrize(
    ("program", "calls"),
    [(MADE, [(0,), (1,), (5,)]), (WINDOWED, [(4, 3), (4, 1), (4, 0), (1, 2), (0, 2)])],
)
def test_what_is_made_needs_no_condition(
    program: str, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    source = HEAD + program
    _, seen = looked_at(source, tmp_path)
    offered = list(fixes(source, *(one for one in seen if one.function == "told")))
    assert any(fix.applicability is Applicability.SAFE for _, fix in offered)
    before = executed(source, tmp_path / "before.py")["told"]
    for _, fix in offered:
        after = executed(apply_edits(source, fix.edits), tmp_path / "after.py")["told"]
        for given in calls:
            one, other = before(*given), after(*given)
            assert (one.dtype, one.strides) == (other.dtype, other.strides)
            assert np.array_equal(one, other)


MESH = """\
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.float64], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900)
def f(a: Plane, b: Plane) -> None:
    b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1]
"""


@pytest.mark.parametrize(
    ("more", "applicability"),
    [
        ("", Applicability.SAFE),
        ("def g(x: Plane) -> Plane: ...\n", Applicability.SAFE),
        ("print(mesh)\n", Applicability.DISPLAY),
        ("ranks = mesh.axes\ndef g(): return ranks\n", Applicability.DISPLAY),
    ],
)
def test_declarations_that_the_program_reads_are_not_inert(
    more: str, applicability: Applicability
) -> None:
    (kernel, *_) = read_kernels("f.py", MESH + more)
    offered = {one.legality.applicability for one in MESH_SHAPE.propose(kernel)}
    assert offered == {applicability}
