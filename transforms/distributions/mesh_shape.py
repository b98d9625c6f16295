"""# ADV103 mesh-shape

**What it does.** Tries every arrangement of the same number of ranks as a mesh with the same
axes: 16 ranks as 4 x 4, 2 x 8, 8 x 2, 16 x 1 and 1 x 16. Where a mesh has one axis, so that arrays
are cut into slabs, it also tries to cut them along more dimensions, into pencils or blocks.

**Why it costs.** The faces that blocks exchange are as long as the blocks are, so a square mesh
sends the fewest bytes. But a face across the storage order is packed element by element from as
many cache lines, while one along it is a single run; and a mesh with one rank along an axis
sends nothing there. Extents that a mesh does not divide leave some ranks with less to do than
others, or with nothing.

**Example**

```python
mesh = Mesh(row=4, col=4)
```

**Use instead**

```python
mesh = Mesh(row=16, col=1)
```

**Fix safety.** The annotation is inert at run time, so no result changes. Where other kernels of
the file use the same mesh the edit is shown only, for they would be changed too; so is one that
gives a mesh more axes, for the program that distributes the arrays becomes another. The launch
of the program must agree with the mesh.

**Models used.** Lines (messages, scans, array statements).

**References.** Best aspect ratios by model and by measurement: the study of a parallel spectral
transform code on the Intel Paragon. Rows and columns at different cost: the study of
communication costs with cache effects for ZPL and MPI programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations
from math import prod

from advisor.distribution import ArraySpec, AxisMap, BlockDim, MeshSpec, NotDistributed
from advisor.ir.kernel import Kernel, SourceContext
from advisor.ir.proposal import Legality, Proposal
from advisor.source import Edit
from costdb.records import dataclass, replace
from transforms.distributions.entries import (
    SHARED,
    Arrays,
    are_shared,
    factorisations,
    specified,
    unless_read,
)
from transforms.kit.kernels import displayed
from transforms.kit.rule import KernelRule


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield every other factorisation of the number of ranks, over the same axes or more."""
    yield from spreadings(kernel)
    for mesh in dict.fromkeys(a.spec.mesh for a in kernel.arrays.values()):
        extents = {axis: extent for axis, extent in mesh.axes if isinstance(extent, int)}
        if len(extents) < max(2, len(mesh.axes)):
            continue
        yield from _arrangements(kernel, mesh, extents)


def _arrangements(kernel: Kernel, mesh: MeshSpec, extents: dict[str, int]) -> Iterator[Proposal]:
    ranks = prod(extents.values())
    users = {name: a for name, a in kernel.arrays.items() if a.spec.mesh == mesh}
    first = next(iter(users.values()))
    spans = {place for array in users.values() for _, place in array.places.mesh}
    for shape in factorisations(ranks, len(extents)):
        chosen = dict(zip(extents, shape, strict=True))
        if chosen == extents:
            continue
        shown = ", ".join(f"{axis}={extent}" for axis, extent in chosen.items())
        old = " x ".join(map(str, extents.values()))
        yield Proposal(
            title=f"arrange the {ranks} ranks as {shown}, not {old}",
            reason="the mesh sets which faces neighbours exchange, and how long and how strided"
            " they are",
            span=first.places.whole,
            variant=_with_mesh(kernel, users, MeshSpec(tuple(chosen.items()))),
            legality=unless_read(kernel, users, sorted(spans)),
            edits=partial(_mesh_edits, users, chosen),
        )


def _with_mesh(kernel: Kernel, users: Arrays, mesh: MeshSpec) -> Kernel:
    return specified(kernel, users, lambda spec: replace(spec, mesh=mesh))


def _mesh_edits(users: Arrays, chosen: Mapping[str, int]) -> tuple[Edit, ...]:
    edits: set[Edit] = set()
    for array in users.values():
        if len(array.places.mesh) != len(chosen):
            return ()
        edits |= {Edit(place, str(chosen[axis])) for axis, place in array.places.mesh}
    return tuple(sorted(edits, key=lambda edit: edit.span))


# --- more axes for a mesh that has one: slabs become pencils or blocks


@dataclass(frozen=True, slots=True)
class _Slabs:
    """Arrays that are all cut along the same dimension, into blocks over a mesh of one axis."""

    arrays: Arrays
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
    extents: tuple[int, ...],
) -> Kernel:
    mesh = MeshSpec(tuple(zip(names, extents, strict=True)))
    cut = dict(zip(further, names[1:], strict=True))

    def cut_more(spec: ArraySpec) -> ArraySpec:
        dims = (BlockDim((cut[d],)) if d in cut else dim for d, dim in enumerate(spec.dims))
        return replace(spec, dims=tuple(dims), mesh=mesh)

    return specified(kernel, slabs.arrays, cut_more)


def _legality(kernel: Kernel, slabs: _Slabs, further: tuple[int, ...]) -> Legality:
    places = [array.places for array in slabs.arrays.values()]
    spans = [one.dimensions[d] for one in places for d in further if d < len(one.dimensions)]
    spans += [place for one in places for _, place in one.mesh]
    if are_shared(kernel, slabs.arrays, spans):
        return SHARED
    if any(any(array.spec.halo) for array in slabs.arrays.values()):
        return displayed("the declared halo widths must be extended by hand")
    return displayed(
        "no result changes, but whoever distributes the arrays must do so over a mesh of more axes"
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


TRANSFORM = KernelRule("ADV103", "mesh-shape", __doc__, propose)
