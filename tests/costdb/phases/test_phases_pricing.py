"""Prices of applications: equal to the sums they stand for, with intervals and clear refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.choosing import SubjectError
from costdb.evaluate import Estimate, Missing
from costdb.machines import Machine, machine_of
from costdb.phases.application import bind
from tests.costdb.made_up import HEADING
from tests.costdb.phases.choices import parse_application, predict, price_application

TEXT = """
schema_version = 1
name = "toy"
title = "A toy"
source = "made up"
repeat = 3
[parameters.size]
sets = { one = { N = 7 }, two = { N = 12 } }
default = "one"
[parameters.kind]
words = ["x", "y"]
[parameters.P]
about = "processors"
minimum = 1
maximum = 64
power_of_two = true
[[derived]]
[derived.define]
half = "ceil(N/2)"
rows = "half + ceil(N/P)"
[[phases]]
name = "single"
unit = "flop"
count = "5*rows*N"
rate = "single"
[[phases]]
name = "double"
when = { kind = ["y"] }
unit = "byte"
count = "8*rows"
per_op = "a*P + b*N"
rate = "double"
[[messages]]
name = "series"
sum = { index = "i", from = 1, to = "log2(P)" }
count = 2
bytes = "ceil(100*N/2**i)"
[[messages]]
name = "swap"
when = { kind = ["y"] }
pattern = "transpose"
count = "P - 1"
bytes = "8*half"
"""


def between(value: float, low: float, high: float, unit: str, **more: str) -> dict[str, object]:
    known = {"provenance": "measured", "source": "s"} | more
    return {"value": value, "low": low, "high": high, "unit": unit, **known}


def machine(**changes: object) -> Machine:
    phases: dict[str, object] = {
        "alpha_us": between(100, 90, 120, "us"),
        "beta_us_per_byte": between(0.5, 0.4, 0.6, "us/byte"),
        "patterns": {"transpose": {"beta_us_per_byte": between(0.75, 0.7, 0.9, "us/byte")}},
        "applications": {
            "toy": {
                "ranges": {"processors": {"quantity": "P", "low": 2, "high": 16}},
                "rates": {
                    "single": between(4, 2, 5, "MFlop/s"),
                    "double": {
                        "outer": between(8, 8, 8, "MByte/s"),
                        "inner": between(16, 10, 20, "MByte/s", provenance="published"),
                    },
                },
            }
        },
    }
    phases.update(changes)
    document = {**HEADING, "name": "toybox", "title": "Toybox", "phases": phases}
    return machine_of(document, "toybox.json")


APPLICATION = parse_application(TEXT.encode(), "toy.toml")


def by_hand(
    kind: str, n: int, p: int, single: float, inner: float, alpha: float, beta: float
) -> float:
    half = math.ceil(Fraction(n, 2))
    rows = half + math.ceil(Fraction(n, p))
    total = 5 * rows * n / single
    for i in range(1, p.bit_length()):
        total += 2 * (alpha + beta * math.ceil(Fraction(100 * n, 2**i)))
    if kind == "y":
        total += 8 * rows * (p / 8 + n / inner)
        total += (p - 1) * (alpha + 1.5 * beta * 8 * half)
    return 3 * total / 1e6


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from("xy"),
    n=st.integers(1, 10_000),
    p=st.sampled_from([1, 2, 4, 8, 16, 32, 64]),
)
def test_a_prediction_is_the_sum_over_phases_and_messages(kind: str, n: int, p: int) -> None:
    estimate = predict(APPLICATION, machine(), {"kind": kind, "N": n, "P": p})
    assert isinstance(estimate, Estimate)
    assert estimate.mid == pytest.approx(by_hand(kind, n, p, 4, 16, 100, 0.5), rel=1e-12)
    assert estimate.low <= estimate.mid <= estimate.high
    assert sum(term.mid for term in estimate.terms) == pytest.approx(estimate.mid)
    assert estimate.in_range == (2 <= p <= 16)
    assert bool(estimate.remarks) == (not estimate.in_range)


def test_what_a_machine_lacks_is_named_with_a_remedy() -> None:
    bare = machine(applications={})
    missing = predict(APPLICATION, bare, {"kind": "x", "P": 4})
    assert isinstance(missing, Missing)
    assert 'the rate "single" of toy on toybox' in missing.what
    assert "/phases/applications/toy/rates/single" in missing.remedy
    mute = machine(alpha_us=None)
    missing = predict(APPLICATION, mute, {"kind": "x", "P": 4})
    assert isinstance(missing, Missing)
    assert missing.what == "alpha_us of messages on toybox"


def test_a_rate_in_another_unit_or_of_zero_is_refused() -> None:
    for rate, problem in (
        (between(4, 2, 5, "MByte/s"), "is in MByte/s, the phase counts in MFlop/s"),
        (between(4, 0, 5, "MFlop/s"), "must be positive"),
    ):
        wrong = machine(applications={"toy": {"rates": {"single": rate}}})
        with pytest.raises(SubjectError, match=problem):
            price_application(APPLICATION, wrong, {"kind": "x"})


@pytest.mark.parametrize(
    "stated",
    [
        {"quantity": "P +", "low": 1, "high": 2},
        {"quantity": "P", "low": 3, "high": 2},
        {"quantity": 3, "low": 1, "high": 2},
        {"low": 1, "high": 2},
    ],
)
def test_a_wrong_range_of_a_profile_is_refused(stated: dict[str, object]) -> None:
    rates = {"single": between(4, 2, 5, "MFlop/s")}
    wrong = machine(applications={"toy": {"rates": rates, "ranges": {"size": stated}}})
    with pytest.raises(SubjectError, match=r"toybox.json: .*/ranges/size"):
        price_application(APPLICATION, wrong, {"kind": "x"})


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        ({}, "kind is not chosen (one of x, y)"),
        ({"kind": "z"}, "kind = z is not one of x, y"),
        ({"kind": "x", "Q": 1}, "there is no parameter Q"),
        ({"kind": "x", "sise": "two"}, "there is no parameter sise: nearest is size"),
        ({"kind": "x", "P": 3}, "P = 3 must be a power of two"),
        ({"kind": "x", "P": 0}, "P = 0 must be at least 1"),
        ({"kind": "x", "P": 128}, "P = 128 must be at most 64"),
        ({"kind": "x", "P": "four"}, "P = 'four' is not a whole number"),
        ({"kind": "x", "P": "1" * 50}, "is not a whole number"),
        ({"kind": "x", "P": 4, "N": 0}, "N = 0 must be positive"),
        ({"kind": "x"}, "P is not bound (processors)"),
    ],
)
def test_a_wrong_choice_is_refused_in_one_line(choices: dict[str, str | int], problem: str) -> None:
    with pytest.raises(SubjectError) as refusal:
        predict(APPLICATION, machine(), choices)
    assert str(refusal.value).startswith("toy.toml: ")
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_numbers_may_come_as_text_and_sizes_may_be_replaced() -> None:
    bound = bind(APPLICATION, {"kind": "x", "P": " 16 ", "size": "two"})
    assert bound.words == {"size": "two", "kind": "x"}
    assert bound.numbers == {"N": 12, "P": 16}
    assert bind(APPLICATION, {"kind": "x", "N": "40"}).numbers == {"N": 40}


def test_an_unmet_constraint_says_why() -> None:
    constrained = (
        TEXT + '[[constraints]]\nrequire = "P <= N"\nbecause = "a processor needs a row"\n'
    )
    application = parse_application(constrained.encode(), "toy.toml")
    assert bind(application, {"kind": "x", "P": 4}).numbers["P"] == 4
    with pytest.raises(SubjectError, match=r"a processor needs a row \(N = 7, P = 8\)"):
        bind(application, {"kind": "x", "P": 8})


# Choices: every allowed binding once, fastest first, and nothing else.
