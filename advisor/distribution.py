"""How an array is distributed over a mesh of ranks, the same for annotations and comments."""

from __future__ import annotations

from typing import Literal

from advisor.annotations import Block, Cyclic, Dist, contradictions
from advisor.numpy_table import UnknownDtype, dtype_of
from costdb.records import dataclass

StorageOrder = Literal["C", "F"]


@dataclass(frozen=True, slots=True)
class NotDistributed:
    """Every rank holds the dimension whole."""

    @property
    def axes(self) -> tuple[str, ...]:
        """No mesh axis."""
        return ()


@dataclass(frozen=True, slots=True)
class BlockDim:
    """Consecutive pieces of ``ceil(extent / ranks)`` elements, one for each rank in order.

    Attributes
    ----------
    axes : tuple of str
        Mesh axes that the dimension is spread over; of several the last varies fastest.
    """

    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CyclicDim:
    """Pieces of `k` consecutive elements, dealt to the ranks in turn.

    Attributes
    ----------
    axes : tuple of str
        As for :class:`BlockDim`.
    k : int
        Elements in a piece, at least 1.
    """

    axes: tuple[str, ...]
    k: int = 1


AxisMap = NotDistributed | BlockDim | CyclicDim


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """A grid of ranks, numbered with the last axis fastest.

    Attributes
    ----------
    axes : tuple of (str, int or str)
        Name and extent of each axis; the extent is a number or the name of a size.
        Empty where nothing is distributed.
    """

    axes: tuple[tuple[str, int | str], ...] = ()

    def ranks_along(self, axes: tuple[str, ...]) -> str:
        """Return how many ranks the named axes have together, as an expression in text.

        Raises
        ------
        KeyError
            When the mesh lacks an axis; :func:`check_spec` refuses such a specification.
        """
        extents = dict(self.axes)
        return "*".join(str(extents[axis]) for axis in axes) or "1"


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array's shape, element type and distribution.

    Attributes
    ----------
    name : str
        Name of the array in its kernel.
    dtype : str or None
        NumPy's name or code (:func:`advisor.numpy_table.dtype_of`); None where nothing says it.
    shape : tuple of str
        Extent of each dimension, an expression over sizes.
    dims : tuple of AxisMap
        Distribution of each dimension. Mesh axes that none of them names hold copies.
    mesh : MeshSpec
    order : {"C", "F"}
        Storage order of the array and of each rank's part.
    halo : tuple of int
        Width for each dimension of the rim of neighbours' elements that each rank keeps.
    """

    name: str
    dtype: str | None
    shape: tuple[str, ...]
    dims: tuple[AxisMap, ...]
    mesh: MeshSpec
    order: StorageOrder
    halo: tuple[int, ...]


def _axis_map(dim: Block | Cyclic | None) -> AxisMap:
    match dim:
        case None:
            return NotDistributed()
        case Block():
            return BlockDim(dim.axes)
        case Cyclic():
            return CyclicDim(dim.axes, dim.k)


def spec_of_dist(name: str, dist: Dist, dtype: str | None = None) -> ArraySpec:
    """Return the specification that an annotation gives.

    Parameters
    ----------
    name : str
        Name of the annotated parameter or variable.
    dist : Dist
    dtype : str, optional
        Element type that the annotated type states. ``Dist(dtype=...)`` wins over it.
    """
    return ArraySpec(
        name=name,
        dtype=dist.dtype if dist.dtype is not None else dtype,
        shape=tuple(str(extent) for extent in dist.shape),
        dims=tuple(_axis_map(dim) for dim in dist.dims),
        mesh=MeshSpec(() if dist.on is None else dist.on.axes),
        order=dist.order,
        halo=dist.halo,
    )


def check_spec(spec: ArraySpec) -> list[str]:
    """Return the contradictions within a specification, one line each; none when it is sound."""
    problems = contradictions(
        spec.shape,
        [(dim.axes, dim.k if isinstance(dim, CyclicDim) else None) for dim in spec.dims],
        spec.mesh.axes,
        spec.order,
        spec.halo,
    )
    if spec.dtype is not None:
        try:
            dtype_of(spec.dtype)
        except UnknownDtype as unknown:
            problems.append(str(unknown))
    return problems
