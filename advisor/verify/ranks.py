"""Runs SPMD programs on real ranks: as written and rewritten in turn, in one launch each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from advisor.verify.programs import ProgramCase
from advisor.verify.running import THREADS, Effort, Measured
from costdb.launch.space import command
from costdb.typical import typical

_PATIENCE_S = 120.0
_LAUNCHERS_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPIR_")
NOTHING_TO_COMPARE = "nothing that it prints, returns or leaves behind could be compared"


class CannotRunError(Exception):
    """There are no ranks to be had here; the message says why in one line."""


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


def measure_program(case: ProgramCase, effort: Effort) -> tuple[Turns, ...]:
    """Run a program with each of its rewrites, and with itself where it has none.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    launcher = find_launcher()
    pairs = [(one.source, one.exact) for one in case.rewrites] or [(case.source, True)]
    return tuple(_turns(launcher, case, source, exact, effort) for source, exact in pairs)


def find_launcher() -> str:
    """Return the command that starts ranks.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    from costdb.calibration.launch import mpiexec

    found = mpiexec() if find_spec("mpi4py") is not None else None
    if found is None:
        raise CannotRunError(
            "mpi4py or mpiexec is missing: pip install 'kernel-advisor[calibrate]'"
        )
    return found


def environment() -> dict[str, str]:
    """Return the environment of ranks: one thread each, and nothing of another launcher's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS_VARIABLES)}
    return {**kept, **dict.fromkeys(THREADS, "1")}


def _turns(launcher: str, case: ProgramCase, after: str, exact: bool, effort: Effort) -> Turns:
    samples: list[list[list[float]]] = [[], []]
    equal = compared = True
    with TemporaryDirectory() as name:
        folder = Path(name)
        job = {
            "folder": str(Path(case.path).resolve().parent),
            "exact": exact,
            "repetitions": effort.repetitions,
            "seconds": effort.seconds,
            "output": str(folder / "output.json"),
        }
        files = []
        for which, text in (("before", case.source), ("after", after)):
            (folder / which).mkdir()
            file = folder / which / Path(case.path).name
            file.write_text(text, "utf-8")
            files.append(str(file))
        stated = folder / "job.json"
        stated.write_text(json.dumps({**job, "files": files}), "utf-8")
        for _ in range(effort.launches):
            said = _launch(launcher, case.ranks, stated)
            if said:
                failed = Measured(failure=said)
                return Turns(failed, failed, False)
            found = json.loads((folder / "output.json").read_text("utf-8"))
            equal = equal and found["equal"]
            compared = compared and found["compared"]
            for side, taken in zip(samples, found["samples_s"], strict=True):
                side.append(taken)
    before, then = (_measured(side, equal) for side in samples)
    return Turns(before, then, compared)


def _measured(launches: Sequence[Sequence[float]], equal: bool) -> Measured:
    every = [sample for launch in launches for sample in launch]
    middle = typical(launches)
    return Measured(middle, min(every), max(every), equal)


def _launch(launcher: str, ranks: int, job: Path) -> str:
    """Run the ranks of one launch; return why that failed, if it did."""
    process = subprocess.Popen(
        [launcher, "-n", str(ranks), *command("advisor.verify.rank_worker", str(job))],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, complaints = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"took more than {_PATIENCE_S:g} s"
    finally:
        # ranks that wait for one that is gone must not outlive this
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode == 0:
        return ""
    said = [line.strip() for line in complaints.splitlines() if line.strip()]
    # a launcher adds a banner to the last line of the traceback
    return next((one for one in reversed(said) if "Error" in one), " ".join(said[-1:]))
