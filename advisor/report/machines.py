"""Machines as text and as JSON: which there are, and every number of one with its origin."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from advisor.report.style import Style, json_text, one_line, table
from costdb.machines import Json, Machine, place_of, quantity_of
from costdb.quantity import Quantity

if TYPE_CHECKING:
    from costdb.store.records import Result

SCHEMA_VERSION = 1
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
    for path, leaf in _leaves(machine):
        if isinstance(leaf, dict):
            yield place_of(path), leaf, quantity_of(leaf, machine.sources)


def _settings(machine: Machine) -> Iterator[tuple[str, Json]]:
    for path, leaf in _leaves(machine):
        if not isinstance(leaf, dict):
            yield place_of(path), leaf


def _leaves(machine: Machine) -> Iterator[tuple[tuple[str, ...], Json]]:
    for key in models_of(machine):
        yield from _below((key,), machine.document[key])


def _below(path: tuple[str, ...], value: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    if isinstance(value, dict) and "value" not in value:
        for key, inner in value.items():
            yield from _below((*path, key), inner)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for index, inner in enumerate(value):
            yield from _below((*path, str(index)), inner)
    else:
        yield path, value


def _json(content: Mapping[str, Any]) -> str:
    return json_text({"schema_version": SCHEMA_VERSION, **content}, ascii_only=False)


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
