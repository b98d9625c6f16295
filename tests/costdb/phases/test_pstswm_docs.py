"""The tables of docs/models/phases.md are what the code gives.

``python -m tests.costdb.phases.test_pstswm_docs`` writes them anew.
"""

import re
from collections.abc import Callable, Sequence

import pytest

from tests.costdb.phases.pstswm_published import (
    ALGORITHMS,
    DEVIATIONS,
    FIGURES,
    FITTED,
    PROBLEMS,
    PROCESSORS,
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

DOCUMENT = ROOT / "docs" / "models" / "phases.md"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(run: Run, reading: str = "restored") -> str:
    off = 100 * (predicted(run, reading).mid / run.predicted_s - 1)
    return f"{round(off, 2) + 0.0:+.2f}"  # never -0.00


def th_table() -> str:
    rows = []
    for run in sorted(th_runs(), key=lambda run: (run.mesh[0] * run.mesh[1], run.problem)):
        estimate = predicted(run)
        rows.append(
            [
                run.problem,
                mesh_text(run.mesh),
                f"{run.measured_s:.2f}",
                f"{run.predicted_s:.2f}",
                f"{estimate.mid:.2f}",
                percent(run),
                f"{estimate.low:.2f} to {estimate.high:.2f}",
            ]
        )
    columns = (
        "problem",
        "mesh",
        "measured s",
        "printed prediction s",
        "ours s",
        "off %",
        "interval s",
    )
    return table(columns, rows)


def best_table() -> str:
    rows = []
    for run in best_runs():
        best = ranked_algorithms(run.problem, run.mesh[0] * run.mesh[1])[0]
        rows.append(
            [
                run.problem,
                str(run.mesh[0] * run.mesh[1]),
                f"{run.algorithm} {mesh_text(run.mesh)}",
                f"{best.bindings['algorithm']} {mesh_text_of(best)}",
                f"{run.predicted_s:.1f}",
                f"{best.estimate.mid:.2f}",
                percent(run),
                f"{run.measured_s:.1f}",
                f"{best.estimate.low:.1f} to {best.estimate.high:.1f}",
            ]
        )
    columns = (
        "problem",
        "P",
        "printed choice",
        "our choice",
        "printed prediction s",
        "ours s",
        "off %",
        "measured s",
        "interval s",
    )
    return table(columns, rows)


def reading_table() -> str:
    rows = []
    for run in best_runs():
        if run.algorithm in ("DT", "TT"):
            processors = run.mesh[0] * run.mesh[1]
            best = ranked_algorithms(run.problem, processors, "printed")[0]
            rows.append(
                [
                    f"{run.algorithm} {run.problem} {mesh_text(run.mesh)}",
                    f"{run.predicted_s:.1f}",
                    percent(run, "printed"),
                    percent(run),
                    f"{best.bindings['algorithm']} {mesh_text_of(best)}",
                ]
            )
    columns = (
        "run",
        "printed prediction s",
        "as printed, off %",
        "restored, off %",
        "choice as printed",
    )
    return table(columns, rows)


def mesh_table() -> str:
    rows = []
    for algorithm in ALGORITHMS:
        for problem in PROBLEMS:
            cells = []
            for processors in PROCESSORS:
                key = (algorithm, problem, processors)
                mesh = mesh_text_of(ranked_meshes(*key)[0])
                printed = printed_meshes().get(key)
                mark = (
                    "" if printed is None else f" (printed {printed})" if printed != mesh else " ="
                )
                cells.append(mesh + mark)
            rows.append([f"{algorithm} {problem}", *cells])
    return table(("P =", *map(str, PROCESSORS)), rows)


def deviation_table() -> str:
    rows = []
    for key, reason in DEVIATIONS.items():
        ranked = ranked_meshes(*key)
        printed = printed_meshes()[key]
        algorithm, problem, processors = key
        rows.append(
            [
                f"{algorithm} {problem} P = {processors}",
                printed,
                mesh_text_of(ranked[0]),
                f"{loss_percent(ranked, printed):.2f}",
                reason,
            ]
        )
    columns = ("choice", "printed", "ours", "printed mesh slower by %", "reason")
    return table(columns, rows)


def tt_table() -> str:
    rows = []
    for problem, processors, mesh, *_ in FIGURES["aspect_ratio_misses"]["rows"]["TT"]:
        as_printed = ranked_meshes("TT", problem, processors, "printed")[0]
        restored = ranked_meshes("TT", problem, processors)[0]
        rows.append(
            [f"{problem} P = {processors}", mesh, mesh_text_of(as_printed), mesh_text_of(restored)]
        )
    return table(("TT", "printed mesh", "tables as printed", "restored"), rows)


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
    "th": th_table,
    "best": best_table,
    "reading": reading_table,
    "tt": tt_table,
    "meshes": mesh_table,
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
