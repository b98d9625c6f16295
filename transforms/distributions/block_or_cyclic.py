"""# ADV102 unbalanced-blocks

**What it does.** Tries blocks, and cyclic pieces of 1 to 64 elements in powers of two, for each
distributed dimension, and names the best piece.

**Why it costs.** A region that shrinks from step to step, as in an elimination, leaves the ranks
that own the first blocks with nothing to do; dealt out cyclically, every rank has work to the end.
But neighbours of cyclic pieces are always elsewhere: every shift by one then sends whole pieces.
And of a region that shrinks in blocks ever fewer ranks own some, so ever fewer take part when a
pivot is sent to all that need it. The piece trades the one against the other: the more ranks, the
more a step waits for messages, and the less for the busiest of them.

**Example**

```python
Matrix = Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)]
```

**Use instead**

```python
Matrix = Annotated[NDArray[np.float64], Dist("N", "N", None, Cyclic("rank"), on=mesh)]
```

**Fix safety.** The annotation is inert at run time, so no result changes. Where other kernels share
the distribution the edit is shown only.

**Models used.** Lines (messages, broadcasts, array statements); the busiest rank's share of every
step in closed form.

**References.** Gaussian elimination by blocks and cyclically: the PAMELA compiler's study of
data-parallel programs.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.distribution import AxisMap, BlockDim, CyclicDim, NotDistributed
from advisor.ir.dependence import bounds_of
from advisor.ir.kernel import Kernel, Proposal
from advisor.ir.statements import Loop, Scatter, Unknown, walk
from advisor.ir.values import Point
from costdb.expr import free_symbols
from costdb.expr.nodes import Num
from transforms.distributions.entries import dealt, named
from transforms.kit.kernels import KernelRule, accesses

PIECES = (1, 2, 4, 8, 16, 32, 64)


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield the other ways to deal out each dimension, for all arrays dealt out alike."""
    found = dict.fromkeys(
        (dimension, dim, array.spec.mesh, len(array.spec.dims))
        for array in kernel.arrays.values()
        for dimension, dim in enumerate(array.spec.dims)
        if not isinstance(dim, NotDistributed)
    )
    for dimension, dim, mesh, dimensions in found:
        if isinstance(dim, BlockDim) and _is_even(kernel, dimension, dimensions):
            # blocks have the least work, and send the least, where nothing shrinks
            continue
        arrays = {
            name: array
            for name, array in kernel.arrays.items()
            if array.spec.mesh == mesh
            and len(array.spec.dims) == dimensions
            and array.spec.dims[dimension] == dim
        }
        pieces = [CyclicDim(dim.axes, piece) for piece in PIECES]
        others: list[AxisMap] = [BlockDim(dim.axes), *pieces]
        for other in others:
            if other != dim:
                yield dealt(
                    kernel,
                    arrays,
                    dimension,
                    other,
                    f"deal axis {dimension} of {named(arrays)} out {_described(other)}",
                    "the pieces decide how evenly the work stays spread and how much neighbours"
                    " exchange",
                )


def _is_even(kernel: Kernel, dimension: int, dimensions: int) -> bool:
    """Return whether all but a constant part of a dimension takes part in every statement."""
    statements = tuple(walk(kernel.body))
    indices = {loop.variable for loop in statements if isinstance(loop, Loop)}
    for statement in statements:
        if isinstance(statement, Scatter | Unknown):
            return False
        for one in accesses(statement):
            if len(one.region) != dimensions:
                continue
            part = one.region[dimension]
            if isinstance(part, Point):
                if not indices.isdisjoint(free_symbols(part.at)):
                    return False
                continue
            low, high = bounds_of(part)
            if not isinstance(kernel.extents(one.array)[dimension] - (high - low), Num):
                return False
    return True


def _described(dim: AxisMap) -> str:
    if isinstance(dim, CyclicDim):
        return "cyclically" if dim.k == 1 else f"cyclically in pieces of {dim.k}"
    return "in blocks"


TRANSFORM = KernelRule("ADV102", "unbalanced-blocks", __doc__, propose)
