"""Processes of this tool that do one job: started, alone or as ranks, heard, and ended in time.

A job is a value of JSON, and so is each answer to it: a line of the pipe that was standard output
when the process began. What else it prints there is lost. Why it failed is in a file of its own,
else in the last line of standard error. It does not outlive the process that started it by more
than a second or so.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from threading import Event, Timer
from typing import Any, Final

from costdb.launch.space import command

THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
ONE_THREAD: Final = dict.fromkeys(THREADS, "1")
_OWNER = "ADVISE_OWNER"
"""The variable that names the process without which a job is nobody's."""
_WHY = "ADVISE_WHY"
"""The variable that names the file in which a job says why it fails."""
_why: list[str] = []
_LOOK_S = 1.0
_MOST_FILES = 4096
_LAUNCHERS_VARIABLES = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPIR_")


class CannotRunError(Exception):
    """There are no ranks to be had here; the message says why in one line."""


class JobFailedError(Exception):
    """A process that ended before its job was done; the message says why in one line."""


def find_launcher() -> str:
    """Return the command that starts ranks: one beside this Python, else one on the path.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        raise CannotRunError(
            "mpi4py or mpiexec is missing: pip install 'kernel-advisor[calibrate]'"
        )
    return found


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process, with nothing of another launcher's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS_VARIABLES)}
    return {**kept, **more}


def answers(
    module: str,
    job: Mapping[str, Any],
    limit_s: float,
    ranks: int = 0,
    more: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """Have ``module.main`` of ours do a job in a process of its own, and yield what it answers.

    Parameters
    ----------
    ranks : int
        How many such processes under MPI do it together; 0 for one without MPI.
    more : mapping of str to str, optional
        What its environment has beside this one's.

    Raises
    ------
    CannotRunError
        There are no ranks to be had here.
    JobFailedError
        It failed, or took more than `limit_s`; what it answered until then was yielded.
    """
    launch = [find_launcher(), "-n", str(ranks)] if ranks else []
    with (
        NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as stated,
        NamedTemporaryFile("r", encoding="utf-8", errors="replace", suffix=".txt") as why,
        TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints,
    ):
        json.dump(job, stated)
        stated.flush()
        process = subprocess.Popen(
            [*launch, *command(module, stated.name)],
            env=environment(**(more or {}), **{_OWNER: str(os.getpid()), _WHY: why.name}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        late = Event()
        timer = Timer(limit_s, _end, (process, late))
        timer.daemon = True
        timer.start()
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.endswith("\n"):  # and was not cut off with its process
                    yield json.loads(line)
            code = process.wait()
        finally:
            timer.cancel()
            # ranks that wait for one that is gone must not outlive this
            _end(process)
            process.wait()
            process.stdout.close()
        if late.is_set():
            raise JobFailedError(f"took more than {limit_s:g} s")
        if code != 0:
            complaints.seek(0)
            said = [line.strip() for line in (*complaints, *why) if line.strip()]
            raise JobFailedError(said[-1] if said else f"ended with {code}")


def _end(process: subprocess.Popen[str], late: Event | None = None) -> None:
    if late is not None:
        late.set()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def begin(arguments: list[str]) -> tuple[dict[str, Any], Callable[[object], None]]:
    """Return the job of a process started by :func:`answers`, and what sends an answer."""
    _follow(int(os.environ.pop(_OWNER)))
    _why.append(os.environ.pop(_WHY))
    sys.excepthook = lambda _, error, __: failed(error)
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)

    def answer(found: object) -> None:
        stream.write(f"{json.dumps(found)}\n")
        stream.flush()

    return json.loads(Path(arguments[0]).read_text("utf-8")), answer


def failed(error: BaseException) -> None:
    """Print a traceback, and have :func:`answers` raise its last line.

    A launcher that ends all ranks for one may lose what they printed, so that line goes to a file.
    """
    traceback.print_exception(error)
    last = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1:]
    with Path(_why[0]).open("a", encoding="utf-8") as why:
        why.write(f"{''.join(last)}\n")


def _follow(owner: int) -> None:
    """Have this process killed within a second or so after its owner has ended.

    A launcher that loses its reader waits for its ranks, and they for one another, for ever. A
    thread could not end them: a library that waits for other ranks while it starts up keeps the
    interpreter to itself. So a process does that has nothing else to do; it ends with this one.
    Systems that cannot fork do without.
    """
    followed = os.getpid()
    if not hasattr(os, "fork") or os.fork() != 0:
        return
    try:
        # whoever reads what this process writes waits until all that could write are gone
        os.closerange(0, _MOST_FILES)
        while os.getppid() == followed:
            if not _is_there(owner):
                os.kill(followed, signal.SIGKILL)
                break
            time.sleep(_LOOK_S)
    finally:
        os._exit(0)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
