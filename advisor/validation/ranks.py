"""Starting the processes that run an experiment's programs, and reading what they measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer

from advisor.validation.results import CannotValidateError
from costdb.launch.processes import ONE_THREAD, CannotRunError, environment, find_launcher
from costdb.launch.space import command
from costdb.typical import typical

_PATIENCE_S = 240.0
_LEAVE_S = 10.0
_ASIDE = 20


@dataclass(frozen=True, slots=True)
class Job:
    """Programs that do one thing in other ways, at the same sizes."""

    programs: tuple[str, ...]
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Times:
    """What one way took.

    Attributes
    ----------
    seconds : float
        What is typical of rounds.
    taken_s : tuple of float
        Every repetition that counts, least first.
    left_out : int
        Others, in which another process had a core for a while.
    """

    seconds: float
    taken_s: tuple[float, ...]
    left_out: int = 0

    @property
    def usual_s(self) -> tuple[float, float]:
        """Between these are nine in ten repetitions."""
        aside = len(self.taken_s) // _ASIDE
        return self.taken_s[aside], self.taken_s[-1 - aside]


def left_out(times: Iterable[Times]) -> tuple[str, ...]:
    """Return what is to be said of repetitions that do not count."""
    found = list(times)
    out = sum(one.left_out for one in found)
    if not out:
        return ()
    return (
        f"Left out are {out} of {out + sum(len(one.taken_s) for one in found)} repetitions, "
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
        sum(one.left_out for one in rounds),
    )


def run_jobs(jobs: Sequence[Job], ranks: int, seconds: float) -> Iterator[tuple[Times, ...]]:
    """Run jobs on ranks; yield the times of each one's programs as they come.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    try:
        launch = [] if ranks == 1 else [find_launcher(), "-n", str(ranks)]
    except CannotRunError as error:
        raise CannotValidateError(str(error)) from error
    with TemporaryDirectory() as folder, TemporaryFile("w+", encoding="utf-8") as complaints:
        file = Path(folder, "jobs.json")
        stated = {
            "examples": str(examples_folder()),
            "ranks": ranks,
            "seconds": seconds,
            "jobs": [{"programs": job.programs, "sizes": dict(job.sizes)} for job in jobs],
        }
        file.write_text(json.dumps(stated), "utf-8")
        process = subprocess.Popen(
            [*launch, *command("advisor.validation.worker", str(file))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            encoding="utf-8",
            env=environment(**ONE_THREAD),
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
                    Times(median(taken), tuple(sorted(taken)), out)
                    for taken, out in zip(said["seconds"], said["left_out"], strict=True)
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


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
