"""The Paragon profile's estimated numbers are what the fits give, and the fits find the truth."""

import math

import pytest

from costdb.estimate import Priced
from costdb.machines import machine_of
from tests.costdb.phases.choices import price_application
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
