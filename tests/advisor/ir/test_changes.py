"""What may change, held to what Python does: a value that a loop changes is not the same each time.

Each program is run with the value of an expression kept each time that it is computed.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from advisor.ir.effects import OBJECT, SHARING, Deed, of_library
from advisor.ir.functions import names_around
from advisor.ir.unchanging import computed_again

MODULES_OF_NUMPY = {"numpy", "numpy.linalg", "numpy.fft"}

ARRAYS = {"a": "np.arange(1.0, 5.0)", "b": "np.arange(4.0)", "rng": "np.random.default_rng(1)"}

PROGRAMS = {
    "a function of NumPy is told by place where to write": (
        """
def run(a, b):
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        np.add(a, 1.0, a)
"""
    ),
    "a method is": (
        """
def run(a, b):
    for i in range(3):
        keep(np.sum(np.sqrt(b)))
        a.cumsum(0, None, b)
"""
    ),
    "a generator is told where to draw": (
        """
def run(b, rng):
    for i in range(3):
        keep(np.sum(np.sqrt(b)))
        rng.random(out=b)
"""
    ),
    "Python's own shuffling": (
        """
import random
def run(a, b):
    for i in range(6):
        keep(np.dot(a, b))
        random.shuffle(a)
"""
    ),
    "one of several is chosen": (
        """
import random
def run(a, b):
    one = random.choice([a])
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        one[:] = i
"""
    ),
    "a module has a function by the name of a method": (
        """
import types
tools = types.ModuleType("tools")
exec("def update(x): x[:] += 1", tools.__dict__)
import sys
sys.modules["tools_of_this_test"] = tools
import tools_of_this_test as own
def run(a, b):
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        own.update(a)
"""
    ),
    "a name ends like a measure of arrays": (
        """
def run(a, b):
    mysize = [2, 3]
    for i in range(3):
        mysize[0] += 1
        keep(np.sum(np.ones(mysize)))
"""
    ),
    "two lists are joined": (
        """
def run(a, b):
    left, right = [a], [b]
    both = left + right
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        both[0][:] = i
"""
    ),
    "an item of a list of so many is what is stored there": (
        """
def run(a, b):
    parts = [None] * 2
    parts[0] = a
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        parts[0][:] = i
"""
    ),
    "a list gets what another has": (
        """
def run(a, b):
    parts = []
    parts += [a]
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        parts[0][:] = i
"""
    ),
    "an operator is code of the file": (
        """
class Counter:
    def __init__(self, a):
        self.a = a
    def __add__(self, other):
        self.a[:] += other
        return self
def run(a, b):
    counter = Counter(a)
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        counter + 1
"""
    ),
    "what is entered is": (
        """
class Counter:
    def __init__(self, a):
        self.a = a
    def __enter__(self):
        self.a[:] += 1
    def __exit__(self, *raised):
        pass
def run(a, b):
    counter = Counter(a)
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        with counter:
            pass
"""
    ),
    "a method calls what it is given": (
        """
def run(a, b):
    names = ["x", "y"]
    def key(one):
        a[:] += 1
        return one
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        names.sort(key=key)
"""
    ),
    "a function within is called": (
        """
def run(a, b):
    def grow():
        a[:] += 1
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        grow()
"""
    ),
    "a function holds what it changes": (
        """
from functools import partial
def add(one):
    one[:] += 1
def run(a, b):
    grow = partial(add, a)
    for i in range(3):
        keep(np.sum(np.sqrt(a)))
        grow()
"""
    ),
    "a generator goes on": (
        """
def grown(one):
    for i in range(3):
        one[:] += 1
        yield i
def run(a, b):
    steps = grown(a)
    for i in steps:
        keep(np.sum(np.sqrt(a)))
"""
    ),
}


CALL = ast.Call(ast.Name("f"), [], [])


def _is_of_arrays(function: object) -> bool:
    return inspect.isfunction(function) or hasattr(function, "_implementation")


def _outs() -> Iterator[tuple[str, int]]:
    """Yield NumPy's functions that may be told by place where to write, and which place that is."""
    for module, path in ((np, "numpy"), (np.linalg, "numpy.linalg"), (np.fft, "numpy.fft")):
        for name in dir(module):
            function = getattr(module, name)
            if isinstance(function, np.ufunc):
                yield f"{path}.{name}", function.nin
            elif _is_of_arrays(function) and "busday" not in name:
                for place, one in enumerate(inspect.signature(function).parameters.values()):
                    by_place = one.kind is one.POSITIONAL_OR_KEYWORD
                    if by_place and one.name in ("out", "overwrite_input"):
                        yield f"{path}.{name}", place
                        break


@pytest.mark.parametrize(("name", "place"), list(_outs()))
def test_functions_write_where_they_are_told_to(name: str, place: int) -> None:
    for given, deed in ((["a"] * place, Deed.COMPUTES), (["a"] * (place + 1), Deed.WRITES)):
        call = ast.parse(f"f({', '.join(given)})", mode="eval").body
        assert isinstance(call, ast.Call)
        assert of_library(name, call, runs=False) is deed


SHARED = np.arange(16.0).reshape(4, 4)
GIVEN = [(SHARED,), (SHARED, 1), (SHARED, 1, 0), (SHARED, (4, 4)), (SHARED, 2), ("ij->ji", SHARED)]


@pytest.mark.parametrize("name", sorted(MODULES_OF_NUMPY))
def test_functions_whose_results_share_memory_are_known(name: str) -> None:
    module = np if name == "numpy" else getattr(np, name.removeprefix("numpy."))
    sharing = set()
    for one in dir(module):
        function = getattr(module, one)
        if _is_of_arrays(function) and of_library(f"{name}.{one}", CALL, False) is Deed.COMPUTES:
            for given in GIVEN:
                with suppress(Exception), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = function(*given)
                    parts = made if isinstance(made, list | tuple) else [made]
                    arrays = [part for part in parts if isinstance(part, np.ndarray)]
                    if any(np.shares_memory(part, SHARED) for part in arrays):
                        sharing.add(one)
    assert sharing <= SHARING


def _claimed(source: str) -> set[str]:
    found = computed_again(source).values()
    return {ast.unparse(uses[0]) for some in found for one in some for uses in one.values}


@pytest.mark.parametrize("title", PROGRAMS)
def test_what_changes_is_not_the_same_each_time(title: str) -> None:
    source = f"import numpy as np\n{PROGRAMS[title]}"
    kept: list[float] = []
    names: dict[str, Any] = {"keep": lambda value: kept.append(float(value))}
    exec(compile(source, title, "exec"), names)
    code = names["run"].__code__
    given = [eval(ARRAYS[one], {"np": np}) for one in code.co_varnames[: code.co_argcount]]
    names["run"](*given)
    assert len(set(kept)) > 1
    (value,) = (ast.unparse(one.args[0]) for one in _kept(ast.parse(source)))
    assert value not in _claimed(source.replace(f"keep({value})", f"total += {value}"))


def _kept(tree: ast.Module) -> list[ast.Call]:
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    return [one for one in calls if getattr(one.func, "id", "") == "keep"]


@pytest.mark.parametrize(
    "between",
    ["t = time.perf_counter()", "print(*names)", "isinstance(b, list)", "names.append(i)"],
)
def test_what_changes_nothing_leaves_it_the_same(between: str) -> None:
    source = f"""
import time
import numpy as np
W = np.ones(5)
def reset():
    W[:] = 0
def run(b, n, names):
    total = 0.0
    for i in range(n):
        {between}
        total += np.sum(np.sqrt(W))
    return total
"""
    assert _claimed(source) == {"np.sum(np.sqrt(W))"}


@pytest.mark.parametrize("made", ["[1]", "(1,)", "{1: 2}", "{1}", "list(a)", "tuple(a)"])
def test_what_holds_others_stays_so_with_something_unknown(made: str) -> None:
    """Whatever the order of sets is, which another run may have another."""
    names = names_around("def run(a, b):\n    return b\n", 1).seen(lambda _: OBJECT, ())
    whole = ast.parse(f"{made} * b", mode="eval").body
    assert isinstance(whole, ast.BinOp)
    assert names.kind(whole) == names.kind(whole.left) != OBJECT
