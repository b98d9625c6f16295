"""Who owns which elements, element by element, as ``MPI.Datatype.Create_darray`` has it.

With extent ``N`` over ``p`` ranks, block gives rank ``r`` the elements from ``r*B`` to below
``min(N, (r+1)*B)``, where ``B = ceil(N/p)``, and cyclic with pieces of ``k`` gives element ``i`` to
rank ``(i // k) % p``. Ranks of a mesh are numbered with the last axis fastest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from advisor.distribution import AxisMap, BlockDim, CyclicDim


def owner(index: int, extent: int, ranks: int, dist: AxisMap) -> int:
    """Return the rank that owns an element of one dimension."""
    assert 0 <= index < extent
    piece = dist.k if isinstance(dist, CyclicDim) else extent
    if isinstance(dist, BlockDim):
        piece = -(-extent // ranks)
    return index // piece % ranks


def local_indices(rank: int, extent: int, ranks: int, dist: AxisMap) -> tuple[int, ...]:
    """Return the elements that a rank owns, ascending."""
    return tuple(i for i in range(extent) if owner(i, extent, ranks, dist) == rank)


def local_index(index: int, extent: int, ranks: int, dist: AxisMap) -> int:
    """Return where in its owner's part an element lies, counted from 0."""
    holder = owner(index, extent, ranks, dist)
    return local_indices(holder, extent, ranks, dist).index(index)


def coordinates(rank: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Return the place of a rank in a grid of ranks."""
    return list(product(*map(range, extents)))[rank]


def rank_at(place: Sequence[int], extents: Sequence[int]) -> int:
    """Return the rank at a place of a grid."""
    return list(product(*map(range, extents))).index(tuple(place))


def ranks_along(dist: AxisMap, mesh: Mapping[str, int]) -> int:
    """Return how many ranks a dimension is spread over."""
    return prod(mesh[axis] for axis in dist.axes)


def local_part(
    rank: int, shape: Sequence[int], dims: Sequence[AxisMap], mesh: Mapping[str, int]
) -> tuple[tuple[int, ...], ...]:
    """Return the elements of each dimension whose product one rank of a mesh owns."""
    place = dict(zip(mesh, coordinates(rank, [*mesh.values()]), strict=True))
    parts = []
    for extent, dist in zip(shape, dims, strict=True):
        along = rank_at([place[axis] for axis in dist.axes], [mesh[axis] for axis in dist.axes])
        parts.append(local_indices(along, extent, ranks_along(dist, mesh), dist))
    return tuple(parts)


def owners(
    index: Sequence[int], shape: Sequence[int], dims: Sequence[AxisMap], mesh: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the ranks of a mesh that own an element: several where axes hold copies."""
    fixed: dict[str, int] = {}
    for position, extent, dist in zip(index, shape, dims, strict=True):
        along = owner(position, extent, ranks_along(dist, mesh), dist)
        fixed.update(zip(dist.axes, coordinates(along, [mesh[a] for a in dist.axes]), strict=True))
    places = product(*((fixed[a],) if a in fixed else range(n) for a, n in mesh.items()))
    return tuple(rank_at(place, [*mesh.values()]) for place in places)
