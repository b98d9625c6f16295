"""What a validation says: published figures, figures of this machine, and verdicts.

As text for people, and as the document that ``validation.schema.json`` of the reports describes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from advisor.report.style import Style, labelled, table
from costdb.records import dataclass, field

SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """Whether what a paper claims is so here."""

    HOLDS = "holds"
    MISSES = "MISSES"
    UNJUDGED = "-"

    @staticmethod
    def of(holds: bool) -> Verdict:
        """Return the verdict on a claim."""
        return Verdict.HOLDS if holds else Verdict.MISSES


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes
    ----------
    model : str
        Such as ``"lines"``.
    operation : str
        What was measured: ``"message.column"``.
    figure : str
        What the numbers are: ``"faster way"``.
    paper, source : str
        What is printed, as text, and where; empty where nothing is.
    ours : str
        The same of this machine, as text.
    verdict : Verdict
    values : mapping of str to float
        The numbers behind `ours`, units in the names.
    remark : str
        Why it misses, where that is known, or what else must be said.
    """

    model: str
    operation: str
    figure: str
    paper: str
    source: str
    ours: str
    verdict: Verdict
    values: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """What came of an experiment.

    Attributes
    ----------
    name, title : str
    rows : sequence of Row
    notes : tuple of str
        How it was done, in sentences.
    skipped : str
        Why there are no rows, or fewer than there could be; empty where nothing is missing.
    busy_cores : float or None
        How many cores other processes kept busy meanwhile; None where the system does not tell.
    """

    name: str
    title: str
    rows: Sequence[Row] = ()
    notes: tuple[str, ...] = ()
    skipped: str = ""
    busy_cores: float | None = None


class CannotValidateError(ValueError):
    """An experiment that cannot be done here; the message says what it lacks, in one line."""


def percent(share: float) -> str:
    """Return a share as a percentage with two significant digits: ``4.6 %``."""
    value = 100 * share
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What a validation says of a machine, and when it was made (UTC, ISO)."""

    machine: str
    calibration: str
    made_at: str
    sections: Sequence[Section]


def as_text(report: ValidationReport, style: Style) -> str:
    """Return a table for each section, what it rests on, and how many claims hold."""
    lines = [f"{report.machine} ({report.calibration}), validated {report.made_at}", ""]
    for section in report.sections:
        lines += _section(section, style)
    lines.append(summary(report.sections))
    return "\n".join(lines) + "\n"


def summary(sections: Sequence[Section]) -> str:
    """Return how many of the claims that were judged hold."""
    rows = [row for section in sections for row in section.rows]
    held = sum(row.verdict is Verdict.HOLDS for row in rows)
    judged = sum(row.verdict is not Verdict.UNJUDGED for row in rows)
    return f"{held} of {judged} figures hold, {judged - held} miss"


def _section(section: Section, style: Style) -> Iterator[str]:
    yield style.paint(section.title, "bold")
    if section.rows:
        heads = ("operation", "figure", "paper", "here", "verdict")
        cells = [
            (row.operation, row.figure, row.paper or "-", row.ours, str(row.verdict))
            for row in section.rows
        ]
        yield from table(heads, cells, len(heads), style).splitlines()
    yield from labelled("because", _remarks(section.rows), style)
    yield from labelled("paper", _sources(section.rows), style)
    yield from labelled("note", section.notes, style)
    if section.skipped:
        yield from labelled("skipped", [section.skipped], style)
    yield ""


def _remarks(rows: Sequence[Row]) -> list[str]:
    return [f"{row.operation}: {row.figure}: {row.remark}" for row in rows if row.remark]


def _sources(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.source for row in rows if row.source))


def as_json(report: ValidationReport) -> str:
    """Return the document, indented, with a line end."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": report.machine,
        "calibration": report.calibration,
        "made_at": report.made_at,
        "sections": [section_document(section) for section in report.sections],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def section_document(section: Section) -> dict[str, Any]:
    """Return a section as it stands in the document."""
    return {
        "name": section.name,
        "title": section.title,
        "skipped": section.skipped,
        "notes": list(section.notes),
        "others_busy_cores": section.busy_cores,
        "rows": [_row_document(row) for row in section.rows],
    }


def _row_document(row: Row) -> dict[str, Any]:
    return {
        "model": row.model,
        "operation": row.operation,
        "figure": row.figure,
        "paper": row.paper,
        "source": row.source,
        "here": row.ours,
        "verdict": "unjudged" if row.verdict is Verdict.UNJUDGED else row.verdict.value.lower(),
        "values": {
            name: value if math.isfinite(value) else None for name, value in row.values.items()
        },
        "remark": row.remark,
    }
