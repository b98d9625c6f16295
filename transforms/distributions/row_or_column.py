"""# ADV101 strided-faces

**What it does.** Looks at the axis along which a kernel's arrays are distributed and at their
storage order, and proposes the other one where neighbours would exchange contiguous faces, or
none at all.

**Why it costs.** In an array stored by rows, a row is one run of memory, while each element of a
column lies on a cache line of its own: a column of 4-byte integers with 64-byte lines touches 16
times the lines of a row. Packing it for a message costs accordingly. And a statement that only
reaches along one axis sends nothing when that axis is not distributed.

**Example**

```python
Field = Annotated[NDArray[np.int32], Dist("N", "N", None, Block("rank"), on=Mesh(rank=16))]
```

**Use instead**

```python
Field = Annotated[NDArray[np.int32], Dist("N", "N", Block("rank"), None, on=Mesh(rank=16))]
```

**Fix safety.** Annotations are inert at run time, so changing the distribution in one is safe:
no result changes. Changing the storage order is shown only: whoever allocates the array must
allocate it that way.

**Models used.** Lines (messages, scans, array statements).

**References.** The study of communication costs with cache effects for ZPL and MPI programs,
whose row-and-column experiment on the IBM SP-2 found a factor of about 8 in transfer time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

from advisor.distribution import ArraySpec, NotDistributed
from advisor.ir.kernel import DeclaredArray, Kernel, Proposal, SourceContext
from advisor.source import Edit
from transforms.distributions.entries import INERT, legality_of_entries, named, specified
from transforms.kit.kernels import KernelRule, displayed

_Entry = TypeVar("_Entry")
_ORDINALS = ("rows", "columns")


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield every other single distributed axis, and the other storage order."""
    spread = {name: a for name, a in kernel.arrays.items() if _axis(a.spec) is not None}
    if not spread:
        return
    first = next(iter(spread.values()))
    axis, dimensions = _axis(first.spec), len(first.spec.dims)
    alike = {
        name: array
        for name, array in spread.items()
        if _axis(array.spec) == axis and len(array.spec.dims) == dimensions
    }
    assert axis is not None
    for other in range(dimensions):
        if other != axis:
            yield _redistributed(kernel, alike, axis, other)
    several = {n: a for n, a in kernel.arrays.items() if len(a.spec.dims) > 1}
    if several:
        yield _reordered(kernel, several)


def _axis(spec: ArraySpec) -> int | None:
    """Return the only distributed dimension of an array with others, if there is just one."""
    spread = [d for d, dim in enumerate(spec.dims) if not isinstance(dim, NotDistributed)]
    return spread[0] if len(spread) == 1 and len(spec.dims) > 1 else None


def _described(axis: int, dimensions: int) -> str:
    return f"by {_ORDINALS[axis]}" if dimensions == 2 else f"along axis {axis}"


def _redistributed(
    kernel: Kernel, arrays: dict[str, DeclaredArray], axis: int, other: int
) -> Proposal:
    dimensions = len(next(iter(arrays.values())).spec.dims)
    legality = legality_of_entries(kernel, arrays, range(dimensions))
    if legality is INERT and any(any(array.spec.halo) for array in arrays.values()):
        words = "the declared halo widths must be moved along by hand"
        legality = displayed(words)

    def swapped(spec: ArraySpec) -> ArraySpec:
        dims, halo = _exchanged(spec.dims, axis, other), _exchanged(spec.halo, axis, other)
        return replace(spec, dims=dims, halo=halo)

    return Proposal(
        title=f"distribute {named(arrays)} {_described(other, dimensions)},"
        f" not {_described(axis, dimensions)}",
        reason="what neighbours exchange is then contiguous in memory, or need not be exchanged at"
        " all",
        span=next(iter(arrays.values())).places.whole,
        variant=specified(kernel, arrays, swapped),
        legality=legality,
        edits=partial(_swap_edits, tuple(arrays.values()), axis, other, kernel.context),
    )


def _exchanged(entries: tuple[_Entry, ...], axis: int, other: int) -> tuple[_Entry, ...]:
    changed = list(entries)
    changed[axis], changed[other] = changed[other], changed[axis]
    return tuple(changed)


def _swap_edits(
    arrays: tuple[DeclaredArray, ...], axis: int, other: int, context: SourceContext
) -> tuple[Edit, ...]:
    edits: set[Edit] = set()
    for array in arrays:
        spans = array.places.dimensions
        if len(spans) != len(array.spec.dims) or any(array.spec.halo):
            return ()
        edits.add(Edit(spans[axis], context.text(spans[other])))
        edits.add(Edit(spans[other], context.text(spans[axis])))
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _reordered(kernel: Kernel, arrays: dict[str, DeclaredArray]) -> Proposal:
    def reordered(spec: ArraySpec) -> ArraySpec:
        return replace(spec, order="F" if spec.order == "C" else "C")

    first = next(iter(arrays.values()))
    wanted = reordered(first.spec).order
    return Proposal(
        title=f'store {named(arrays)} with order="{wanted}"',
        reason="the faces that neighbours exchange are then contiguous in memory",
        span=first.places.whole,
        variant=specified(kernel, arrays, reordered),
        legality=displayed(
            "results stay the same, but whoever allocates the arrays must store them that way"
        ),
        edits=tuple,
    )


TRANSFORM = KernelRule("ADV101", "strided-faces", __doc__, propose)
