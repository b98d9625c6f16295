"""The Paragon profile's estimated numbers are what the fits give, and the fits find the truth."""

import math
from dataclasses import replace

import pytest

from costdb.estimate import Priced
from costdb.expr import evaluate
from costdb.machines import machine_of
from costdb.phases.application import ApplicationError, bind
from tests.costdb.phases.choices import parse_application, price_application
from tests.costdb.phases.pstswm_published import (
    FITTED,
    application,
    fitted_predictions,
    measurements,
    paragon,
)
from tests.papers.pstswm_fit import covering_spread, fit_costs

PATHS = {
    "message.alpha_us": ("alpha_us",),
    "message.beta_us_per_byte": ("beta_us_per_byte",),
    "message.transpose.beta_us_per_byte": ("patterns", "transpose", "beta_us_per_byte"),
}


def test_the_committed_message_costs_are_the_fit() -> None:
    fit = fit_costs(application(), paragon(), FITTED, fitted_predictions())
    for symbol, path in PATHS.items():
        committed = paragon().quantity("phases", *path)
        assert committed is not None
        assert committed.value == float(f"{fit.values[symbol]:.4g}")
        assert committed.fitted_to
    rms = math.sqrt(sum(r * r for r in fit.relative_residuals) / len(fit.relative_residuals))
    assert rms < 0.002


def test_one_byte_cost_for_all_messages_fits_worse_than_the_digits_allow() -> None:
    document = {**paragon().document}
    phases = {**paragon().section("phases")}
    phases.pop("patterns")
    common = machine_of({**document, "phases": phases}, "paragon without patterns")
    printed = fitted_predictions()

    def within_digits(residuals: tuple[float, ...]) -> int:
        return sum(
            abs(residual) * p.seconds <= p.half_width_s
            for residual, p in zip(residuals, printed, strict=True)
        )

    two = fit_costs(application(), paragon(), FITTED, printed)
    one = fit_costs(application(), common, FITTED[:2], printed)
    assert len(printed) == 54
    assert within_digits(two.relative_residuals) == 44
    assert within_digits(one.relative_residuals) == 11
    assert max(map(abs, one.relative_residuals)) > 0.02


def test_the_committed_intervals_are_the_spread_of_the_measured_times() -> None:
    spread = covering_spread(application(), paragon(), measurements())
    faster, slower, messages = (
        math.ceil(100 * factor) / 100 for factor in (spread.faster, spread.slower, spread.messages)
    )
    priced = [
        price_application(application(), paragon(), {"algorithm": a, "reading": reading})
        for a in ("DH", "DR", "DT", "TH", "TR", "TT")
        for reading in ("restored", "printed")
    ]
    for price in priced:
        assert isinstance(price, Priced)
        for symbol, quantity in price.coefficients.items():
            dearer = messages if symbol.startswith("message.") else slower
            assert quantity.high / quantity.value == pytest.approx(dearer, rel=1e-3)
            assert quantity.value / quantity.low == pytest.approx(faster, rel=1e-3)


def test_a_fit_recovers_the_costs_that_made_the_times() -> None:
    truth = dict(zip(FITTED, (77.0, 0.05, 0.01), strict=True))
    observations = []
    for printed in fitted_predictions():
        bound = bind(application(), printed.choices)
        priced = price_application(application(), paragon(), printed.choices)
        assert isinstance(priced, Priced)
        values = {name: q.value for name, q in priced.coefficients.items()} | bound.numbers
        values |= {name: truth[name] for name in FITTED if name in priced.coefficients}
        seconds = float(evaluate(priced.microseconds, values)) / 1e6
        observations.append(replace(printed, seconds=seconds))
    fit = fit_costs(application(), paragon(), FITTED, observations)
    for name, value in truth.items():
        assert fit.values[name] == pytest.approx(value, rel=1e-6)
        assert fit.standard_errors[name] < 1e-6 * value
    assert max(map(abs, fit.relative_residuals)) < 1e-9


def test_what_no_time_depends_on_cannot_be_fitted() -> None:
    with pytest.raises(ApplicationError, match="is never used"):
        fit_costs(application(), paragon(), ["forward_lt_tt.us_per_flop"], fitted_predictions())


def test_a_fit_refuses_products_of_coefficients() -> None:
    text = """
schema_version = 1
name = "pstswm"
title = "t"
source = "s"
[parameters.P]
minimum = 1
[[phases]]
name = "odd"
unit = "flop"
count = "P"
per_op = "a*b"
rate = "sequential_forward_fft"
"""
    odd = parse_application(text.encode(), "odd.toml")
    names = ["sequential_forward_fft.outer.us_per_flop", "sequential_forward_fft.inner.us_per_flop"]
    with pytest.raises(ApplicationError, match="not linear"):
        fit_costs(odd, paragon(), names, [replace(fitted_predictions()[0], choices={"P": 4})])
