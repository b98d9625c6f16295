"""The array model: prices against formulas by hand, stand-ins, and fits of made-up machines."""

from __future__ import annotations

from math import log2, prod
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from costdb.arrays.amounts import (
    Hierarchy,
    _passes,
    _walked_across,
    amounts,
    inner_runs,
    rate_key,
    shape_of,
)
from costdb.arrays.model import rates_of
from costdb.calibration.arrays import array_points, call_of
from costdb.calibration.fitting import cache_levels, caches, fit_classes
from costdb.calibration.loops import SECTION as LOOPS
from costdb.calibration.section import Effort, Host, Timing
from costdb.documents import check_profile
from costdb.evaluate import Missing, Priced, evaluate_price
from costdb.expr import Expr, evaluate, num, sym
from costdb.machines import Json, Machine, MachineError, load_machine, machine_of
from costdb.pricing import price_work
from costdb.quantity import Provenance
from costdb.records import replace
from costdb.work import (
    Access,
    ArrayCall,
    ArrayOperation,
    Interpretation,
    Region,
    Statement,
    Visit,
)
from tests.costdb.hosts import UNTOLD
from tests.costdb.made_up import HEADING, quantities

N = sym("N")
LEVELS = (1000, 10_000)
CACHES = Hierarchy((32_768, 524_288, 33_554_432), 64)
BINARY = {
    "call_us": 2.0,
    "run_us": 0.25,
    "element_us": 0.01,
    "rows_element_us": 0.015,
    "apart_element_us": 0.03,
    "line_us": {"b10000": 0.5, "beyond": 4.0},
    "apart_line_us": {"b10000": 1.0, "beyond": 8.0},
}


def document(**rates: dict[str, object]) -> dict[str, object]:
    return {
        **HEADING,
        "hardware": quantities({"cache_line_bytes": 64}, "byte"),
        "arrays": {
            "levels": quantities({f"b{level}": level for level in LEVELS}, "byte"),
            "rates": {key: {"float64": quantities(value)} for key, value in rates.items()},
            **quantities({"fault_us": 0.125}),
        },
    }


def machine(**rates: dict[str, object]) -> Machine:
    return machine_of(document(**rates), "made-up.json")


def dense(*counts: int | Expr, pitch: int | None = None) -> Region:
    """Return rows of doubles, `pitch` elements apart."""
    exprs = tuple(num(c) if isinstance(c, int) else c for c in counts)
    inner = exprs[-1] if pitch is None else num(pitch)
    return Region(8, exprs, (inner * 8, num(8))[2 - len(exprs) :])


def added(
    region: Region, elements: int | Expr, dtype: str = "float64", **more: object
) -> ArrayCall:
    visits = (Visit(region, "a"), Visit(region, "b"))
    total = num(elements) if isinstance(elements, int) else elements
    return ArrayCall(ArrayOperation.BINARY, dtype, total, Visit(region, "c", **more), visits)


def time_us(call: ArrayCall, **rates: dict[str, object]) -> float:
    price = price_work(
        Statement((), num(0), calls=(call,)), machine(**(rates or {"binary": BINARY}))
    )
    assert isinstance(price, Priced)
    return 1e6 * evaluate_price(price, {"N": 100}).mid


def summed(call: ArrayCall, memory: Hierarchy = CACHES) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for one in amounts(call, memory):
        found[one.place] = found.get(one.place, 0.0) + float(evaluate(one.amount, {}))
    return found


def test_rates_of_an_earlier_model_are_refused_with_the_next_step() -> None:
    stated = document(binary=BINARY)
    arrays = stated["arrays"]
    assert isinstance(arrays, dict)
    arrays["way_bytes"] = quantities({"b1000": 100}, "byte")
    work = Statement((), num(0), calls=(added(dense(24), 24),))
    with pytest.raises(MachineError, match="anew: advise calibrate --name test"):
        price_work(work, machine_of(stated, "made-up.json"))


def test_rows_that_do_not_follow_on_are_entered_one_by_one() -> None:
    gaps, whole = summed(added(dense(5, 6, pitch=8), 30)), summed(added(dense(5, 6), 30))
    assert gaps["run_us",] == 5 and gaps["rows_element_us",] == 30
    assert whole["run_us",] == 1 and whole["element_us",] == 30


def test_each_operand_in_rows_is_copied_to_a_buffer_unless_rows_fill_it() -> None:
    def share(run: int, *gaps: int) -> float:
        visits = [Visit(dense(5, run, pitch=run + 2 if gap else run)) for gap in gaps]
        *operands, result = visits
        call = ArrayCall(ArrayOperation.BINARY, "float64", num(5 * run), result, tuple(operands))
        return summed(call).get(("rows_element_us",), 0.0) / (5 * run)

    # of two operands and a result
    assert [share(6, *gaps) for gaps in ((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1))] == [
        pytest.approx(third / 3) for third in range(4)
    ]
    # measured with NumPy 2.4: one operand to 4,096 elements a row, two to 2,730, three to 2,048
    for gaps, longest in (((1, 0, 0), 4095), ((1, 1, 0), 2730), ((1, 1, 1), 2047)):
        assert share(longest, *gaps) > 0 == share(longest + 1, *gaps)


def test_operators_store_in_a_temporary_that_is_an_operand() -> None:
    temporary, made, named = (Visit(dense(40_000), name) for name in ("", "", "x"))
    call = ArrayCall(
        ArrayOperation.BINARY, "float64", num(40_000), made, (temporary, named), fresh=True
    )
    other = replace(call, operation=ArrayOperation.FUNCTION)
    reused, new = (
        sum(amount for place, amount in summed(one).items() if place[0] == "line_us")
        for one in (call, other)
    )
    assert 3 * reused == pytest.approx(2 * new)


def column(pitch: int, rows: int = 100) -> Region:
    return Region(8, (num(rows),), (num(8 * pitch),))


def test_columns_have_a_line_for_each_element_and_seem_larger_at_powers_of_two() -> None:
    # 100 lines of three columns fit into 32 KB, and seem 64 times as many at the pitch of a page
    spread, crowded = summed(added(column(513), 100)), summed(added(column(512), 100))
    assert spread["apart_element_us",] == crowded["apart_element_us",] == 100
    assert not any(place[0] == "apart_line_us" for place in spread if spread[place])
    assert crowded["apart_line_us", "b33554432"] == 300


@given(st.integers(1, 2**20), st.integers(1, 2**30))
def test_every_line_is_in_one_level_and_is_no_nearer_when_it_crowds(pitch: int, used: int) -> None:
    def far(distance: Expr) -> list[float]:
        shares = {key: float(evaluate(share, {})) for key, share in CACHES.shares(distance)}
        assert all(share >= 0 for share in shares.values())
        return [sum(shares.get(key, 0.0) for key in CACHES.keys[at:]) for at in range(3)]

    plain, crowded = far(num(used)), far(num(used) * CACHES.crowding(num(pitch)))
    assert all(0 <= one <= other <= 1 for one, other in zip(plain, crowded, strict=True))
    assert CACHES.crowding(num(4096 * pitch)) == num(64)


def test_data_that_has_gone_far_comes_from_far() -> None:
    near, far = (
        added(dense(16), 16, distance_bytes=distance) for distance in (None, num(1_000_000))
    )
    lines = 16 / 8 + 1 - 1 / 8
    assert time_us(far) == pytest.approx(time_us(near) + 4 * lines)


def test_walks_across_lines_find_what_the_walk_before_left() -> None:
    def lines(rows: int, columns: int) -> dict[tuple[str, ...], float]:
        whole = Visit(dense(rows, columns), "a")
        made = Visit(dense(rows, columns))
        call = ArrayCall(
            ArrayOperation.SCAN, "float64", num(rows * columns), made, (whole,), True, 1, num(rows)
        )
        return {key: value for key, value in summed(call).items() if key[0] == "apart_line_us"}

    # two walks of 100 lines stay in the first level, so that new lines alone come from beyond
    new = 2 * 100 * 1001 / 8
    assert sum(lines(100, 1001).values()) == pytest.approx(new)
    # of 3000 lines nothing is left there when the next walk comes, and little of crowded ones
    assert sum(lines(3000, 33).values()) == pytest.approx(2 * 3000 * 33)
    assert sum(lines(100, 1024).values()) == pytest.approx(2 * 100 * 1024)


@given(st.integers(1, 10**6), st.integers(1, 10**8))
def test_random_places_of_larger_tables_are_farther(table: int, more: int) -> None:
    def beyond(size: int) -> float:
        return sum(float(evaluate(share, {})) for _, share in CACHES.shares_anywhere(num(size)))

    assert 0 <= beyond(table) <= beyond(table + more) < 1


@given(st.integers(2, 5000), st.integers(2, 5000))
def test_transforms_take_passes_for_their_factors_and_no_more_than_a_convolution(
    one: int, other: int
) -> None:
    both = _passes(one * other)
    assert 0 < both <= 6 * (log2(one * other) + 1)
    # factors' passes follow one another
    assert both == pytest.approx(
        min(_passes(one) + _passes(other), 6 * (log2(one * other) + 1))
    ) or max(_passes(one) / (log2(one) + 1), _passes(other) / (log2(other) + 1)) == pytest.approx(6)
    assert _passes(2**10) == 10


def stored(order: str, counts: tuple[int, ...]) -> tuple[NDArray[np.float64], Visit]:
    """Return an array and how the model sees it."""
    array = np.zeros(counts, order="F" if order == "F" else "C")
    pitches = tuple(num(step) for step in array.strides)
    return array, Visit(Region(8, tuple(map(num, counts)), pitches), str(id(array)))


@given(
    st.lists(st.sampled_from("CF"), min_size=1, max_size=3),
    st.sampled_from(("C", "F", "fresh")),
    st.tuples(st.integers(2, 5), st.integers(2, 5)),
)
def test_operands_are_walked_across_where_the_library_does_not_go_by_neighbours(
    orders: list[str], result: str, counts: tuple[int, int]
) -> None:
    arrays, visits = zip(*(stored(order, counts) for order in orders), strict=True)
    out, made = stored("C" if result == "fresh" else result, counts)
    fresh = result == "fresh"
    call = ArrayCall(ArrayOperation.BINARY, "float64", num(prod(counts)), made, visits, fresh)
    flags = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    shown = np.nditer([*arrays, None if fresh else out], ["external_loop"], flags, order="K")
    near = [len(shown.value[0]) == prod(counts) or one.strides[0] == 8 for one in shown.value]
    walked = [_walked_across(call, visit) is None for visit in visits]
    assert walked == near[: len(visits)]


@st.composite
def regions(draw: st.DrawFn) -> tuple[Region, set[int]]:
    """Return rows of elements with gaps or without, and the lines that they touch, counted."""
    item = draw(st.sampled_from((4, 8, 16)))
    counts = draw(st.tuples(st.integers(1, 30), st.integers(1, 60)))
    pitch = draw(st.integers(counts[1], 3 * counts[1])) * item
    region = Region(item, tuple(map(num, counts)), (num(pitch), num(item)))
    touched = {
        (row * pitch + at * item + byte) // 64
        for row in range(counts[0])
        for at in range(counts[1])
        for byte in (0, item - 1)
    }
    return region, touched


@given(regions())
def test_lines_are_those_that_are_touched(found: tuple[Region, set[int]]) -> None:
    region, touched = found
    rows = float(evaluate(region.counts[0], {}))
    # a run may begin anywhere on its first line
    assert abs(float(evaluate(shape_of(region, 64).lines, {})) - len(touched)) <= rows


@given(regions())
def test_runs_are_parts_without_gaps(found: tuple[Region, set[int]]) -> None:
    region, _ = found
    rows, columns = (int(evaluate(count, {})) for count in region.counts)
    pitch = int(evaluate(region.pitches_bytes[0], {})) // region.itemsize_bytes
    gaps = rows if pitch != columns and rows > 1 and columns > 1 else 1
    assert evaluate(inner_runs(added(region, rows * columns)), {}) == gaps


def test_what_was_not_measured_is_estimated_from_what_was_or_missing() -> None:
    call = added(dense(32), 32, "int64")
    rates = machine(binary={**BINARY, "residual": 1.0})
    price = price_work(Statement((), num(0), calls=(call,)), rates)
    assert isinstance(price, Priced)
    found = evaluate_price(price, {})
    assert found.provenance is Provenance.ESTIMATED
    assert found.high > 1.4 * found.mid > 2 * found.low
    missing = price_work(
        Statement((), num(0), calls=(call,)), machine(sort={"call_us": 1.0, "element_us": 1.0})
    )
    assert isinstance(missing, Missing)
    assert "arrays.rates.binary.int64" in missing.what


@pytest.mark.parametrize("operation", [ArrayOperation.MATMUL, ArrayOperation.MATVEC])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_products_of_integers_have_a_class_or_are_estimated(
    operation: ArrayOperation, dtype: str
) -> None:
    depth = 40
    elements, length = num(900 if operation == "matmul" else 900 * depth), num(depth)
    call = ArrayCall(operation, dtype, elements, Visit(dense(900)), (), length=length)

    def priced(**more: object) -> tuple[float, set[Provenance]]:
        stated = document(matmul={"element_us": 2e-5}, matvec={"element_us": 2e-5}, binary=BINARY)
        arrays = stated["arrays"]
        assert isinstance(arrays, dict)
        arrays["rates"] |= more
        price = price_work(Statement((), num(0), calls=(call,)), machine_of(stated, "made-up.json"))
        assert isinstance(price, Priced)
        how = {one.provenance for one in price.coefficients.values()}
        return 1e6 * evaluate_price(price, {}).mid, how

    without, how = priced()
    assert how >= {Provenance.ESTIMATED} and without > 900 * depth * 8 * 0.01
    timed, how = priced(matmul_without_blas={"int64": quantities({"element_us": 0.002})})
    assert timed == pytest.approx(900 * depth * 0.002)
    assert how == {Provenance.MEASURED if dtype == "int64" else Provenance.ESTIMATED}


def test_compiled_loops_are_missing_where_they_were_not_measured() -> None:
    loop = Statement((Access(dense(32)),), num(5))
    assert isinstance(price_work(loop, machine(binary=BINARY)), Missing)


def test_interpreted_iterations_are_priced_by_their_steps() -> None:
    steps = {"iteration": 0.5, "getitem": 1.0, "setitem": 2.0, "arith": 4.0, "call": 8.0}
    python = quantities({f"{key}_us": us for key, us in steps.items()})
    stated = machine_of({**document(), "python": python}, "made-up.json")
    price = price_work(Interpretation(N, loads=2, stores=1, operations=3, calls=1), stated)
    assert isinstance(price, Priced)
    assert 1e6 * evaluate_price(price, {"N": 10}).mid == pytest.approx(10 * (0.5 + 2 + 2 + 12 + 8))


def made_up_timings(
    truth: dict[tuple[str, ...], float], operation: str = "binary float64"
) -> list[tuple[ArrayCall, Timing]]:
    made = []
    for point in array_points(Effort.FULL):
        if point.operation == operation:
            call = call_of(point)
            taken = summed(call).items()
            time = sum(truth.get(place, 0.0) * amount for place, amount in taken)
            made.append((call, Timing(point, (((time, time),),))))
    return made


def fitted(timings: list[tuple[ArrayCall, Timing]]) -> dict[str, Json]:
    rates, _ = fit_classes(timings, CACHES)
    found = rates["binary"]
    assert isinstance(found, dict)
    one = found["float64"]
    assert isinstance(one, dict)
    return one


def value_at(found: Json, place: tuple[str, ...]) -> float:
    for key in place:
        assert isinstance(found, dict)
        found = found[key]
    assert isinstance(found, dict) and isinstance(found["value"], float)
    return found["value"]


TRUTH = {
    ("call_us",): 0.4,
    ("run_us",): 0.012,
    ("element_us",): 0.0001,
    ("rows_element_us",): 0.0003,
    ("apart_element_us",): 0.0004,
    ("line_us", "b524288"): 0.0003,
    ("line_us", "b33554432"): 0.0004,
    ("line_us", "beyond"): 0.001,
    ("apart_line_us", "b524288"): 0.0008,
    ("apart_line_us", "b33554432"): 0.002,
    # nothing was measured there: no less than where it was
    ("apart_line_us", "beyond"): 0.002,
}


def test_a_fit_finds_the_coefficients_that_made_the_times() -> None:
    found = fitted(made_up_timings(TRUTH))
    for place, value in TRUTH.items():
        assert value_at(found, place) == pytest.approx(value, rel=1e-3), place
    _, (quality,) = fit_classes(made_up_timings(TRUTH), CACHES)
    assert quality.median_error < 1e-6


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_products_of_integers_are_timed_and_fitted_by_themselves(dtype: str) -> None:
    truth = {("call_us",): 0.9, ("run_us",): 0.003, ("element_us",): 0.0006}
    rates, _ = fit_classes(made_up_timings(truth, f"matmul {dtype}"), CACHES)
    found = rates["matmul_without_blas"]
    for place, value in truth.items():
        assert value_at(found, (dtype, *place)) == pytest.approx(value, rel=1e-2), place


def test_what_comes_from_farther_never_costs_less_whatever_was_measured() -> None:
    draw = Random(7)
    found = fitted(
        [
            (call, Timing(timing.point, (((timing.typical_us * draw.uniform(0.3, 3.0),),),)))
            for call, timing in made_up_timings(TRUTH)
        ]
    )
    for name in ("line_us", "apart_line_us"):
        rates = [value_at(found, (name, key)) for key in CACHES.keys]
        assert rates == sorted(rates), name


def test_what_lies_apart_never_costs_less_whatever_was_measured() -> None:
    cheap = {place: 0.0 if "apart" in place[0] else value for place, value in TRUTH.items()}
    found = fitted(made_up_timings(cheap))
    assert value_at(found, ("apart_element_us",)) >= value_at(found, ("element_us",)) > 0
    for key in CACHES.keys:
        apart, together = (value_at(found, (name, key)) for name in ("apart_line_us", "line_us"))
        assert apart >= together


def test_a_profile_whose_far_lines_are_cheaper_than_near_ones_is_refused() -> None:
    cheaper = {**BINARY, "line_us": {"b10000": 0.5, "beyond": 0.4}}
    assert check_profile(document(binary=BINARY), "made-up.json") == []
    (problem,) = check_profile(document(binary=cheaper), "made-up.json")
    assert "/arrays/rates/binary/float64/line_us/beyond" in problem


def test_loops_that_were_not_measured_leave_the_profile_as_it_is(host: Host) -> None:
    found = LOOPS.fit([Timing(point, ()) for point in LOOPS.points(Effort.QUICK, 1, host)], host)
    assert found.parts == {} and found.notes


def test_levels_are_the_caches_that_a_system_states(host: Host) -> None:
    stated = tuple(cache.size_bytes for cache in host.caches)
    assert caches(host).levels[:2] == cache_levels(host)[:2] == stated[:2]
    assert stated[1] < caches(host).levels[2] <= stated[2]
    assert len(caches(UNTOLD).levels) == 3


@pytest.mark.parametrize("effort", list(Effort))
def test_points_say_what_they_time_and_tell_every_part_of_a_time(effort: Effort) -> None:
    told: dict[str, dict[tuple[str, ...], int]] = {}
    for point in array_points(effort):
        call = call_of(point)
        assert rate_key(call).startswith(str(point.features["operation"]))
        by_place = told.setdefault(f"{rate_key(call)} {call.dtype}", {})
        for place, amount in summed(call).items():
            by_place[place] = by_place.get(place, 0) + (amount > 0)
    elementwise = told["binary float64"]
    assert all(elementwise[place,] >= 2 for place in ("rows_element_us", "apart_element_us"))
    assert all(places["call_us",] >= 3 for places in told.values())


@pytest.mark.parametrize(
    ("operation", "dtype", "nearest"),
    [
        # additions are as fast as bytes come, divisions are not
        ("binary", "int32", "float32"),
        ("binary", "uint8", "float32"),
        ("binary", "complex64", "complex128"),
        ("divide", "int32", "int64"),
        ("scan", "int32", "int64"),
        ("scan", "float32", "float64"),
    ],
)
def test_an_element_type_stands_in_by_what_limits_the_operation(
    operation: str, dtype: str, nearest: str
) -> None:
    found = rates_of(load_machine("node2026"), operation, dtype)
    assert found is not None and found.stands_in and found.place == (operation, nearest)
