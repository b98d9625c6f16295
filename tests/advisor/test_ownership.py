"""Ownership: what `MPI.Datatype.Create_darray` says, and what owning everything once means."""

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.distribution import AxisMap, BlockDim, CyclicDim, NotDistributed
from tests.advisor.ownership import local_part, owners, ranks_along

AXES = ("row", "col", "layer")


@st.composite
def grids(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[AxisMap, ...], dict[str, int]]:
    """Shape, distributions and mesh of an array whose dimensions use the axes in their order."""
    axes, shape, dims, mesh = list(AXES), [], [], {}
    for _ in range(draw(st.integers(1, 3))):
        shape.append(draw(st.integers(1, 7)))
        own = tuple(axes.pop(0) for _ in range(draw(st.integers(0, min(2, len(axes))))))
        mesh |= {axis: draw(st.integers(1, 3)) for axis in own}
        k = draw(st.integers(0, 3))
        dims.append((CyclicDim(own, k) if k else BlockDim(own)) if own else NotDistributed())
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
    counts = tuple(ranks_along(dim, mesh) for dim in dims)
    for rank in range(prod(counts)):
        ours = elements_of_part(local_part(rank, shape, dims, mesh), shape, order)
        assert ours == elements_of_darray(rank, shape, dims, counts, order)


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
