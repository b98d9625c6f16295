"""Programs written anew for sampling do what they did, and nothing else gets in."""

from __future__ import annotations

import builtins
import functools
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
from tests.transforms.case_files import sections

ROOT = Path(__file__).parents[3]
PROGRAMS = dict(sections(ROOT / "tests" / "data" / "sampled_programs.txt"))


def written(program: str, names: dict[str, object]) -> object:
    """Run the program as it stands."""
    space: dict[str, object] = {"np": np}
    exec(program, space)
    return space["f"](**names)  # type: ignore[operator]


def sampled(program: str, names: dict[str, object]) -> object:
    """Run what is written anew, whole."""
    found = sampled_function("f.py", f"import numpy as np\n{program}", "f")
    space: dict[str, object] = {name: getattr(builtins, name) for name in pure.BUILTINS}
    space |= {
        "numpy": np,
        "math": math,
        "random": random,
        "functools": functools,
        "clock": Clock(60.0, whole=True),
    }
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
        ("from numpy import *\nx = load('a') + 1", 2, "nothing is known of `load`"),
        ("x = np.vectorize(eval)", 1, "nothing is known of `eval`"),
        ("x = '{0.__class__}'.format(1)", 1, "`.format` has no row"),
        ("try:\n    x = 1\nexcept BaseException:\n    pass", 3, "nothing is known of `BaseEx"),
        ("def f():\n    return [1].sort(key=eval)\nprint('a', 'b'.join(f()))", 2, "of `eval`"),
        ("x = (lambda: 1).__globals__", 1, "has no row"),
        ("import sys\nprint(1)\nnp.frompyfunc(abs, 1, 1)", 3, "has no row"),
        ("@cache\ndef f():\n    return 1\nx = f()", 1, "`@cache` is not known"),
        ("class A:\n    def __del__(self):\n        pass\nx = A()", 2, "`__del__` is not sampled"),
        ("class A(dict):\n    def a(self):\n        self.tofile()\nx = A()", 3, "has no row"),
        ("class A:\n    x = np.load('a')\nx = A()", 2, "has no row"),
        ("x = np.ones(3)\nx.__class__ = 1", 2, "is assigned"),
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
    kinds = (
        MPI.Cartcomm,
        MPI.Graphcomm,
        MPI.Distgraphcomm,
        MPI.Prequest,
        MPI.Win,
        MPI.Status,
        MPI.Datatype,
        MPI.Group,
        MPI.Op,
    )
    for name in pure.MPI_MEMBERS | pure.OF_RANK:
        assert any(hasattr(kind, name) for kind in kinds), name


def test_no_row_reads_or_writes_files() -> None:
    words = ("load", "save", "file", "text", "memmap", "pickle", "ctypes", "exec")
    # a line profile is no file, and what wraps texts reads none
    names = [one.replace("profile", "") for one in pure.CALLS | pure.MEMBERS]
    names = [one for one in names if not one.startswith("textwrap.")]
    assert not [name for name in names if any(word in name for word in words)]


def test_examples_are_written_anew_with_no_name_of_theirs() -> None:
    for path in sorted((ROOT / "examples").glob("*.py")):
        try:
            found = sampled_file(str(path), path.read_text(), {})
        except Refused as refused:
            assert refused.line > 0 and refused.why
        else:
            compile(found.text, "x", "exec")
