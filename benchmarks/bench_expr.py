"""Speed of compiled cost formulas, on the machine repair example.

Run from the project's directory: ``python -m benchmarks.bench_expr``. Times are medians of
repeated runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from costdb.expr import (
    Expr,
    compile_scalar,
    compile_vector,
    evaluate,
    maximum,
    maximum_over,
    num,
    parse,
    simplify,
    summation,
    sym,
    to_text,
)

REPEATS = 9
CALLS = 50_000
POINTS = 4_000_000


def machine_repair() -> Expr:
    """Return P clients that each N times work for 10 and share a server for 0.1."""
    workers, jobs = sym("P"), sym("N")
    own = summation("i", 1, jobs, num(10) + num(0.1))
    served = summation("p", 1, workers, summation("i", 1, jobs, num(0.1)))
    return maximum(maximum_over("p", 1, workers, own), served)


def median_seconds(run: Callable[[], object]) -> float:
    """Return the median time of a run."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def nanoseconds_per_call(formula: Callable[..., object], jobs: int, workers: int) -> float:
    """Return the median time of one call, the loop around it included."""

    def run() -> None:
        for _ in range(CALLS):
            formula(jobs, workers)

    return median_seconds(run) / CALLS * 1e9


def main() -> None:
    """Print the figures."""
    nest = machine_repair()
    formula = simplify(nest, positive=("N", "P"))
    print(f"machine repair        {to_text(nest)}")
    print(f"closed form           {to_text(formula)}")
    value = evaluate(formula, {"N": 1_000_000, "P": 1000})
    print(f"at N=1000000, P=1000  {float(value):g}")
    print(f"closing the nest      {median_seconds(lambda: simplify(nest)) * 1e6:.0f} us")
    compiling = median_seconds(lambda: compile_scalar(formula, ("N", "P")))
    print(f"compiling a formula   {compiling * 1e6:.0f} us")

    scalar = compile_scalar(formula, ("N", "P"))
    small = nanoseconds_per_call(scalar, 2, 3)
    large = nanoseconds_per_call(scalar, 10**9, 10**6)
    print(f"scalar, N=2, P=3      {small:.0f} ns")
    print(f"scalar, N=1e9, P=1e6  {large:.0f} ns, {large / small:.2f} times the small one")

    cyclic = simplify(parse("sum(i = 0, N - 1, (i % P == 1)*i)"), positive=("N", "P"))
    local = compile_scalar(cyclic, ("N", "P"))
    small = nanoseconds_per_call(local, 20, 3)
    large = nanoseconds_per_call(local, 10**6, 1000)
    print(f"cyclic share, N=20    {small:.0f} ns")
    print(f"cyclic share, N=1e6   {large:.0f} ns, {large / small:.2f} times the small one")

    vector = compile_vector(formula, ("N", "P"))
    jobs = np.arange(1, POINTS + 1, dtype=np.float64)
    workers = np.arange(POINTS, dtype=np.float64) % 1000 + 1
    for label, given in (
        ("small N", (jobs, workers)),
        ("huge N", (jobs * 1e9, workers)),
        ("whole N", (jobs.astype(np.int64), workers.astype(np.int64))),
    ):
        seconds = median_seconds(partial(vector, *given))
        print(f"vector, {label:7}       {POINTS / seconds / 1e6:.0f} million points/s")


if __name__ == "__main__":
    main()
