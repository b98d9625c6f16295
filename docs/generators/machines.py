"""One page for each built-in machine: its numbers, where they come from, and what is missing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from costdb.estimate import Missing
from costdb.expr import num
from costdb.machines import Json, Machine, built_in_names, load_machine
from costdb.pricing import price_work
from costdb.quantity import Provenance
from costdb.work import (
    Access,
    Barrier,
    Collective,
    CollectiveKind,
    Message,
    Pattern,
    PrefixScan,
    Region,
    RemoteGroup,
    Statement,
    Superstep,
    Work,
)
from generators.markdown import code, number, plain, table, to_pages

_HEAD = frozenset(("schema_version", "name", "title", "library", "date", "sources", "notes"))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A quantity of a profile as its document states it.

    Attributes
    ----------
    path : tuple of str
        Keys from the top of the document.
    stated : mapping
        Its fields.
    """

    path: tuple[str, ...]
    stated: Mapping[str, Json]

    @property
    def name(self) -> str:
        """The path without the section."""
        return ".".join(self.path[1:])


def pages(root: Path) -> dict[str, str]:
    """Return a page for each built-in machine, and the index."""
    machines = [load_machine(name) for name in built_in_names()]
    models = {path.stem for path in (root / "docs" / "models").glob("*.md")}
    found = {f"machines/{machine.name}.md": _page(machine, models) for machine in machines}
    return {"machines/index.md": _index(machines), **found}


def quantities(machine: Machine) -> list[Leaf]:
    """Return every quantity of a profile, in the order of its document."""
    return [Leaf(path, found) for path, found in _leaves(machine) if isinstance(found, dict)]


def _leaves(machine: Machine) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield quantities, and whatever else is neither an object nor part of the head."""

    def below(path: tuple[str, ...], found: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
        if isinstance(found, dict) and "value" not in found:
            for key, inner in found.items():
                yield from below((*path, key), inner)
        elif isinstance(found, list) and any(isinstance(item, dict) for item in found):
            for place, item in enumerate(found, 1):
                yield from below((*path, str(place)), item)
        else:
            yield path, found

    for key, section in machine.document.items():
        if key not in _HEAD:
            yield from below((key,), section)


def _index(machines: list[Machine]) -> str:
    rows = []
    for machine in machines:
        sections = [key for key in machine.document if key not in _HEAD and key != "hardware"]
        rows.append(
            [
                f"[{machine.name}]({machine.name}.md)",
                plain(machine.title),
                ", ".join(sections),
                *_counts(quantities(machine)),
            ]
        )
    headings = ("Name", "Machine", "Models", *(provenance.value for provenance in Provenance))
    return (
        "# Machines\n\n"
        "The machines whose numbers come with `advise`; `--machine` takes the name. The last "
        "columns count numbers by how they are known.\n\n"
        + table(headings, rows)
        + "\nEvery number has a value, an interval that it is believed to lie in, a unit, and an "
        "origin:\n\n"
        "- **measured** on the machine by this project's calibration, or by a stated measurement;\n"
        "- **published** in a source that others can read;\n"
        "- **derived** from such numbers by a rule that is given;\n"
        "- **estimated**: everything else. A number that was chosen so that a model gives a "
        "published result says which result, under *chosen to give*: agreement with that "
        "result is no evidence for the model.\n\n"
        "How to add one is told under [Contributing](../contributing.md#add-a-machine).\n"
    )


def _counts(leaves: list[Leaf]) -> list[str]:
    count = Counter(str(leaf.stated["provenance"]) for leaf in leaves)
    return [str(count[provenance.value] or "") for provenance in Provenance]


def _page(machine: Machine, models: set[str]) -> str:
    leaves = list(_leaves(machine))
    parts = [
        "---\nhide: [toc]\n---\n",  # tables need the room
        f"# {machine.name}\n",
        f"{plain(machine.title)}. Communication library: {plain(machine.library)}.\n",
    ]
    if isinstance(date := machine.document.get("date"), str):
        parts.append(f"The numbers held in {date}.\n")
    summary = Counter(str(leaf.stated["provenance"]) for leaf in quantities(machine))
    told = ", ".join(f"{summary[p.value]} {p.value}" for p in Provenance if summary[p.value])
    parts.append(f"{sum(summary.values())} numbers: {told}.\n")
    if machine.notes:
        parts.append("\n".join(f"- {to_pages(plain(note), 1)}" for note in machine.notes) + "\n")
    for section in dict.fromkeys(path[0] for path, _ in leaves):
        parts.append(f"## {section.capitalize()}\n")
        if section in models:
            parts.append(f"For the [{section} model](../models/{section}.md).\n")
        within = [(path, found) for path, found in leaves if path[0] == section]
        parts.append(_numbers([Leaf(p, f) for p, f in within if isinstance(f, dict)]))
        others = [(path, found) for path, found in within if not isinstance(found, dict)]
        if others:
            parts.append("Also stated:\n")
            parts.append(table(("Entry", "Value"), map(_entry, others)))
    parts.append(_not_known(machine))
    parts.append("## Sources\n")
    parts.append(
        "\n".join(
            f"- **{plain(key)}**{{#source-{key}}}: {to_pages(plain(text), 1)}"
            for key, text in machine.sources.items()
        )
        + "\n"
    )
    return "\n".join(parts)


def _entry(found: tuple[tuple[str, ...], Json]) -> list[str]:
    path, value = found
    return [code(".".join(path[1:])), code(json.dumps(value, ensure_ascii=False))]


def _numbers(leaves: list[Leaf]) -> str:
    # A profile of two hundred plain numbers should not have an empty column.
    remarks = any("note" in leaf.stated or "fitted_to" in leaf.stated for leaf in leaves)
    headings = ["Number", "Value", "Interval", "Unit", "Known", "Source"]
    return table(
        [*headings, "Remarks"] if remarks else headings,
        ([*row(leaf), _remarks(leaf)] if remarks else row(leaf) for leaf in leaves),
    )


def row(leaf: Leaf) -> list[str]:
    """Return the cells that every quantity has."""
    stated = leaf.stated
    value = stated["value"]
    low, high = stated.get("low", value), stated.get("high", value)
    exact = low == value == high
    source = str(stated["source"])
    return [
        code(leaf.name),
        number(value),
        "" if exact else f"{number(low)}&nbsp;to&nbsp;{number(high)}",
        plain(str(stated["unit"])),
        str(stated["provenance"]),
        f"[{plain(source)}](#source-{source})",
    ]


def _remarks(leaf: Leaf) -> str:
    said = [plain(str(leaf.stated["note"]))] if "note" in leaf.stated else []
    if "fitted_to" in leaf.stated:
        said.append(f"*chosen to give* {plain(str(leaf.stated['fitted_to']))}")
    return "; ".join(said)


def _not_known(machine: Machine) -> str:
    lacking: dict[tuple[str, str], list[str]] = {}
    for what, work in _EVERY_WORK:
        price = price_work(work, machine)
        if isinstance(price, Missing):
            lacking.setdefault((price.what, price.remedy), []).append(what)
    if not lacking:
        return "## What is not known\n\nEvery kind of work has a price on this machine.\n"
    rows = [[", ".join(works), plain(what), plain(how)] for (what, how), works in lacking.items()]
    return (
        "## What is not known\n\nWork of these kinds has no price on this machine, and `advise` "
        "says so instead of guessing:\n\n" + table(("Work", "Because", "Remedy"), rows)
    )


_ONE = num(1)
_REGION = Region(8, (num(1000),), (num(8),))
_STATEMENT = Statement((Access(_REGION),), num(1000))
_EVERY_WORK: tuple[tuple[str, Work], ...] = (
    ("messages", Message(_REGION)),
    ("array statements", _STATEMENT),
    ("prefix scans", PrefixScan(num(4), _REGION, _REGION)),
    *((kind.value, Collective(kind, num(4), _REGION)) for kind in CollectiveKind),
    ("supersteps", Superstep(num(8), num(10000), num(10000), num(80000))),
    *(
        (
            f"{pattern.value} {'writes' if store else 'reads'}",
            RemoteGroup(_ONE, num(2), pattern, store),
        )
        for pattern in Pattern
        for store in (False, True)
    ),
    ("barriers", Barrier(num(4))),
)
