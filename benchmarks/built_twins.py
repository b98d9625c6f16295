"""Run under MPI by ``benchmarks.built_plans``: a built program and its twin, taking turns."""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from typing import Any

from costdb.launch.processes import begin

_TURNS = 200


def main(arguments: list[str]) -> int:
    """Answer with the seconds of the slowest rank, built and twin, of each turn."""
    import numpy as np
    from mpi4py import MPI

    job, answer = begin(arguments)
    comm = MPI.COMM_WORLD
    twin, built = runpy.run_path(job["twin"]), runpy.run_path(job["built"])
    random, own = np.random.default_rng(comm.rank), job["size"] // comm.size
    ways: tuple[Callable[[Any], Any], Callable[[Any], Any]]
    if "steps" in job:
        given: Any = random.random((job["size"], own))
        ways = (
            lambda block: built["jacobi"](block, job["steps"]),
            lambda block: twin["jacobi"](comm, block, job["steps"]),
        )
    else:
        given = random.integers(0, 9, (own, job["size"]))
        ways = (
            lambda block: built["box_sum"](block, job["b"]),
            lambda block: twin["box_by_shifts"](comm, block, job["b"]),
        )
    pairs = []
    for turn in range(_TURNS + 1):
        times = [0.0, 0.0]
        for side in (0, 1) if turn % 2 else (1, 0):
            block = given.copy()
            comm.Barrier()
            start = time.perf_counter()
            ways[side](block)
            times[side] = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
        pairs.append(times)
    if comm.rank == 0:
        answer(pairs[1:])
    return 0
