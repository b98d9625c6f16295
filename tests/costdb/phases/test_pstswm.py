"""The PSTSWM description on the Paragon profile against everything that the study prints."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence

import pytest

from costdb.documents import check_profile, description_problems
from costdb.evaluate import Estimate, Priced
from costdb.quantity import Provenance
from tests.costdb.phases.choices import predict, price_application
from tests.costdb.phases.pstswm_published import (
    APPLICATION_PATH,
    DEVIATIONS,
    FIGURES,
    FITTED,
    ROOT,
    Run,
    application,
    best_runs,
    fitted_predictions,
    loss_percent,
    measurements,
    mesh_text,
    mesh_text_of,
    paragon,
    predicted,
    printed_meshes,
    ranked_algorithms,
    ranked_meshes,
    th_runs,
)
from tests.papers.pstswm_fit import covering_spread, fit_costs

RUNS = (*th_runs(), *best_runs())


def name(run: Run) -> str:
    return f"{run.algorithm}-{run.problem}-{run.mesh[0]}x{run.mesh[1]}"


def difference(run: Run, reading: str = "restored") -> float:
    return predicted(run, reading).mid / run.predicted_s - 1


def test_description_and_profile_are_sound() -> None:
    assert description_problems(APPLICATION_PATH) == ()
    profile = json.loads((ROOT / "machine_profiles" / "paragon.json").read_text())
    assert check_profile(profile, "paragon") == []


@pytest.mark.parametrize("run", RUNS, ids=name)
def test_the_printed_prediction_comes_out(run: Run) -> None:
    # Half a unit of a last printed digit reaches 2 % on the shortest run, 2.6 s.
    allowed = max(0.005, run.predicted_half_width_s / run.predicted_s)
    assert abs(difference(run)) < allowed


@pytest.mark.parametrize("run", RUNS, ids=name)
def test_the_interval_covers_the_measured_time(run: Run) -> None:
    estimate = predicted(run)
    assert estimate.low <= run.measured_s <= estimate.high
    assert estimate.in_range
    assert estimate.provenance == Provenance.ESTIMATED


def test_the_printed_meshes_come_out_except_for_the_known_deviations() -> None:
    differing = {
        key
        for key, mesh in printed_meshes().items()
        if mesh_text_of(ranked_meshes(*key)[0]) != mesh
    }
    assert differing == set(DEVIATIONS)


@pytest.mark.parametrize("key", [key for key in DEVIATIONS if key[1:] != ("T42", 512)])
def test_the_misses_table_has_the_meshes_of_the_two_problems_exchanged(
    key: tuple[str, str, int],
) -> None:
    algorithm, problem, processors = key
    other = (algorithm, "T85" if problem == "T42" else "T42", processors)
    assert mesh_text_of(ranked_meshes(*key)[0]) == printed_meshes()[other]
    # The study's own comparison of algorithms sides with the model.
    best = {row[0]: row[2:4] for row in FIGURES["best_algorithm"]["rows"] if row[1] == processors}
    assert best[problem] == ["TR", mesh_text_of(ranked_meshes("TR", problem, processors)[0])]


def test_outside_the_published_range_the_estimate_says_so() -> None:
    for more, remark in (
        ({"PX": 2, "PY": 2}, "processors"),
        ({"PX": 64, "PY": 16}, "processors"),
        ({"PX": 16, "PY": 4, "MM": 170, "NLAT": 256, "NLON": 512}, "spectral truncation"),
        ({"PX": 16, "PY": 4, "NVER": 32}, "vertical levels"),
    ):
        estimate = predict(application(), paragon(), {"algorithm": "TH", **more})
        assert isinstance(estimate, Estimate)
        assert not estimate.in_range
        assert any(remark in line for line in estimate.remarks)


# The Paragon profile's estimated numbers are what the fits give, and the fits find the truth.


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


# The tables of docs/models.md are what the code gives.
#
# ``python -m tests.costdb.phases.test_pstswm`` writes them anew.


DOCUMENT = ROOT / "docs" / "models.md"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def test_all_choices_come_out_within_the_documented_distance() -> None:
    off = []
    for run in best_runs():
        best = ranked_algorithms(run.problem, run.mesh[0] * run.mesh[1])[0]
        assert f"{best.bindings['algorithm']} {mesh_text_of(best)}" == (
            f"{run.algorithm} {mesh_text(run.mesh)}"
        )
        off.append(abs(best.estimate.mid / run.predicted_s - 1))
    assert len(off) == 14 and max(off) < 0.011
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    assert "All 14 printed choices" in text and "within 1.1 % of the printed times" in text


def deviation_table() -> str:
    rows = []
    for key, reason in DEVIATIONS.items():
        assert ("contradicts itself" in reason) == (key[2] == 32)
        ranked = ranked_meshes(*key)
        printed = printed_meshes()[key]
        rows.append(
            [
                " ".join(map(str, key)),
                printed,
                mesh_text_of(ranked[0]),
                f"{loss_percent(ranked, printed):.2f}",
            ]
        )
    return table(("choice", "printed", "ours", "printed mesh slower by %"), rows)


def fit_table() -> str:
    printed = fitted_predictions()
    fit = fit_costs(application(), paragon(), FITTED, printed)
    rows = [
        [f"`{name}`", f"{fit.values[name]:.4g}", f"{fit.standard_errors[name]:.2g}"]
        for name in FITTED
    ]
    inside = sum(
        abs(residual) * p.seconds <= p.half_width_s
        for residual, p in zip(fit.relative_residuals, printed, strict=True)
    )
    spread = covering_spread(application(), paragon(), measurements())
    return (
        table(("coefficient", "fitted", "standard error"), rows)
        + f"\n\n{inside} of {len(printed)} residuals lie within the printed digits. "
        f"Spread over the {len(measurements())} measured times: rates up to "
        f"{spread.faster:.3f} times faster and {spread.slower:.3f} times slower, "
        f"messages up to {spread.messages:.2f} times dearer."
    )


TABLES: dict[str, Callable[[], str]] = {
    "fit": fit_table,
    "deviations": deviation_table,
}


def block(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<=<!-- begin {name}, written by tests/costdb/phases/test_pstswm.py -->\n)"
        rf".*?(?=\n<!-- end {name} -->)",
        re.DOTALL,
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_documented_table_is_what_the_code_gives(name: str) -> None:
    (documented,) = block(name).findall(DOCUMENT.read_text(encoding="utf-8"))
    assert documented == TABLES[name]()


def test_the_document_has_no_other_generated_table() -> None:
    named = re.findall(r"<!-- begin (\w+),", DOCUMENT.read_text(encoding="utf-8"))
    assert sorted(named) == sorted(TABLES)


if __name__ == "__main__":
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, build in TABLES.items():
        content = build()
        text = block(name).sub(lambda _, content=content: content, text)
    DOCUMENT.write_text(text, encoding="utf-8")
