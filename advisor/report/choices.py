"""Ranked choices as text and as JSON; ``choices.schema.json`` describes the latter."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.report.prediction import (
    completeness,
    missing_text,
    seconds_document,
    shown_bindings,
)
from advisor.report.style import Style, column_for, one_line, ratio, table
from costdb.choosing import Choice
from costdb.estimate import Estimate
from costdb.subject import Chosen

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class ChoicesReport:
    """A ranking and its setting.

    Attributes
    ----------
    title : str
        What is predicted.
    machine : str or None
        Name of the machine, where one is needed.
    given : mapping
        What was not chosen over.
    choices : sequence of Choice
        Those shown, fastest first.
    considered : int
        How many were ranked.
    """

    title: str
    machine: str | None
    given: Mapping[str, Chosen]
    choices: Sequence[Choice]
    considered: int


def as_json(report: ChoicesReport) -> str:
    """Return the document, with a line end."""
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "machine": report.machine,
        "given": dict(report.given),
        "considered": report.considered,
        "choices": [
            {
                "bindings": dict(choice.bindings),
                "seconds": seconds_document(choice.estimate),
                "provenance": choice.estimate.provenance.value,
                "in_range": choice.estimate.in_range,
                **completeness(choice.estimate),
            }
            for choice in report.choices
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def as_text(report: ChoicesReport, style: Style) -> str:
    """Return the choices as a table, fastest first."""
    lines = [style.paint(one_line(report.title), "bold")]
    if report.given:
        lines.append("with " + shown_bindings(report.given))
    times = [choice.estimate for choice in report.choices]
    ends = (end for time in times for end in (time.low, time.mid, time.high))
    column = column_for(*filter(math.isfinite, ends))
    names = list(report.choices[0].bindings)
    best = report.choices[0].estimate.mid
    # Where no number has an interval, one column says it all.
    exact = all(time.low == time.high for time in times)
    shown = ("mid",) if exact else ("low", "mid", "high")
    rows = [
        [
            *(str(choice.bindings[name]) for name in names),
            *(
                column.number(end) if math.isfinite(end) else "-"
                for end in ((time.mid,) if exact else (time.low, time.mid, time.high))
            ),
            _times(time.mid, best),
            _doubts(time),
        ]
        for choice, time in zip(report.choices, times, strict=True)
    ]
    heads = [*names, *(f"{end} {column.unit}" for end in shown), "to best", ""]
    text = "".join(f"{line}\n" for line in lines) + "\n" + table(heads, rows, len(names), style)
    if report.considered > len(report.choices):
        text += f"{len(report.choices)} of {report.considered} choices\n"
    told = dict.fromkeys(line for time in times for line in missing_text(time, style).splitlines())
    return text + "".join(f"{line}\n" for line in told)


def _doubts(time: Estimate) -> str:
    told = ("" if time.in_range else "extrapolated", "" if time.complete else "at least")
    return ", ".join(filter(None, told))


def _times(time: float, best: float) -> str:
    return ratio(time / best if best > 0 else 1.0 if time == 0 else math.inf)
