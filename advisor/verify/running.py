"""Runs what is verified in processes of its own, in turn, and compares results."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from advisor.build.program import NotBuiltError, build
from advisor.finding import Times
from advisor.ir.kernel import Kernel, Transform
from advisor.ranking.built import Plan, built_cost, on_ranks, plan_of, proposed
from advisor.ranking.compare import time_s
from advisor.verify.cases import (
    ORIGINAL,
    ArrayInput,
    Case,
    Variant,
    inputs_of,
)
from costdb.calibration.section import typical
from costdb.evaluate import evaluate_price
from costdb.launch.processes import ONE_THREAD, JobFailedError, answers
from costdb.machines import Machine
from costdb.records import dataclass, replace
from costdb.store.database import writing
from costdb.store.evidence import Evidence, add_evidence

_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to run: launches of each variant, repetitions and seconds in each."""

    launches: int = 5
    repetitions: int = 7
    seconds: float = 0.7


@dataclass(frozen=True, slots=True)
class Measured:
    """What a variant took, and whether its results are those of what is as written.

    Attributes
    ----------
    seconds, low_s, high_s : float
        What is typical of launches; fastest and slowest sample. Of ranks the slowest one's wall
        clock.
    equal : bool or None
        None where there was nothing to compare.
    failure : str
        Why it did not run; empty where it did.
    beside : Measured or None
        What a program as written took, where a rewrite of it ran in turn with it.
    """

    seconds: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    equal: bool | None = False
    failure: str = ""
    beside: Measured | None = None

    @property
    def times_s(self) -> Times:
        """The fastest sample, what is typical, the slowest."""
        return self.low_s, self.seconds, self.high_s

    @staticmethod
    def of(launches: Sequence[Sequence[float]], equal: bool | None) -> Measured:
        """Return what the samples of launches say."""
        every = [sample for launch in launches for sample in launch]
        return Measured(typical(launches), min(every), max(every), equal)


def measure(case: Case, effort: Effort) -> list[Measured]:
    """Run every variant, taking turns, so that drift falls on all alike.

    Raises
    ------
    CannotRunError
        There are to be ranks, and mpi4py or a launcher is missing.
    """
    if not case.kernel:
        return _measure_program(case, effort)
    return _measure_kernel(case, effort) if case.ranks == 1 else _measure_built(case, effort)


def _measure_kernel(case: Case, effort: Effort) -> list[Measured]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        jobs = []
        for number, variant in enumerate(case.variants):
            file = folder / f"variant{number}.py"
            file.write_text(variant.source, "utf-8")
            jobs.append(
                {
                    **_how(case.path, effort),
                    "file": str(file),
                    "kernel": case.kernel,
                    "sizes": dict(case.sizes),
                    "arrays": [asdict(one) for one in case.arrays],
                    "results": str(folder / f"results{number}.npz"),
                }
            )
        samples: list[list[list[float]]] = [[] for _ in jobs]
        failures = [""] * len(jobs)
        for _ in range(effort.launches):
            for number, job in enumerate(jobs):
                if not failures[number]:
                    try:
                        samples[number] += _run(job)
                    except JobFailedError as error:
                        failures[number] = str(error)
        found = []
        for number, variant in enumerate(case.variants):
            failure = failures[number] or failures[0]
            if failure:
                found.append(Measured(failure=failure))
                continue
            equal = _equal(folder / "results0.npz", folder / f"results{number}.npz", variant.exact)
            found.append(Measured.of(samples[number], equal))
        return found


def _how(path: str, effort: Effort) -> dict[str, Any]:
    """Return what every job says: beside which file it runs, how often, and for how long."""
    return {
        "folder": str(Path(path).resolve().parent),
        "repetitions": effort.repetitions,
        "seconds": effort.seconds,
    }


def _run(job: Mapping[str, Any], ranks: int = 0) -> Iterator[Any]:
    return answers("advisor.verify.worker", job, _PATIENCE_S, ranks, ONE_THREAD)


def _equal(one: Path, other: Path, exact: bool) -> bool:
    import numpy as np

    from advisor.verify.worker import alike

    with np.load(one) as left, np.load(other) as right:
        return alike({**left}, {**right}, exact=exact)


def _measure_program(case: Case, effort: Effort) -> list[Measured]:
    """Run a program with each of its rewrites, and with itself where it has none."""
    found = [_in_turn(case, one, effort) for one in case.rewrites or case.variants]
    written = found[0].beside
    assert written is not None
    return [written, *found] if case.rewrites else found


def _in_turn(case: Case, after: Variant, effort: Effort) -> Measured:
    found: list[dict[str, Any]] = []
    with TemporaryDirectory() as name:
        files = []
        for which, text in (("before", case.variants[0].source), ("after", after.source)):
            file = Path(name, which, Path(case.path).name)
            file.parent.mkdir()
            file.write_text(text, "utf-8")
            files.append(str(file))
        job = {**_how(case.path, effort), "files": files, "exact": after.exact}
        for _ in range(effort.launches):
            try:
                found += _run(job, case.ranks)
            except JobFailedError as error:
                failed = Measured(failure=str(error))
                return replace(failed, beside=failed)
    compared = all(one["compared"] for one in found)
    equal = all(one["equal"] for one in found) if compared else None
    before, then = (
        Measured.of([one["samples_s"][side] for one in found], equal) for side in (0, 1)
    )
    return replace(then, beside=before)


# Builds kernels and their plans for ranks, runs them, and says what came of it.


_ONCE = Effort(repetitions=0, seconds=1.0)
_MOST_PLANS = 6
"""Plans of a kernel that are run: those that are predicted to be fastest."""


@dataclass(frozen=True, slots=True)
class BuiltCase:
    """A kernel as written, and programs that were built of it.

    Attributes
    ----------
    source, kernel : str
        The file that is held against, and which function of it.
    programs : tuple of str
    arrays : tuple of ArrayInput
    sizes : mapping of str to number
    """

    source: str
    kernel: str
    programs: tuple[str, ...]
    arrays: tuple[ArrayInput, ...]
    sizes: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a built program.

    Attributes
    ----------
    differs : str
        What of its results is not as the kernel has it; empty where all is.
    samples_s : tuple of float
        What its slowest rank took, each time.
    """

    differs: str
    samples_s: tuple[float, ...]


def run_built(
    path: str, cases: Sequence[BuiltCase], ranks: int, effort: Effort = _ONCE
) -> Iterator[tuple[Ran, ...]]:
    """Yield of each case what came of its programs, as many as there are.

    Parameters
    ----------
    path : str
        Beside this file lies what the kernels import.
    cases : sequence of BuiltCase
    ranks : int
    effort : Effort
        Of one launch.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    JobFailedError
        A program failed; cases before that were yielded.
    """
    for found in _run({**_how(path, effort), "cases": list(map(asdict, cases))}, ranks):
        yield tuple(Ran(one["differs"], tuple(one["samples_s"])) for one in found)


def distributed_case(
    path: str,
    source: str,
    kernel: Kernel,
    sizes: Mapping[str, int | float],
    machine: Machine,
    transforms: Sequence[Transform],
    ranks: int,
) -> Case:
    """Return a kernel on ranks, as written and as rules would have it, each as a built program.

    Plans that cannot be built are left out.

    Raises
    ------
    NotBuiltError
        The kernel as written cannot be built.
    """
    here = {**sizes, "P": ranks}
    price = partial(built_cost, machine=machine, sizes=here)
    written = plan_of(on_ranks(kernel, ranks), price)
    variants = [_variant(path, written, here)]
    plans = proposed(written, price, transforms)
    for plan in sorted(plans, key=lambda one: _time(one, here)):
        try:
            made = _variant(path, plan, here)
        except NotBuiltError:
            continue
        if len(variants) <= _MOST_PLANS and all(made.source != one.source for one in variants):
            variants.append(made)
    inputs = tuple(inputs_of(kernel, here))
    return Case(path, kernel.name, here, inputs, tuple(variants), ranks, source)


def _time(plan: Plan, sizes: Mapping[str, int | float]) -> float:
    return float("inf") if plan.costed is None else time_s(plan.costed, sizes)


def _variant(path: str, plan: Plan, sizes: Mapping[str, int | float]) -> Variant:
    code, title = plan.steps[-1] if plan.steps else ("", ORIGINAL)
    predicted = None if plan.costed is None else evaluate_price(plan.costed.priced, sizes)
    text = build(path, [plan.kernel], sizes)
    return Variant(code, title, text, False, plan.costed, predicted, plan.unknown)


def _measure_built(case: Case, effort: Effort) -> list[Measured]:
    texts = tuple(one.source for one in case.variants)
    name = case.kernel.rpartition(".")[2]
    given = BuiltCase(case.source, name, texts, case.arrays, case.sizes)
    launches: list[tuple[Ran, ...]] = []
    try:
        for _ in range(effort.launches):
            launches += run_built(case.path, [given], case.ranks, effort)
    except JobFailedError as error:
        return [Measured(failure=str(error)) for _ in texts]
    return [
        Measured.of([one.samples_s for one in runs], not any(one.differs for one in runs))
        for runs in zip(*launches, strict=True)
    ]


# What was measured of two ways to do one thing, stored as evidence for later findings.


def keep(machine: Machine, ranks: int, found: Iterable[Evidence], clock: str = "") -> None:
    """Store comparisons with the circumstances of this process, if it runs on that machine.

    `clock` says how times were taken, where that is not by running what is compared.
    """
    if not machine.may_be_here:
        return
    library, usual = (
        ("numpy", "process time, one thread") if ranks == 1 else ("mpi4py", "slowest rank, wall")
    )
    circumstances = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "library": f"{library} {version(library)}",
        "python": platform.python_version(),
        "ranks": str(ranks),
        "clock": clock or usual,
    }
    with writing() as connection:
        for one in found:
            said = {**circumstances, **one.circumstances}
            said = {name: text for name, text in said.items() if text}
            add_evidence(connection, replace(one, machine=machine.name, circumstances=said))
