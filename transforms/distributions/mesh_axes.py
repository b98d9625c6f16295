"""More axes for a mesh that has one: slabs become pencils or blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from advisor.distribution import AxisMap, BlockDim, MeshSpec, NotDistributed
from advisor.finding import Applicability
from advisor.ir.kernel import DeclaredArray, Kernel, SourceContext
from advisor.ir.proposal import Family, Legality, Proposal
from advisor.source import Edit, Span
from transforms.distributions.factors import factorisations


@dataclass(frozen=True, slots=True)
class _Slabs:
    """Arrays that are all cut along the same dimension, into blocks over a mesh of one axis."""

    arrays: Mapping[str, DeclaredArray]
    dimension: int
    axis: str
    ranks: int

    @property
    def dimensions(self) -> int:
        return len(next(iter(self.arrays.values())).spec.dims)


def spreadings(kernel: Kernel) -> Iterator[Proposal]:
    """Yield distributions over more dimensions, the number of ranks kept.

    Only for meshes of one axis whose arrays agree in what is distributed.
    """
    for mesh in dict.fromkeys(array.spec.mesh for array in kernel.arrays.values()):
        slabs = _slabs(kernel, mesh)
        if slabs is None:
            continue
        others = [d for d in range(slabs.dimensions) if d != slabs.dimension]
        for count in range(1, len(others) + 1):
            for further in combinations(others, count):
                yield from _over(kernel, slabs, further)


def _slabs(kernel: Kernel, mesh: MeshSpec) -> _Slabs | None:
    match mesh.axes:
        case ((str(axis), int(ranks)),) if ranks > 1:
            pass
        case _:
            return None
    users = {name: a for name, a in kernel.arrays.items() if a.spec.mesh == mesh}
    cuts = {_cut(array.spec.dims, axis) for array in users.values()}
    (cut, *different) = cuts
    lengths = {len(array.spec.dims) for array in users.values()}
    if cut is None or different or len(lengths) > 1:
        return None
    return _Slabs(users, cut, axis, ranks)


def _cut(dims: tuple[AxisMap, ...], axis: str) -> int | None:
    """Return the dimension in blocks over the axis; None where that is not all there is."""
    spread = [d for d, dim in enumerate(dims) if not isinstance(dim, NotDistributed)]
    return spread[0] if len(spread) == 1 and dims[spread[0]] == BlockDim((axis,)) else None


def _over(kernel: Kernel, slabs: _Slabs, further: tuple[int, ...]) -> Iterator[Proposal]:
    names = (slabs.axis, *_fresh(slabs.axis, len(further), kernel.context.identifiers))
    symbols = tuple(f"{name}_ranks" for name in names)
    general = _spread(kernel, slabs, further, names, symbols)
    cut = {slabs.dimension: names[0], **dict(zip(further, names[1:], strict=True))}
    for shape in factorisations(slabs.ranks, len(names)):
        # with a single rank along an axis the mesh has one axis less
        if min(shape) == 1:
            continue
        shown = " x ".join(str(shape[names.index(cut[d])]) for d in sorted(cut))
        axes = " and ".join(str(d) for d in sorted(cut))
        yield Proposal(
            title=f"distribute over axes {axes}, as {shown} ranks, not over axis"
            f" {slabs.dimension} alone",
            reason="blocks that are cut along more axes have smaller faces, in more messages",
            span=next(iter(slabs.arrays.values())).places.whole,
            variant=_spread(kernel, slabs, further, names, shape),
            legality=_legality(kernel, slabs, further),
            edits=partial(_edits, slabs, further, names, shape, kernel.context),
            family=Family(general, dict(zip(symbols, shape, strict=True))),
        )


def _fresh(axis: str, count: int, taken: frozenset[str]) -> tuple[str, ...]:
    candidates = (f"{axis}{number}" for number in range(2, len(taken) + count + 3))
    free = [name for name in candidates if name not in taken]
    return tuple(free[:count])


def _spread(
    kernel: Kernel,
    slabs: _Slabs,
    further: tuple[int, ...],
    names: tuple[str, ...],
    extents: tuple[int, ...] | tuple[str, ...],
) -> Kernel:
    mesh = MeshSpec(tuple(zip(names, extents, strict=True)))
    cut = dict(zip(further, names[1:], strict=True))
    changed = {}
    for name, array in slabs.arrays.items():
        dims = tuple(
            BlockDim((cut[d],)) if d in cut else dim for d, dim in enumerate(array.spec.dims)
        )
        changed[name] = replace(array, spec=replace(array.spec, dims=dims, mesh=mesh))
    return kernel.with_arrays({**kernel.arrays, **changed})


def _legality(kernel: Kernel, slabs: _Slabs, further: tuple[int, ...]) -> Legality:
    own = {span for array in slabs.arrays.values() for span in _places(array, further)}
    others = {
        span
        for name, array in kernel.arrays.items()
        if name not in slabs.arrays
        for span in (*array.places.dimensions, *(place for _, place in array.places.mesh))
    }
    if own & (kernel.context.shared | others):
        return Legality(
            Applicability.DISPLAY,
            "the distribution or the mesh is shared with other kernels or arrays, which would"
            " change too",
        )
    if any(any(array.spec.halo) for array in slabs.arrays.values()):
        return Legality(Applicability.DISPLAY, "the declared halo widths must be extended by hand")
    return Legality(
        Applicability.DISPLAY,
        "no result changes, but whoever distributes the arrays must do so over a mesh of more axes",
    )


def _places(array: DeclaredArray, further: tuple[int, ...]) -> tuple[Span, ...]:
    places = array.places
    return (
        *(places.dimensions[d] for d in further if d < len(places.dimensions)),
        *(place for _, place in places.mesh),
    )


def _edits(
    slabs: _Slabs,
    further: tuple[int, ...],
    names: tuple[str, ...],
    shape: tuple[int, ...],
    context: SourceContext,
) -> tuple[Edit, ...]:
    edits: set[Edit] = set()
    extents = ", ".join(
        (str(shape[0]), *(f"{name}={n}" for name, n in zip(names[1:], shape[1:], strict=True)))
    )
    for array in slabs.arrays.values():
        dimensions = array.places.dimensions
        mesh = array.places.mesh
        if len(dimensions) != slabs.dimensions or len(mesh) != 1 or any(array.spec.halo):
            return ()
        # written as the distributed dimension is: Block("row"), "row", block(row) or row
        pattern = context.text(dimensions[slabs.dimension])
        own = re.compile(rf"\b{re.escape(slabs.axis)}\b")
        if len(own.findall(pattern)) != 1:
            return ()
        edits |= {
            Edit(dimensions[d], own.sub(name, pattern))
            for d, name in zip(further, names[1:], strict=True)
        }
        edits.add(Edit(mesh[0][1], extents))
    return tuple(sorted(edits, key=lambda edit: edit.span))
