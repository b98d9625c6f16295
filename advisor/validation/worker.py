"""The ranks that a validation runs: ``mpiexec -n 2 python -m advisor.validation.worker JOBS``.

JOBS is a file with the programs to time. Ways to do one job take turns, so that drift falls on all
alike; a time is the slowest rank's, from a barrier on. Rank 0 writes a line of JSON for each job.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.validation.one_sided import ONE_SIDED
from advisor.validation.programs import DISTRIBUTED, Ready

WARM_UPS, FEWEST, MOST = 2, 5, 40


def main(arguments: list[str]) -> int:
    """Time the jobs of the file that the only argument names."""
    from mpi4py import MPI

    communicator = MPI.COMM_WORLD
    stated = json.loads(Path(arguments[0]).read_text("utf-8"))
    examples = Path(stated["examples"])
    for job in stated["jobs"]:
        ways = [prepare(name, communicator, job["sizes"], examples) for name in job["ways"]]
        taken = timed(ways, communicator, float(stated["seconds"]))
        for way in ways:
            way.close()
        if communicator.Get_rank() == 0:
            print(json.dumps({"microseconds": taken}), flush=True)
    return 0


def prepare(name: str, communicator: Any, sizes: Mapping[str, int], examples: Path) -> Ready:
    """Return a program of a name with its arrays made; every rank calls it."""
    return {**DISTRIBUTED, **ONE_SIDED}[name](communicator, sizes, examples)


def timed(ways: Sequence[Ready], communicator: Any, seconds: float) -> list[list[float]]:
    """Return the microseconds of each repetition of each way."""
    from mpi4py import MPI

    taken: list[list[float]] = [[] for _ in ways]
    spent_us = 0.0
    for repetition in range(WARM_UPS + MOST):
        for way, samples in zip(ways, taken, strict=True):
            way.reset()
            communicator.Barrier()
            begin = time.perf_counter_ns()
            way.run()
            own_us = (time.perf_counter_ns() - begin) / 1000
            slowest_us = communicator.allreduce(own_us, op=MPI.MAX)
            spent_us += slowest_us
            if repetition >= WARM_UPS:
                samples.append(slowest_us)
        # what all ranks know alike decides, or they would part here
        if repetition + 1 >= WARM_UPS + FEWEST and spent_us > seconds * 1e6:
            break
    return taken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
