"""Runs what is verified in processes of its own, in turn, and compares results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from advisor.between_sizes import Times
from advisor.verify.cases import Case, ProgramCase
from costdb.launch.processes import ONE_THREAD, JobFailedError, answers
from costdb.records import dataclass
from costdb.repetition import typical

_TOLERANCE = 1e-6
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to run: launches of each variant, repetitions and seconds in each."""

    launches: int = 5
    repetitions: int = 7
    seconds: float = 0.7


@dataclass(frozen=True, slots=True)
class Measured:
    """What a variant took, and whether its results are those of the kernel as written.

    Attributes
    ----------
    seconds, low_s, high_s : float
        What is typical of launches; fastest and slowest sample.
    equal : bool
    failure : str
        Why it did not run; empty where it did.
    """

    seconds: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    equal: bool = False
    failure: str = ""

    @property
    def times_s(self) -> tuple[float, float, float]:
        """The fastest sample, what is typical, the slowest."""
        return self.low_s, self.seconds, self.high_s

    @staticmethod
    def of(launches: Sequence[Sequence[float]], equal: bool) -> Measured:
        """Return what the samples of launches say."""
        every = [sample for launch in launches for sample in launch]
        return Measured(typical(launches), min(every), max(every), equal)


@dataclass(frozen=True, slots=True)
class Turns:
    """A program and one rewrite of it, run in turn in the same launches.

    Attributes
    ----------
    before, after : Measured
        Wall-clock time of the slowest rank; `after.equal` says whether results agree.
    compared : bool
        Whether there was anything to compare.
    """

    before: Measured
    after: Measured
    compared: bool

    @property
    def times_s(self) -> tuple[Times, Times]:
        """What both sides took."""
        return self.before.times_s, self.after.times_s


def measure(case: Case, effort: Effort) -> list[Measured]:
    """Run every variant of a kernel, taking turns, so that drift falls on all alike."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        jobs = []
        for number, variant in enumerate(case.variants):
            file = folder / f"variant{number}.py"
            file.write_text(variant.source, "utf-8")
            jobs.append(
                {
                    "file": str(file),
                    "folder": str(Path(case.path).resolve().parent),
                    "kernel": case.kernel,
                    "sizes": dict(case.sizes),
                    "arrays": [asdict(one) for one in case.arrays],
                    "repetitions": effort.repetitions,
                    "seconds": effort.seconds,
                    "results": str(folder / f"results{number}.npz"),
                }
            )
        samples: list[list[list[float]]] = [[] for _ in jobs]
        failures = [""] * len(jobs)
        for _ in range(effort.launches):
            for number, job in enumerate(jobs):
                if not failures[number]:
                    try:
                        samples[number] += answers(
                            "advisor.verify.worker", job, _PATIENCE_S, more=ONE_THREAD
                        )
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


def _equal(one: Path, other: Path, exact: bool) -> bool:
    import numpy as np

    with np.load(one) as left, np.load(other) as right:
        if left.files != right.files:
            return False
        pairs = [(left[name], right[name]) for name in left.files]
    if exact:
        return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)
    return all(
        a.shape == b.shape and np.allclose(a, b, _TOLERANCE, _TOLERANCE, equal_nan=True)
        for a, b in pairs
    )


def measure_program(case: ProgramCase, effort: Effort) -> tuple[Turns, ...]:
    """Run a program with each of its rewrites, and with itself where it has none.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    pairs = [(one.source, one.exact) for one in case.rewrites] or [(case.source, True)]
    return tuple(_turns(case, source, exact, effort) for source, exact in pairs)


def _turns(case: ProgramCase, after: str, exact: bool, effort: Effort) -> Turns:
    found: list[dict[str, Any]] = []
    with TemporaryDirectory() as name:
        files = []
        for which, text in (("before", case.source), ("after", after)):
            file = Path(name, which, Path(case.path).name)
            file.parent.mkdir()
            file.write_text(text, "utf-8")
            files.append(str(file))
        job = {
            "files": files,
            "folder": str(Path(case.path).resolve().parent),
            "exact": exact,
            "repetitions": effort.repetitions,
            "seconds": effort.seconds,
        }
        for _ in range(effort.launches):
            try:
                found += answers("advisor.verify.worker", job, _PATIENCE_S, case.ranks, ONE_THREAD)
            except JobFailedError as error:
                failed = Measured(failure=str(error))
                return Turns(failed, failed, False)
    equal, compared = (all(one[what] for one in found) for what in ("equal", "compared"))
    before, then = (
        Measured.of([one["samples_s"][side] for one in found], equal) for side in (0, 1)
    )
    return Turns(before, then, compared)
