"""A prediction as text and as JSON; ``prediction.schema.json`` describes the latter."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from advisor.finding import INTERPOLATED, MEASURED
from advisor.report.style import Style, column_for, duration, json_text, one_line, ratio, table
from costdb.choosing import Choice, Chosen, Prediction
from costdb.evaluate import Estimate, TermEstimate
from costdb.machines import Json, Machine, inside, parts_of, place_of, quantity_of
from costdb.quantity import Omission, Quantity
from costdb.records import dataclass, grouped

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
        coefficients = found.priced.coefficients.items()
        fitted = grouped((one.fitted_to, name) for name, one in coefficients if one.fitted_to)
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


# --- machines -------------------------------------------------------------------------------------
# Machines as text and as JSON: which there are, and every number of one with its origin.


if TYPE_CHECKING:
    from costdb.store.database import Result

MACHINES_VERSION = 1
_HEADINGS = frozenset(("schema_version", "name", "title", "library", "sources", "notes"))


def models_of(machine: Machine) -> tuple[str, ...]:
    """Return the sections of a profile, which are its hardware and the models it serves."""
    return tuple(key for key in machine.document if key not in _HEADINGS)


def list_as_text(machines: Sequence[Machine], style: Style) -> str:
    """Return one line for each machine."""
    rows = [
        [machine.name, machine.title, ", ".join(models_of(machine)), machine.origin]
        for machine in machines
    ]
    return table(["name", "title", "states", "origin"], rows, 4, style)


def list_as_json(machines: Sequence[Machine]) -> str:
    """Return the headings of all machines."""
    return _json({"machines": [_heading(machine) for machine in machines]})


def machine_as_text(machine: Machine, style: Style, results: Sequence[Result] = ()) -> str:
    """Return the profile: its numbers by place, the sources that they refer to, what was found."""
    lines = [
        style.paint(f"{machine.name}: {one_line(machine.title)}", "bold"),
        f"library: {one_line(machine.library)}",
        f"origin: {one_line(machine.origin)}",
        "",
    ]
    rows = [
        [
            place,
            f"{quantity.value:g}",
            "" if quantity.low == quantity.high else f"{quantity.low:g} to {quantity.high:g}",
            quantity.unit,
            quantity.provenance.value,
            str(leaf["source"]),
        ]
        for place, leaf, quantity in _quantities(machine)
    ]
    text = "".join(f"{line}\n" for line in lines)
    heads = ["quantity", "value", "interval", "unit", "provenance", "source"]
    text += table(heads, rows, 6, style)
    settings = list(_settings(machine))
    if settings:
        text += "\n" + table(
            ["setting", "value"], [[p, json.dumps(v)] for p, v in settings], 2, style
        )
    text += "\n" + "".join(f"{key}: {one_line(said)}\n" for key, said in machine.sources.items())
    for place, leaf, quantity in _quantities(machine):
        if quantity.fitted_to:
            text += f"{place}: fitted to {one_line(quantity.fitted_to)}\n"
        if "note" in leaf:
            text += f"{place}: {one_line(str(leaf['note']))}\n"
    text += "".join(f"note: {one_line(note)}\n" for note in machine.notes)
    found = results_as_text(results, style)
    return f"{text}\n{found}" if found else text


def machine_as_json(machine: Machine, results: Sequence[Result] = ()) -> str:
    """Return the headings, the quantities, each with its source as a citation, what was found."""
    return _json(
        {
            "machine": {
                **_heading(machine),
                "notes": list(machine.notes),
                "quantities": [
                    _quantity(place, leaf, quantity)
                    for place, leaf, quantity in _quantities(machine)
                ],
                "settings": dict(_settings(machine)),
                "results": results_document(results),
            }
        }
    )


def _heading(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "title": machine.title,
        "library": machine.library,
        "origin": machine.origin,
        "states": list(models_of(machine)),
    }


def _quantity(place: str, leaf: Mapping[str, Json], quantity: Quantity) -> dict[str, Any]:
    stated = asdict(quantity)
    del stated["independent"]
    fitted, notes = stated.pop("fitted_to"), {"note": leaf["note"]} if "note" in leaf else {}
    return {"place": place, **stated, **({"fitted_to": fitted} if fitted else {}), **notes}


def _quantities(machine: Machine) -> Iterator[tuple[str, Mapping[str, Json], Quantity]]:
    for path, leaf in _stated(machine):
        if isinstance(leaf, dict) and "value" in leaf:
            yield place_of(path), leaf, quantity_of(leaf, machine.sources)


def _settings(machine: Machine) -> Iterator[tuple[str, Json]]:
    for path, leaf in _stated(machine):
        if not isinstance(leaf, dict) and not inside(leaf):
            yield place_of(path), leaf


def _stated(machine: Machine) -> Iterator[tuple[tuple[str, ...], Json]]:
    return parts_of({key: machine.document[key] for key in models_of(machine)})


def _json(content: Mapping[str, Any]) -> str:
    return json_text({"schema_version": MACHINES_VERSION, **content}, ascii_only=False)


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
