"""Who owns which elements, exactly as the datatypes of ``MPI.Datatype.Create_darray`` have it.

One dimension is described by its extent, by the number of ranks it is spread over and by its
:data:`~advisor.distribution.AxisMap`. With extent ``N`` over ``p`` ranks,

- block gives rank ``r`` the elements from ``r*B`` to below ``min(N, (r+1)*B)``, where
  ``B = ceil(N/p)``: the last ranks may get fewer, or none;
- cyclic with pieces of ``k`` gives element ``i`` to rank ``(i // k) % p``;
- a dimension that is not distributed has one rank, which owns it all.

Arrays of several dimensions combine these over a mesh whose ranks are numbered with the last
axis fastest; a dimension over several axes numbers its ranks the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from advisor.distribution import AxisMap, BlockDim, CyclicDim, NotDistributed


def _check(extent: int, ranks: int, dist: AxisMap) -> None:
    if extent < 0:
        raise ValueError(f"an extent must not be negative, got {extent}")
    if ranks < 1:
        raise ValueError(f"a dimension is spread over at least 1 rank, not {ranks}")
    if isinstance(dist, NotDistributed) and ranks != 1:
        raise ValueError(f"a dimension that is not distributed has 1 rank, not {ranks}")


def _check_rank(rank: int, ranks: int) -> None:
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} is not one of 0 to {ranks - 1}")


def _piece(extent: int, ranks: int, dist: AxisMap) -> int:
    """Return how many consecutive elements a rank gets at a time, at least 1."""
    match dist:
        case NotDistributed():
            piece = extent
        case BlockDim():
            piece = -(-extent // ranks)
        case CyclicDim(k=k):
            piece = k
    return max(piece, 1)


def owner(index: int, extent: int, ranks: int, dist: AxisMap) -> int:
    """Return the rank that owns an element of one dimension.

    Parameters
    ----------
    index : int
        From 0 to below `extent`.
    extent, ranks : int
    dist : AxisMap

    Raises
    ------
    ValueError
        When the index is outside, or the extent or ranks make no sense.
    """
    _check(extent, ranks, dist)
    if not 0 <= index < extent:
        raise ValueError(f"index {index} is outside an extent of {extent}")
    return index // _piece(extent, ranks, dist) % ranks


def local_index(index: int, extent: int, ranks: int, dist: AxisMap) -> int:
    """Return where in its owner's part an element lies, counted from 0.

    Parameters and errors are those of :func:`owner`.
    """
    owner(index, extent, ranks, dist)
    piece = _piece(extent, ranks, dist)
    return index // (piece * ranks) * piece + index % piece


def owned_ranges(rank: int, extent: int, ranks: int, dist: AxisMap) -> tuple[range, ...]:
    """Return the runs of consecutive elements that a rank owns, ascending and none empty.

    Raises
    ------
    ValueError
        When the rank is not one of `ranks`, or the extent or ranks make no sense.
    """
    _check(extent, ranks, dist)
    _check_rank(rank, ranks)
    piece = _piece(extent, ranks, dist)
    return tuple(
        range(start, min(start + piece, extent))
        for start in range(rank * piece, extent, piece * ranks)
    )


def local_indices(rank: int, extent: int, ranks: int, dist: AxisMap) -> tuple[int, ...]:
    """Return the elements that a rank owns, ascending. Errors as :func:`owned_ranges`."""
    return tuple(index for run in owned_ranges(rank, extent, ranks, dist) for index in run)


def local_extent(rank: int, extent: int, ranks: int, dist: AxisMap) -> int:
    """Return how many elements a rank owns, in constant time.

    Errors as :func:`owned_ranges`.
    """
    _check(extent, ranks, dist)
    _check_rank(rank, ranks)
    piece = _piece(extent, ranks, dist)
    rounds, rest = divmod(extent, piece * ranks)
    return rounds * piece + min(max(rest - rank * piece, 0), piece)


def largest_local_extent(extent: int, ranks: int, dist: AxisMap) -> int:
    """Return the most elements that any rank owns, which rank 0 always does."""
    return local_extent(0, extent, ranks, dist)


def coordinates(rank: int, extents: Sequence[int]) -> tuple[int, ...]:
    """Return the place of a rank in a grid of ranks, the last coordinate varying fastest."""
    reversed_place = []
    rest = rank
    for extent in reversed(extents):
        rest, coordinate = divmod(rest, extent)
        reversed_place.append(coordinate)
    if rest:
        raise ValueError(f"rank {rank} is outside a grid of {' x '.join(map(str, extents))}")
    return tuple(reversed(reversed_place))


def rank_at(place: Sequence[int], extents: Sequence[int]) -> int:
    """Return the rank at a place of a grid; the inverse of :func:`coordinates`."""
    rank = 0
    for coordinate, extent in zip(place, extents, strict=True):
        _check_rank(coordinate, extent)
        rank = rank * extent + coordinate
    return rank


def ranks_along(dist: AxisMap, mesh: Mapping[str, int]) -> int:
    """Return how many ranks a dimension is spread over."""
    ranks = 1
    for axis in dist.axes:
        ranks *= mesh[axis]
    return ranks


def local_part(
    rank: int, shape: Sequence[int], dims: Sequence[AxisMap], mesh: Mapping[str, int]
) -> tuple[tuple[int, ...], ...]:
    """Return the elements of each dimension whose product one rank of a mesh owns.

    Parameters
    ----------
    rank : int
        In the whole mesh.
    shape : sequence of int
    dims : sequence of AxisMap
    mesh : mapping of str to int
        Extent of each axis, in the order of the mesh.
    """
    place = dict(zip(mesh, coordinates(rank, tuple(mesh.values())), strict=True))
    parts = []
    for extent, dist in zip(shape, dims, strict=True):
        along = rank_at(
            tuple(place[axis] for axis in dist.axes), tuple(mesh[axis] for axis in dist.axes)
        )
        parts.append(local_indices(along, extent, ranks_along(dist, mesh), dist))
    return tuple(parts)


def owners(
    index: Sequence[int], shape: Sequence[int], dims: Sequence[AxisMap], mesh: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the ranks of a mesh that own an element, ascending.

    They are several when the mesh has axes over which nothing is distributed.
    Parameters are those of :func:`local_part`.
    """
    fixed: dict[str, int] = {}
    for position, extent, dist in zip(index, shape, dims, strict=True):
        along = owner(position, extent, ranks_along(dist, mesh), dist)
        place = coordinates(along, tuple(mesh[axis] for axis in dist.axes))
        fixed.update(zip(dist.axes, place, strict=True))
    return tuple(rank_at(place, tuple(mesh.values())) for place in _places(mesh, fixed))


def _places(mesh: Mapping[str, int], fixed: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    return product(
        *((fixed[axis],) if axis in fixed else range(extent) for axis, extent in mesh.items())
    )
