"""Runs the variants of a kernel in processes of their own, in turn, and compares their results."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from advisor.verify.cases import Case, Variant
from costdb.launch.space import command
from costdb.typical import typical

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
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
    pages : float
        What a call gets anew from the system: the median of its page faults.
    """

    seconds: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    equal: bool = False
    failure: str = ""
    pages: float = 0.0

    @property
    def times_s(self) -> tuple[float, float, float]:
        """The fastest sample, what is typical, the slowest."""
        return self.low_s, self.seconds, self.high_s


@dataclass(frozen=True, slots=True)
class _Launch:
    samples_s: list[float]
    pages: float


def measure(case: Case, effort: Effort) -> list[Measured]:
    """Run every variant of a case, taking turns, so that drift falls on all alike."""
    with TemporaryDirectory() as folder:
        samples: list[list[_Launch]] = [[] for _ in case.variants]
        failures = [""] * len(case.variants)
        for _ in range(effort.launches):
            for number, variant in enumerate(case.variants):
                if failures[number]:
                    continue
                taken = _launch(case, variant, number, Path(folder), effort)
                if isinstance(taken, str):
                    failures[number] = taken
                else:
                    samples[number].append(taken)
        return [
            _judged(Path(folder), number, variant, samples[number], failures)
            for number, variant in enumerate(case.variants)
        ]


def _launch(
    case: Case, variant: Variant, number: int, folder: Path, effort: Effort
) -> _Launch | str:
    file, job = folder / f"variant{number}.py", folder / f"job{number}.json"
    output = folder / f"output{number}.json"
    file.write_text(variant.source, "utf-8")
    stated = {
        "file": str(file),
        "folder": str(Path(case.path).resolve().parent),
        "kernel": case.kernel,
        "sizes": dict(case.sizes),
        "arrays": [asdict(one) for one in case.arrays],
        "repetitions": effort.repetitions,
        "seconds": effort.seconds,
        "results": str(folder / f"results{number}.npz"),
        "output": str(output),
    }
    job.write_text(json.dumps(stated), "utf-8")
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    try:
        ended = subprocess.run(
            command("advisor.verify.worker", str(job)),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {_PATIENCE_S:g} s"
    if ended.returncode:
        said = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
        return said[-1] if said else f"ended with {ended.returncode}"
    found = json.loads(output.read_text("utf-8"))
    return _Launch([float(sample) for sample in found["samples_s"]], median(found["pages"]))


def _judged(
    folder: Path,
    number: int,
    variant: Variant,
    launches: Sequence[_Launch],
    failures: Sequence[str],
) -> Measured:
    if failures[number] or failures[0]:
        return Measured(failure=failures[number] or failures[0])
    every = [sample for launch in launches for sample in launch.samples_s]
    equal = _equal(folder / "results0.npz", folder / f"results{number}.npz", variant.exact)
    middle = typical(launch.samples_s for launch in launches)
    pages = median(launch.pages for launch in launches)
    return Measured(middle, min(every), max(every), equal, pages=pages)


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
