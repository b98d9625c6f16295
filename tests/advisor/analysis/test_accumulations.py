"""What loops accumulate, and loops that count down: work against counting by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.processes import works
from advisor.distribution import BlockDim, CyclicDim, NotDistributed
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Store, is_total, walk
from costdb.expr import evaluate
from costdb.process.terms import Leaf, Process, SeqLoop, Sequential
from costdb.work import Collective, CollectiveKind, Statement
from tests.advisor.ownership import owners

DIMS = {
    "none": NotDistributed(),
    "block(p)": BlockDim(("p",)),
    "cyclic(p)": CyclicDim(("p",), 1),
}


def kernel_of(body: list[str], dims: str = "none, block(p)", ranks: int = 4) -> Kernel:
    lines = ["import numpy as np", "from math import sqrt", "", "# advise: kernel"]
    lines += [f"# advise: {x}: f8[N, N] over ({dims}) on mesh(p={ranks})" for x in ("a", "b")]
    first = dims.partition(",")[0]
    lines.append(f"# advise: v: f8[N] over ({first}) on mesh(p={ranks})")
    lines.append("def f(a, b, v, N: int):")
    lines += [f"    {line}" for line in body]
    (kernel,) = read_kernels("f.py", "\n".join(lines) + "\n")
    return kernel


def elements(process: Process, at: dict[str, int]) -> int:
    """Return how many elements the traversals of a process load."""
    match process:
        case Leaf(Statement(accesses, _, _)):
            loads = [access.region.counts for access in accesses if not access.store]
            return sum(int(evaluate(counts[0], at)) for counts in loads)
        case Sequential(parts):
            return sum(elements(part, at) for part in parts)
        case SeqLoop(variable, low, high, body):
            indices = range(int(evaluate(low, at)), int(evaluate(high, at)) + 1)
            return sum(elements(body, {**at, variable: index}) for index in indices)
    return 0


TOTALS = {
    "+=": ["s += a[i, j]"],
    "= +": ["s = a[i, j] + s"],
    "max": ["s = max(s, a[i, j])"],
    "np.minimum": ["s = np.minimum(a[i, j], s)"],
    "if": ["if a[i, j] > s:", "    s = a[i, j]"],
    "count": ["if a[i, j] > 0.5:", "    s += 1"],
    "of a number": ["r = a[i, j] * a[i, j]", "s += sqrt(r)"],
}


@pytest.mark.parametrize("dims", ["none, block(p)", "block(p), none", "cyclic(p), none"])
@pytest.mark.parametrize("statements", TOTALS.values(), ids=TOTALS.keys())
@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_each_rank_sums_what_it_owns(statements: list[str], dims: str, size: int) -> None:
    body = ["s = 0.0", "for i in range(N):", "    for j in range(N):"]
    kernel = kernel_of([*body, *(f"        {line}" for line in statements), "return s"], dims)
    process = lower(kernel)
    owned: Counter[int] = Counter()
    layout = tuple(DIMS[dim] for dim in dims.split(", "))
    for i in range(size):
        for j in range(size):
            for rank in owners((i, j), (size, size), layout, {"p": 4}):
                owned[rank] += 1
    loaded = elements(process, {"N": size})
    assert loaded == max(owned.values(), default=0)
    reductions = [work for work in works(process) if isinstance(work, Collective)]
    assert [work.kind for work in reductions] == [CollectiveKind.ALLREDUCE]
    assert evaluate(reductions[0].ranks, {"N": size}) == 4
    assert [evaluate(count, {}) for count in reductions[0].region.counts] == [1]


UNKNOWN = {
    "a sum that is looked at": ["s = 0.0", "for i in range(N):", "    s += v[i]", "    v[i] = s"],
    "an element before it changes": [
        "for i in range(N):",
        "    t = v[i]",
        "    v[i] = a[i, i]",
        "    a[i, i] = t",
    ],
    "an extreme under a condition": [
        "s = 0.0",
        "for i in range(N):",
        "    if v[i] > 3:",
        "        s = max(s, v[i])",
    ],
}


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_order_matters_for_is_not_read_as_a_reduction(body: list[str]) -> None:
    kernel = kernel_of(body)
    assert not any(is_total(statement) for statement in walk(kernel.body))
    if "max" in body[-1] or "t" in body[-1].split():
        with pytest.raises(Unpriced):
            lower(kernel)


def test_extremes_of_elements_are_read_without_a_probability() -> None:
    body = ["for i in range(N):", "    for j in range(N):"]
    condition = ["        if b[i, j] < a[i, j]:", "            a[i, j] = b[i, j]"]
    call = ["        a[i, j] = min(a[i, j], b[i, j])"]
    one, other = (kernel_of([*body, *rest]) for rest in (condition, call))
    values = [[s.value for s in walk(k.body) if isinstance(s, Store)] for k in (one, other)]
    assert values[0] == values[1]
    assert lower(one) == lower(other)
