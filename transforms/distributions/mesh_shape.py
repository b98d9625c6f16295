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

from advisor.distribution import ArraySpec, BlockDim, MeshSpec, NotDistributed
from advisor.ir.kernel import Kernel, Proposal, SourceContext
from advisor.source import Edit
from costdb.records import replace
from transforms.distributions.entries import (
    SHARED,
    Arrays,
    are_shared,
    factorisations,
    specified,
    unless_read,
)
from transforms.kit.kernels import KernelRule, displayed


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
            variant=specified(
                kernel, users, partial(replace, mesh=MeshSpec(tuple(chosen.items())))
            ),
            legality=unless_read(kernel, users, sorted(spans)),
            edits=partial(_mesh_edits, users, chosen),
        )


def _mesh_edits(users: Arrays, chosen: Mapping[str, int]) -> tuple[Edit, ...]:
    edits: set[Edit] = set()
    for array in users.values():
        if len(array.places.mesh) != len(chosen):
            return ()
        edits |= {Edit(place, str(chosen[axis])) for axis, place in array.places.mesh}
    return tuple(sorted(edits, key=lambda edit: edit.span))


# --- more axes for a mesh that has one: slabs become pencils or blocks


Cuts = Mapping[int, tuple[str, int]]
"""Which axis of a mesh cuts a dimension, and its ranks; the one that is cut now comes first."""


def spreadings(kernel: Kernel) -> Iterator[Proposal]:
    """Yield distributions over more dimensions, the number of ranks kept.

    Only for meshes of one axis whose arrays agree in what is distributed.
    """
    for mesh in dict.fromkeys(array.spec.mesh for array in kernel.arrays.values()):
        match mesh.axes:
            case ((str(axis), int(ranks)),) if ranks > 1:
                users = {name: a for name, a in kernel.arrays.items() if a.spec.mesh == mesh}
                for cuts in _cuts(kernel, users, axis, ranks):
                    yield _over(kernel, users, cuts)


def _cuts(kernel: Kernel, users: Arrays, axis: str, ranks: int) -> Iterator[Cuts]:
    """Yield how slabs may be cut along more dimensions, all arrays alike."""
    (dims, *different) = {array.spec.dims for array in users.values()}
    spread = [d for d, dim in enumerate(dims) if not isinstance(dim, NotDistributed)]
    if different or [dims[d] for d in spread] != [BlockDim((axis,))]:
        return
    taken = kernel.context.identifiers
    numbered = (f"{axis}{number}" for number in range(2, len(taken) + len(dims) + 3))
    names = [axis, *(name for name in numbered if name not in taken)]
    others = [d for d in range(len(dims)) if d not in spread]
    for count in range(1, len(others) + 1):
        for further in combinations(others, count):
            for shape in factorisations(ranks, 1 + count):
                # with a single rank along an axis the mesh has one axis less
                if min(shape) > 1:
                    yield dict(
                        zip((*spread, *further), zip(names, shape, strict=False), strict=True)
                    )


def _over(kernel: Kernel, users: Arrays, cuts: Cuts) -> Proposal:
    mesh, (dimension, *further) = MeshSpec(tuple(cuts.values())), cuts

    def cut_more(spec: ArraySpec) -> ArraySpec:
        dims = (BlockDim((cuts[d][0],)) if d in cuts else dim for d, dim in enumerate(spec.dims))
        return replace(spec, dims=tuple(dims), mesh=mesh)

    places = [array.places for array in users.values()]
    spans = [one.dimensions[d] for one in places for d in further if d < len(one.dimensions)]
    spans += [place for one in places for _, place in one.mesh]
    argued = displayed(
        "no result changes, but whoever distributes the arrays must do so over a mesh of more axes"
    )
    if any(any(array.spec.halo) for array in users.values()):
        argued = displayed("the declared halo widths must be extended by hand")
    axes = " and ".join(map(str, sorted(cuts)))
    shown = " x ".join(str(cuts[d][1]) for d in sorted(cuts))
    return Proposal(
        title=f"distribute over axes {axes}, as {shown} ranks, not over axis {dimension} alone",
        reason="blocks that are cut along more axes have smaller faces, in more messages",
        span=places[0].whole,
        variant=specified(kernel, users, cut_more),
        legality=SHARED if are_shared(kernel, users, spans) else argued,
        edits=partial(_edits, users, cuts, kernel.context),
    )


def _edits(users: Arrays, cuts: Cuts, context: SourceContext) -> tuple[Edit, ...]:
    edits: set[Edit] = set()
    dimension, *further = cuts
    axis, ranks = cuts[dimension]
    extents = ", ".join([str(ranks), *("{}={}".format(*cuts[d]) for d in further)])
    for array in users.values():
        dimensions, mesh = array.places.dimensions, array.places.mesh
        if len(dimensions) != len(array.spec.dims) or len(mesh) != 1 or any(array.spec.halo):
            return ()
        # written as the distributed dimension is: Block("row"), "row", block(row) or row
        pattern = context.text(dimensions[dimension])
        own = re.compile(rf"\b{re.escape(axis)}\b")
        if len(own.findall(pattern)) != 1:
            return ()
        edits |= {Edit(dimensions[d], own.sub(cuts[d][0], pattern)) for d in further}
        edits.add(Edit(mesh[0][1], extents))
    return tuple(sorted(edits, key=lambda edit: edit.span))


TRANSFORM = KernelRule("ADV103", "mesh-shape", __doc__, propose)
