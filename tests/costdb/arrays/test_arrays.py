"""The array model: prices against formulas by hand, stand-ins, and fits of made-up machines."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import mean

import pytest

from costdb.arrays.amounts import amounts, rate_key
from costdb.arrays.conflicts import lines_referred_to
from costdb.arrays.fresh import PADDING_BYTES
from costdb.arrays.hierarchy import hierarchy
from costdb.arrays.model import in_whole_rows
from costdb.calibration.array_calls.arrays import SECTION
from costdb.calibration.array_calls.fit import fit_classes
from costdb.calibration.array_calls.point_actions import call_of
from costdb.calibration.array_calls.points import array_points
from costdb.calibration.array_calls.view_points import SIZES
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Effort, Point, Timing, World
from costdb.estimate import Missing, Priced
from costdb.evaluate import evaluate_price
from costdb.expr import Expr, evaluate, minimum, num, sym
from costdb.heap_work import IF_GIVEN_BACK, Drain, FreshMemory, Released, Taken
from costdb.interpretation import Interpretation
from costdb.machines import Machine, MachineError
from costdb.machines.machine import machine_of
from costdb.pricing import price_work
from costdb.profile_check import check_profile
from costdb.quantity import Provenance
from costdb.work import Access, ArrayCall, ArrayOperation, Region, Statement, Visit
from tests.costdb.hosts import EPYC

N = sym("N")
LEVELS = (1000, 10_000)
CACHES = hierarchy((49_152, 1_048_576, 8_388_608), 64)
BINARY = {
    "call_us": 2.0,
    "run_us": 0.25,
    "element_us": 0.01,
    "rows_loaded_us": 0.005,
    "rows_stored_us": 0.008,
    "apart_element_us": 0.03,
    "line_us": {"b10000": 0.5, "beyond": 4.0},
    "apart_line_us": {"b10000": 1.0, "beyond": 8.0},
    "conflict_line_us": {"b10000": 16.0, "beyond": 32.0},
}


def quantities(stated: dict[str, object], unit: str = "us") -> dict[str, object]:
    leaf = {"unit": unit, "provenance": "measured", "source": "calibration"}
    return {
        key: quantities(value, unit)
        if isinstance(value, dict)
        else {"value": value, **leaf, "unit": "1" if key.endswith("residual") else unit}
        for key, value in stated.items()
    }


def document(**rates: dict[str, object]) -> dict[str, object]:
    return {
        "schema_version": 1,
        "name": "made-up",
        "title": "Made up",
        "library": "none",
        "sources": {"calibration": "nobody"},
        "hardware": quantities({"cache_line_bytes": 64}, "byte"),
        "arrays": {
            "levels": quantities({f"b{level}": level for level in LEVELS}, "byte"),
            "rates": {key: {"float64": quantities(value)} for key, value in rates.items()},
            "fresh": {"line_us": quantities({"small": 0.125, "huge": 0.0625, "beyond": 0.25})},
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


def test_a_call_in_the_nearest_memory_costs_its_call_run_and_elements() -> None:
    assert time_us(added(dense(24), 24)) == pytest.approx(2 + 0.25 + 0.24)


def test_rates_of_an_earlier_model_are_refused_with_the_next_step() -> None:
    with pytest.raises(MachineError, match="anew: advise calibrate --name made-up"):
        time_us(added(dense(24), 24), binary={**BINARY, "rows_element_us": 0.02})


def test_lines_cost_by_how_much_is_touched() -> None:
    lines = 3 * (160 / 8 + 1 - 1 / 8)
    assert time_us(added(dense(160), 160)) == pytest.approx(2.25 + 1.6 + 0.5 * lines)
    lines = 3 * (1600 / 8 + 1 - 1 / 8)
    assert time_us(added(dense(1600), 1600)) == pytest.approx(2.25 + 16 + 4 * lines)


def test_rows_that_do_not_follow_on_are_entered_one_by_one() -> None:
    lines = 3 * 4 * (16 / 8 + 1 - 1 / 8)
    expected = 2 + 4 * 0.25 + (0.01 + 2 * 0.005 + 0.008) * 64 + 0.5 * lines
    assert time_us(added(dense(4, 16, pitch=50), 64)) == pytest.approx(expected)


@pytest.mark.parametrize("columns", [3, 19, 20, 21, 90])
def test_rows_cut_to_what_a_rank_has_follow_on_where_they_are_whole(columns: int) -> None:
    # a rank has 20 columns of those that are left
    held, left = num(20), sym("left")
    here = machine(binary=BINARY)

    def priced(width: Expr) -> float:
        region = Region(8, (num(30), width), (held * 8, num(8)))
        calls = (added(region, 30 * width), added(dense(30, width), 30 * width))
        price = price_work(Statement((), num(0), calls=calls), here)
        assert isinstance(price, Priced)
        return 1e6 * evaluate_price(price, {"left": columns}).mid

    cut = minimum(left, held)
    assert priced(cut) == pytest.approx(priced(num(min(columns, 20))))
    (call,) = (one for share, one in in_whole_rows(added(dense(30, left), 30 * left)))
    assert call == added(dense(30, left), 30 * left)


@pytest.mark.parametrize(("pitch", "conflicts"), [(20, 0), (512, 24)])
def test_columns_have_a_line_for_each_element_and_conflicts_at_powers_of_two(
    pitch: int, conflicts: int
) -> None:
    column = Region(8, (num(24),), (num(8 * pitch),))
    # lines that are stored hide what the loaded ones wait for
    rates = {**BINARY, "conflict_stored_us": {"beyond": 8.0}}
    price = time_us(added(column, 24), binary=rates)
    assert price == pytest.approx(2.25 + 0.72 + 72 + 8 * conflicts)
    # two columns that are only loaded are waited for once
    loads = ArrayCall(
        ArrayOperation.BINARY,
        "float64",
        num(24),
        Visit(dense(24), "c"),
        (Visit(column, "a"), Visit(column, "b")),
    )
    expected = 2.25 + 0.72 + 48 + 0.5 * (24 / 8 + 7 / 8) + 32 * conflicts
    assert time_us(loads, binary=rates) == pytest.approx(expected)


@pytest.mark.parametrize(("rows", "share"), [(600, 0), (1000, 1 / 3), (1100, 2 / 3), (1400, 1)])
def test_more_pages_than_are_at_hand_are_looked_up(rows: int, share: float) -> None:
    column = Region(8, (num(rows),), (num(8 * 600),))
    looked_up = time_us(added(column, rows), binary={**BINARY, "page_us": 0.5})
    assert looked_up - time_us(added(column, rows)) == pytest.approx(0.5 * 3 * rows * share)
    # rows of a page or less bring no page that the one before did not
    narrow = Region(8, (num(3 * rows),), (num(8),))
    assert time_us(added(narrow, rows), binary={**BINARY, "page_us": 0.5}) == pytest.approx(
        time_us(added(narrow, rows))
    )


@pytest.mark.parametrize(("rows", "pages"), [(20, 0), (30, 90)])
def test_few_pages_are_known_at_once(rows: int, pages: int) -> None:
    column = Region(8, (num(rows),), (num(8 * 600),))
    soon = time_us(added(column, rows), binary={**BINARY, "near_page_us": 0.5})
    assert soon - time_us(added(column, rows)) == pytest.approx(0.5 * pages)


def test_walks_across_lines_look_up_their_pages_each_time() -> None:
    there = dense(5000, 600)
    walked = ArrayCall(
        ArrayOperation.SCAN,
        "float64",
        num(5000 * 600),
        Visit(there),
        (Visit(there, "a"),),
        fresh=True,
        axis_from_last=1,
        length=num(5000),
    )
    rates = {"call_us": 1.0, "element_us": 0.01}
    looked_up = time_us(walked, scan_across={**rates, "page_us": 0.5})
    assert looked_up - time_us(walked, scan_across=rates) == pytest.approx(0.5 * 2 * 5000 * 600)


def test_data_that_has_gone_far_comes_from_far() -> None:
    region = dense(16)
    near = time_us(added(region, 16))
    far = time_us(added(region, 16, distance_bytes=num(50_000)))
    assert far - near == pytest.approx(4.0 * (16 / 8 + 7 / 8))
    moving = time_us(added(region, 16, distance_bytes=num(50_000), advance_bytes=num(16)))
    assert moving - near == pytest.approx(4.0 * (16 / 8 + 7 / 8) / 4)


@pytest.mark.parametrize(("crowding", "pitch"), [(1, 20), (16, 128), (64, 512)])
def test_lines_that_crowd_into_few_sets_wait_for_one_another(crowding: int, pitch: int) -> None:
    column = Region(8, (num(24),), (num(8 * pitch),))
    rates = {**BINARY, "crowded_line_us": 0.5, "crowded_stored_us": 1.0}
    loads, stores = (crowding - 1) / 63, max(0, crowding - 8) / 56
    waited = time_us(added(column, 24), binary=rates)
    expected = 24 * (1.0 * stores + 0.5 * max(0, loads - stores))
    assert waited - time_us(added(column, 24)) == pytest.approx(expected)


@pytest.mark.parametrize(("references", "lines"), [(10, 500), (400, 500), (900, 500), (3000, 500)])
def test_references_to_random_places_come_to_so_many_lines(references: int, lines: int) -> None:
    drawn = Random(references)
    came_to = mean(len({drawn.randrange(lines) for _ in range(references)}) for _ in range(200))
    told = float(evaluate(lines_referred_to(num(references), num(lines)), {}))
    assert told == pytest.approx(came_to, rel=0.04)


def test_random_places_find_a_table_where_the_program_left_it() -> None:
    rates = {"call_us": 1.0, "apart_line_us": {"b10000": 1.0, "beyond": 8.0}}
    table, places = dense(4000), dense(20)

    def taken_us(distance: int | None, **more: float) -> float:
        far = None if distance is None else num(distance)
        operands = Visit(table, "table", far), Visit(places, "places", far)
        taken = ArrayCall(
            ArrayOperation.TAKE, "float64", num(20), Visit(places), operands, length=num(4000)
        )
        return time_us(taken, take={**rates, "element_us": 0.0, **more})

    lines = 4000 / 8 + 7 / 8
    first = float(evaluate(lines_referred_to(num(20), num(lines)), {}))
    # half of a level is taken by what goes through it beside the table
    near, far = (1 - size / (2 * 64 * lines) for size in LEVELS)
    again = (20 - first) * (near - far + 8 * far)
    # nearly each reference has a line of its own, where the call before left it or the program did
    assert first == pytest.approx(20, rel=0.03)
    assert taken_us(None) == pytest.approx(1 + first + again)
    assert taken_us(50_000) == pytest.approx(1 + 8 * first + again)
    # few of them wait for a line while nothing else is waited for
    alone = taken_us(50_000, alone_line_us=100.0) - taken_us(50_000)
    assert alone == pytest.approx(100 * first * (1 - first / 20))


@pytest.mark.parametrize(("elements", "middle"), [(1000, 0.0), (32_768, 0.0), (32_769, 0.5)])
def test_only_data_know_whether_masks_are_foreseen(elements: int, middle: float) -> None:
    rates = {"call_us": 1.0, "element_us": 0.01, "unforeseen_us": 0.1}

    def choice(foreseen: bool | None, count: int | Expr = elements) -> tuple[float, ...]:
        total = num(count) if isinstance(count, int) else count
        call = ArrayCall(ArrayOperation.WHERE, "float64", total, foreseen=foreseen)
        price = price_work(Statement((), num(0), calls=(call,)), machine(where=rates))
        assert isinstance(price, Priced)
        found = evaluate_price(price, {"N": elements})
        return tuple(1e6 * us for us in (found.low, found.mid, found.high))

    foreseen, drawn = 1 + 0.01 * elements, 1 + 0.11 * elements
    assert choice(True) == pytest.approx((foreseen,) * 3)
    assert choice(False) == pytest.approx((drawn,) * 3)
    expected = (foreseen, foreseen + middle * (drawn - foreseen), drawn)
    assert choice(None) == pytest.approx(expected)
    assert choice(None, N) == pytest.approx(expected)


def test_masks_without_a_pattern_are_told_from_others_in_a_fit() -> None:
    truth = {("call_us",): 0.4, ("element_us",): 4e-4, ("unforeseen_us",): 3.8e-3}
    (fitted,), _, _ = fit_classes(made_up_timings(truth, "where float64"), CACHES)
    for place, value in truth.items():
        assert fitted.coefficients[place] == pytest.approx(value, rel=1e-3), place


def test_the_price_is_a_closed_form_that_grows() -> None:
    price = price_work(Statement((), num(0), calls=(added(dense(N), N),)), machine(binary=BINARY))
    assert isinstance(price, Priced)
    times = [evaluate_price(price, {"N": n}).mid for n in (1, 10, 41, 42, 100, 416, 417, 5000)]
    assert times == sorted(times)


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


def test_functions_that_nobody_timed_take_as_long_as_exp_or_many_times_that() -> None:
    exp = replace(added(dense(1000), 1000), operation=ArrayOperation.TRANSCENDENTAL)
    other = replace(exp, operation=ArrayOperation.FUNCTION)

    def told(call: ArrayCall, **rates: dict[str, object]) -> tuple[float, float, float]:
        found = price_work(Statement((), num(0), calls=(call,)), machine(**rates))
        assert isinstance(found, Priced)
        estimate = evaluate_price(found, {})
        return estimate.low, estimate.mid, estimate.high

    known = told(exp, transcendental=BINARY)
    low, middle, high = told(other, transcendental=BINARY)
    assert low <= known[1] < middle and high >= 20 * known[1]
    assert told(other, transcendental=BINARY, function=BINARY) == known


def test_profiles_without_rates_go_on_pricing_accesses() -> None:
    from costdb.machines import load_machine

    access = Access(dense(32))
    with_calls = Statement((access,), num(5), calls=(added(dense(32), 32),))
    t3e = load_machine("t3e")
    assert price_work(with_calls, t3e) == price_work(Statement((access,), num(5)), t3e)


def test_compiled_loops_are_missing_where_they_were_not_measured() -> None:
    loop = Statement((Access(dense(32)),), num(5))
    assert isinstance(price_work(loop, machine(binary=BINARY)), Missing)


def test_memory_that_a_gap_would_keep_makes_the_low_end_alone() -> None:
    size = num(400_000)
    # two at once: as much as the heap keeps lies free when both are
    two = (Taken("a", size), Taken("b", size), Released("a"), Released("b"))
    found = price_work(FreshMemory((), (size,), steps=two), machine(binary=BINARY))
    assert isinstance(found, Priced)
    assert [term.label for term in found.terms] == [IF_GIVEN_BACK]
    estimate = evaluate_price(found, {})
    # the gap is where the first one lies, and the other one alone is kept
    assert estimate.low == 0 < estimate.mid == estimate.high
    # one at a time is kept in any heap
    one = (Taken("a", size), Released("a"))
    sure = price_work(FreshMemory((), (size,), steps=one), machine(binary=BINARY))
    assert isinstance(sure, Priced)
    assert evaluate_price(sure, {}).high == 0


def fresh_lines(drains: tuple[Drain, ...], others: tuple[Expr, ...] = ()) -> float:
    price = price_work(FreshMemory(drains, others), machine(binary=BINARY))
    assert isinstance(price, Priced)
    return 1e6 * evaluate_price(price, {}).mid


def test_memory_is_given_anew_where_twice_the_largest_array_becomes_free() -> None:
    one, two, kept = num(64 * 20_000), num(64 * 8_000), PADDING_BYTES / 64
    for freed, others, lines in (
        ((one, two), (), 0),
        ((one, one), (), 40_000 - kept),
        ((one, one), (3 * one,), 0),
        # what an interpreter has freed by itself is larger than small arrays
        ((num(64_000), num(64_000)), (), 0),
    ):
        assert fresh_lines((Drain(freed),), others) == pytest.approx(0.125 * lines)


def test_what_a_drain_left_is_given_back_with_the_next_one_or_was_before() -> None:
    one, kept = num(64 * 20_000), PADDING_BYTES / 64
    left, uncharged = Drain((one,)), Drain((one, one), charged=False)
    assert fresh_lines((left, Drain((one,), (one,)))) == pytest.approx(0.125 * (40_000 - kept))
    assert fresh_lines((uncharged, Drain((one,), (one, one)))) == 0


def test_large_arrays_come_in_huge_pages_but_for_their_ends() -> None:
    array = num(8 * 2**20)
    small, huge = 2 * 2 * 2**20 - PADDING_BYTES, 2 * 6 * 2**20
    expected = (0.125 * small + 0.0625 * huge) / 64
    assert fresh_lines((Drain((array, array)),)) == pytest.approx(expected)


def test_interpreted_iterations_are_priced_by_their_steps() -> None:
    steps = {"iteration_us": 0.5, "getitem_us": 1.0, "setitem_us": 2.0, "arith_us": 4.0}
    stated = machine_of({**document(), "python": quantities(steps)}, "made-up.json")
    price = price_work(Interpretation(N, loads=2, stores=1, operations=3), stated)
    assert isinstance(price, Priced)
    assert 1e6 * evaluate_price(price, {"N": 10}).mid == pytest.approx(10 * (0.5 + 2 + 2 + 12))


def made_up_timings(
    truth: dict[tuple[str, ...], float], operation: str = "binary float64"
) -> list[Timing]:
    made = []
    for point in array_points(Effort.FULL):
        if point.operation != operation:
            continue
        time = sum(
            truth.get(amount.place, 0.0) * float(evaluate(amount.amount, {}))
            for amount in amounts(call_of(point), CACHES)
        )
        made.append(Timing(point, (((time, time),),)))
    return made


@pytest.mark.parametrize(
    ("operation", "of_length"),
    [
        ("sort float64", {("network_us",): 7e-5, ("parted_us",): 4e-4}),
        # a library without such networks
        ("sort int64", {("element_us",): 3e-4}),
        ("fft complex128", {("element_us",): 2e-4, ("plan_us",): 5e-3}),
    ],
)
def test_what_goes_with_lengths_is_told_apart_and_lines_lose_nothing_by_it(
    operation: str, of_length: dict[tuple[str, ...], float]
) -> None:
    lines = {("line_us", key): 0.002 for key in CACHES.keys}
    truth = {("call_us",): 0.6, ("run_us",): 0.03, **of_length, **lines}
    timings = [t for t in made_up_timings(truth, operation) if t.point.features["axis"] == 1]
    (fitted,), (standard, chosen), _ = fit_classes(timings, CACHES)
    for place, value in truth.items():
        assert fitted.coefficients[place] == pytest.approx(value, rel=1e-3), place
    assert chosen.median_error < 1e-3
    if operation.startswith("fft"):
        # long ones are fetched for each pass, which elements by where they come from do not tell
        assert standard.r2 > 100 * chosen.r2
        return
    # rows that are gone through once have so many lines for each element, wherever they lie
    for (_, one), (_, other) in zip(standard.pairs, chosen.pairs, strict=True):
        assert one == pytest.approx(other, rel=2e-3)


def test_rows_that_no_cache_holds_are_fetched_for_each_pass_over_them() -> None:
    def lines(rows: int, length: int) -> float:
        features = {"operation": "fft", "dtype": "complex128", "rows": rows, "columns": length}
        taken = amounts(call_of(Point("fft complex128", {**features, "axis": 1})), CACHES)
        return sum(float(evaluate(a.amount, {})) for a in taken if a.place[0] == "line_us")

    touched = 2 * 16 * 2**20 / 64
    # the rows of 2**20 elements in all are gone through once, a long one again for each eight
    assert lines(2**10, 2**10) == pytest.approx(touched, rel=0.01)
    assert lines(1, 2**20) == pytest.approx(7 * touched, rel=0.01)


def test_steps_around_a_call_cost_by_their_number() -> None:
    summed = ArrayCall(ArrayOperation.REDUCE, "float64", num(40), length=num(40), axis_from_last=0)
    rates = {"call_us": 0.7, "element_us": 0.001, "step_us": 1.1}
    for steps in (0, 1, 2):
        took = time_us(replace(summed, steps=steps), reduce=rates)
        assert took == pytest.approx(0.74 + 1.1 * steps)
    # a profile from before they were measured
    del rates["step_us"]
    assert time_us(replace(summed, steps=2), reduce=rates) == pytest.approx(0.74)


def test_steps_are_found_with_each_class() -> None:
    truth = {("call_us",): 0.7, ("run_us",): 0.02, ("element_us",): 2e-4, ("step_us",): 1.1}
    timings = made_up_timings(truth, "reduce float64")
    fitted, _, _ = fit_classes(timings, CACHES)
    assert {one.key for one in fitted} == {"reduce", "reduce_across"}
    for one in fitted:
        assert one.coefficients[("step_us",)] == pytest.approx(1.1, rel=1e-3)


def test_a_fit_finds_the_coefficients_that_made_the_times() -> None:
    truth = {
        ("call_us",): 0.4,
        ("run_us",): 0.012,
        ("element_us",): 0.0001,
        ("rows_loaded_us",): 0.0002,
        ("rows_stored_us",): 0.0001,
        ("apart_element_us",): 0.0004,
        ("line_us", "b1048576"): 0.0003,
        ("line_us", "b8388608"): 0.0004,
        ("line_us", "beyond"): 0.001,
        ("apart_line_us", "b1048576"): 0.0008,
        ("apart_line_us", "b8388608"): 0.0008,
        ("apart_line_us", "beyond"): 0.002,
        ("conflict_line_us", "b1048576"): 0.006,
        # nothing was measured there: no less than where it was
        ("conflict_line_us", "b8388608"): 0.006,
        ("conflict_line_us", "beyond"): 0.006,
        ("conflict_stored_us", "b1048576"): 0.004,
        ("conflict_stored_us", "b8388608"): 0.004,
        ("conflict_stored_us", "beyond"): 0.004,
        ("crowded_stored_us",): 0.005,
        ("page_us",): 0.001,
    }
    (fitted,), qualities, _ = fit_classes(made_up_timings(truth), CACHES)
    assert (fitted.key, fitted.dtype) == ("binary", "float64")
    for place, value in truth.items():
        assert fitted.coefficients[place] == pytest.approx(value, rel=1e-3), place
    chosen, standard = (
        next(q for q in qualities if q.chosen is wanted) for wanted in (True, False)
    )
    assert chosen.median_error < 1e-6 < standard.median_error
    assert chosen.r2 < standard.r2


def test_what_comes_from_farther_never_costs_less_whatever_was_measured() -> None:
    draw = Random(7)
    timings = [
        Timing(timing.point, (((timing.typical_us * draw.uniform(0.3, 3.0),),),))
        for timing in made_up_timings({("call_us",): 0.4, ("element_us",): 1e-3})
    ]
    (fitted,), _, _ = fit_classes(timings, CACHES)
    for name in ("line_us", "apart_line_us", "conflict_line_us", "conflict_stored_us"):
        rates = [
            fitted.coefficients.get((name, key), 0.0) for key in ("b1048576", "b8388608", "beyond")
        ]
        assert rates == sorted(rates), name


def test_a_profile_whose_far_lines_are_cheaper_than_near_ones_is_refused() -> None:
    cheaper = {**BINARY, "line_us": {"b10000": 0.5, "beyond": 0.4}}
    assert check_profile(document(binary=BINARY), "made-up.json") == []
    (problem,) = check_profile(document(binary=cheaper), "made-up.json")
    assert "/arrays/rates/binary/float64/line_us/beyond" in problem


def test_an_interval_is_that_of_calls_whose_elements_lie_alike() -> None:
    truth = {("call_us",): 0.4, ("element_us",): 1e-4, ("apart_element_us",): 4e-4}
    draw = Random(5)
    disturbed = [
        Timing(timing.point, (((timing.typical_us * draw.uniform(0.6, 1.6),),),))
        if timing.point.features["columns"] == 1 and timing.point.features["rows"] != 1
        else timing
        for timing in made_up_timings(truth | {("rows_loaded_us",): 2e-4})
    ]
    (fitted,), _, _ = fit_classes(disturbed, CACHES)
    low, high = fitted.residuals["apart_residual"]
    assert low < 0.85 and high > 1.2
    for kind in ("residual", "rows_residual"):
        low, high = fitted.residuals[kind]
        assert 0.95 < low <= high < 1.05
    stated = machine(binary=BINARY).document["arrays"]
    assert isinstance(stated, dict)
    rates = {"binary": {"float64": fitted.document()}}
    calibrated = machine_of({**document(), "arrays": {**stated, "rates": rates}}, "made-up.json")

    def half_width(region: Region, elements: int) -> float:
        work = Statement((), num(0), calls=(added(region, elements),))
        price = price_work(work, calibrated)
        assert isinstance(price, Priced)
        found = evaluate_price(price, {})
        return (found.high - found.low) / 2 / found.mid

    assert half_width(dense(100), 100) < 0.05
    assert half_width(Region(8, (num(100),), (num(800),)), 100) > 0.15


def test_what_is_fitted_makes_a_sound_profile(host: Host) -> None:
    timings = [
        Timing(point, (((1.0 + len(point.features),),),))
        for point in SECTION.points(Effort.QUICK, 1, host)
    ]
    found = SECTION.fit(timings, host)
    profile = {**document(), **found.parts}
    assert check_profile(profile, "made-up.json") == []
    assert set(found.parts) == {"arrays", "python"}
    fresh = found.parts["arrays"]["fresh"]
    assert set(fresh["line_us"]) == set(SIZES)


def test_loops_that_were_not_measured_leave_the_profile_as_it_is(host: Host) -> None:
    from costdb.calibration.array_calls.loops import SECTION as LOOPS

    found = LOOPS.fit([Timing(point, ()) for point in LOOPS.points(Effort.QUICK, 1, host)], host)
    assert found.parts == {} and found.notes


def test_points_say_what_they_time() -> None:
    for point in array_points(Effort.QUICK):
        if "operation" in point.features:
            call = call_of(point)
            assert rate_key(call).startswith(str(point.features["operation"]))
            assert evaluate(call.elements, {}) >= 1


def test_loops_alone_make_a_sound_profile(host: Host) -> None:
    from costdb.calibration.array_calls.loops import SECTION as LOOPS

    timings = [
        Timing(point, (((float(number + 1),),),))
        for number, point in enumerate(LOOPS.points(Effort.FULL, 1, host))
    ]
    profile = {**document(), **LOOPS.fit(timings, host).parts}
    assert check_profile(profile, "made-up.json") == []


def test_the_largest_points_of_every_class_can_be_done() -> None:
    largest: dict[tuple[str, str], Point] = {}
    for point in SECTION.points(Effort.FULL, 1, EPYC):
        features = point.features
        key = (point.operation, str(features.get("dtype")))
        size = int(features.get("rows", 1)) * int(features.get("columns", 1))
        known = largest.get(key)
        if known is None or size > int(known.features.get("rows", 1)) * int(
            known.features.get("columns", 1)
        ):
            largest[key] = point
    for point in largest.values():
        if "fresh" not in point.features:
            SECTION.action(point, World(EPYC)).run()


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "packed"),
    [(100, 100, 100, False), (101, 100, 100, True), (1000, 2, 400, False), (1, 1, 10**6 + 1, True)],
)
def test_products_take_their_factors_and_results_by_whether_they_are_packed(
    rows, columns, depth, packed
):
    features = {"operation": "matmul", "dtype": "float64"}
    shape = {"rows": rows, "columns": columns, "depth": depth}
    summed: dict[str, float] = {}
    for amount in amounts(call_of(Point("matmul float64", features | shape)), CACHES):
        name = amount.place[0]
        summed[name] = summed.get(name, 0.0) + float(evaluate(amount.amount, {}))
    factors, result = rows * depth + depth * columns, rows * columns
    kinds = (
        ("factor_element_us", "product_element_us"),
        ("small_factor_element_us", "small_product_element_us"),
    )
    for (factor, product), here in zip(kinds, (packed, not packed), strict=True):
        assert summed[factor] == factors * here
        assert summed[product] == result * here
    assert summed["element_us"] == rows * columns * depth


@pytest.mark.parametrize("effort", list(Effort))
def test_points_tell_a_call_from_the_memory_it_gets(effort):
    fresh: dict[str, set[float]] = {}
    for point in array_points(effort):
        if "fresh" in point.features or point.features["operation"] == "view":
            continue
        got = [
            float(evaluate(amount.amount, {}))
            for amount in amounts(call_of(point), CACHES)
            if amount.place == ("fresh_call_us",)
        ]
        fresh.setdefault(point.operation, set()).add(sum(got))
    assert fresh
    assert [operation for operation, taken in fresh.items() if taken == {1.0}] == []
