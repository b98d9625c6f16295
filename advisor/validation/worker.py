"""The processes that an experiment runs, alone or as ranks: ``advisor.validation.worker JOBS``.

JOBS names the programs to time, ``FILE:FUNCTION`` each. The function takes a communicator
and sizes and returns an object with ``run``, which does it once, and where they are needed
``reset``, ``close`` and ``result``. A program is repeated with nothing of another between, so that
it finds in the caches what it left there, as predictions take it to. A time is the slowest rank's,
from a barrier on, or what ``run`` returns: seconds, and whether nobody took a core meanwhile. Rank
0 answers each job.

Ranks keep their cores busy while they wait for each other. One that did not run all the time lost
its core to another process, and all that waited for it lost time with it: such a repetition was
disturbed. It is made again, and left out unless there are too few others.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from costdb.launch.processes import begin
from costdb.records import dataclass

WARM_UPS, FEWEST, MOST = 2, 5, 40
RAN = 0.97
"""Of the time that passed, so much a rank ran that nobody disturbed."""

PATIENCE = 4.0
"""How many times as long as agreed repetitions go on while most are disturbed."""


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
        kept = [undisturbed(samples) for samples in taken]
        for one in ready:
            _do(one, "close")
        if communicator.Get_rank() == 0:
            out = [len(all_of) - len(some) for all_of, some in zip(taken, kept, strict=True)]
            answer([kept, out])
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


@dataclass(frozen=True, slots=True)
class Sample:
    """One repetition: the slowest rank's seconds, and whether every rank ran all the time."""

    seconds: float
    calm: bool


def repeated(ready: Any, communicator: Any, seconds: float) -> list[Sample]:
    """Return repetitions of a program; they go on for so long, or until a few were calm."""
    samples: list[Sample] = []
    spent_s = 0.0
    for repetition in range(WARM_UPS + MOST):
        _do(ready, "reset")
        communicator.Barrier()
        ran, begin = time.process_time_ns(), time.perf_counter_ns()
        own = ready.run()
        if own is None:
            passed_ns, ran_ns = time.perf_counter_ns() - begin, time.process_time_ns() - ran
            own = passed_ns * 1e-9, ran_ns >= RAN * passed_ns
        every = communicator.allgather(own)
        samples.append(Sample(max(one for one, _ in every), all(calm for _, calm in every)))
        spent_s += samples[-1].seconds
        # what all ranks know alike decides, or they would part here
        fewest = sum(sample.calm for sample in samples[WARM_UPS:])
        enough = seconds if fewest >= FEWEST else PATIENCE * seconds
        if repetition + 1 >= WARM_UPS + FEWEST and spent_s > enough:
            break
    return samples[WARM_UPS:]


def undisturbed(samples: Sequence[Sample]) -> list[float]:
    """Return the seconds of the repetitions that count: the calm ones, or all."""
    calm = [sample.seconds for sample in samples if sample.calm]
    return calm if len(calm) >= FEWEST else [sample.seconds for sample in samples]
