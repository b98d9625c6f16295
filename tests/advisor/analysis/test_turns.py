"""Loops whose iterations belong to one rank each, against counting what every rank does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.distribution import AxisMap, BlockDim, CyclicDim
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from costdb.expr import evaluate
from costdb.work import (
    Branch,
    Collective,
    Leaf,
    Message,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
    Statement,
)
from tests.advisor.analysis.tally import Tally
from tests.advisor.ownership import owner

DIMS: tuple[AxisMap, ...] = (BlockDim(("r",)), CyclicDim(("r",)), CyclicDim(("r",), 2))


def process_of(body: list[str], dim: AxisMap) -> Process:
    text = f"cyclic(r, {dim.k})" if isinstance(dim, CyclicDim) else "block(r)"
    lines = ["import numpy as np", "", "# advise: kernel"]
    lines += [f"# advise: {name}: f8[M, N] over (none, {text}) on mesh(r=P)" for name in "xy"]
    lines += ["def program(x, y, N: int, M: int):", *(f"    {line}" for line in body)]
    (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
    return lower(kernel)


def stores(process: Process, sizes: Mapping[str, int]) -> int:
    """Return the elements stored on the way that takes longest."""
    match process:
        case Sequential(parts):
            return sum(stores(part, sizes) for part in parts)
        case Parallel(parts):
            return max(stores(part, sizes) for part in parts)
        case SeqLoop(variable, low, high, body):
            span = range(int(evaluate(low, sizes)), int(evaluate(high, sizes)) + 1)
            return sum(stores(body, {**sizes, variable: i}) for i in span)
        case ParLoop(variable, low, high, body):
            span = range(int(evaluate(low, sizes)), int(evaluate(high, sizes)) + 1)
            return max((stores(body, {**sizes, variable: i}) for i in span), default=0)
        case Branch(condition, then, orelse):
            return stores(then if evaluate(condition, sizes) else orelse, sizes)
        case Leaf(Statement(accesses, _, _)):
            total = 0
            for access in accesses:
                product = 1
                for count in access.region.counts:
                    product *= int(evaluate(count, sizes))
                total += product if access.store else 0
            return total
        case Leaf(Message() | Collective()):
            return 0
    raise AssertionError(process)


def busiest(rows: Mapping[int, int], size: int, ranks: int, dim: AxisMap) -> int:
    """Return the most that one rank stores, given the rows that each column's iteration does."""
    done: Counter[int] = Counter()
    for column, count in rows.items():
        done[owner(column, size, ranks, dim)] += count
    return max(done.values(), default=0)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 17), st.integers(1, 5), st.sampled_from(DIMS), st.integers(0, 3), st.booleans()
)
def test_independent_iterations_take_the_busiest_owner(
    size: int, ranks: int, dim: AxisMap, first: int, triangular: bool
) -> None:
    rows = "j:" if triangular else ":"
    process = process_of(
        [f"for j in range({first}, N):", f"    x[{rows}, j] = 2.0 * y[{rows}, j]"], dim
    )
    bound = {"N": size, "M": 20, "P": ranks}
    done = {j: 20 - (j if triangular else 0) for j in range(first, size)}
    assert stores(process, bound) == busiest(done, size, ranks, dim)


def test_what_owners_fetch_at_their_edges_counts_once() -> None:
    process = process_of(["for j in range(1, N):", "    x[:, j] = y[:, j - 1]"], DIMS[0])
    assert stores(process, {"N": 12, "M": 4, "P": 3}) == 4 * 4


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 16), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4))
def test_chunks_of_a_recurrence_pass_from_rank_to_rank(
    size: int, ranks: int, chunks: int, width: int
) -> None:
    """Against a timetable: a rank begins a chunk when it and the rank before are done."""
    process = process_of(
        [
            f"for lo in range(0, M, {width}):",
            "    for j in range(1, N):",
            f"        x[lo : lo + {width}, j] = 2.0 * x[lo : lo + {width}, j - 1]",
        ],
        DIMS[0],
    )
    told = stores(process, {"N": size, "M": chunks * width, "P": ranks})
    columns = Counter(owner(j, size, ranks, DIMS[0]) for j in range(1, size))
    ready = [0] * chunks
    for rank in sorted(columns):
        free = 0
        for chunk in range(chunks):
            free = max(free, ready[chunk]) + columns[rank] * width
            ready[chunk] = free
    assert told >= ready[-1]
    if len(set(columns.values())) == 1:
        assert told == ready[-1]


# Regions that shrink or grow from step to step, against counting every rank's elements.


SHRINKING: tuple[AxisMap, ...] = (
    BlockDim(("r",)),
    *(CyclicDim(("r",), k) for k in (1, 2, 3, 5)),
)


def eliminating(text: str) -> Kernel:
    source = f"""\
import numpy as np

# advise: kernel
# advise: a: f8[N, N] over (none, {text}) on mesh(r=P)
def eliminate(a, N: int):
    for k in range(N - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, None, k + 1 :]
"""
    (kernel,) = read_kernels("eliminate.py", source)
    return kernel


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.integers(1, 5), st.sampled_from(SHRINKING))
def test_elimination_waits_for_the_busiest_rank_of_every_step(
    size: int, ranks: int, dim: AxisMap
) -> None:
    text = f"cyclic(r, {dim.k})" if isinstance(dim, CyclicDim) else "block(r)"
    told = Tally(lower(eliminating(text)), {"N": size, "P": ranks})
    owners = [owner(j, size, ranks, dim) for j in range(size)]
    stores = operations = 0
    broadcasts: Counter[tuple[str, int, int]] = Counter()
    for k in range(size - 1):
        below = size - k - 1
        most = max(Counter(owners[k + 1 :]).values())
        stores += below + below * most
        operations += below + 2 * below * most
        taking = len(set(owners[k:]))
        broadcasts["broadcast", taking, below] += 1
    assert told.totals["stores"] == stores
    assert told.totals["operations"] == operations
    # the pivot is used by its owner alone; the column goes to the owners of what is left
    assert told.collectives == broadcasts
