"""Work of loops over single elements against ownership, element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.processes import works
from advisor.distribution import AxisMap, BlockDim, CyclicDim, NotDistributed
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from costdb.evaluate import Priced
from costdb.expr import Expr, evaluate, num
from costdb.machines import load_machine, machine_of
from costdb.pricing import STEPS, price_interpretation, price_work
from costdb.quantity import Provenance
from costdb.work import (
    Branch,
    Interpretation,
    Leaf,
    Message,
    Process,
    RemoteGroup,
    SeqLoop,
    Sequential,
    Statement,
    Visit,
)
from tests.advisor.ownership import owners

DIMS: dict[str, AxisMap] = {
    "none": NotDistributed(),
    "block(p)": BlockDim(("p",)),
    "cyclic(p)": CyclicDim(("p",), 1),
}


@dataclass(frozen=True)
class Case:
    """Two arrays, a nest over one of them, and how far from it the other is read."""

    size: int
    ranks: int
    dims: tuple[str, str]
    order: str
    loops: tuple[str, str]
    offsets: tuple[tuple[int, int], ...]

    @property
    def kernel(self) -> Kernel:
        declared = f"f8[N, N] over ({', '.join(self.dims)}) on mesh(p={self.ranks})"
        terms = " + ".join(f"b[i + {i}, j + {j}]" for i, j in self.offsets)
        source = f"""
# advise: kernel
# advise: a: {declared} order={self.order}
# advise: b: {declared} order={self.order}
def f(a, b, N: int):
    for {self.loops[0]} in range(1, N - 1):
        for {self.loops[1]} in range(1, N - 1):
            a[i, j] = {terms}
"""
        (kernel,) = read_kernels("f.py", source)
        return kernel

    def owner(self, element: tuple[int, int]) -> tuple[int, ...]:
        dims = tuple(DIMS[dim] for dim in self.dims)
        return owners(element, (self.size, self.size), dims, {"p": self.ranks})

    def totals(self) -> tuple[Counter[int], Counter[int]]:
        """Return for each rank the elements it computes, and the remote ones it refers to."""
        computed: Counter[int] = Counter()
        remote: Counter[int] = Counter()
        inside = range(1, self.size - 1)
        for i, j in product(inside, inside):
            for rank in self.owner((i, j)):
                computed[rank] += 1
                for one, other in dict.fromkeys(self.offsets):
                    remote[rank] += rank not in self.owner((i + one, j + other))
        return computed, remote


def tally(process: Process, at: dict[str, int]) -> Counter[str]:
    """Return what a process does, loops run one by one."""
    found: Counter[str] = Counter()
    match process:
        case Leaf(Statement(accesses, operations, _)):
            found["operations"] += int(evaluate(operations, at))
            for access in accesses:
                counts = [int(evaluate(count, at)) for count in access.region.counts]
                found["stores" if access.store else "loads"] += counts[0]
                assert len(counts) == 1
        case Leaf(RemoteGroup() as work):
            count = evaluate(work.count, at)
            found["mixed" if work.mixed else "remote"] += int(count)
        case Leaf(Interpretation(loop=False)):
            pass
        case Leaf(Interpretation(iterations, _)):
            found["interpreted"] += int(evaluate(iterations, at))
        case Leaf(Message()):
            found["messages"] += 1
        case Sequential(parts):
            for part in parts:
                found += tally(part, at)
        case SeqLoop(variable, low, high, body):
            for index in range(int(evaluate(low, at)), int(evaluate(high, at)) + 1):
                found += tally(body, {**at, variable: index})
        case Branch(condition, then, orelse):
            found += tally(then if evaluate(condition, at) else orelse, at)
        case _:
            raise AssertionError(f"{process} is not counted")
    return found


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dims = draw(
        st.sampled_from(
            [("block(p)", "none"), ("none", "block(p)"), ("cyclic(p)", "none"), ("none", "none")]
        )
    )
    offset = st.sampled_from([(0, 0), (-1, 0), (1, 0), (0, 1), (0, -1)])
    return Case(
        size=draw(st.integers(3, 14)),
        ranks=draw(st.integers(1, 4)),
        dims=dims,
        order=draw(st.sampled_from("CF")),
        loops=draw(st.sampled_from([("i", "j"), ("j", "i")])),
        offsets=tuple(draw(st.lists(offset, min_size=1, max_size=3))),
    )


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_busiest_rank_bounds_every_rank(case: Case) -> None:
    computed, remote = case.totals()
    found = tally(lower(case.kernel), {"N": case.size})
    most = max(computed.values())
    assert found["stores"] >= most
    reads = len(set(case.offsets))
    assert found["loads"] == reads * found["stores"]
    assert found["operations"] == (len(case.offsets) - 1) * found["stores"]
    assert found["interpreted"] == found["stores"]
    assert found["remote"] >= max(remote.values())
    assert not found["messages"] and not found["mixed"]


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(3, 4), st.integers(2, 3))
def test_counts_are_exact_where_a_rank_is_away_from_all_edges(
    case: Case, ranks: int, block: int
) -> None:
    even = Case(ranks * block, ranks, case.dims, case.order, case.loops, case.offsets)
    computed, remote = even.totals()
    found = tally(lower(even.kernel), {"N": even.size})
    assert found["stores"] == max(computed.values())
    assert found["remote"] == max(remote.values())


def kernel_of(body: str, over: str) -> Kernel:
    source = f"""
# advise: kernel
# advise: a: f8[N, N] over ({over}) on mesh(p=4, q=2)
# advise: b: f8[N, N] over ({over}) on mesh(p=4, q=2)
def f(a, b, N: int):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            {body}
"""
    (kernel,) = read_kernels("f.py", source)
    return kernel


@pytest.mark.parametrize(
    ("body", "over", "reason"),
    [
        ("a[i, j] = b[i + 1, j + 1]", "block(p), block(q)", "two dimensions"),
        ("a[j, j] = b[j, j]", "block(p), block(q)", "a diagonal"),
        ("a[i + j, 0] = b[i, j]", "block(p), none", "no index alone"),
        ("a[i, j] = b[i + 1, j]", "cyclic(p, 2), none", "cyclic piece"),
    ],
)
def test_what_has_no_closed_form_says_so(body: str, over: str, reason: str) -> None:
    with pytest.raises(Unpriced, match=reason) as error:
        lower(kernel_of(body, over))
    assert error.value.span.start_line == 6


def test_the_interpreter_costs_what_a_profile_states_and_nothing_else() -> None:
    t3e = load_machine("t3e")
    silent = price_interpretation(Interpretation(num(50)), t3e)
    assert silent == Priced(num(0))
    stated = dict(t3e.document)
    each = {"value": 0.5, "low": 0.4, "high": 0.6, "unit": "us", "provenance": "measured"}
    each["source"] = next(iter(t3e.sources))
    stated["python"] = dict.fromkeys(STEPS, each)
    found = price_work(Interpretation(num(50)), machine_of(stated, "here.json"))
    assert isinstance(found, Priced)
    assert evaluate(found.microseconds, {"python.iteration": 0.5}) == 25
    assert found.coefficients["python.iteration"].provenance is Provenance.MEASURED


# Loops that run backwards: what they do is what the mirrored loop does that runs forwards.


SIZES = {"N": 40, "M": 9}
KERNEL = """\
import numpy as np
from numba import njit
# advise: kernel N=40 M=9
{arrays}
{decorator}def program(u, v, w):
    for i in {loop}:
{body}
"""


def visits(loop: str, body: str, order: str, decorator: str = "") -> Iterator[Visit]:
    """Yield what the calls of a kernel's loop touch."""
    arrays = "\n".join(f"# advise: {n}: f8[N, N] order={order}" for n in "uvw")
    made = "\n".join(f"        {line}" for line in body.splitlines())
    (kernel,) = read_kernels(
        "program.py", KERNEL.format(decorator=decorator, arrays=arrays, loop=loop, body=made)
    )
    for work in works(lower(kernel)):
        if isinstance(work, Statement):
            for call in work.calls or ():
                yield from call.visits


def at_40(visit: Visit) -> tuple[str, tuple[object, ...], object, object]:
    def of(expr: Expr | None) -> object:
        return None if expr is None else evaluate(expr, SIZES)

    counts = tuple(of(count) for count in visit.region.counts)
    return visit.array, counts, of(visit.distance_bytes), of(visit.advance_bytes)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from("CF"),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["", "u", "v", "w"]),
)
def test_a_mirrored_loop_touches_the_same(
    order: str, rows: bool, behind: int, ahead: int, more: str
) -> None:
    def body(sign: int) -> str:
        def part(name: str, offset: int) -> str:
            at = f"i + {offset}" if offset >= 0 else f"i - {-offset}"
            return f"{name}[{at}, :]" if rows else f"{name}[:, {at}]"

        value = f"{part('u', -sign * behind)} + {part('v', sign * ahead)}"
        if more:
            value += f" * {part(more, -sign * behind)}"
        return f"{part('w', 0)} = {value}"

    forwards = f"range({behind}, 40 - {ahead})"
    backwards = f"range({39 - behind}, {ahead - 1}, -1)"
    found = [at_40(one) for one in visits(backwards, body(-1), order)]
    assert found
    assert found == [at_40(one) for one in visits(forwards, body(1), order)]
