"""Ownership: what `MPI.Datatype.Create_darray` says, and what owning everything once means."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.distribution import AxisMap, BlockDim, CyclicDim, NotDistributed
from tests.advisor.ownership import (
    local_indices,
    local_part,
    owner,
    owners,
    rank_at,
    ranks_along,
)

AXES = ("row", "col", "layer")


@st.composite
def grids(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[AxisMap, ...], dict[str, int]]:
    """Shape, distributions and mesh of an array whose dimension d uses mesh axis d."""
    rank = draw(st.integers(1, 3))
    shape, dims, mesh = [], [], {}
    for axis in AXES[:rank]:
        shape.append(draw(st.integers(1, 7)))
        kind = draw(st.sampled_from(("none", "block", "cyclic")))
        mesh[axis] = 1 if kind == "none" else draw(st.integers(1, 4))
        if kind == "none":
            dims.append(NotDistributed())
        elif kind == "block":
            dims.append(BlockDim((axis,)))
        else:
            dims.append(CyclicDim((axis,), draw(st.integers(1, 3))))
    return tuple(shape), tuple(dims), mesh


def elements_of_darray(
    rank: int,
    shape: tuple[int, ...],
    dims: tuple[AxisMap, ...],
    counts: tuple[int, ...],
    order: str,
) -> list[int]:
    """Return the elements of an array that MPI's datatype for a rank selects.

    The array holds its own element numbers, counted in the storage order, so that packing it
    decodes the type map. `counts` is the grid of processes, one extent for each dimension.
    """
    numpy = pytest.importorskip("numpy")
    mpi = pytest.importorskip("mpi4py.MPI")
    kinds, arguments = [], []
    for dim in dims:
        match dim:
            case NotDistributed():
                kinds.append(mpi.DISTRIBUTE_NONE)
                arguments.append(mpi.DISTRIBUTE_DFLT_DARG)
            case BlockDim():
                kinds.append(mpi.DISTRIBUTE_BLOCK)
                arguments.append(mpi.DISTRIBUTE_DFLT_DARG)
            case CyclicDim(k=k):
                kinds.append(mpi.DISTRIBUTE_CYCLIC)
                arguments.append(k)
    datatype = mpi.INT.Create_darray(
        prod(counts),
        rank,
        shape,
        kinds,
        arguments,
        counts,
        mpi.ORDER_C if order == "C" else mpi.ORDER_F,
    ).Commit()
    whole = numpy.arange(prod(shape), dtype=numpy.intc)
    part = numpy.empty(datatype.Get_size() // whole.itemsize, dtype=numpy.intc)
    datatype.Pack(whole, part, 0, mpi.COMM_SELF)
    datatype.Free()
    return part.tolist()


def number_in_storage(index: tuple[int, ...], shape: tuple[int, ...], order: str) -> int:
    """Return how many elements are stored before one."""
    pairs = list(zip(index, shape, strict=True))
    number = 0
    for position, extent in pairs if order == "C" else reversed(pairs):
        number = number * extent + position
    return number


def elements_of_part(
    part: tuple[tuple[int, ...], ...], shape: tuple[int, ...], order: str
) -> list[int]:
    """Return the element numbers of a product of indices, in the order they are stored."""
    if order == "C":
        indices = product(*part)
    else:
        indices = (index[::-1] for index in product(*reversed(part)))
    return [number_in_storage(index, shape, order) for index in indices]


@settings(max_examples=150, deadline=None)
@given(grids(), st.sampled_from(("C", "F")))
def test_parts_are_those_of_create_darray(
    grid: tuple[tuple[int, ...], tuple[AxisMap, ...], dict[str, int]], order: str
) -> None:
    shape, dims, mesh = grid
    counts = tuple(mesh.values())
    for rank in range(prod(counts)):
        ours = elements_of_part(local_part(rank, shape, dims, mesh), shape, order)
        assert ours == elements_of_darray(rank, shape, dims, counts, order)


@pytest.mark.parametrize("extent", [1, 2, 3, 5, 7, 8, 12])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "dist", [BlockDim(("row",)), *(CyclicDim(("row",), k) for k in (1, 2, 3, 13))]
)
def test_one_dimension_is_that_of_create_darray(extent: int, ranks: int, dist: AxisMap) -> None:
    for rank in range(ranks):
        theirs = elements_of_darray(rank, (extent,), (dist,), (ranks,), "C")
        assert list(local_indices(rank, extent, ranks, dist)) == theirs


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from(("C", "F")),
)
def test_flattened_axes_are_one_long_axis_of_create_darray(
    extent: int, columns: int, rows: int, cols: int, k: int, order: str
) -> None:
    shape = (extent, columns)
    axes = ("row", "col")
    dims = (CyclicDim(axes, k) if k else BlockDim(axes), NotDistributed())
    for rank in range(rows * cols):
        part = local_part(rank, shape, dims, {"row": rows, "col": cols})
        theirs = elements_of_darray(rank, shape, dims, (rows * cols, 1), order)
        assert elements_of_part(part, shape, order) == theirs


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3), st.integers(1, 3))
def test_dimensions_may_use_the_axes_in_another_order(n: int, m: int, rows: int, cols: int) -> None:
    # rank (r, c) of the mesh is rank (c, r) of a grid whose axes stand as the dimensions use them
    dims = (BlockDim(("col",)), BlockDim(("row",)))
    for row, col in product(range(rows), range(cols)):
        part = local_part(
            rank_at((row, col), (rows, cols)), (n, m), dims, {"row": rows, "col": cols}
        )
        theirs = elements_of_darray(
            rank_at((col, row), (cols, rows)), (n, m), dims, (cols, rows), "C"
        )
        assert elements_of_part(part, (n, m), "C") == theirs


def test_axes_without_a_dimension_hold_copies() -> None:
    mesh = {"row": 2, "col": 3}
    dims = (BlockDim(("col",)), NotDistributed())
    for index in product(range(5), range(2)):
        holders = owners(index, (5, 2), dims, mesh)
        col = owner(index[0], 5, 3, dims[0])
        assert holders == (col, 3 + col)


@settings(max_examples=60)
@given(grids(), st.permutations(AXES))
def test_owners_and_parts_agree(
    grid: tuple[tuple[int, ...], tuple[AxisMap, ...], dict[str, int]], names: list[str]
) -> None:
    shape, dims, extents = grid
    mesh = {name: extents.get(name, 2) for name in names}  # any order, unused axes replicate
    parts = {rank: local_part(rank, shape, dims, mesh) for rank in range(prod(mesh.values()))}
    for index in product(*map(range, shape)):
        holding = tuple(
            rank
            for rank, part in parts.items()
            if all(i in own for i, own in zip(index, part, strict=True))
        )
        assert owners(index, shape, dims, mesh) == holding
        assert len(holding) == prod(mesh.values()) // prod(ranks_along(d, mesh) for d in dims)
