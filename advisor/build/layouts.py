"""Who owns what in a built program, and how the axes of what is computed lie on ranks."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.analysis.facts import NotPriced
from advisor.analysis.owners import place, value_placement
from advisor.analysis.placement import Placement, declared_placement
from advisor.build.text import NotBuiltError
from advisor.distribution import AxisMap, BlockDim, MeshSpec, NotDistributed
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Bind, Rename, walk
from advisor.ir.values import Value
from costdb.expr import ONE, ZERO, Expr
from costdb.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Spread:
    """How a dimension of an index space is dealt out over ranks."""

    extent: Expr
    dim: AxisMap
    mesh: MeshSpec

    @property
    def is_block(self) -> bool:
        """Whether each rank has one piece."""
        return isinstance(self.dim, BlockDim)

    def shares(self, other: Spread) -> bool:
        """Return whether ranks differ along both."""
        return self.mesh != other.mesh or not set(self.dim.axes).isdisjoint(other.dim.axes)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of what a statement computes: `count` elements, all or a rank's part of them.

    Attributes
    ----------
    spread : Spread or None
        None where every rank computes all of it.
    low : Expr
        Where in the index space that is spread the first element lies.
    count : Expr
    step : int
        How far apart in that space neighbours are.
    moved : tuple of (str, Expr)
        What is done to the positions along it, outermost first: ``roll`` by an amount, ``flip``
        of an extent, ``wrap`` into an extent.
    """

    spread: Spread | None
    low: Expr
    count: Expr
    step: int = 1
    moved: tuple[tuple[str, Expr, Expr], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether its elements are neighbours, in their own places."""
        return not self.moved and self.step == 1


Frame = tuple[Axis, ...]
SINGLE = Axis(None, ZERO, ONE)


def spread_of(placement: Placement, d: int) -> Spread | None:
    """Return how a dimension is dealt out; None where every rank has all of it."""
    if isinstance(placement.dims[d], NotDistributed):
        return None
    return Spread(placement.template[d], placement.dims[d], placement.mesh)


def frame_of(placement: Placement, extents: tuple[Expr, ...]) -> Frame:
    """Return the axes of an array that every rank computes its own part of."""
    return tuple(
        Axis(spread_of(placement, d), placement.origin[d], count) for d, count in enumerate(extents)
    )


def everywhere(extents: tuple[Expr, ...]) -> Placement:
    """Return the placement of an array that every rank has all of."""
    none = tuple(NotDistributed() for _ in extents)
    return Placement(extents, tuple(ZERO for _ in extents), none, MeshSpec(()), "C")


def natural(value: Value, placed: Mapping[str, Placement], extents: tuple[Expr, ...]) -> Placement:
    """Return where a value's elements are computed: by owners of operands, or by every rank."""
    try:
        found = value_placement(value, placed)
    except NotPriced:
        found = None
    if found is None or len(found.template) != len(extents):
        return everywhere(extents)
    # of what is broadcast, an operand's dimension of length 1 says nothing
    dims = tuple(
        NotDistributed() if template == ONE != extent else dim
        for dim, template, extent in zip(found.dims, found.template, extents, strict=True)
    )
    template = tuple(
        extent if isinstance(dim, NotDistributed) else own
        for dim, own, extent in zip(dims, found.template, extents, strict=True)
    )
    return replace(found, dims=dims, template=template)


def whole_along(placement: Placement, extents: tuple[Expr, ...], axis: int) -> Placement:
    """Return a placement with one axis whole on every rank, and another dealt out in its place."""
    dims: list[AxisMap] = list(placement.dims)
    moved = dims[axis].axes
    dims[axis] = NotDistributed()
    others = [d for d in range(len(dims)) if d != axis]
    if others:
        free = [d for d in others if isinstance(dims[d], NotDistributed)]
        target = (free or others)[0]
        dims[target] = BlockDim((*dims[target].axes, *moved))
    origin = tuple(ZERO for _ in extents)
    return Placement(extents, origin, tuple(dims), placement.mesh, placement.order)


def in_blocks(placement: Placement, axis: int) -> Placement:
    """Return a placement with one axis in blocks."""
    dims = list(placement.dims)
    if dims[axis].axes:
        dims[axis] = BlockDim(dims[axis].axes)
    return replace(placement, dims=tuple(dims))


def placements(kernel: Kernel) -> dict[str, Placement]:
    """Return where every array of a kernel lives.

    Raises
    ------
    NotBuiltError
        Names change places that are declared in different ways.
    """
    try:
        placed = place(kernel)
    except NotPriced:
        placed = {name: declared_placement(array) for name, array in kernel.arrays.items()}
    for one in walk(kernel.body):
        if isinstance(one, Bind) and one.name not in placed:
            placed[one.name] = natural(one.value, placed, kernel.extents(one.name))
    groups: list[set[str]] = []
    for one in walk(kernel.body):
        if isinstance(one, Rename):
            joined = set(one.names).union(*(g for g in groups if g & one.names))
            groups = [g for g in groups if not g & one.names] + [joined]
    for group in groups:
        declared = [name for name in sorted(group) if name in kernel.arrays]
        first = placed[(declared or sorted(group))[0]]
        if any(placed[name] != first for name in declared):
            span = next(s.span for s in walk(kernel.body) if isinstance(s, Rename))
            raise NotBuiltError("names change places of arrays distributed in other ways", span)
        placed.update(dict.fromkeys(group, first))
    return placed
