"""What is seen of local names, attributes and names from around, and that nobody notices."""

from __future__ import annotations

import linecache
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from advisor.codec import decode, encode
from advisor.observe.calls import MOST_CALLS, MOST_TIMES, Calls
from advisor.observed import (
    VARIES,
    Seen,
    SeenArray,
    SeenNumber,
    What,
)

PROGRAM = """\
import numpy as np

TABLE = np.ones((3, 4), np.float32)
COUNT = 7


class Grid:
    __slots__ = ("u", "n", "__dict__")

    def __init__(self, u):
        self.u, self.n = u, len(u)
        self.shape = (len(u), 2)
        self.part = u[1:]

    @property
    def twice(self):
        raise AssertionError("nobody asked")

    def step(self, k=2):
        if k == 1:
            return self.twice
        self.u[0] = self.n * k
        self.u = self.u * 1.0
        return self.u

    def own(self, names):
        for name in names:
            yield name


def kinds(x, flag):
    y = x.tolist()
    z = np.array(y) if flag else np.array(y, int)
    a, (b, *c) = 1, (2.5, 3, 4)
    first = z[0]
    for k in range(3):
        w = z[k:]
    with np.errstate(all="ignore") as held:
        v = [one for one in range(4)]
    return TABLE[0] * COUNT


def raising(x):
    y = x
    try:
        y = [][1]
    except IndexError:
        pass
    return y


def hot(n):
    total = np.zeros(1)
    for i in range(n):
        step = i
    last = np.ones(n)
    return last


def again(n):
    y = np.zeros(3) if n != 10 else np.zeros(3, int)
    return n and again(n - 1)
"""


@pytest.fixture(autouse=True)
def of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this process for one that imported no MPI: of ranks, other things are looked at."""
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)


@pytest.fixture
def watched(tmp_path: Path) -> Any:
    """A program, and what watches the calls that a block makes."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    linecache.checkcache(str(path))
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(PROGRAM, str(path), "exec"), space)
    return space, Calls(str(tmp_path.resolve()))


def of(calls: Calls, function: str) -> Seen:
    found = [seen for _, seen in calls.gathered() if seen.function == function]
    return max(found, key=lambda seen: seen.calls)


def names(seen: Seen) -> dict[str, What]:
    return {one.name: one.what for one in seen.bindings}


def brief(what: What) -> object:
    match what:
        case SeenArray():
            return what.dtype, what.layout, what.shape
        case SeenNumber():
            return what.dtype, what.value
    return what


def test_each_name_is_what_the_line_made_of_it(watched: Any) -> None:
    space, calls = watched
    with calls.watching():
        space["kinds"](space["np"].arange(5.0), True)
    seen = of(calls, "kinds")
    assert {name: brief(what) for name, what in names(seen).items()} == {
        "y": "list",
        "z": ("float64", "C", (5,)),
        "a": ("int", 1),
        "b": ("float", None),
        "c": "list",
        "first": ("float64", None),
        "k": ("int", None),
        "w": VARIES,
        "v": "list",
        "held": "NoneType",
    }
    assert [one.name for one in seen.arrays] == ["x", "TABLE"]
    assert {one.name: one.value for one in seen.numbers} == {"COUNT": 7}
    assert ("w", "z") in {tuple(sorted(pair)) for pair in seen.overlaps}
    assert decode(Seen, encode(seen)) == seen


def test_calls_of_one_kind_agree_or_nothing_is_told(watched: Any) -> None:
    space, calls = watched
    numpy = space["np"]
    with calls.watching():
        space["kinds"](numpy.arange(5.0), True)
        space["kinds"](numpy.arange(6.0), False)
    for seen in (one for _, one in calls.gathered() if one.function == "kinds"):
        told = names(seen)
        assert told["z"] == VARIES
        assert isinstance(told["b"], SeenNumber)


def test_attributes_are_read_without_running_anything(watched: Any) -> None:
    space, calls = watched
    with calls.watching():
        space["Grid"](space["np"].ones(4)).step()
    made, stepped = of(calls, "Grid.__init__"), of(calls, "Grid.step")
    assert {name: brief(what) for name, what in names(made).items()} == {
        "self.u": ("float64", "C", (4,)),
        "self.n": ("int", 4),
        "self.shape": "tuple",
        "self.part": ("float64", "C", (3,)),
    }
    assert ("self.part", "u") in {tuple(sorted(pair)) for pair in made.overlaps}
    assert {one.name for one in stepped.arrays} == {"self.u"}
    assert {one.name: one.value for one in stepped.numbers} == {"k": 2, "self.n": 4}
    # bound anew, and still what it was
    assert [one.text for one in stepped.bindings if one.name == "self.u"] == [
        "self.u = self.u * 1.0"
    ]


def test_a_line_that_raises_binds_nothing(watched: Any) -> None:
    space, calls = watched
    with calls.watching():
        space["raising"](space["np"].ones(4))
    assert [one.text for one in of(calls, "raising").bindings] == ["y = x"]


def test_what_comes_after_a_long_loop_is_still_seen(watched: Any) -> None:
    space, calls = watched
    with calls.watching():
        space["hot"](100_000)
    assert brief(names(of(calls, "hot"))["last"]) == ("float64", "C", (100_000,))
    assert calls._bindings._events < 5 * MOST_TIMES + 2000


def test_few_calls_are_looked_into_and_no_frame_is_kept(watched: Any) -> None:
    space, calls = watched
    with calls.watching():
        space["again"](200)
    assert sum(calls._bindings._calls.values()) <= MOST_CALLS
    assert not calls._bindings._frames
    assert sys.gettrace() is None


def test_another_tracer_is_left_alone(watched: Any) -> None:
    space, calls = watched
    lines: list[int] = []

    def theirs(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_name == "kinds" and event == "line":
            lines.append(frame.f_lineno)
        return theirs

    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        with calls.watching():
            space["kinds"](space["np"].arange(5.0), True)
            assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)
    assert lines
    seen = of(calls, "kinds")
    assert seen.arrays and not seen.bindings


def test_threads_are_looked_at_each_by_itself(watched: Any) -> None:
    space, calls = watched
    given = space["np"].arange(5.0)
    with calls.watching(), ThreadPoolExecutor(4) as threads:
        list(threads.map(space["kinds"], [given] * 4, [True] * 4))
    assert brief(names(of(calls, "kinds"))["z"]) == ("float64", "C", (5,))
