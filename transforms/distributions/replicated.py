"""ADV104: partition an array of which every rank holds, and goes over, the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.distribution import BlockDim, MeshSpec, NotDistributed
from advisor.ir.kernel import DeclaredArray, Kernel
from advisor.ir.proposal import Proposal
from advisor.ir.statements import written
from advisor.source import Edit
from transforms.distributions.entries import entry_edits, legality_of_entries

DOCUMENTATION = """\
# ADV104 replicated-array

**What it does.** Finds arrays that are the same on every rank of a mesh axis, and tries to
distribute each of their dimensions over that axis instead.

**Why it costs.** What is computed into a replicated array is computed by every rank, all of it:
`P` ranks do `P` times the work of one, and take as long as one. A vector of indices of `N` elements
costs `O(N P)` that way, and what it is computed from must be gathered by all. Partitioned, every
rank does its own part. An array that all ranks only read in full may well be better off replicated.

**Example**

```python
bucket: Annotated[NDArray[np.int64], Dist("P", "M", None, None, on=mesh)]
```

**Use instead**

```python
bucket: Annotated[NDArray[np.int64], Dist("P", "M", Block("rank"), None, on=mesh)]
```

**Fix safety.** The annotation is inert at run time, so no result changes. Where the distribution is
shared with other kernels or arrays, or the array has none that could be changed, the fix is shown
only.

**Models used.** Lines (messages, collectives, array statements).

**References.** Sorting by regular sampling with replicated vectors of indices: the PAMELA
compiler's study of data-parallel programs.
"""


@dataclass(frozen=True, slots=True)
class Replicated:
    """The rule ADV104; see its page in `documentation`."""

    code: str = "ADV104"
    name: str = "replicated-array"
    documentation: str = DOCUMENTATION

    def propose(self, kernel: Kernel) -> Iterator[Proposal]:
        """Yield blocks over each mesh axis that holds copies, for each dimension it could split."""
        meshes = dict.fromkeys(a.spec.mesh for a in kernel.arrays.values() if a.spec.mesh.axes)
        changed = {name for statement in kernel.body for name in written(statement)}
        for group in _alike(kernel, changed):
            first = next(iter(group.values()))
            for mesh in [first.spec.mesh] if first.spec.mesh.axes else meshes:
                yield from _partitions(kernel, group, mesh)


def _alike(kernel: Kernel, changed: set[str]) -> list[dict[str, DeclaredArray]]:
    """Return arrays of the same shape and layout, those together that are computed or read."""
    groups: dict[tuple[object, ...], dict[str, DeclaredArray]] = {}
    for name, array in kernel.arrays.items():
        spec = array.spec
        key = (array.extents, spec.dims, spec.mesh, spec.order, name in changed)
        groups.setdefault(key, {})[name] = array
    return list(groups.values())


def _partitions(
    kernel: Kernel, arrays: dict[str, DeclaredArray], mesh: MeshSpec
) -> Iterator[Proposal]:
    first = next(iter(arrays.values()))
    used = {axis for dim in first.spec.dims for axis in dim.axes}
    free = [axis for axis, extent in mesh.axes if axis not in used and extent != 1]
    names = ", ".join(f"`{name}`" for name in arrays)
    for axis in free:
        for dimension, dim in enumerate(first.spec.dims):
            if not isinstance(dim, NotDistributed):
                continue
            block = BlockDim((axis,))
            changed = {
                name: _with_block(array, dimension, block, mesh) for name, array in arrays.items()
            }
            yield Proposal(
                title=f"distribute axis {dimension} of {names} in blocks over `{axis}`",
                reason="every rank holds all of it now; partitioned, each computes its own part",
                span=first.places.whole,
                variant=kernel.with_arrays({**kernel.arrays, **changed}),
                legality=legality_of_entries(kernel, arrays, (dimension,)),
                edits=partial(_edits, kernel, arrays, dimension, block),
            )


def _with_block(
    array: DeclaredArray, dimension: int, block: BlockDim, mesh: MeshSpec
) -> DeclaredArray:
    dims = tuple(block if d == dimension else dim for d, dim in enumerate(array.spec.dims))
    return replace(array, spec=replace(array.spec, dims=dims, mesh=mesh))


def _edits(
    kernel: Kernel, arrays: dict[str, DeclaredArray], dimension: int, block: BlockDim
) -> tuple[Edit, ...]:
    if any(
        dimension >= len(array.places.dimensions) or not array.spec.mesh.axes
        for array in arrays.values()
    ):
        return ()
    changes = [(array.places.dimensions[dimension], block) for array in arrays.values()]
    return entry_edits(changes, kernel.context)


TRANSFORM = Replicated()
