"""Messages by grades: marshalling against enumeration, prices against direct evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costdb.arrays.model import price_calls
from costdb.documents import check_profile
from costdb.evaluate import Missing
from costdb.expr import Expr, evaluate, num, sym
from costdb.lines.coefficients import region_line_bounds
from costdb.lines.model import price_message, price_scan
from costdb.machines import Json, Machine, MachineError, machine_of
from costdb.pricing import price_work
from costdb.work import ArrayCall, ArrayOperation, Message, PrefixScan, Region, Visit
from tests.costdb.made_up import HEADING, LOCAL, MESSAGE, by_grade, graded, microseconds, quantity

LINE = 64
N = sym("N")


BYTES = (1000, 0.001), (50_000, 0.0002), (None, 0.0005)
LINES = (4096, 0.001), (100_000, 0.002), (None, 0.004)
STEP_BYTES = 2000


def document() -> dict[str, Any]:
    return {
        **HEADING,
        "hardware": {"cache_line_bytes": quantity(LINE, "byte")},
        "lines": {
            "message": {
                "alpha_us": quantity(2, "us"),
                "protocols": [{"above_bytes": STEP_BYTES, "extra_us": quantity(3, "us")}],
                "bytes": graded(BYTES, "beta_us_per_byte"),
                "staging": {
                    "call_us": quantity(0.3, "us"),
                    "loop_us": quantity(0.006, "us"),
                    "element_us": quantity(0.0001, "us"),
                    "copy_us_per_byte": quantity(0.00007, "us/byte"),
                    "lines": graded(LINES, "gamma_us_per_line", "us/line"),
                },
                "residual": {**quantity(1, "1"), "low": 0.9, "high": 1.2},  # type: ignore[dict-item]
            },
            "range": {"message_bytes": [8, 1_000_000]},
        },
    }


def machine() -> Machine:
    return machine_of(document(), "test.json")


def region(runs: int, width: int, pitch: int, item: int) -> Region:
    return Region(item, (num(runs), num(width)), (num(pitch), num(item)))


def by_hand(runs: int, width: int, pitch: int, item: int) -> float:
    size = runs * width * item
    time = 2 + by_grade(size, BYTES) + (3 if size > STEP_BYTES else 0)
    if runs == 1 or pitch == width * item:
        return time
    lower, upper = region_line_bounds(region(runs, width, pitch, item), LINE)
    lines = float(evaluate(lower + upper, {})) / 2
    time += 0.3 + 0.00007 * size
    time += 0.0001 * runs if width == 1 else 0.006 * runs
    if width == 1:
        time += 0.006
    return time + by_grade(lines * LINE, LINES) / LINE


def test_the_test_profile_is_sound() -> None:
    assert check_profile(document(), "test.json") == []


@given(st.integers(1, 3000), st.integers(1, 40), st.integers(0, 200), st.sampled_from([4, 8]))
def test_prices_equal_direct_evaluation(runs: int, width: int, gap: int, item: int) -> None:
    pitch = (width + gap) * item
    priced = price_work(Message(region(runs, width, pitch, item)), machine())
    assert microseconds(priced) == pytest.approx(by_hand(runs, width, pitch, item))


@given(st.integers(2, 3000), st.integers(1, 4), st.sampled_from([4096, 4104, 800, 1 << 15]))
def test_closed_forms_equal_prices_of_numbers(runs: int, width: int, pitch: int) -> None:
    symbolic = Region(8, (N, num(width)), (num(pitch), num(8)))
    closed = microseconds(price_work(Message(symbolic), machine()), N=runs)
    assert closed == pytest.approx(by_hand(runs, width, pitch, 8))


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (("protocols",), {}, "expected a list"),
        (("protocols",), [{}], "above_bytes: expected a number"),
        (("protocols",), [{"above_bytes": True}], "above_bytes: expected a number"),
        (("protocols",), [8], "above_bytes: expected a number"),
        (("bytes",), [], "at least one grade"),
    ],
)
def test_malformed_profiles_are_named(place: tuple[str, ...], value: Json, complaint: str) -> None:
    broken = document()
    inner = broken["lines"]["message"]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(MachineError, match=complaint):
        price_work(Message(region(10, 1, 80, 8)), machine_of(broken, "test.json"))


def test_what_is_not_stated_is_missing_by_name() -> None:
    lacking = document()
    del lacking["lines"]["message"]["staging"]["loop_us"]
    answer = price_work(Message(region(10, 2, 80, 8)), machine_of(lacking, "test.json"))
    assert isinstance(answer, Missing)
    assert "lines.message.staging.loop_us" in answer.what


def test_grades_that_do_not_grow_are_refused_by_the_full_check() -> None:
    broken = document()
    broken["lines"]["message"]["staging"]["lines"][1]["max_bytes"] = 10
    (problem,) = check_profile(broken, "test.json")
    assert "/lines/message/staging/lines: max_bytes must grow" in problem


# Scans whose local passes are calls of an array library: what is added up, and for whom.


P = sym("P")


def scanning(*, scans: bool = True, additions: bool = True, arrays: bool = True) -> Machine:
    """Return a machine whose lines and calls all have rates of their own."""
    rates: dict[str, Json] = {}
    for number, (name, known) in enumerate((("scan", scans), ("binary", additions))):
        if known:
            call = {"call_us": quantity(3.0 + number, "us")}
            element = {"element_us": quantity(0.25 * (number + 1), "us")}
            lines = {"line_us": {"b100000": quantity(0.5, "us"), "beyond": quantity(4.0, "us")}}
            rates[name] = {"float64": {**call, "run_us": quantity(0.5, "us"), **element, **lines}}
    document: dict[str, Json] = {
        **HEADING,
        "hardware": {"cache_line_bytes": quantity(64, "byte")},
        "lines": {"message": MESSAGE, "scan": LOCAL, "statement": LOCAL},
    }
    if arrays:
        levels = {"b100000": quantity(100_000, "byte")}
        document["arrays"] = {"levels": levels, "rates": rates}
    return machine_of(document, "test.json")


def row(count: int) -> Region:
    return Region(8, (num(count),), (num(8),))


def call(operation: ArrayOperation, count: int) -> ArrayCall:
    block = Visit(row(count), "a")
    axis = 0 if operation is ArrayOperation.SCAN else None
    return ArrayCall(
        operation,
        "float64",
        num(count),
        block,
        (block,),
        axis_from_last=axis,
        length=None if axis is None else num(count),
    )


SCANNED = (call(ArrayOperation.SCAN, 10),)
ADDED = (call(ArrayOperation.BINARY, 10),)


def scan(
    ranks: Expr, *, corrected: bool = True, calls: Sequence[ArrayCall] | None = SCANNED
) -> PrefixScan:
    made_of = None if calls is None else tuple(calls)
    return PrefixScan(ranks, row(1), row(10), "scan", made_of, ADDED if corrected else None)


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize(("ranks", "steps"), [(1, 0), (2, 1), (3, 2), (4, 2), (9, 4)])
def test_a_scan_is_its_calls_its_steps_and_what_ranks_before_add(
    ranks: int, steps: int, corrected: bool
) -> None:
    on = scanning()
    step = microseconds(price_message(Message(row(1)), on))
    expected = microseconds(price_calls(SCANNED, on)) + steps * step
    if ranks > 1 and corrected:
        expected += microseconds(price_calls(ADDED, on))
    constant = price_scan(scan(num(ranks), corrected=corrected), on)
    assert microseconds(constant) == pytest.approx(expected)
    symbolic = price_scan(scan(P, corrected=corrected), on)
    assert microseconds(symbolic, P=ranks) == pytest.approx(expected)


def test_every_rate_that_is_lacking_is_named() -> None:
    lacking = price_scan(scan(num(4)), scanning(scans=False, additions=False))
    assert isinstance(lacking, Missing)
    for calls in (SCANNED, ADDED):
        alone = price_calls(calls, scanning(scans=False, additions=False))
        assert isinstance(alone, Missing)
        assert alone.what in lacking.what
    assert lacking.remedy
