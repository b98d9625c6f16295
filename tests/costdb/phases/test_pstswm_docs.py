"""The tables of docs/models.md are what the code gives.

``python -m tests.costdb.phases.test_pstswm_docs`` writes them anew.
"""

import re
from collections.abc import Callable, Sequence

import pytest

from tests.costdb.phases.pstswm_published import (
    DEVIATIONS,
    FITTED,
    ROOT,
    application,
    best_runs,
    fitted_predictions,
    loss_percent,
    measurements,
    mesh_text,
    mesh_text_of,
    paragon,
    printed_meshes,
    ranked_algorithms,
    ranked_meshes,
)
from tests.papers.pstswm_fit import covering_spread, fit_costs

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
        rf"(?<=<!-- begin {name}, written by tests/costdb/phases/test_pstswm_docs.py -->\n)"
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
