"""Programs written anew for sampling do what they did, and nothing else gets in."""

from __future__ import annotations

import builtins
import importlib
import math
import random
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from advisor.measure import names as pure
from advisor.measure.clock import Clock
from advisor.measure.language import Refused, sampled_file, sampled_function

PROGRAMS = {
    "triangle": """
def f(a, n):
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= 1.0 + abs(a[j, j])
    return a
""",
    "counters and lists": """
def f(a, n):
    k, found, total = 0, [], 0.0
    for row in a:
        k += 2
        found.append(row.sum() * k)
        total += found[-1]
    return np.array(found), k, total
""",
    "ways out": """
def f(a, n):
    steps = 0
    for i, row in enumerate(a):
        if i == 1:
            continue
        for x in row:
            if x > 1.2:
                break
            steps += 1
        if steps > 20:
            break
    while steps > 3:
        steps -= 3
        if steps == 4:
            return -1
    return steps, i
""",
    "names of comprehensions, arrays that grow": """
def f(a, n):
    grown = np.zeros(0)
    for i in range(n):
        one, two = (a[i, (i + k) % n] for k in (-1, 1))
        grown = np.append(grown, one - two)
        total = sum(k * grown[-1] for k in range(3))
    return grown, total
""",
    "own functions": """
SCALE = 2.5
SHIFT = SCALE + 1

def scaled(x, by=SCALE, *, shift=SHIFT):
    return x * by + shift

def both(x, y):
    return scaled(x, shift=1), scaled(y, by=3)

def f(a, n):
    one, other = both(a[:n], a[n:])
    return np.vstack((one, other)), [scaled(k) for k in range(n) if k % 2]
""",
    "pairs": """
def f(a, n):
    made = np.zeros(n)
    for i, (left, right) in enumerate(zip(a[0], a[1])):
        made[i % n] += max(left, right) if i else left
    for left, right in zip(a[2], range(100)):
        made[right % n] -= left
    return made
""",
    "ufuncs and names": """
from numpy import linalg, float32 as single
from math import sqrt, pi

def f(a, n):
    np.add.at(a, (slice(0, 2), 0), pi)
    b = np.add.reduce(a, axis=0).astype(single)
    c = np.fromfunction(lambda i, j: i * n + j, (n, n), dtype=np.int64)
    return linalg.norm(a), b, c.T, np.add.outer(b, b)[::2, 1:], sqrt(n), a[..., np.newaxis].shape
""",
    "classes": """
class Base:
    scale = 2.0

    def grow(self, by=1.0):
        self.total = self.total * by + self.scale
        return self

class Field(Base):
    def __init__(self, data, size):
        self.data = data
        self.size = size
        self.total = 0.0
        self.tofile = data.copy()

    def __len__(self):
        return self.size

    @property
    def mean(self):
        return self.data.mean()

    @staticmethod
    def twice(x):
        return 2 * x

def f(a, n):
    field = Field(size=n, data=a)
    for k in range(len(field)):
        field.grow(by=1.5).data[k] += field.mean
    return field.data, field.total, field.twice(field.tofile), field.scale
""",
    "functions in functions": """
import random
calls = 0

def counted(x):
    global calls
    calls += 1
    return x

def f(a, n):
    def shifted(x, by=n):
        return counted(x + by)
    random.seed(n)
    made = [shifted(row, by=k) for k, row in enumerate(a)]
    return made, shifted(a), calls, random.random()
""",
    "generators": """
def pieces(a, n):
    for k in range(n):
        if k % 2:
            yield a[k] * k

def f(a, n):
    made = {k: row.sum() for k, row in enumerate(pieces(a, n))}
    for row in pieces(a, n):
        made[len(made)] = row
    last = None
    for k in range(n):
        if k:
            last = a[k]
        if last is not None:
            made[k, 0] = last.max()
    return list(made), list(made.values()), sorted({k // 2 for k in range(n)}), f"{made[0]:.3f} {n}"
""",
    "masks": """
def f(a, n):
    close = a < 1.0
    a[close] **= 2
    low = a.min()
    while low < 2.0:
        a[a < 2.0] += 0.5
        low = a.min()
    assert low >= 2.0
    del low
    return a, close.sum(), {"k": a.max()}["k"]
""",
}


def written(program: str, names: dict[str, object]) -> object:
    """Run the program as it stands."""
    space: dict[str, object] = {"np": np}
    exec(program, space)
    return space["f"](**names)  # type: ignore[operator]


def sampled(program: str, names: dict[str, object]) -> object:
    """Run what is written anew, whole."""
    found = sampled_function("f.py", f"import numpy as np\n{program}", "f")
    space: dict[str, object] = {name: getattr(builtins, name) for name in pure.BUILTINS}
    space |= {"numpy": np, "math": math, "random": random, "clock": Clock(60.0, whole=True)}
    exec(found.text, space)
    given = {found.parameters[name]: value for name, value in names.items()}
    return space[str(found.entry)](**given)  # type: ignore[operator]


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for one in value:
            yield from leaves(one)
    else:
        yield value


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_anew_gives_the_same(name: str, seed: int) -> None:
    a = np.random.default_rng(seed).random((5 + seed, 5 + seed)) + 0.5
    one = {"a": a.copy(), "n": 3 + seed}
    other = {"a": a.copy(), "n": 3 + seed}
    expected, found = written(PROGRAMS[name], one), sampled(PROGRAMS[name], other)
    for left, right in zip(leaves(expected), leaves(found), strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(one["a"], other["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("import os\nx = os.getcwd()\ny = x + 1", 3, "os.getcwd has no row"),
        ("np.add = max", 1, "is assigned"),
        ("x = ().__class__", 1, "`.__class__` has no row"),
        ("x = np.load('a.npy')", 1, "numpy.load has no row"),
        ("np.ones(3).tofile('a')", 1, "`.tofile` has no row"),
        ("x = np.array([1.0], dtype='O').dumps()", 1, "`.dumps` has no row"),
        ("x = eval('1')\ny = -x", 2, "nothing is known of `eval`"),
        ("x = open('a')\ny = [x]", 2, "nothing is known of `open`"),
        ("x = [__builtins__]", 1, "nothing is known of `__builtins__`"),
        ("async def f():\n    return 1\nx = f()", 1, "is not sampled"),
        ("x = np.lib.stride_tricks.as_strided(np.ones(3))", 1, "has no row"),
        ("import ctypes\nx = np.add(ctypes.string_at(1), 1)", 2, "has no row"),
        ("def f(**k):\n    return k\nx = f(a=1)", 1, "is not known before it runs"),
        ("from numpy import *\nx = ones(3) + 1", 2, "nothing is known of `ones`"),
        ("x = np.vectorize(eval)", 1, "nothing is known of `eval`"),
        ("x = 'a'.encode()", 1, "`.encode` has no row"),
        ("def f():\n    return [1].sort(key=eval)\nprint('a', 'b'.join(f()))", 2, "of `eval`"),
        ("x = (lambda: 1).__globals__", 1, "has no row"),
        ("import sys\nprint(1)\nnp.frompyfunc(abs, 1, 1)", 3, "has no row"),
        ("@cache\ndef f():\n    return 1\nx = f()", 1, "`@cache` is not known"),
        ("class A:\n    def __del__(self):\n        pass\nx = A()", 2, "`__del__` is not sampled"),
        ("class A(dict):\n    def a(self):\n        self.tofile()\nx = A()", 3, "has no row"),
        ("class A:\n    x = np.load('a')\nx = A()", 2, "has no row"),
        ("x = np.ones(3)\nx.__class__ = 1", 2, "is assigned"),
        ("for i in range(3):\n    pass\nelse:\n    x = 1", 1, "is not sampled"),
        ("try:\n    x = 1\nexcept ValueError:\n    pass", 1, "is not sampled"),
    ],
)
def test_what_is_not_known_to_be_pure_is_refused(text: str, line: int, why: str) -> None:
    with pytest.raises(Refused) as told:
        sampled_file("f.py", f"import numpy as np\n{text}", {})
    assert told.value.line == line + 1
    assert why in told.value.why


FOREIGN = """
import sys
import argparse
import matplotlib.pyplot as plt
import numpy as np
from other import evolve
plt.rcParams["image.cmap"] = "jet"
fig, ax = plt.subplots()
parser = argparse.ArgumentParser("shows")
parser.add_argument("-n", "--cells", type=int, default=30)
parser.add_argument("--flag", action="store_true")
given = parser.parse_args()
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
a = np.zeros((given.cells, steps))
title = f"{steps} steps"
ax.plot(a)
evolve(a)
if given.flag:
    a += 1
"""


def test_what_other_libraries_do_is_left_out_and_the_command_line_is_empty() -> None:
    found = sampled_file("f.py", FOREIGN, {})
    assert [line for line, _ in found.left_out] == [7, 8, 16, 17]
    space: dict[str, object] = {"numpy": np, "len": len, "int": int, "clock": Clock(1.0)}
    exec(found.text, space)
    assert (30, 4) in [value.shape for value in space.values() if isinstance(value, np.ndarray)]
    assert "= numpy.zeros((50, " in sampled_file("f.py", FOREIGN, {"cells": 50}).text


@pytest.mark.parametrize("use", ["b = a + ax.width", "b = fig + a", "np.add(a, evolve(a), out=a)"])
def test_what_other_libraries_give_is_not_computed_with(use: str) -> None:
    with pytest.raises(Refused) as told:
        sampled_file("f.py", f"{FOREIGN}{use}\n", {})
    assert told.value.line == FOREIGN.count("\n") + 1


def test_sizes_of_a_script_can_be_given() -> None:
    found = sampled_file("f.py", "N = 3\nx = [0] * N\n", {"N": 7})
    assert "= 7" in found.text and "= 3" not in found.text


def test_every_row_is_there_to_be_called() -> None:
    newer = {"numpy.unstack", "numpy.cumulative_sum", "numpy.cumulative_prod", "numpy.matvec"}
    for path in (pure.CALLS | pure.WITH_FUNCTIONS | pure.VALUES) - newer:
        module, _, name = path.rpartition(".")
        if path.startswith("mpi4py.MPI."):
            assert attrgetter(path.removeprefix("mpi4py.MPI."))(MPI) is not None, path
        elif path not in ("numba.prange", "numpy.random.RandomState"):
            found = np if module == "numpy" else importlib.import_module(module)
            assert hasattr(found, name), path


def test_every_method_of_ranks_is_one_of_mpi4py() -> None:
    kinds = (MPI.Cartcomm, MPI.Prequest, MPI.Win, MPI.Status, MPI.Datatype, MPI.Group)
    for name in pure.MPI_MEMBERS | pure.OF_RANK:
        assert any(hasattr(kind, name) for kind in kinds), name


def test_no_row_reads_or_writes_files() -> None:
    words = ("load", "save", "file", "text", "memmap", "pickle", "ctypes", "exec")
    # a line profile is no file
    names = [one.replace("profile", "") for one in pure.CALLS | pure.MEMBERS]
    assert not [name for name in names if any(word in name for word in words)]


def test_examples_are_written_anew_with_no_name_of_theirs() -> None:
    for path in sorted((Path(__file__).parents[3] / "examples").glob("*.py")):
        try:
            found = sampled_file(str(path), path.read_text(), {})
        except Refused as refused:
            assert refused.line > 0 and refused.why
        else:
            compile(found.text, "x", "exec")
