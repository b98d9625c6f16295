"""Numbers that only a run tells: two of them are not one because nothing is known of either."""

from __future__ import annotations

import pytest

from advisor.analysis.spmd.lower import lower_steps
from advisor.ir.spmd.memory import At
from advisor.ir.spmd.steps import Compute, Copy, walk
from costdb.expr import free_symbols, num, sym
from tests.spmd.reading import loops, program

_READ = "places = np.loadtxt('places.txt', dtype=int)\nother = np.loadtxt('other.txt', dtype=int)\n"


@pytest.mark.parametrize(
    "bounds",
    [
        "places[rank], places[rank + 1]",
        "places[rank], other[rank]",
        "int(places[0]), int(other[0])",
        "places.min(), places.max()",
    ],
)
def test_a_range_between_two_such_numbers_has_a_length_of_its_own(bounds: str) -> None:
    text = f"{_READ}x = np.zeros(8)\nfor k in range({bounds}):\n    comm.Send(x, dest=1)\n"
    (loop,) = loops(program(text))
    assert loop.trips == sym("range.length")
    assert loop.high - loop.low == sym("range.length")


def test_what_stands_in_the_source_of_one_bound_is_kept() -> None:
    text = f"{_READ}x = np.zeros(8)\nfor k in range(places[0], 20):\n    comm.Send(x, dest=1)\n"
    (loop,) = loops(program(text))
    assert loop.high == num(20)
    assert loop.trips == num(20) - sym("range.low")


def test_two_such_ranges_are_not_as_long() -> None:
    loop = "for k in range({0}[0], {0}[1]):\n    comm.Send(x, dest=1)\n"
    text = f"{_READ}x = np.zeros(8)\n{loop.format('places')}{loop.format('other')}"
    one, another = loops(program(text))
    assert one.trips is not None and another.trips is not None
    assert free_symbols(one.trips).isdisjoint(free_symbols(another.trips))


@pytest.mark.parametrize(
    "copy",
    ["a[places[0]] = a[places[1]]", "a[places[0], :] = a[other[0], :]"],
)
def test_two_such_subscripts_are_not_one_place(copy: str) -> None:
    text = f"{_READ}a = np.zeros((9, 8))\n{copy}\ncomm.Send(a, dest=1)\n"
    read = program(text)
    (step,) = [
        visit.step
        for function in read.functions
        for visit in walk(function.body)
        if isinstance(visit.step, Copy)
    ]
    assert step.target.region is not None and step.source.region is not None
    one, another = step.target.region[0], step.source.region[0]
    assert isinstance(one, At) and isinstance(another, At)
    assert one.index != another.index


def test_nor_are_the_dimensions_of_one_subscript() -> None:
    text = f"{_READ}a = np.zeros((9, 8, 7))\na[places[0], places[1]] = 1.0\ncomm.Send(a, dest=1)\n"
    regions = [
        visit.step.target.region
        for function in program(text).functions
        for visit in walk(function.body)
        if isinstance(visit.step, Compute) and visit.step.target is not None
    ]
    ((first, second, _),) = [r for r in regions if r and isinstance(r[0], At)]
    assert isinstance(first, At) and isinstance(second, At) and first.index != second.index


@pytest.mark.parametrize(("condition", "told"), [("a[0, 0] > 0.5", True), ("rank > 0", False)])
def test_a_branch_that_data_decide_is_told(condition: str, told: bool) -> None:
    text = (
        "a = np.zeros((100, 100))\n"
        f"if {condition}:\n    b = a @ a\nelse:\n    b = a + a\n"
        "comm.Bcast(b, root=0)\n"
    )
    (function,) = program(text).functions
    gaps = [gap.reason for gap in lower_steps(function.body).gaps]
    assert gaps == ([f"`if {condition}` is not known: its longer part counts"] if told else [])
