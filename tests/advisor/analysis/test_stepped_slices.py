"""Slices with a step: their shapes, who owns what of them, and what is sent for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.processes import works
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel, at_sizes
from advisor.ir.values import ceil_steps, floor_steps, residue
from costdb.expr import evaluate, parse
from costdb.work import ArrayCall, ArrayOperation, Leaf, PrefixScan, Process, Sequential, Statement
from tests.advisor.analysis.simulate import Home, Sent, Simulation
from tests.advisor.analysis.tally import Tally
from tests.advisor.analysis.test_communication import COUNTS, EXTENTS, Layout, kernel_of
from tests.advisor.ownership import local_part

LOCAL = ("loads", "stores", "operations")


@dataclass(frozen=True)
class Stepped:
    """What is computed, dimension by dimension, and at which offsets it is read.

    Attributes
    ----------
    starts, counts, steps : tuple of int
    offsets : tuple of tuple of int
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]

    def indices(self, dimension: int) -> range:
        first, step = self.starts[dimension], self.steps[dimension]
        return range(first, first + step * self.counts[dimension], step)

    def statement(self, layout: Layout, *, from_end: bool) -> str:
        reads = " + ".join(f"u[{self._part(o, layout, from_end)}]" for o in self.offsets)
        return f"v[{self._part((0,) * len(self.starts), layout, from_end)}] = {reads}"

    def _part(self, offset: tuple[int, ...], layout: Layout, from_end: bool) -> str:
        parts = []
        for d, by in enumerate(offset):
            part, extent = self.indices(d), layout.extents[d]
            # any end beyond the last index and before the next one says the same
            room = extent - 1 - part[-1] - max(0, *(o[d] for o in self.offsets))
            low, high = part.start + by, part[-1] + by + 1 + min(room, part.step - 1)
            end = f"{EXTENTS[d]} - {extent - high}" if from_end else f"{high}"
            parts.append(f"{low} : {end} : {part.step}")
        return ", ".join(parts)


@st.composite
def fitting(draw: st.DrawFn, dimensions: int) -> tuple[Layout, Stepped]:
    """Blocks that are multiples of the steps, and all of a progression but a few at its ends."""
    extents, mesh, starts, counts, steps, margins = [], [], [], [], [], []
    for _ in range(dimensions):
        step, ranks = draw(st.integers(1, 4)), draw(st.integers(3, 4))
        extent = step * draw(st.integers(1, 4)) * ranks
        low = draw(st.integers(0, min(4, extent - 1)))
        last = extent - 1 - draw(st.integers(0, min(4, extent - 1 - low)))
        last -= (last - low) % step
        extents.append(extent)
        mesh.append(ranks)
        starts.append(low)
        counts.append((last - low) // step + 1)
        steps.append(step)
        # what is read at several distances farther apart than a block counts as all between them
        block = extent // ranks
        margins.append((-min(low, block), min(extent - 1 - last, block)))
        # and so it does within one block
        assume(low // block < last // block)
    offsets = set()
    for d in range(dimensions):
        for by in draw(st.lists(st.integers(*margins[d]), min_size=1, max_size=2)):
            offsets.add(tuple(by * (at == d) for at in range(dimensions)))
    dims = tuple(f"block({axis})" for axis in "xy"[:dimensions])
    layout = Layout(tuple(extents), tuple(mesh), dims, draw(st.sampled_from("CF")))
    return layout, Stepped(tuple(starts), tuple(counts), tuple(steps), tuple(sorted(offsets)))


def whole_blocks(what: Stepped, layout: Layout, home: Home) -> list[int]:
    """Return the ranks that compute all that their blocks have of the progressions."""
    found = []
    for rank in range(prod(layout.mesh)):
        parts = local_part(rank, home.template, home.dims, home.mesh)
        if all(
            i in what.indices(d)
            for d, part in enumerate(parts)
            for i in part
            if (i - what.starts[d]) % what.steps[d] == 0
        ):
            found.append(rank)
    return found


def told_of(kernel: Kernel, layout: Layout) -> Tally:
    """What is told of a kernel as it is ranked: at its sizes, which say where blocks begin."""
    return Tally(lower(at_sizes(kernel, layout.sizes)), layout.sizes)


def simulated_and_told(what: Stepped, layout: Layout, from_end: bool) -> tuple[Simulation, Tally]:
    """Return both, after having checked that what is told is no less than what any rank does."""
    kernel = kernel_of(layout, [what.statement(layout, from_end=from_end)])
    simulated, told = Simulation(kernel, layout.sizes).run(), told_of(kernel, layout)
    for rank in simulated.ranks:
        for name in COUNTS:
            assert rank.totals()[name] <= told.totals[name], name
    return simulated, told


@settings(max_examples=60, deadline=None)
@given(st.one_of(fitting(1), fitting(2)), st.booleans())
def test_blocks_that_are_multiples_of_the_step(
    case: tuple[Layout, Stepped], from_end: bool
) -> None:
    """Exact for ranks with whole blocks; each progression that is read has messages of its own."""
    layout, what = case
    simulated, told = simulated_and_told(what, layout, from_end)
    remainders = {
        tuple((o + start) % s for o, start, s in zip(offset, what.starts, what.steps, strict=True))
        for offset in what.offsets
    }
    for number in whole_blocks(what, layout, simulated.arrays["v"].home):
        rank = simulated.ranks[number]
        for name in ("elements", "bytes", *LOCAL):
            assert rank.totals()[name] == told.totals[name], name
        if len(remainders) == 1:
            assert rank.sizes == told.sizes


def relative(counts: tuple[int, ...], pitches: tuple[int, ...]) -> list[int]:
    """Return where the elements of a region lie, from its first one on."""
    found = [0]
    for count, pitch in zip(counts, pitches, strict=True):
        found = [at + pitch * i for at in found for i in range(count)]
    return sorted(found)


def accesses(process: Process, sizes: Mapping[str, int]) -> list[list[int]]:
    """Return where the elements lie that a statement loads and stores, access by access."""
    match process:
        case Sequential(parts):
            return [access for part in parts for access in accesses(part, sizes)]
        case Leaf(Statement(found, _)):
            return [
                relative(
                    tuple(int(evaluate(count, sizes)) for count in access.region.counts),
                    tuple(int(evaluate(pitch, sizes)) for pitch in access.region.pitches_bytes),
                )
                for access in found
            ]
    return []


@settings(max_examples=60, deadline=None)
@given(st.one_of(fitting(1), fitting(2)), st.booleans())
def test_what_is_sent_and_computed_lies_apart_in_memory(
    case: tuple[Layout, Stepped], from_end: bool
) -> None:
    layout, what = case
    kernel = kernel_of(layout, [what.statement(layout, from_end=from_end)])
    simulated, process = Simulation(kernel, layout.sizes).run(), lower(kernel)
    told = Tally(process, layout.sizes)
    home = simulated.arrays["v"].home
    faces = sorted(relative(counts, pitches) for _, _, counts, pitches in told.regions)
    for number in whole_blocks(what, layout, home):
        parts = local_part(number, home.template, home.dims, home.mesh)
        mine = [[i for i in what.indices(d) if i in part] for d, part in enumerate(parts)]
        own = Sent("v", number, frozenset(product(*mine)), 8)
        addresses = simulated.addresses(own)
        wanted = [at - addresses[0] for at in addresses]
        assert all(found == wanted for found in accesses(process, layout.sizes))
        sent = [simulated.addresses(message) for message in simulated.ranks[number].received]
        if len(sent) == len(faces):
            assert sorted([at - found[0] for at in found] for found in sent) == faces


@settings(max_examples=100, deadline=None)
@given(st.integers(-30, 30), st.integers(-3, 3), st.integers(1, 9), st.integers(1, 6))
def test_whole_steps(constant: int, slope: int, size: int, step: int) -> None:
    expr = parse(f"{slope} * N + {constant}") + 0
    value = slope * size + constant
    assert evaluate(floor_steps(expr, step), {"N": size}) == value // step
    assert evaluate(ceil_steps(expr, step), {"N": size}) == -(-value // step)
    if step > 1:
        assert residue(expr, step) == (None if slope % step else value % step)


def test_numbers_of_indices_that_are_equal_are_equal_expressions() -> None:
    half = parse("N // 2")
    assert ceil_steps(parse("N - 1"), 2) == half  # [1::2]
    assert ceil_steps(parse("N - 3"), 2) == half - 1  # [2:-1:2]
    assert ceil_steps(parse("2 * N"), 2) == parse("N")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("v[:12] = u[1:24:2]", "extents differ by another factor"),
        ("v[1:23:2] = u[2:13]", "extents differ by another factor"),
        ("np.cumsum(u[::2])", "other than arithmetic on a slice"),
        ("v[:] = np.cumsum(u[::1])[::2]", "not known to agree"),
        ("v[::d] = u[::d]", "a slice with a step that is not written"),
        ("v[::-2] = u[::-2]", "a slice with a step that is not written"),
        ("v[::0] = u[::0]", "a slice with a step that is not written"),
    ],
)
def test_what_is_not_priced_says_why(line: str, reason: str) -> None:
    layout = Layout((24,), (3,), ("block(x)",))
    with pytest.raises(Unpriced, match=reason):
        lower(kernel_of(layout, [line], scalars=("d",)))


@pytest.mark.parametrize(
    ("views", "direct"),
    [
        (["a = v[2:-1]", "a[::3] = 2.0"], "v[2:-1:3] = 2.0"),
        (["a = v[1::2]", "b = u[:-1:2]", "a[:] = b"], "v[1::2] = u[:-1:2]"),
        (["a = u[1::2]", "v[3] = a[2]"], "v[3] = u[5]"),
        (["a = v[1::2]", "a[1:-1] = 2.0"], "v[3:-1:2] = 2.0"),
        (["a = v[1::2]", "a[::3] = 2.0"], "v[1::6] = 2.0"),
        (["a = v[2::3]", "b = a[1:-2]", "b[::2] = 2.0"], "v[5:18:6] = 2.0"),
    ],
)
def test_views_with_a_step(views: list[str], direct: str) -> None:
    layout = Layout((24,), (3,), ("block(x)",))
    one, other = (
        Tally(lower(kernel_of(layout, lines)), layout.sizes) for lines in (views, [direct])
    )
    assert one.totals == other.totals
    assert one.regions == other.regions


# Restriction and prolongation: what is sent for reads with another step than their target's.


def two_levels(step: int, ranks: int, line: str, extra: int = 0, rows: bool = False) -> Kernel:
    """Return a kernel over an array and another one that is longer by a factor."""
    fine = f"{step}*N" if not extra else f"{step}*N - {extra}"
    other, dims = (", 3", ", none") if rows else ("", "")
    source = f"""
import numpy as np

# advise: kernel
# advise: c: f8[N{other}] over (block(x){dims}) on mesh(x={ranks})
# advise: f: f8[{fine}{other}] over (block(x){dims}) on mesh(x={ranks})
def program(c, f, N: int):
    {line}
"""
    (kernel,) = read_kernels("program.py", source)
    return kernel


def check(kernel: Kernel, size: int, *, exact: bool) -> None:
    sizes = {"N": size}
    simulated, told = Simulation(kernel, sizes).run(), Tally(lower(at_sizes(kernel, sizes)), sizes)
    for name in COUNTS:
        most = max(rank.totals()[name] for rank in simulated.ranks)
        assert most <= told.totals[name], (name, most, told.totals[name])
        if exact:
            assert most == told.totals[name], (name, most, told.totals[name])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.integers(3, 5), st.integers(2, 6), st.integers(0, 3), st.booleans())
def test_blocks_that_lie_beside_one_another(
    step: int, ranks: int, block: int, rest: int, rows: bool
) -> None:
    """Where blocks are multiples of the step, only what is read beyond an edge is sent."""
    behind = ", :" if rows else ""
    inside = f"f[{min(rest, step - 1)}::{step}{behind}]"
    for line in (f"c[:{behind}] = {inside}", f"{inside} = c[:{behind}]"):
        check(two_levels(step, ranks, line, rows=rows), block * ranks, exact=True)


def test_what_a_statement_makes_of_every_other_element() -> None:
    lines = "w = f[::2] + f[1::2]; c[:] = w"
    told = Tally(lower(two_levels(2, 4, lines)), {"N": 64})
    assert not told.sizes
    assert told.totals["stores"] == 32


def test_what_is_made_of_every_other_element_lies_beside_it() -> None:
    lines = "w = f[1::2] - f[::2]; f[::2] = w"
    told = Tally(lower(two_levels(2, 4, lines)), {"N": 64})
    assert not told.sizes
    assert told.totals["stores"] == 32


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("c[:5] = f[:10:2]", "extents differ by another factor"),
        ("f[:30:6] = c[:10:2]", "different steps along a distributed dimension"),
    ],
)
def test_what_is_not_priced_between_resolutions_says_why(line: str, reason: str) -> None:
    with pytest.raises(Unpriced, match=reason):
        lower(two_levels(3, 4, line))


# Where the elements of a part of an array lie: calls are priced by NumPy's own strides.


N, M = 12, 9
PARTS = (":", "2:-1", "3:7", "1::2", "4")
# how it is written, and the class of the call that goes through the part
OPERATIONS = {
    "s = {part}.sum()": ArrayOperation.REDUCE,
    "s = np.max({part})": ArrayOperation.REDUCE,
    "s = {part}.sum(axis=0)": ArrayOperation.REDUCE,
    "s = np.cumsum({part}, axis=0)": ArrayOperation.SCAN,
    "s = np.sort({part}, axis=0)": ArrayOperation.SORT,
    "s = np.roll({part}, 1, axis=0)": ArrayOperation.ROLL,
}


def calls_of(source: str) -> list[ArrayCall]:
    (kernel,) = read_kernels("program.py", source)
    process = lower(kernel)
    assert not isinstance(process, Unpriced), process
    found: list[ArrayCall] = []
    for work in works(process):
        if isinstance(work, Statement | PrefixScan):
            found += work.calls or ()
    return found


def seen(call: ArrayCall) -> list[tuple[int, int]]:
    """Return extent and pitch of each dimension of what a call reads."""
    (operand,) = call.operands
    sizes = {"n": N, "m": M}
    region = operand.region
    counted = (
        (evaluate(c, sizes), evaluate(p, sizes))
        for c, p in zip(region.counts, region.pitches_bytes, strict=True)
    )
    return [(int(count), int(pitch)) for count, pitch in counted]


@pytest.mark.parametrize("statement", OPERATIONS)
@given(rows=st.sampled_from(PARTS), columns=st.sampled_from(PARTS), order=st.sampled_from("CF"))
def test_a_part_is_gone_through_as_it_lies(
    statement: str, rows: str, columns: str, order: Any
) -> None:
    part = f"a[{rows}, {columns}]"
    array = np.ones((N, M), order=order)
    chosen = eval(part, {"a": array})  # our own text
    if np.ndim(chosen) == 0:
        return
    source = (
        "import numpy as np\n\n\n# advise: kernel n=12 m=9\n"
        f"# advise: a: f8[n, m] order={order}\n"
        f"def f(a, n: int, m: int):\n    {statement.format(part=part)}\n    return s\n"
    )
    (call,) = (one for one in calls_of(source) if one.operation is OPERATIONS[statement])
    assert seen(call) == list(zip(chosen.shape, chosen.strides, strict=True))
