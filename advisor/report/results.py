"""What validations and verifications found of a machine, as ``advise machine show`` tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.report.style import Style, one_line
from advisor.report.table import table

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
    found: Mapping[str, Any] | None = result.document["summary"]
    place = f"verify {one_line(result.subject)}"
    if found is None:
        return
    judged = found["judged"]
    for figure, value in (
        (f"median error of predicted times, {judged} variants", f"{found['median_error']:.0%}"),
        ("measured times inside the interval", f"{found['inside']} of {judged}"),
        ("median half-width of the interval", f"{found['median_half_width']:.0%}"),
        ("pairs more than 10 % apart ranked right", f"{found['right']} of {found['unlike']}"),
    ):
        yield [place, figure, value, ""]


_FIGURES = {"validate": _validated, "verify": _verified}
