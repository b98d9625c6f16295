"""Processes of this tool that do one job: started, alone or as ranks, and ended in time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from costdb.launch.space import command

THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
ONE_THREAD: Final = dict.fromkeys(THREADS, "1")
_LAUNCHERS_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPIR_")


class CannotRunError(Exception):
    """There are no ranks to be had here; the message says why in one line."""


def mpiexec() -> str | None:
    """Return the launcher that was installed beside this Python, else the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.is_file() else shutil.which("mpiexec")


def find_launcher() -> str:
    """Return the command that starts ranks.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    found = mpiexec() if find_spec("mpi4py") is not None else None
    if found is None:
        raise CannotRunError(
            "mpi4py or mpiexec is missing: pip install 'kernel-advisor[calibrate]'"
        )
    return found


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process, with nothing of another launcher's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS_VARIABLES)}
    return {**kept, **more}


def run(
    module: str, job: Path, limit_s: float, ranks: int = 0, more: Mapping[str, str] | None = None
) -> str:
    """Have ``module.main([job])`` of ours done by a process of its own, or by that many ranks.

    Parameters
    ----------
    ranks : int
        0 for a process without MPI.
    more : mapping of str to str, optional
        What its environment has beside this one's.

    Returns
    -------
    str
        Why it failed, in a line; empty where it did not.

    Raises
    ------
    CannotRunError
        There are no ranks to be had here.
    """
    launch = [find_launcher(), "-n", str(ranks)] if ranks else []
    process = subprocess.Popen(
        [*launch, *command(module, str(job))],
        env=environment(**(more or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, complaints = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return f"took more than {limit_s:g} s"
    finally:
        # ranks that wait for one that is gone must not outlive this
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode == 0:
        return ""
    said = [line.strip() for line in complaints.splitlines() if line.strip()]
    # a launcher adds a banner to the last line of the traceback
    told = next((one for one in reversed(said) if ranks and "Error" in one), " ".join(said[-1:]))
    return told or f"ended with {process.returncode}"
