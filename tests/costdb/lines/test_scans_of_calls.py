"""Scans whose local passes are calls of an array library: what is added up, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from costdb.arrays.model import price_calls
from costdb.estimate import Missing, Priced
from costdb.expr import Expr, evaluate, num, sym
from costdb.lines.model import price_message, price_scan
from costdb.machines import Json, Machine, machine_of
from costdb.work import ArrayCall, ArrayOperation, Message, PrefixScan, Region, Visit
from tests.costdb.made_up import HEADING, quantity

P = sym("P")


def machine(*, scans: bool = True, additions: bool = True, arrays: bool = True) -> Machine:
    """Return a machine whose lines and calls all have rates of their own."""
    rates: dict[str, Json] = {}
    for number, (name, known) in enumerate((("scan", scans), ("binary", additions))):
        if known:
            call = {"call_us": quantity(3.0 + number, "us")}
            element = {"element_us": quantity(0.25 * (number + 1), "us")}
            lines = {"line_us": {"b100000": quantity(0.5, "us"), "beyond": quantity(4.0, "us")}}
            rates[name] = {"float64": {**call, "run_us": quantity(0.5, "us"), **element, **lines}}
    local: dict[str, Json] = {
        "phi_us_per_operation": quantity(0.003, "us/operation"),
        "access_us": quantity(0.002, "us/access"),
        "line_us": quantity(0.1, "us/line"),
    }
    message: dict[str, Json] = {
        "alpha_us": quantity(10, "us"),
        "beta_us_per_byte": quantity(0.01, "us/byte"),
        "gamma_us_per_line": quantity(0.5, "us/line"),
    }
    document: dict[str, Json] = {
        **HEADING,
        "hardware": {"cache_line_bytes": quantity(64, "byte")},
        "lines": {"message": message, "scan": local, "statement": local},
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


def us(priced: Priced | Missing, **sizes: int) -> float:
    assert isinstance(priced, Priced)
    values = {symbol: q.value for symbol, q in priced.coefficients.items()}
    total = float(evaluate(priced.microseconds, {**values, **sizes}))
    terms = sum(float(evaluate(t.microseconds, {**values, **sizes})) for t in priced.terms)
    assert terms == pytest.approx(total)
    return total


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize(("ranks", "steps"), [(1, 0), (2, 1), (3, 2), (4, 2), (9, 4)])
def test_a_scan_is_its_calls_its_steps_and_what_ranks_before_add(
    ranks: int, steps: int, corrected: bool
) -> None:
    on = machine()
    expected = us(price_calls(SCANNED, on)) + steps * us(price_message(Message(row(1)), on))
    if ranks > 1 and corrected:
        expected += us(price_calls(ADDED, on))
    constant = price_scan(scan(num(ranks), corrected=corrected), on)
    assert us(constant) == pytest.approx(expected)
    assert us(price_scan(scan(P, corrected=corrected), on), P=ranks) == pytest.approx(expected)


def test_every_rate_that_is_lacking_is_named() -> None:
    lacking = price_scan(scan(num(4)), machine(scans=False, additions=False))
    assert isinstance(lacking, Missing)
    for calls in (SCANNED, ADDED):
        alone = price_calls(calls, machine(scans=False, additions=False))
        assert isinstance(alone, Missing)
        assert alone.what in lacking.what
    assert lacking.remedy
