"""Regressions: recovery of known coefficients, and the claims of the published table."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from costdb.calibration.fitting import (
    Columns,
    Vector,
    fit_above,
    predict,
    unexplained,
)

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "data" / "lines_published.json").read_text(encoding="utf-8")
)


# The six message regressions: lists of monomials over bytes and lines. The standard family S1 to S3
# knows bytes only, the lines family M1 to M3 adds the lines touched while marshalling. S1, M1 and
# the squares of M3 are certain; S2, S3 and M2 are reconstructed from a damaged description.
Model = tuple[tuple[str, ...], ...]

_S1: Model = (("messages",), ("bytes",))
_M1: Model = (*_S1, ("lines",))
_M2: Model = (*_M1, ("bytes", "lines"))
MESSAGE_MODELS: dict[str, Model] = {
    "S1": _S1,
    "S2": (*_S1, ("bytes", "bytes")),
    "S3": (*_S1, ("bytes", "bytes"), ("bytes", "bytes", "bytes")),
    "M1": _M1,
    "M2": _M2,
    "M3": (*_M2, ("bytes", "bytes"), ("lines", "lines")),
}


def monomials(columns: Columns, model: Model) -> Columns:
    """Return the value of each monomial in each sample, by names such as ``"bytes*lines"``."""
    return {"*".join(names): np.prod([columns[n] for n in names], axis=0) for names in model}


def _up_to_second_order(*columns: str) -> Model:
    squares_and_products = combinations_with_replacement(columns, 2)
    return (*((column,) for column in columns), *squares_and_products)


# As printed: time of a scan with second-order and cross terms, and of a local array statement; the
# standard models do without the lines.
SCAN_MODELS = {
    "standard": _up_to_second_order("messages", "bytes", "operations"),
    "lines": _up_to_second_order("messages", "bytes", "lines", "operations"),
}
STATEMENT_MODELS = {
    "standard": (("operations",), ("accesses",)),
    "lines": (("operations",), ("accesses",), ("lines",)),
}


def standard_error_us(times: ArrayLike, predicted: ArrayLike) -> float:
    """Return the root of the mean squared residual, the published ``s_e``."""
    return float(np.sqrt(np.mean(np.subtract(times, predicted) ** 2)))


def message_samples(seed: int, noise: float = 0.0, count: int = 100) -> tuple[Columns, Vector]:
    """Rows and columns whose bytes and lines vary independently, priced by an M1 truth."""
    rng = np.random.default_rng(seed)
    sent = rng.integers(4, 40_000, count)
    lines = np.ceil(sent / rng.integers(4, 65, count))
    exact = 40.0 + 0.012 * sent + 1.0 * lines
    columns = {"messages": np.ones(count), "bytes": sent.astype(float), "lines": lines}
    return columns, exact * (1 + noise * rng.standard_normal(count))


def predictions(model: Model, seed: int, noise: float) -> tuple[Vector, Vector]:
    """Return times of other samples, and what a fit predicts of these."""
    columns, times = message_samples(seed, noise)
    others, taken = message_samples(seed + 100, noise)
    found = fit_above(monomials(columns, model), times)
    return taken, predict(monomials(others, model), found)


def test_first_order_coefficients_are_recovered() -> None:
    columns, times = message_samples(1)
    found = fit_above(monomials(columns, MESSAGE_MODELS["M1"]), times)
    assert found == pytest.approx({"messages": 40.0, "bytes": 0.012, "lines": 1.0})


MADE = {
    "messages": (1, 8, 4.0),
    "bytes": (1_000, 50_000, 2e4),
    "lines": (100, 9_000, 4e3),
    "operations": (1_000, 900_000, 4e5),
    "accesses": (1_000, 900_000, 4e5),
}
"""Least, most and typical number of each column."""


@pytest.mark.parametrize(
    "model",
    [*MESSAGE_MODELS.values(), SCAN_MODELS["lines"], STATEMENT_MODELS["lines"]],
    ids=[*MESSAGE_MODELS, "scan", "statement"],
)
def test_each_model_recovers_its_own_truth(model: Model) -> None:
    rng = np.random.default_rng(3)
    columns = {
        name: rng.integers(low, high, 200).astype(float) for name, (low, high, _) in MADE.items()
    }
    terms = monomials(columns, model)
    truth = {
        name: (n + 1.0) / float(np.prod([MADE[column][2] for column in names]))
        for n, (name, names) in enumerate(zip(terms, model, strict=True))
    }
    assert fit_above(terms, predict(terms, truth)) == pytest.approx(truth, rel=1e-5)


def test_scans_need_the_lines() -> None:
    assert len(SCAN_MODELS["lines"]) == 14
    rng = np.random.default_rng(3)
    columns = {
        name: rng.integers(low, high, 200).astype(float) for name, (low, high, _) in MADE.items()
    }
    terms = {kind: monomials(columns, model) for kind, model in SCAN_MODELS.items()}
    truth = {
        name: 1.0 / float(np.prod([MADE[column][2] for column in names]))
        for name, names in zip(terms["lines"], SCAN_MODELS["lines"], strict=True)
    }
    times = predict(terms["lines"], truth)
    left = {kind: unexplained(times, predict(c, fit_above(c, times))) for kind, c in terms.items()}
    assert left["standard"] > 100 * left["lines"]


@pytest.mark.parametrize("seed", range(3))
def test_lines_beat_bytes_where_lines_matter(seed: int) -> None:
    told = {name: predictions(model, seed, 0.03) for name, model in MESSAGE_MODELS.items()}
    assert unexplained(*told["M1"]) < 0.01 < unexplained(*told["S1"])
    assert standard_error_us(*told["M1"]) < standard_error_us(*told["S1"])


def test_statistics_by_hand() -> None:
    times = [1.0, 2.0, 3.0]
    assert unexplained(times, times) == 0
    assert unexplained(times, [2.0, 2.0, 2.0]) == 1
    assert unexplained(times, [1.0, 2.0, 4.0]) == pytest.approx(0.5)
    assert standard_error_us(times, [1.0, 2.0, 6.0]) == pytest.approx(3**0.5)


def published_ratios() -> dict[str, float]:
    table = PUBLISHED["R2"]
    return {
        column: standard / lines
        for column, standard, lines in zip(
            PUBLISHED["columns"], table["S1"], table["M1"], strict=True
        )
    }


def test_published_gain_of_the_line_term() -> None:
    ratios = published_ratios()
    assert len(ratios) == 6
    assert round(min(ratios.values()), 2) == 1.25
    assert round(max(ratios.values()), 1) == 9.7


@pytest.mark.parametrize("statistic", ["R2", "s_e"])
def test_published_m3_is_best_everywhere(statistic: str) -> None:
    table = PUBLISHED[statistic]
    for name, errors in table.items():
        assert all(best <= error for best, error in zip(table["M3"], errors, strict=True)), name


def test_both_published_statistics_are_proportional() -> None:
    # By their printed definitions R2 should go with the square of s_e. The printed figures go
    # with s_e itself, to the last digit printed: the one is squared or the other is not rooted.
    for column in range(6):
        pairs = [(PUBLISHED["R2"][m][column], PUBLISHED["s_e"][m][column]) for m in MESSAGE_MODELS]
        lowest = max((r - 0.005) / (s + 0.005) for r, s in pairs)
        highest = min((r + 0.005) / (s - 0.005) for r, s in pairs)
        assert lowest <= highest
