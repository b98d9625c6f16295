"""# ADV104 replicated-array

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

from __future__ import annotations

from collections.abc import Iterator

from advisor.distribution import BlockDim, MeshSpec, NotDistributed
from advisor.ir.kernel import DeclaredArray, Kernel, Proposal
from advisor.ir.statements import written
from transforms.distributions.entries import Arrays, dealt, named
from transforms.kit.kernels import KernelRule


def propose(kernel: Kernel) -> Iterator[Proposal]:
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


def _partitions(kernel: Kernel, arrays: Arrays, mesh: MeshSpec) -> Iterator[Proposal]:
    first = next(iter(arrays.values()))
    used = {axis for dim in first.spec.dims for axis in dim.axes}
    for axis in (axis for axis, extent in mesh.axes if axis not in used and extent != 1):
        for dimension, dim in enumerate(first.spec.dims):
            if isinstance(dim, NotDistributed):
                yield dealt(
                    kernel,
                    arrays,
                    dimension,
                    BlockDim((axis,)),
                    f"distribute axis {dimension} of {named(arrays)} in blocks over `{axis}`",
                    "every rank holds all of it now; partitioned, each computes its own part",
                    mesh,
                )


TRANSFORM = KernelRule("ADV104", "replicated-array", __doc__, propose)
