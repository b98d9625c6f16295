"""Experiments as JSON documents: what is predicted, what is run, what is published of it.

Those of the studies come with the package, in the folder ``experiments`` beside this module. A
document says for each of its cases at which sizes to do what in which ways. A way is predicted as a
kernel of the examples with its annotations changed, as a description, or as groups of remote
references; it is measured as a program of the examples, or where it has none by running the kernel
and its rule's rewrite of it. Figures hold both beside each other and beside what is published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

from advisor.report.style import Style, json_text, labelled, table
from costdb.choosing import SubjectError
from costdb.phases.document import Node, read_content, record
from costdb.records import dataclass, field
from costdb.work import RemoteGroup

# What a validation says: published figures, figures of this machine, and verdicts.
#
# As text for people, and as the document that ``validation.schema.json`` of the reports describes.


SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """Whether what a paper claims is so here."""

    HOLDS = "holds"
    MISSES = "misses"
    UNJUDGED = "unjudged"

    @staticmethod
    def of(holds: bool) -> Verdict:
        """Return the verdict on a claim."""
        return Verdict.HOLDS if holds else Verdict.MISSES


_SHOWN = {Verdict.HOLDS: "holds", Verdict.MISSES: "MISSES", Verdict.UNJUDGED: "-"}


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
    here : str
        The same of this machine, as text.
    verdict : Verdict
    values : mapping of str to float
        The numbers behind `here`, units in the names.
    remark : str
        Why it misses, where that is known, or what else must be said.
    """

    model: str
    operation: str
    figure: str
    paper: str
    source: str
    here: str
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
            (row.operation, row.figure, row.paper or "-", row.here, _SHOWN[row.verdict])
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
    return json_text(document)


def section_document(section: Section) -> dict[str, Any]:
    """Return a section as JSON values."""
    document = asdict(section)
    document["others_busy_cores"] = document.pop("busy_cores")
    for row in document["rows"]:
        finite = {name: math.isfinite(value) for name, value in row["values"].items()}
        row["values"] = {name: row["values"][name] if finite[name] else None for name in finite}
    return document


SECTIONS: Final = ("lines", "smp", "sorts", "crossover", "pgas", "choices")
"""The documents that come with the package, in the order of a report."""

Kind = Literal["order", "error", "within", "inside", "threshold"]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do a case.

    Attributes
    ----------
    name : str
    changes : tuple of (str, str)
        What stands in the kernel's text, and what takes its place.
    rewritten : bool
        Whether the case's rule rewrites the kernel.
    choose : mapping of str to str
        The description's words.
    references : tuple of RemoteGroup
    program, private : str
        What runs on the ranks, ``FILE:FUNCTION`` of the examples; of it the part that no model
        prices, whose measured time is added to the prediction.
    """

    name: str
    changes: tuple[tuple[str, ...], ...] = ()
    rewritten: bool = False
    choose: Mapping[str, str] = field(default_factory=dict)
    references: tuple[RemoteGroup, ...] = ()
    program: str = ""
    private: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """How predictions and measurements of a case are judged.

    Attributes
    ----------
    kind : Kind
    paper : str
        What is published, as text.
    at_most : float
        The error that holds, as a share.
    over : str
        The size that a threshold is of.
    """

    kind: Kind
    paper: str = ""
    at_most: float = 0.0
    over: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is done at several sizes: a kernel or a description, and ways to do it.

    Attributes
    ----------
    sizes : mapping of str to tuple of int
        Each with each of the others.
    subject : str
        ``FILE:KERNEL`` or a description, of the examples; empty where ways have references.
    rule : str
        The code of the rule that rewrites the kernel.
    """

    operation: str
    sizes: Mapping[str, tuple[int, ...]]
    ways: tuple[Way, ...]
    figures: tuple[Figure, ...]
    subject: str = ""
    rule: str = ""
    ranks: int = 1

    @property
    def points(self) -> tuple[Mapping[str, int], ...]:
        """The sizes at which it is done."""
        each = product(*self.sizes.values())
        return tuple(dict(zip(self.sizes, chosen, strict=True)) for chosen in each)

    def at(self, sizes: Mapping[str, int]) -> str:
        """Return what is done at some of the sizes, by those of them that differ."""
        differ = [name for name in sizes if len(self.sizes[name]) > 1]
        return ", ".join([self.operation, *(f"{name} = {sizes[name]}" for name in differ)])


@dataclass(frozen=True, slots=True)
class Samples:
    """Which sections of a calibration are fitted anew, and by what their models are judged.

    Attributes
    ----------
    at_most : float
        The mean error that holds; 0 where nothing is claimed.
    """

    sections: tuple[str, ...]
    paper: str = ""
    at_most: float = 0.0


@dataclass(frozen=True, slots=True)
class Experiment:
    """A document.

    Attributes
    ----------
    model, source : str
        Whose figures they are, and where they are published.
    cores : int
        Without so many it is not done.
    rounds : int
        How often all cases are measured, one after another, in `seconds` each.
    """

    name: str
    title: str
    model: str
    source: str
    notes: tuple[str, ...]
    cores: int = 1
    rounds: int = 1
    seconds: float = 0.4
    cases: tuple[Case, ...] = ()
    samples: Samples | None = None


def load_experiment(name: str) -> Experiment:
    """Return an experiment by its name, or by the path of its document.

    Raises
    ------
    CannotValidateError
        There is none, or it says something that cannot be used: one line with the place.
    """
    path = name
    if name in SECTIONS:
        path = str(files("advisor") / "validation" / "experiments" / f"{name}.json")
    try:
        top = Node(json.loads(read_content(path)), "", path)
        found: Experiment = record(Experiment, top, name=Path(path).stem)
        return found
    except SubjectError as error:
        raise CannotValidateError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise CannotValidateError(f"{path}: not JSON: {error}") from error
