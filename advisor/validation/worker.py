"""The ranks that a validation runs: ``mpiexec -n 2 python -m advisor.validation.worker JOBS``.

JOBS is a file with the programs to time. A program is repeated with nothing of another between, so
that it finds in the caches what it left there, as predictions take it to. A time is the slowest
rank's, from a barrier on. Rank 0 writes a line of JSON for each job.

Ranks keep their cores busy while they wait for each other. One that did not run all the time lost
its core to another process, and all that waited for it lost time with it: such a repetition was
disturbed. It is made again, and left out unless there are too few others.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.validation.one_sided import ONE_SIDED
from advisor.validation.programs import DISTRIBUTED, Ready

WARM_UPS, FEWEST, MOST = 2, 5, 40
RAN = 0.97
"""Of the time that passed, so much a rank ran that nobody disturbed."""

PATIENCE = 4.0
"""How many times as long as agreed repetitions go on while most are disturbed."""


def main(arguments: list[str]) -> int:
    """Time the jobs of the file that the only argument names."""
    from mpi4py import MPI

    communicator = MPI.COMM_WORLD
    stated = json.loads(Path(arguments[0]).read_text("utf-8"))
    examples = Path(stated["examples"])
    for job in stated["jobs"]:
        ways = [prepare(name, communicator, job["sizes"], examples) for name in job["ways"]]
        taken = timed(ways, communicator, float(stated["seconds"]))
        kept = [undisturbed(samples) for samples in taken]
        for way in ways:
            way.close()
        if communicator.Get_rank() == 0:
            left_out = [len(all_of) - len(some) for all_of, some in zip(taken, kept, strict=True)]
            print(json.dumps({"microseconds": kept, "left_out": left_out}), flush=True)
    return 0


def prepare(name: str, communicator: Any, sizes: Mapping[str, int], examples: Path) -> Ready:
    """Return a program of a name with its arrays made; every rank calls it."""
    return {**DISTRIBUTED, **ONE_SIDED}[name](communicator, sizes, examples)


@dataclass(frozen=True, slots=True)
class Sample:
    """One repetition: the slowest rank's microseconds, and whether every rank ran all the time."""

    microseconds: float
    calm: bool


def timed(ways: Sequence[Ready], communicator: Any, seconds: float) -> list[list[Sample]]:
    """Return the repetitions of each way, which have even parts of the time."""
    return [_repeated(way, communicator, seconds / len(ways)) for way in ways]


def _repeated(way: Ready, communicator: Any, seconds: float) -> list[Sample]:
    from mpi4py import MPI

    samples: list[Sample] = []
    spent_us = 0.0
    for repetition in range(WARM_UPS + MOST):
        way.reset()
        communicator.Barrier()
        ran, begin = time.process_time_ns(), time.perf_counter_ns()
        way.run()
        own_ns, ran_ns = time.perf_counter_ns() - begin, time.process_time_ns() - ran
        slowest_us = communicator.allreduce(own_ns / 1000, op=MPI.MAX)
        calm = communicator.allreduce(ran_ns >= RAN * own_ns, op=MPI.LAND)
        spent_us += slowest_us
        if repetition >= WARM_UPS:
            samples.append(Sample(slowest_us, calm))
        # what all ranks know alike decides, or they would part here
        fewest = sum(sample.calm for sample in samples)
        enough = seconds if fewest >= FEWEST else PATIENCE * seconds
        if repetition + 1 >= WARM_UPS + FEWEST and spent_us > enough * 1e6:
            break
    return samples


def undisturbed(samples: Sequence[Sample]) -> list[float]:
    """Return the microseconds of the repetitions that count: the calm ones, or all."""
    calm = [sample.microseconds for sample in samples if sample.calm]
    return calm if len(calm) >= FEWEST else [sample.microseconds for sample in samples]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
