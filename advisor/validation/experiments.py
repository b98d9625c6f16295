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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

from advisor.analysis.lower import Unpriced
from advisor.ir.kernel import Kernel, Transform, at_sizes
from advisor.ranking.compare import cost
from advisor.ranking.worth import as_one_process
from advisor.report.style import Style, json_text, labelled, table
from advisor.transform_registry import transforms
from advisor.verify.cases import case_of
from advisor.verify.running import Effort, measure
from costdb.calibration.section import typical
from costdb.choosing import SubjectError
from costdb.documents import load_description
from costdb.evaluate import Estimate, Missing, Seconds, evaluate_price
from costdb.launch.processes import ONE_THREAD, CannotRunError, JobFailedError, answers
from costdb.machines import Machine
from costdb.phases.document import Node, read_content, record
from costdb.pricing import price_process
from costdb.records import dataclass, field, replace
from costdb.work import Leaf, RemoteGroup, Sequential

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
    because = [f"{one.operation}: {one.figure}: {one.remark}" for one in section.rows if one.remark]
    yield from labelled("because", because, style)
    yield from labelled("paper", _sources(section.rows), style)
    yield from labelled("note", section.notes, style)
    if section.skipped:
        yield from labelled("skipped", [section.skipped], style)
    yield ""


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


# --- cases ----------------------------------------------------------------------------------------
# The cases of an experiment, predicted and measured.


Sizes = Mapping[str, int]
_WORKER = "advisor.validation.worker"
_PATIENCE_S = 240.0
_ASIDE = 20
_EFFORT = Effort(launches=2, repetitions=9, seconds=0.2)


@dataclass(frozen=True, slots=True)
class Job:
    """Programs that do one thing in other ways, at the same sizes."""

    programs: tuple[str, ...]
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Times:
    """What one way took: what is typical of rounds, and every repetition, least first."""

    seconds: float
    taken_s: tuple[float, ...]

    @property
    def usual_s(self) -> tuple[float, float]:
        """Between these are nine in ten repetitions."""
        aside = len(self.taken_s) // _ASIDE
        return self.taken_s[aside], self.taken_s[-1 - aside]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case at some sizes: of each way what was predicted, and what it took."""

    case: Case
    sizes: Sizes
    predicted: tuple[Estimate, ...]
    measured: tuple[Times, ...]

    @property
    def mids_s(self) -> tuple[float, ...]:
        """What each way is predicted to take."""
        return tuple(one.mid for one in self.predicted)

    @property
    def taken_s(self) -> tuple[float, ...]:
        """What each way took."""
        return tuple(one.seconds for one in self.measured)


def outcomes(
    experiment: Experiment,
    machine: Machine,
    progress: Callable[[float], object],
    skip: Callable[[str], None],
) -> Iterator[Outcome]:
    """Yield what becomes of all cases; `skip` is told why those on some ranks have nothing."""
    for ranks in dict.fromkeys(case.ranks for case in experiment.cases):
        cases = [case for case in experiment.cases if case.ranks == ranks]
        try:
            yield from list(_on_ranks(experiment, cases, ranks, machine, progress))
        except (CannotValidateError, SubjectError) as problem:
            skip(str(problem))


def _on_ranks(
    experiment: Experiment,
    cases: Sequence[Case],
    ranks: int,
    machine: Machine,
    progress: Callable[[float], object],
) -> Iterator[Outcome]:
    each = [(case, sizes) for case in cases for sizes in case.points]
    prices = [[_price(case, way, sizes, machine) for way in case.ways] for case, sizes in each]
    if all(way.program for case in cases for way in case.ways):
        jobs = [Job(_programs(case), sizes) for case, sizes in each]
        found = run_in_rounds(jobs, ranks, experiment.seconds, experiment.rounds, progress)
    else:
        found = []
        for case, sizes in each:
            found.append(_rewritten(case, sizes, machine))
            progress(len(found) / len(each))
    for (case, sizes), predicted, times in zip(each, prices, found, strict=True):
        private = iter(times[len(case.ways) :])
        for number, way in enumerate(case.ways):
            if way.private:
                predicted[number] = _with(predicted[number], next(private))
        yield Outcome(case, sizes, tuple(predicted), times[: len(case.ways)])


def _programs(case: Case) -> tuple[str, ...]:
    private = (way.private for way in case.ways if way.private)
    return (*(way.program for way in case.ways), *private)


def _with(price: Estimate, own: Times) -> Estimate:
    low, high = own.usual_s
    return replace(
        price,
        low=Seconds(price.low + low),
        mid=Seconds(price.mid + own.seconds),
        high=Seconds(price.high + high),
    )


def _price(case: Case, way: Way, sizes: Sizes, machine: Machine) -> Estimate:
    if way.references:
        found = price_process(Sequential(tuple(map(Leaf, way.references))), machine)
    elif case.subject.endswith(".toml"):
        subject = load_description(examples_folder() / case.subject).on(machine)
        found = subject.price(subject.bind({**way.choose, **sizes}).words)
    else:
        kernel = kernel_of(case, way)
        try:
            costed = cost(
                at_sizes(kernel if way.program else as_one_process(kernel), sizes), machine
            )
        except Unpriced as unpriced:
            raise CannotValidateError(f"{case.subject}: {unpriced.reason}") from unpriced
        found = costed if isinstance(costed, Missing) else costed.priced
    if isinstance(found, Missing):
        raise CannotValidateError(f"{case.operation}: {found.what}; {found.remedy}")
    return evaluate_price(found, sizes)


def kernel_of(case: Case, way: Way) -> Kernel:
    """Return the kernel of a way: of the example with other annotations, or as a rule rewrites it.

    Raises
    ------
    CannotValidateError
        The example is not the one that the changes were made for.
    """
    kernel = _kernel(case.subject, way.changes)
    if not way.rewritten:
        return kernel
    for proposal in (one for rule in _rules(case) for one in rule.propose(kernel)):
        return proposal.variant
    raise CannotValidateError(f"{case.subject}: {case.rule} proposes nothing")


@cache
def _kernel(subject: str, changes: tuple[tuple[str, str], ...]) -> Kernel:
    from advisor.frontend.kernels import read_kernels

    file, _, name = subject.partition(":")
    path = examples_folder() / file
    source = path.read_text("utf-8")
    for old, new in changes:
        if old not in source:
            raise CannotValidateError(f"{path}: expected {old!r} in it: another version?")
        source = source.replace(old, new)
    for kernel in read_kernels(str(path), source):
        if kernel.name == name:
            return kernel
    raise CannotValidateError(f"{path}: has no kernel {name}")


def _rules(case: Case) -> list[Transform]:
    return [rule for rule in transforms() if rule.code == case.rule]


def _rewritten(case: Case, sizes: Sizes, machine: Machine) -> tuple[Times, ...]:
    """Run a kernel and what its rule makes of it, on this process's one thread."""
    path = examples_folder() / case.subject.partition(":")[0]
    kernel, source = kernel_of(case, case.ways[0]), path.read_text("utf-8")
    run = case_of(str(path), source, kernel, sizes, machine, _rules(case))
    # a rule may propose more, of which nothing is said here
    taken = measure(replace(run, variants=run.variants[: len(case.ways)]), _EFFORT)
    failed = [one.failure for one in taken if one.failure]
    if failed or len(taken) < len(case.ways):
        raise CannotValidateError(f"{case.operation}: {(failed or ['no rewrite is proposed'])[0]}")
    return tuple(Times(one.seconds, one.times_s) for one in taken)


# Processes that run programs of the examples, and what they measured.


def examples_folder() -> Path:
    """Return where the examples are: in the installed package, or beside its source.

    Raises
    ------
    CannotValidateError
        They are in neither place.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "studies").is_dir():
            return folder
    raise CannotValidateError(
        f"the examples are missing: neither {package / 'examples'} nor "
        f"{package.parent / 'examples'} has them; install a wheel of kernel-advisor"
    )


def run_in_rounds(
    jobs: Sequence[Job],
    ranks: int,
    seconds: float,
    rounds: int,
    progress: Callable[[float], object],
) -> list[tuple[Times, ...]]:
    """Run jobs one after another, and all of them again; return the times of each one's programs.

    What the host does for a while then falls on all alike, and on none of them alone.

    Parameters
    ----------
    seconds : float
        For each job, all rounds together.
    progress : callable
        Takes the share that is done, above 0 to 1.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    every = []
    for times in run_jobs([*jobs] * rounds, ranks, seconds / rounds):
        every.append(times)
        progress(len(every) / (rounds * len(jobs)))
    return [
        tuple(_all_rounds(of_one) for of_one in zip(*every[number :: len(jobs)], strict=True))
        for number in range(len(jobs))
    ]


def _all_rounds(rounds: Sequence[Times]) -> Times:
    return Times(
        typical([one.seconds] for one in rounds),
        tuple(sorted(taken for one in rounds for taken in one.taken_s)),
    )


def run_jobs(jobs: Sequence[Job], ranks: int, seconds: float) -> Iterator[tuple[Times, ...]]:
    """Run jobs on ranks; yield the times of each one's programs as they come.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    stated = {
        "examples": str(examples_folder()),
        "ranks": ranks,
        "seconds": seconds,
        "jobs": [{"programs": job.programs, "sizes": dict(job.sizes)} for job in jobs],
    }
    mpi, done = ranks if ranks > 1 else 0, 0
    try:
        for found in answers(_WORKER, stated, _PATIENCE_S, mpi, ONE_THREAD):
            done += 1
            yield tuple(Times(median(taken), tuple(sorted(taken))) for taken in found)
    except CannotRunError as error:
        raise CannotValidateError(str(error)) from error
    except JobFailedError as error:
        # the last one may fail on its way out, with nothing left to do
        if done < len(jobs):
            raise CannotValidateError(
                f"the ranks ended after {done} of {len(jobs)} jobs: {error}"
            ) from error
