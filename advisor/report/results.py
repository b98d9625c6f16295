"""What validations and verifications found of a machine, as ``advise machine show`` tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.report.style import Style, one_line, table

if TYPE_CHECKING:
    from costdb.store.results import Result

_HEADS = ("found here", "figure", "value", "verdict", "when")


def results_as_text(results: Sequence[Result], style: Style) -> str:
    """Return a line for each figure, with the command that found it and when."""
    rows = [
        [*cells, f"{result.stored_at[:10]}{' (another calibration)' if result.outdated else ''}"]
        for result in results
        for cells in _FIGURES[result.command](result)
    ]
    return table(_HEADS, rows, len(_HEADS), style) if rows else ""


def how_well(results: Sequence[Result], models: Iterable[str]) -> list[str]:
    """Return how far predictions by some models were found to hold on a machine, and by what.

    Verifications run kernels, whose local part is the model of array calls.
    """
    asked, found = frozenset(models), []
    for result in results:
        origin = f"advise {result.command} {one_line(result.subject)}, {result.stored_at[:10]}"
        origin += ", another calibration" * result.outdated
        if result.command == _VALIDATE:
            rows = [row for row in result.document["rows"] if row["model"] in asked]
            judged = [row["verdict"] for row in rows if row["verdict"] != "unjudged"]
            if judged:
                model = rows[0]["model"]
                held = judged.count("holds")
                found.append(f"{model}: {held} of {len(judged)} figures hold ({origin})")
        elif _ARRAYS in asked and result.document["summary"] is not None:
            said = "; ".join(f"{figure} {value}" for figure, value in _summed_up(result))
            found.append(f"{_ARRAYS}: {said} ({origin})")
    return found


def results_document(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return them as they stand in a machine's document."""
    return [
        {
            "command": result.command,
            "subject": result.subject,
            "stored_at": result.stored_at,
            "outdated": result.outdated,
            "found": dict(result.document),
        }
        for result in results
    ]


def _validated(result: Result) -> Iterator[list[str]]:
    for row in result.document["rows"]:
        place = f"validate {result.subject}: {one_line(row['operation'])}"
        yield [place, one_line(row["figure"]), one_line(row["here"]), row["verdict"]]


def _verified(result: Result) -> Iterator[list[str]]:
    for figure, value in _summed_up(result):
        yield [f"verify {one_line(result.subject)}", figure, value, ""]


def _summed_up(result: Result) -> Iterator[tuple[str, str]]:
    found: Mapping[str, Any] | None = result.document["summary"]
    if found is None:
        return
    judged = found["judged"]
    yield f"median error of predicted times, {judged} variants", f"{found['median_error']:.0%}"
    yield "measured times inside the interval", f"{found['inside']} of {judged}"
    yield "median half-width of the interval", f"{found['median_half_width']:.0%}"
    yield "pairs more than 10 % apart ranked right", f"{found['right']} of {found['unlike']}"


_VALIDATE, _ARRAYS = "validate", "arrays"
_FIGURES = {_VALIDATE: _validated, "verify": _verified}
