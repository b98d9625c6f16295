"""How long a joint plan for a kernel with four arrays on 4096 ranks takes to find.

    python benchmarks/bench_joint.py [--rounds 5] [--machine t3e]

Reading the file and importing the advisor is not counted; every round forgets the prices and sums
that earlier rounds found. Shown are the median and the worst of the processor's time, against the
limit of one second, and the plan.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from advisor.frontend.kernels import read_kernels
from advisor.ranking.compare import Costed, bind_sizes, cost
from advisor.ranking.joint import JointPlan, best_plan
from advisor.transform_registry import transforms
from costdb.expr import evaluate, polynomials, simplify
from costdb.machines import load_machine
from costdb.pricing import price_work

LIMIT_S = 1.0

KERNEL = """\
# advise: kernel N=8192 b=9
# advise: u: f8[N, N] over (none, block(rank)) on mesh(rank=4096)
# advise: v: f8[N, N] over (none, block(rank)) on mesh(rank=4096)
# advise: w: i4[N, N] over (none, block(rank)) on mesh(rank=4096)
# advise: x: f8[N, N] over (none, block(rank)) on mesh(rank=4096)
def kernel(u, v, w, x, N: int, b: int):
    v[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    total = w.copy()
    moved = w.copy()
    for _ in range(b - 1):
        moved[:, 1:] = moved[:, :-1]
        moved[:, 0] = 0
        total += moved
    for j in range(1, N):
        x[:, j] = x[:, j] - v[:, j] * x[:, j - 1]
    return total
"""


def forget() -> None:
    """Drop what earlier rounds remember."""
    for remembered in (
        price_work,
        polynomials._by_products,
        polynomials.closed_sum,
        sys.modules[simplify.__module__]._is_nonnegative,
        sys.modules[simplify.__module__]._simplified,
    ):
        remembered.cache_clear()
    sys.modules[evaluate.__module__].forget_sums()


def main() -> int:
    """Print the times; return 1 where the limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine", default="t3e")
    options = parser.parse_args()
    machine = load_machine(options.machine)
    (kernel,) = read_kernels("kernel.py", KERNEL)
    sizes = bind_sizes(kernel, {}, {})
    rules = transforms()
    plan: JointPlan | None = None
    times: list[float] = []
    for _ in range(options.rounds):
        forget()
        started = time.process_time()
        before = cost(kernel, machine)
        assert isinstance(before, Costed)
        plan = best_plan(kernel, before, machine, sizes, rules)
        times.append(time.process_time() - started)
    median, worst = statistics.median(times), max(times)
    print(f"{len(kernel.arrays)} arrays, 4096 ranks, {len(rules)} rules on {machine.name}")
    print(f"median {median:.2f} s, worst {worst:.2f} s, limit {LIMIT_S:g} s")
    print(plan if plan is not None else "no plan beats the best single step")
    return int(median > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
