"""A prediction as text and as JSON; ``prediction.schema.json`` describes the latter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.finding import INTERPOLATED, MEASURED
from advisor.report.style import Style, column_for, duration, json_text, one_line, ratio, table
from costdb.choosing import Choice, Chosen, Prediction
from costdb.estimate import Estimate, TermEstimate
from costdb.quantity import Omission
from costdb.records import dataclass

SCHEMA_VERSION = 2
_LONGEST_FORMULA = 2000
# Shares are shown where terms are parts of a sum; bounds that compete are not.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PredictionReport:
    """A prediction and its setting.

    Attributes
    ----------
    title : str
        What is predicted.
    machine : str or None
        Name of the machine, where one is needed.
    formula : str or None
        Closed form in seconds over the parameters.
    bound_by : sequence of str
        Sizes that the source binds, with the place.
    cautions : sequence of str
        What is taken for granted that need not be so.
    """

    title: str
    machine: str | None
    formula: str | None
    prediction: Prediction
    bound_by: Sequence[str] = ()
    cautions: Sequence[str] = ()

    @property
    def remarks(self) -> Sequence[str]:
        """Return extrapolations, cautions, and which coefficients were fitted to what."""
        found = self.prediction
        fitted: dict[str, list[str]] = {}
        for name, quantity in found.priced.coefficients.items():
            if quantity.fitted_to:
                fitted.setdefault(quantity.fitted_to, []).append(name)
        return (
            *found.estimate.remarks,
            *self.cautions,
            *(f"{', '.join(names)} fitted to {what}" for what, names in fitted.items()),
        )


def as_json(report: PredictionReport) -> str:
    """Return the document, with a line end."""
    found = report.prediction
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        **_document(found),
        "terms": [
            {"label": term.label, "model": term.model, "seconds": seconds_document(term)}
            for term in found.estimate.terms
        ],
        "parts": {kind: seconds for kind, (seconds, _) in made_of(found.estimate).items()},
        "remarks": list(report.remarks),
        "machine": report.machine,
    }
    if report.bound_by:
        document["bound_by"] = list(report.bound_by)
    if report.formula is not None:
        document["formula"] = report.formula
    return json_text(document)


def seconds_document(time: Estimate | TermEstimate) -> Mapping[str, float | None]:
    """Return an interval as JSON; null where it is not bounded."""
    ends = {"low": time.low, "mid": time.mid, "high": time.high}
    return {end: float(value) if math.isfinite(value) else None for end, value in ends.items()}


def as_text(report: PredictionReport, style: Style) -> str:
    """Return the time, its interval, its parts, and where the numbers come from."""
    found, estimate = report.prediction, report.prediction.estimate
    lines = [style.paint(one_line(report.title), "bold")]
    if found.bindings:
        lines.append("with " + shown_bindings(found.bindings))
    lines += [f"  {one_line(origin)}" for origin in report.bound_by]
    lines.append(style.paint(interval(estimate), "green" if estimate.complete else "yellow"))
    lines += [*filter(None, [_parts(estimate)]), ""]
    text = "".join(f"{line}\n" for line in lines)
    if estimate.terms:
        text += _terms(estimate, style) + "\n"
    if report.formula is not None and len(report.formula) <= _LONGEST_FORMULA:
        text += f"seconds = {one_line(report.formula)}\n"
    text += f"provenance: {estimate.provenance}\n"
    for remark in report.remarks:
        text += style.paint(f"note: {one_line(remark)}", "yellow") + "\n"
    return text + missing_text(estimate, style)


def made_of(estimate: Estimate) -> Mapping[str, tuple[float, str]]:
    """Return how many seconds of a time were measured, interpolated and modelled, and in words."""
    kinds = {"measured_s": MEASURED, "interpolated_s": INTERPOLATED}
    found = dict.fromkeys((*kinds, "modelled_s"), 0.0)
    known = {model: kind for kind, model in kinds.items()}
    for term in estimate.terms:
        found[known.get(term.model, "modelled_s")] += term.mid
    return {
        kind: (seconds, f"{duration(seconds)} {kinds.get(kind, 'modelled')}")
        for kind, seconds in found.items()
    }


def _parts(estimate: Estimate) -> str:
    parts = made_of(estimate)
    if not any(seconds for kind, (seconds, _) in parts.items() if kind != "modelled_s"):
        return ""
    return "of which " + ", ".join(text for seconds, text in parts.values() if seconds)


def _document(found: Prediction | Choice) -> Mapping[str, Any]:
    """Return what every time is told with."""
    estimate = found.estimate
    return {
        "bindings": dict(found.bindings),
        "seconds": seconds_document(estimate),
        "provenance": estimate.provenance.value,
        "in_range": estimate.in_range,
        "complete": estimate.complete,
        "missing": [asdict(one) for one in estimate.omitted],
    }


def missing_text(estimate: Estimate, style: Style) -> str:
    """Return a line for everything that a price leaves out."""
    lines = (f"not priced: {where(one)}: {one.reason}" for one in estimate.omitted)
    return "".join(style.paint(one_line(line), "yellow") + "\n" for line in lines)


def where(omission: Omission) -> str:
    """Return what is left out, by its line and text."""
    line = f"line {omission.line}" if omission.line else ""
    return ", ".join(filter(None, (line, omission.text)))


def interval(time: Estimate) -> str:
    """Return a time such as ``3.1 ms (2.9 ms to 3.4 ms)``, or ``at least 2.9 ms``."""
    if not time.complete:
        return f"at least {duration(time.low)}; what is known takes {duration(time.mid)}"
    if time.low == time.high:
        return duration(time.mid)
    return f"{duration(time.mid)} ({duration(time.low)} to {duration(time.high)})"


def shown_bindings(bindings: Mapping[str, object]) -> str:
    """Return bindings as ``-D`` takes them."""
    return one_line(" ".join(f"{name}={value}" for name, value in bindings.items()))


def _terms(estimate: Estimate, style: Style) -> str:
    terms = estimate.terms
    column = column_for(*(time for t in terms for time in (t.low, t.mid, t.high)))
    total = sum(term.mid for term in terms)
    parts = total > 0 and abs(total - estimate.mid) <= _ROUNDING * total
    heads = ["term", "model", f"low {column.unit}", f"mid {column.unit}", f"high {column.unit}"]
    rows = []
    for term in terms:
        row = [term.label, term.model, *map(column.number, (term.low, term.mid, term.high))]
        rows.append([*row, f"{100 * term.mid / total:.1f} %"] if parts else row)
    return table([*heads, "share"] if parts else heads, rows, 2, style)


# Ranked choices as text and as JSON; ``choices.schema.json`` describes the latter.

CHOICES_VERSION = 2


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


def choices_as_json(report: ChoicesReport) -> str:
    """Return the document, with a line end."""
    document: dict[str, object] = {
        "schema_version": CHOICES_VERSION,
        "machine": report.machine,
        "given": dict(report.given),
        "considered": report.considered,
        "choices": [_document(choice) for choice in report.choices],
    }
    return json_text(document)


def choices_as_text(report: ChoicesReport, style: Style) -> str:
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
