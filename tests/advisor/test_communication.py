"""Closed-form communication against runs element by element, over random distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from simulate import Home, Simulation, Tally

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ownership import local_part

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


def kernel_of(layout: Layout, body: Sequence[str], names: str = "uv") -> Kernel:
    lines = ["import numpy as np", "", "# advise: kernel"]
    lines += [layout.declared(name) for name in names]
    sizes = ", ".join(f"{name}: int" for name in layout.sizes)
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


def is_sound(offsets: Offsets, layout: Layout) -> bool:
    """Whether the statement computes anything."""
    return all(
        n - max(0, *(-o[d] for o in offsets)) - max(0, *(o[d] for o in offsets)) >= 1
        for d, n in enumerate(layout.extents)
    )


def reads_runs(offsets: Offsets, layout: Layout) -> bool:
    """Whether reads at different offsets meet in the dimensions that are not distributed."""
    for d, n in enumerate(layout.extents):
        steps = sorted({offset[d] for offset in offsets})
        length = n - max(0, -steps[0]) - max(0, steps[-1])
        if layout.dims[d] == "none" and any(b - a > length for a, b in pairwise(steps)):
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


@st.composite
def stars(draw: st.DrawFn, dimensions: int) -> Offsets:
    """Offsets along one dimension at a time, any distances."""
    found = {(0,) * dimensions}
    for d in range(dimensions):
        for distance in draw(st.lists(st.integers(-4, 4), max_size=3)):
            found.add(tuple(distance if at == d else 0 for at in range(dimensions)))
    return tuple(sorted(found))


@st.composite
def boxes(draw: st.DrawFn, dimensions: int) -> Offsets:
    """All combinations of some offsets in each dimension."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(dimensions):
        choices = draw(st.lists(st.integers(-2, 2), min_size=1, max_size=3, unique=True))
        found = [(*offset, one) for offset in found for one in choices]
    return tuple(found)


def anything(dimensions: int) -> st.SearchStrategy[Offsets]:
    offset = st.tuples(*[st.integers(-3, 3)] * dimensions)
    return st.lists(offset, min_size=1, max_size=5, unique=True).map(tuple)


def check_stencil(layout: Layout, offsets: Offsets, *, exact: bool) -> None:
    assume(is_sound(offsets, layout))
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
        if exact and reads_runs(offsets, layout):
            assert rank.sizes == told.sizes
            assert rank.totals()["bytes"] == told.totals["bytes"]


@settings(max_examples=60, deadline=None)
@given(layouts(1, 24), stars(1))
def test_reads_along_one_dimension(layout: Layout, offsets: Offsets) -> None:
    check_stencil(layout, offsets, exact=True)


@settings(max_examples=50, deadline=None)
@given(layouts(2, 12), stars(2))
def test_stars_in_two_dimensions(layout: Layout, offsets: Offsets) -> None:
    check_stencil(layout, offsets, exact=True)


@settings(max_examples=50, deadline=None)
@given(layouts(2, 12), boxes(2))
def test_boxes_in_two_dimensions(layout: Layout, offsets: Offsets) -> None:
    check_stencil(layout, offsets, exact=True)


@settings(max_examples=25, deadline=None)
@given(layouts(3, 6), st.one_of(stars(3), boxes(3)))
def test_three_dimensions(layout: Layout, offsets: Offsets) -> None:
    assume(len(offsets) <= 9)
    check_stencil(layout, offsets, exact=True)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3).flatmap(lambda d: st.tuples(layouts(d, (24, 10, 5)[d - 1]), anything(d))))
def test_other_reads_are_bounded_from_above(case: tuple[Layout, Offsets]) -> None:
    check_stencil(*case, exact=False)
