"""Starting ranks for a validation, and reading what they measured."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from typing import Any

from costdb.launch.space import command
from costdb.typical import typical
from costdb.validation.results import CannotValidateError

RANKS = 2
_SECONDS = 0.4
_ROUNDS = 5
_ASIDE = 20
_PATIENCE_S = 240.0
_LEAVE_S = 10.0
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_LAUNCHERS_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPIR_")


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to do, by names of programs that do it in other ways, at the same sizes."""

    ways: tuple[str, ...]
    sizes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Times:
    """What one way took: the median, the least and the greatest of its repetitions.

    Attributes
    ----------
    median_us, low_us, high_us : float
    counted, left_out : int
        Repetitions, and others in which another process had a core for a while.
    usual_us : tuple of float
        Between these were nine in ten repetitions of a round.
    """

    median_us: float
    low_us: float
    high_us: float
    counted: int = 1
    left_out: int = 0
    usual_us: tuple[float, float] = (0.0, math.inf)


def left_out(times: Iterable[Times]) -> tuple[str, ...]:
    """Return what is to be said of repetitions that do not count."""
    found = list(times)
    out = sum(one.left_out for one in found)
    if not out:
        return ()
    return (
        f"Left out are {out} of {out + sum(one.counted for one in found)} repetitions on ranks, "
        "in which another process had a core for a while.",
    )


def examples_folder() -> Path:
    """Return where the examples are: in the installed package, or beside its source.

    Raises
    ------
    CannotValidateError
        They are in neither place.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "mpi" / "box_sum.py").is_file():
            return folder
    raise CannotValidateError(
        f"the examples are missing: neither {package / 'examples'} nor "
        f"{package.parent / 'examples'} has them; install a wheel of kernel-advisor"
    )


def run_in_rounds(
    jobs: Sequence[Job], progress: Callable[[float], object], seconds: float = _SECONDS
) -> list[tuple[Times, ...]]:
    """Run jobs one after another, and all of them again; return the times of each one's ways.

    What the host does for a while then falls on all alike, and on none of them alone.

    Parameters
    ----------
    jobs : sequence of Job
    progress : callable
        Takes the share that is done, above 0 to 1.
    seconds : float
        For each job, all rounds together.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    every = []
    for times in run_jobs([*jobs] * _ROUNDS, seconds / _ROUNDS):
        every.append(times)
        progress(len(every) / (_ROUNDS * len(jobs)))
    return [
        tuple(_all_rounds(of_way) for of_way in zip(*every[number :: len(jobs)], strict=True))
        for number in range(len(jobs))
    ]


def _all_rounds(rounds: Sequence[Times]) -> Times:
    return Times(
        typical([one.median_us] for one in rounds),
        min(one.low_us for one in rounds),
        max(one.high_us for one in rounds),
        sum(one.counted for one in rounds),
        sum(one.left_out for one in rounds),
        (median(one.usual_us[0] for one in rounds), median(one.usual_us[1] for one in rounds)),
    )


def run_jobs(jobs: Sequence[Job], seconds: float = _SECONDS) -> Iterator[tuple[Times, ...]]:
    """Run jobs on `RANKS` ranks; yield the times of each one's ways as they come.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    launcher = _launcher()
    with TemporaryDirectory() as folder, TemporaryFile("w+", encoding="utf-8") as complaints:
        file = Path(folder, "jobs.json")
        stated: dict[str, Any] = {
            "examples": str(examples_folder()),
            "seconds": seconds,
            "jobs": [{"ways": job.ways, "sizes": job.sizes} for job in jobs],
        }
        file.write_text(json.dumps(stated), "utf-8")
        process = subprocess.Popen(
            [launcher, "-n", str(RANKS), *command("advisor.validation.worker", str(file))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            encoding="utf-8",
            env=_environment(),
            start_new_session=True,
        )
        timer = Timer(_PATIENCE_S, _end, (process,))
        timer.daemon = True
        timer.start()
        done = 0
        assert process.stdout is not None
        try:
            for line in process.stdout:
                done += 1
                said = json.loads(line)
                yield tuple(
                    _times(taken, out)
                    for taken, out in zip(said["microseconds"], said["left_out"], strict=True)
                )
            # the time of ranks that are killed on their way out would seem to be others'
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE_S)
        finally:
            timer.cancel()
            _end(process)
            process.wait()
            process.stdout.close()
        if done < len(jobs):
            complaints.seek(0)
            lines = [line.strip() for line in complaints if line.strip()]
            reason = next((one for one in reversed(lines) if "Error" in one), " ".join(lines[-1:]))
            raise CannotValidateError(f"the ranks ended after {done} of {len(jobs)} jobs: {reason}")


def _times(taken: list[float], out: int) -> Times:
    taken = sorted(taken)
    aside = len(taken) // _ASIDE
    usual = taken[aside], taken[-1 - aside]
    return Times(median(taken), taken[0], taken[-1], len(taken), out, usual)


def _launcher() -> str:
    from costdb.calibration.launch import mpiexec

    found = mpiexec() if find_spec("mpi4py") is not None else None
    if found is None:
        raise CannotValidateError(
            "mpi4py or mpiexec is missing: pip install 'kernel-advisor[calibrate]'"
        )
    return found


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS_VARIABLES)}
    return {**kept, **dict.fromkeys(_THREADS, "1")}


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
