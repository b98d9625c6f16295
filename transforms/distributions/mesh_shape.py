"""ADV103: arrange the ranks otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from advisor.distribution import MeshSpec
from advisor.finding import Applicability
from advisor.ir.kernel import DeclaredArray, Kernel
from advisor.ir.proposal import Family, Legality, Proposal
from advisor.source import Edit
from transforms.distributions.entries import INERT
from transforms.distributions.factors import factorisations
from transforms.distributions.mesh_axes import spreadings

DOCUMENTATION = """\
# ADV103 mesh-shape

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


@dataclass(frozen=True, slots=True)
class MeshShape:
    """The rule ADV103; see its page in `documentation`."""

    code: str = "ADV103"
    name: str = "mesh-shape"
    documentation: str = DOCUMENTATION

    def propose(self, kernel: Kernel) -> Iterator[Proposal]:
        """Yield every other factorisation of the number of ranks, over the same axes or more."""
        yield from spreadings(kernel)
        for mesh in dict.fromkeys(a.spec.mesh for a in kernel.arrays.values()):
            extents = _numbers(mesh)
            if extents is None or len(extents) < 2:
                continue
            yield from _arrangements(kernel, mesh, extents)


def _numbers(mesh: MeshSpec) -> dict[str, int] | None:
    """Return the extents of a mesh; None where one of them is a size."""
    extents = {axis: extent for axis, extent in mesh.axes if isinstance(extent, int)}
    return extents if len(extents) == len(mesh.axes) else None


def _arrangements(kernel: Kernel, mesh: MeshSpec, extents: dict[str, int]) -> Iterator[Proposal]:
    ranks = 1
    for extent in extents.values():
        ranks *= extent
    users = {name: a for name, a in kernel.arrays.items() if a.spec.mesh == mesh}
    symbols = {axis: f"{axis}_ranks" for axis in extents}
    general = _with_mesh(kernel, users, MeshSpec(tuple(symbols.items())))
    first = next(iter(users.values()))
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
            legality=_legality(kernel, users),
            edits=partial(_edits, users, chosen),
            family=Family(general, {symbols[axis]: n for axis, n in chosen.items()}),
        )


def _with_mesh(kernel: Kernel, users: Mapping[str, DeclaredArray], mesh: MeshSpec) -> Kernel:
    changed = {
        name: replace(array, spec=replace(array.spec, mesh=mesh)) for name, array in users.items()
    }
    return kernel.with_arrays({**kernel.arrays, **changed})


def _legality(kernel: Kernel, users: Mapping[str, DeclaredArray]) -> Legality:
    spans = {place for array in users.values() for _, place in array.places.mesh}
    if spans & kernel.context.shared:
        return Legality(
            Applicability.DISPLAY, "other kernels use the same mesh and would be changed too"
        )
    return INERT


def _edits(users: Mapping[str, DeclaredArray], chosen: Mapping[str, int]) -> tuple[Edit, ...]:
    edits: set[Edit] = set()
    for array in users.values():
        if len(array.places.mesh) != len(chosen):
            return ()
        edits |= {Edit(place, str(chosen[axis])) for axis, place in array.places.mesh}
    return tuple(sorted(edits, key=lambda edit: edit.span))


TRANSFORM = MeshShape()
