"""Pickled messages and collectives: composed prices against sums made by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.estimate import Missing, Priced
from costdb.evaluate import evaluate_price
from costdb.expr import evaluate, num, sym
from costdb.machines import Json, Machine, MachineError, machine_of
from costdb.pricing import price_work
from costdb.profile_check import check_profile
from costdb.work import PICKLED_KINDS, CollectiveKind, PickledCollective, PickledMessage, Region
from tests.costdb.made_up import HEADING, quantity

N, P = sym("N"), sym("P")
ARRAY = Region(8, (N,), (num(8),))


def step(call_us: float, *pieces: tuple[float | None, float]) -> Json:
    return {
        "call_us": quantity(call_us, "us"),
        "pieces": [
            {"max_bytes": limit, "us_per_byte": quantity(rate, "us/byte")} for limit, rate in pieces
        ],
    }


DUMP = (2.0, ((1000, 0.002), (None, 0.005)))
TRANSFER = (9.0, ((None, 0.001),))
LOAD = (3.0, ((500, 0.004), (4000, 0.003), (None, 0.006)))
COMBINE = (1.0, ((None, 0.0005),))


def by_hand(stated: tuple[float, tuple[tuple[float | None, float], ...]], size: float) -> float:
    time, above = stated[0], 0.0
    for limit, rate in stated[1]:
        most = size if limit is None else min(size, limit)
        time += rate * max(0.0, most - above)
        above = math.inf if limit is None else limit
    return time


def document(**changes: Json) -> dict[str, Json]:
    section: dict[str, Json] = {
        "dump": step(DUMP[0], *DUMP[1]),
        "transfer": step(TRANSFER[0], *TRANSFER[1]),
        "load": step(LOAD[0], *LOAD[1]),
        "combine": step(COMBINE[0], *COMBINE[1]),
        "object_us": quantity(0.1, "us"),
        "range": {"bytes": [8, 1_000_000]},
    }
    return {
        **HEADING,
        "pickle": {k: v for k, v in {**section, **changes}.items() if v is not None},
    }


def machine(**changes: Json) -> Machine:
    return machine_of(document(**changes), "test.json")


def microseconds(priced: Priced | Missing, **sizes: int) -> float:
    assert isinstance(priced, Priced), priced
    values = {symbol: q.value for symbol, q in priced.coefficients.items()}
    total = float(evaluate(priced.microseconds, {**values, **sizes}))
    parts = sum(float(evaluate(t.microseconds, {**values, **sizes})) for t in priced.terms)
    assert parts == pytest.approx(total)
    return total


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


def test_items_of_a_list_cost_extra() -> None:
    bare = microseconds(price_work(PickledMessage(ARRAY), machine()), N=100)
    listed = microseconds(price_work(PickledMessage(ARRAY, N), machine()), N=100)
    assert listed == pytest.approx(bare + 100 * 0.1)


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


def test_a_strided_array_is_copied_once_before_it_is_serialised() -> None:
    staging: dict[str, Json] = {
        "call_us": quantity(0.4, "us"),
        "loop_us": quantity(0.006, "us"),
        "element_us": quantity(0.002, "us"),
        "copy_us_per_byte": quantity(0.0001, "us/byte"),
        "way_bytes": quantity(4096, "byte"),
        "lines": [{"max_bytes": None, "gamma_us_per_line": quantity(0.01, "us/line")}],
    }
    message: dict[str, Json] = {
        "alpha_us": quantity(1, "us"),
        "bytes": [{"max_bytes": None, "beta_us_per_byte": quantity(0.001, "us/byte")}],
        "staging": staging,
    }
    whole = document()
    whole["lines"] = {"message": message}
    whole["hardware"] = {"cache_line_bytes": quantity(64, "byte")}
    assert check_profile(whole, "test.json") == []
    here = machine_of(whole, "test.json")
    column = Region(8, (num(100), num(1)), (num(800), num(8)))
    strided = microseconds(price_work(PickledMessage(column), here))
    as_one_run = microseconds(price_work(PickledMessage(ARRAY), here), N=100)
    both_copies = 0.4 + 0.006 + 100 * 0.002 + 800 * 0.0001 + 100 * 0.01
    assert strided == pytest.approx(as_one_run + both_copies / 2)


def test_a_measured_factor_corrects_its_kind_only() -> None:
    factor = quantity(1.5, "1")
    corrected = machine(collectives={"broadcast": factor})
    for kind in PICKLED_KINDS:
        work = PickledCollective(kind, num(2), ARRAY)
        plain = microseconds(price_work(work, machine()), N=100)
        expected = plain * (1.5 if kind is CollectiveKind.BROADCAST else 1)
        assert microseconds(price_work(work, corrected), N=100) == pytest.approx(expected)


def test_the_residual_widens_the_interval() -> None:
    residual: Json = {**quantity(1, "1"), "low": 0.8, "high": 1.3}  # type: ignore[dict-item]
    priced = price_work(PickledMessage(ARRAY), machine(residual=residual))
    assert isinstance(priced, Priced)
    estimate = evaluate_price(priced, {"N": 1000})
    assert estimate.low == pytest.approx(0.8 * estimate.mid)
    assert estimate.high == pytest.approx(1.3 * estimate.mid)
    assert estimate.in_range
    assert not evaluate_price(priced, {"N": 1_000_000}).in_range


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


def test_a_message_needs_no_operator() -> None:
    assert isinstance(price_work(PickledMessage(ARRAY), machine(combine=None)), Priced)


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
        price_work(PickledMessage(ARRAY), machine(dump=step(1.0, *pieces)))
