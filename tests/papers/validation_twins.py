"""Run under mpiexec by test_experiments.py: what a validation runs gives what the kernels give."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
EXAMPLES = Path(__file__).parents[2] / "examples"
STUDY = runpy.run_path(str(EXAMPLES / "studies" / "distributions.py"))
SEED, _matrix, share = STUDY["SEED"], STUDY["_matrix"], STUDY["share"]


def kernel(file: str, name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / file))[name]


def result(name: str, **sizes: int) -> Any:
    """Run a program twice, as a validation repeats it."""
    ready = STUDY[name](comm, sizes)
    for _ in range(2):
        getattr(ready, "reset", lambda: None)()
        ready.run()
    return ready.result().copy()


for order in (2 * size, 12, 14):
    low, high = share(comm, order)
    matrix = _matrix(order)
    product = matrix @ matrix
    for way in ("gathered", "held"):
        np.testing.assert_allclose(result(f"matmul_{way}", N=order), product[low:high], rtol=1e-12)
    halves = np.full((order, order), 0.5)
    for name, axis in (("rows", 1), ("columns", 0)):
        swept = kernel("adi.py", f"sweep_{name}")(matrix.copy(), halves)
        own = {0: swept[low:high], 1: swept[:, low:high]}
        np.testing.assert_array_equal(result(f"{name}_swept", N=order), own[axis])
        np.testing.assert_array_equal(result(f"{name}_whole", N=order), own[1 - axis])
    reduced = kernel("gauss.py", "eliminate")(matrix.copy())
    np.testing.assert_array_equal(result("eliminate_block", N=order), reduced[:, low:high])
    np.testing.assert_array_equal(result("eliminate_cyclic", N=order), reduced[:, rank::size])

count = 50
keys = np.random.default_rng(SEED).integers(0, count * size, (size, count))
buckets = kernel("sample_sort.py", "find_buckets")(keys, np.empty_like(keys), count)
np.testing.assert_array_equal(result("buckets_replicated", M=count), buckets)
np.testing.assert_array_equal(result("buckets_partitioned", M=count), buckets[rank : rank + 1])

image = np.random.default_rng(SEED).integers(0, 100, (12, 12))
low, high = share(comm, 12)
sums = kernel("box_sum.py", "box_sum")(image, 3)
for way in ("shifts", "scans"):
    np.testing.assert_array_equal(result(f"box_by_{way}", N=12, b=3), sums[low:high])
if rank == 0:
    print("the same on", size)
