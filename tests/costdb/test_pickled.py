"""Pickled messages and collectives: composed prices against sums made by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.documents import check_profile
from costdb.evaluate import Missing
from costdb.expr import num, sym
from costdb.machines import Json, Machine, MachineError, machine_of
from costdb.pricing import price_work
from costdb.work import PICKLED_KINDS, CollectiveKind, PickledCollective, PickledMessage, Region
from tests.costdb.made_up import HEADING, Grades, by_grade, graded, microseconds, quantity

N, P = sym("N"), sym("P")
ARRAY = Region(8, (N,), (num(8),))


DUMP = (2.0, ((1000, 0.002), (None, 0.005)))
TRANSFER = (9.0, ((None, 0.001),))
LOAD = (3.0, ((500, 0.004), (4000, 0.003), (None, 0.006)))
COMBINE = (1.0, ((None, 0.0005),))


def by_hand(stated: tuple[float, Grades], size: float) -> float:
    return stated[0] + by_grade(size, stated[1])


def step(call_us: float, grades: Grades) -> Json:
    return {"call_us": quantity(call_us, "us"), "pieces": graded(grades)}


def document(**changes: Json) -> dict[str, Json]:
    section: dict[str, Json] = {
        "dump": step(*DUMP),
        "transfer": step(*TRANSFER),
        "load": step(*LOAD),
        "combine": step(*COMBINE),
        "object_us": quantity(0.1, "us"),
        "range": {"bytes": [8, 1_000_000]},
    }
    return {
        **HEADING,
        "pickle": {k: v for k, v in {**section, **changes}.items() if v is not None},
    }


def machine(**changes: Json) -> Machine:
    return machine_of(document(**changes), "test.json")


def parts_by_hand(size: int) -> tuple[float, float, float, float, float]:
    return (
        by_hand(DUMP, size),
        by_hand(TRANSFER, size),
        by_hand(LOAD, size),
        by_hand(COMBINE, size),
        TRANSFER[0],
    )


def test_the_test_profile_is_sound() -> None:
    assert check_profile(document(), "test.json") == []


@given(st.integers(1, 5000))
def test_a_message_is_its_dump_its_transfer_and_its_load(count: int) -> None:
    dump, transfer, load, _, _ = parts_by_hand(8 * count)
    found = microseconds(price_work(PickledMessage(ARRAY), machine()), N=count)
    assert found == pytest.approx(dump + transfer + load)


@given(st.integers(1, 5000), st.integers(2, 40))
def test_collectives_are_composed_as_mpi4py_does_them(count: int, ranks: int) -> None:
    dump, transfer, load, combine, sizes = parts_by_hand(8 * count)
    deep = math.ceil(math.log2(ranks))
    up = dump + load + deep * (dump + sizes + transfer + load + combine)
    expected = {
        CollectiveKind.BROADCAST: dump + deep * (sizes + transfer) + load,
        CollectiveKind.GATHER: dump + (ranks - 1) * (sizes + transfer) + ranks * load,
        CollectiveKind.ALLGATHER: dump + (ranks - 1) * (sizes + transfer) + ranks * load,
        CollectiveKind.SCATTER: ranks * dump + (ranks - 1) * (sizes + transfer) + load,
        CollectiveKind.ALLTOALL: ranks * (dump + load) + (ranks - 1) * (sizes + transfer),
        CollectiveKind.REDUCE: up,
        CollectiveKind.ALLREDUCE: up + dump + deep * (sizes + transfer) + load,
    }
    assert set(expected) == set(PICKLED_KINDS)
    for kind, time in expected.items():
        priced = price_work(PickledCollective(kind, P, ARRAY), machine())
        assert microseconds(priced, N=count, P=ranks) == pytest.approx(time), kind


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_bytes_never_cost_less(one: int, other: int) -> None:
    priced = price_work(PickledMessage(ARRAY), machine())
    small, large = sorted((one, other))
    assert microseconds(priced, N=small) <= microseconds(priced, N=large)


@pytest.mark.parametrize("step_name", ["dump", "transfer", "load", "object_us"])
def test_what_is_not_measured_is_missing_by_name(step_name: str) -> None:
    answer = price_work(PickledMessage(ARRAY, N), machine(**{step_name: None}))
    assert isinstance(answer, Missing)
    assert f"pickle.{step_name}" in answer.what


@pytest.mark.parametrize(
    ("pieces", "complaint"),
    [
        ((), "at least one grade"),
        (((100, 1.0),), "null in the last only"),
        (((None, 1.0), (None, 1.0)), "null in the last only"),
        (((100, 1.0), (100, 1.0), (None, 1.0)), "must grow"),
        (((True, 1.0), (None, 1.0)), "expected a number"),
    ],
)
def test_malformed_grades_are_named(
    pieces: tuple[tuple[float | None, float], ...], complaint: str
) -> None:
    with pytest.raises(MachineError, match=complaint):
        price_work(PickledMessage(ARRAY), machine(dump=step(1.0, pieces)))
