"""Closed-form communication against runs element by element, over random distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from tests.advisor.analysis.simulate import Home, Simulation
from tests.advisor.analysis.tally import Tally
from tests.advisor.ownership import local_part
from tests.costdb.lines.published import enumerate_lines

Offsets = tuple[tuple[int, ...], ...]
AXES = ("x", "y", "z")
EXTENTS = ("N", "M", "K")
COUNTS = ("messages", "elements", "bytes", "loads", "stores", "operations")


@dataclass(frozen=True)
class Layout:
    """Sizes, a mesh, and the distribution of each dimension in the words of a comment."""

    extents: tuple[int, ...]
    mesh: tuple[int, ...]
    dims: tuple[str, ...]
    order: str = "C"

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(EXTENTS, self.extents, strict=False))

    def declared(self, name: str) -> str:
        shape = ", ".join(EXTENTS[: len(self.extents)])
        dims = ", ".join(self.dims)
        mesh = ", ".join(f"{a}={n}" for a, n in zip(AXES, self.mesh, strict=False))
        return f"# advise: {name}: f8[{shape}] over ({dims}) on mesh({mesh}) order={self.order}"


def kernel_of(
    layout: Layout, body: Sequence[str], names: str = "uv", scalars: Sequence[str] = ()
) -> Kernel:
    lines = ["import numpy as np", "", "# advise: kernel"]
    lines += [layout.declared(name) for name in names]
    sizes = ", ".join(f"{name}: int" for name in (*layout.sizes, *scalars))
    lines.append(f"def program({', '.join(names)}, {sizes}):")
    lines += [f"    {line}" for line in body]
    (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
    return kernel


def subscript(low: int, high: int, extent: str) -> str:
    """Write ``low : extent - high``."""
    return f"{low} : {extent} - {high}" if high else f"{low}:"


def stencil(offsets: Offsets, layout: Layout) -> str:
    """Write a statement that adds reads at offsets, over all elements that have them."""
    dimensions = range(len(layout.extents))
    below = [max(0, *(-offset[d] for offset in offsets)) for d in dimensions]
    above = [max(0, *(offset[d] for offset in offsets)) for d in dimensions]

    def part(offset: Sequence[int]) -> str:
        return ", ".join(
            subscript(below[d] + offset[d], above[d] - offset[d], EXTENTS[d]) for d in dimensions
        )

    reads = " + ".join(f"u[{part(offset)}]" for offset in offsets)
    return f"v[{part([0] * len(below))}] = {reads}"


def reads_runs(offsets: Offsets, layout: Layout, home: Home) -> bool:
    """Whether what is read at different offsets meets, in a block of each dimension."""
    parts = local_part(0, home.template, home.dims, home.mesh)
    for d, n in enumerate(layout.extents):
        steps = sorted({offset[d] for offset in offsets})
        length = n - max(0, -steps[0]) - max(0, steps[-1])
        if layout.dims[d] != "none":
            length = len(parts[d])
        if any(b - a > length for a, b in pairwise(steps)):
            return False
    return True


def interior_ranks(offsets: Offsets, layout: Layout, home: Home) -> list[int]:
    """Return the ranks that compute a full block in every distributed dimension."""
    found = []
    count = 1
    for extent in home.mesh.values():
        count *= extent
    full = [len(part) for part in local_part(0, home.template, home.dims, home.mesh)]
    for rank in range(count):
        parts = local_part(rank, home.template, home.dims, home.mesh)
        inside = True
        for d, part in enumerate(parts):
            if layout.dims[d] == "none":
                continue
            low = max(0, *(-offset[d] for offset in offsets))
            high = home.template[d] - max(0, *(offset[d] for offset in offsets))
            inside &= len(part) == full[d] and part[0] >= low and part[-1] < high
        if inside:
            found.append(rank)
    return found


@st.composite
def layouts(draw: st.DrawFn, dimensions: int, most: int) -> Layout:
    extents = tuple(draw(st.integers(1, most)) for _ in range(dimensions))
    mesh = tuple(draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 3))))
    axes = list(AXES[: len(mesh)])
    dims = []
    for _ in range(dimensions):
        kind = draw(st.sampled_from(("none", "one", "all")))
        if kind == "none" or not axes:
            dims.append("none")
        elif kind == "one":
            dims.append(f"block({axes.pop(0)})")
        else:
            dims.append(f"block({'*'.join(axes)})")
            axes = []
    return Layout(extents, mesh, tuple(dims), draw(st.sampled_from("CF")))


Case = tuple[Layout, Offsets]


@st.composite
def margins(draw: st.DrawFn, layout: Layout, farthest: int) -> list[tuple[int, int]]:
    """How far reads go down and up in each dimension, such that something is computed."""
    found = []
    for extent in layout.extents:
        below = draw(st.integers(0, min(farthest, extent - 1)))
        found.append((-below, draw(st.integers(0, min(farthest, extent - 1 - below)))))
    return found


@st.composite
def stars(draw: st.DrawFn, dimensions: int, most: int) -> Case:
    """Offsets along one dimension at a time, any distances."""
    layout = draw(layouts(dimensions, most))
    found = {(0,) * dimensions}
    for d, (low, high) in enumerate(draw(margins(layout, 4))):
        for distance in draw(st.lists(st.integers(low, high), max_size=3)):
            found.add(tuple(distance if at == d else 0 for at in range(dimensions)))
    return layout, tuple(sorted(found))


@st.composite
def boxes(draw: st.DrawFn, dimensions: int, most: int) -> Case:
    """All combinations of some offsets in each dimension."""
    layout = draw(layouts(dimensions, most))
    found: list[tuple[int, ...]] = [()]
    for low, high in draw(margins(layout, 2)):
        several = st.lists(st.integers(low, high), min_size=1, max_size=3, unique=True)
        choices = draw(several)[: 3 if dimensions < 3 else 2]
        found = [(*offset, one) for offset in found for one in choices]
    return layout, tuple(found)


@st.composite
def anything(draw: st.DrawFn) -> Case:
    """Any few offsets."""
    dimensions = draw(st.integers(1, 3))
    layout = draw(layouts(dimensions, (24, 10, 5)[dimensions - 1]))
    offset = st.tuples(*[st.integers(low, high) for low, high in draw(margins(layout, 3))])
    return layout, tuple(draw(st.lists(offset, min_size=1, max_size=5, unique=True)))


def check_stencil(layout: Layout, offsets: Offsets, *, exact: bool) -> None:
    kernel = kernel_of(layout, [stencil(offsets, layout)])
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    for rank in simulated.ranks:
        for name in COUNTS:
            assert rank.totals()[name] <= told.totals[name], name
    inner = interior_ranks(offsets, layout, simulated.arrays["v"].home)
    for number in inner:
        rank = simulated.ranks[number]
        for name in ("loads", "stores", "operations"):
            assert rank.totals()[name] == told.totals[name], name
        if exact and reads_runs(offsets, layout, simulated.arrays["v"].home):
            assert rank.sizes == told.sizes
            assert rank.totals()["bytes"] == told.totals["bytes"]


@settings(max_examples=40, deadline=None)
@given(stars(1, 24))
def test_reads_along_one_dimension(case: Case) -> None:
    check_stencil(*case, exact=True)


@settings(max_examples=35, deadline=None)
@given(stars(2, 12))
def test_stars_in_two_dimensions(case: Case) -> None:
    check_stencil(*case, exact=True)


@settings(max_examples=35, deadline=None)
@given(boxes(2, 12))
def test_boxes_in_two_dimensions(case: Case) -> None:
    check_stencil(*case, exact=True)


@settings(max_examples=25, deadline=None)
@given(st.one_of(stars(3, 6), boxes(3, 6)))
def test_three_dimensions(case: Case) -> None:
    check_stencil(*case, exact=True)


@settings(max_examples=40, deadline=None)
@given(anything())
def test_other_reads_are_bounded_from_above(case: Case) -> None:
    check_stencil(*case, exact=False)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(1, 5), st.data())
def test_windows_of_one_dimension(extent: int, ranks: int, data: st.DataObject) -> None:
    """Strips at edges and windows anywhere."""
    length = data.draw(st.integers(1, extent))
    low = data.draw(st.integers(0, extent - length))
    source = data.draw(st.integers(0, extent - length))
    layout = Layout((extent,), (ranks,), ("block(x)",))
    kernel = kernel_of(
        layout, [f"v[{low} : {low + length}] = u[{source} : {source + length}]"], "uv"
    )
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    for name in COUNTS:
        assert max(rank.totals()[name] for rank in simulated.ranks) <= told.totals[name], name


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 24), st.integers(1, 5), st.integers(0, 23), st.sampled_from((-1, 1)))
def test_edges_that_copy_their_neighbours(
    extent: int, ranks: int, distance: int, side: int
) -> None:
    """A boundary row sends nothing, unless its neighbour is another rank's."""
    distance = min(distance, extent - 1)
    layout = Layout((extent, 3), (ranks,), ("block(x)", "none"))
    edge, inner = ("0", f"{distance}") if side < 0 else ("N - 1", f"N - 1 - {distance}")
    kernel = kernel_of(layout, [f"v[{edge}, :] = u[{inner}, :]"])
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    (only,) = [rank for rank in simulated.ranks if rank.stores]
    assert only.totals() == told.totals


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 24), st.integers(1, 4), st.integers(0, 22), st.booleans())
def test_shifts_by_a_size(extent: int, ranks: int, distance: int, upwards: bool) -> None:
    distance = 1 + distance % (extent - 1)
    layout = Layout((extent,), (ranks,), ("block(x)",))
    text = "v[d:] = u[: N - d]" if upwards else "v[: N - d] = u[d:]"
    kernel = kernel_of(layout, [text], scalars=("d",))
    sizes = {**layout.sizes, "d": distance}
    simulated = Simulation(kernel, sizes).run()
    told = Tally(lower(kernel), sizes)
    offsets = ((-distance,),) if upwards else ((distance,),)
    for name in COUNTS:
        assert max(rank.totals()[name] for rank in simulated.ranks) <= told.totals[name], name
    for number in interior_ranks(offsets, layout, simulated.arrays["v"].home):
        assert simulated.ranks[number].sizes == told.sizes
        assert simulated.ranks[number].totals() == told.totals


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 3), st.integers(1, 3), st.data())
def test_diagonal_shifts_by_a_size(
    n: int, m: int, rows: int, columns: int, data: st.DataObject
) -> None:
    distance = data.draw(st.integers(1, min(n, m) - 1))
    layout = Layout((n, m), (rows, columns), ("block(x)", "block(y)"))
    kernel = kernel_of(layout, ["v[d:, d:] = u[: N - d, : M - d]"], scalars=("d",))
    sizes = {**layout.sizes, "d": distance}
    simulated = Simulation(kernel, sizes).run()
    told = Tally(lower(kernel), sizes)
    for name in COUNTS:
        assert max(rank.totals()[name] for rank in simulated.ranks) <= told.totals[name], name
    for number in interior_ranks(((-distance,) * 2,), layout, simulated.arrays["v"].home):
        assert simulated.ranks[number].sizes == told.sizes


@settings(max_examples=35, deadline=None)
@given(
    st.integers(1, 16), st.integers(1, 5), st.integers(-20, 20), st.booleans(), st.integers(0, 1)
)
def test_periodic_shifts(block: int, ranks: int, amount: int, even: bool, axis: int) -> None:
    """Exact on equal blocks; else for ranks that do not read across the end."""
    extent = block * ranks if even else max(1, block * ranks - block // 2)
    extents = (extent, 4) if axis == 0 else (4, extent)
    dims = ("block(x)", "none") if axis == 0 else ("none", "block(x)")
    layout = Layout(extents, (ranks,), dims)
    kernel = kernel_of(layout, [f"v[:, :] = np.roll(u, {amount}, axis={axis})"])
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    if extent % ranks == 0 and extent > 1:
        for rank in simulated.ranks:
            assert rank.sizes == told.sizes
            assert rank.totals() == told.totals
        return
    home = simulated.arrays["u"].home
    piece = -(-extent // ranks)
    for number, rank in enumerate(simulated.ranks):
        part = local_part(number, home.template, home.dims, home.mesh)[axis]
        moved = abs(amount) % extent
        reads = [i - moved if amount > 0 else i + moved for i in part]
        if len(part) == piece and min(reads) >= 0 and max(reads) < extent:
            assert rank.sizes == told.sizes


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(1, 5), st.integers(-6, 6))
def test_shifts_of_cyclic_pieces(extent: int, ranks: int, width: int, offset: int) -> None:
    offset = max(1 - extent, min(extent - 1, offset))
    layout = Layout((extent, 2), (ranks,), (f"cyclic(x, {width})", "none"))
    kernel = kernel_of(layout, [stencil(((offset, 0),), layout)])
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    for name in COUNTS:
        assert max(rank.totals()[name] for rank in simulated.ranks) <= told.totals[name], name
    for name in ("loads", "stores", "operations"):
        assert max(rank.totals()[name] for rank in simulated.ranks) == told.totals[name], name
    moved, rest = divmod(offset, width)
    remote = [p for p, owner in ((width - rest, moved), (rest, moved + 1)) if p and owner % ranks]
    if not remote or (len(remote) == 1 and remote[0] in (1, width)):
        assert max(rank.totals()["messages"] for rank in simulated.ranks) == len(told.regions)
        assert max(rank.totals()["bytes"] for rank in simulated.ranks) == told.totals["bytes"]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(2, 4), st.integers(1, 3), st.integers(-9, 9))
def test_cyclic_pieces_of_full_rounds(width: int, ranks: int, rounds: int, offset: int) -> None:
    """Where shares are whole pieces, the messages of a rank away from the ends are exact."""
    extent = width * ranks * (rounds + 2)
    offset = max(-width * ranks, min(width * ranks, offset or 1))
    layout = Layout((extent,), (ranks,), (f"cyclic(x, {width})",))
    low, high = width * ranks, width * ranks * (rounds + 1)
    text = f"v[{low} : {high}] = u[{low + offset} : {high + offset}]"
    kernel = kernel_of(layout, [text])
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    for rank in simulated.ranks:
        assert rank.sizes == told.sizes
        assert rank.totals() == told.totals


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    "offsets",
    [
        ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)),
        ((-2, 0), (0, 2)),
        tuple((i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)),
    ],
)
@pytest.mark.parametrize(
    "dims", [("block(x)", "block(y)"), ("block(x)", "none"), ("none", "block(y)")]
)
def test_lines_of_messages(order: str, offsets: Offsets, dims: tuple[str, ...]) -> None:
    """The elements of each message lie in its sender's memory as the region says."""
    layout = Layout((24, 36), (4, 3), dims, order)
    kernel = kernel_of(layout, [stencil(offsets, layout)])
    simulated = Simulation(kernel, layout.sizes).run()
    told = Tally(lower(kernel), layout.sizes)
    inner = interior_ranks(offsets, layout, simulated.arrays["v"].home)
    assert inner
    for number in inner:
        rank = simulated.ranks[number]
        for start in (0, 8, 40):
            sent = sorted(
                len({(start + a + byte) // 64 for a in simulated.addresses(m) for byte in range(8)})
                for m in rank.received
            )
            firsts = sorted(simulated.addresses(m)[0] for m in rank.received)
            assert firsts
            counted = [
                {enumerate_lines(itemsize, counts, pitches, start + first, 64) for first in firsts}
                for _, itemsize, counts, pitches in told.regions
            ]
            assert len(sent) == len(counted)
            for lines in sent:
                assert any(lines in options for options in counted)
