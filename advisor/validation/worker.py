"""The processes that an experiment runs, alone or as ranks: ``advisor.validation.worker JOBS``.

JOBS names the programs to time, ``FILE:FUNCTION`` each. The function takes a communicator
and sizes and returns an object with ``run``, which does it once, and where they are needed
``reset``, ``close`` and ``result``. A program is repeated with nothing of another between, so that
it finds in the caches what it left there, as predictions take it to. A time is the slowest rank's,
from a barrier on, or the seconds that ``run`` returns. Rank 0 answers each job.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from costdb.launch.processes import begin

WARM_UPS, FEWEST, MOST = 2, 5, 40


class Alone:
    """The communicator of one process, which needs no MPI."""

    def Get_rank(self) -> int:  # noqa: N802 -- as MPI has it
        """Return 0."""
        return 0

    def Get_size(self) -> int:  # noqa: N802
        """Return 1."""
        return 1

    def Barrier(self) -> None:  # noqa: N802
        """Wait for nobody."""

    def allgather(self, value: Any) -> list[Any]:
        """Return what the only rank has."""
        return [value]


def main(arguments: list[str]) -> int:
    """Time the jobs of the file that the only argument names."""
    stated, answer = begin(arguments)
    communicator = _communicator(stated["ranks"])
    for job in stated["jobs"]:
        folder, sizes = Path(stated["examples"]), job["sizes"]
        ready = [prepare(folder, name, communicator, sizes) for name in job["programs"]]
        share_s = float(stated["seconds"]) / len(ready)
        taken = [repeated(one, communicator, share_s) for one in ready]
        for one in ready:
            _do(one, "close")
        if communicator.Get_rank() == 0:
            answer(taken)
    return 0


def _communicator(ranks: int) -> Any:
    if ranks == 1:
        return Alone()
    from mpi4py import MPI

    return MPI.COMM_WORLD


def prepare(folder: Path, name: str, communicator: Any, sizes: Mapping[str, int]) -> Any:
    """Return a program with its arrays made; every rank calls it."""
    file, _, function = name.partition(":")
    return runpy.run_path(str(folder / file))[function](communicator, sizes)


def _do(ready: Any, what: str) -> None:
    getattr(ready, what, lambda: None)()


def repeated(ready: Any, communicator: Any, seconds: float) -> list[float]:
    """Return the seconds of repetitions of a program, which go on for so long, or a few times."""
    samples: list[float] = []
    for repetition in range(WARM_UPS + MOST):
        _do(ready, "reset")
        communicator.Barrier()
        begin = time.perf_counter()
        own = ready.run()
        own = time.perf_counter() - begin if own is None else own
        samples.append(max(communicator.allgather(own)))
        # what all ranks know alike decides, or they would part here
        if repetition + 1 >= WARM_UPS + FEWEST and sum(samples) > seconds:
            break
    return samples[WARM_UPS:]
