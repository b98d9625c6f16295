"""# ADV203 transform-across-ranks

**What it does.** Finds Fourier transforms along an axis that is distributed, and compares three
ways to do them: transpose there and back for each, transpose once and stay transposed, or exchange
whole parts between pairs of ranks, one butterfly step after the other. To distribute the other
axis from the start is ADV101.

**Why it costs.** A transform needs every element of its axis. A transposition sends each element
once, but in `P - 1` messages from every rank; the butterflies send everything `log2 P` times, in as
few messages. So few ranks and much data want the transposition, many ranks and little data the
butterflies. Two transforms in a row, or a transform and its inverse, need not be transposed back in
between.

**Example**

```python
# signal: c16[N, N] over (block(rank), none)
rows = np.fft.fft(signal, axis=1)
return np.fft.fft(rows, axis=0)
```

**Use instead**

```python
rows = np.fft.fft(signal, axis=1)
# by_columns: c16[N, N] over (none, block(rank))
by_columns[...] = rows
return np.fft.fft(by_columns, axis=0)
```

**Fix safety.** Shown only: which rank finds the result where changes for the caller, and the choice
between algorithms is the library's. No result changes but by rounding, where another algorithm
computes it.

**Models used.** Lines (all-to-alls, messages, array statements).

**References.** Transposed and distributed transforms: the study of a parallel spectral transform
code on the Intel Paragon, whose best algorithm changes with the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.ir.kernel import DeclaredArray, Kernel, Proposal
from advisor.ir.shapes import is_whole
from advisor.ir.statements import Bind, Statement, Store
from advisor.ir.values import Copy, Elementwise, Fourier, Range, Read, Scalar, Value, reads
from advisor.source import Span
from costdb.records import dataclass, only, replace
from transforms.kit import kernels


@dataclass(frozen=True, slots=True)
class _Across:
    """Transforms along a distributed axis, from one statement of the kernel on."""

    first: int
    axis: int
    other: int
    like: DeclaredArray
    span: Span


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield butterflies, and a transposition once."""
    found = _across(kernel)
    if found is None:
        return
    if not any(_has_butterflies(statement) for statement in kernel.body):
        yield _by_butterflies(kernel, found)
    yield _turned(kernel, found)


def _across(kernel: Kernel) -> _Across | None:
    """Return the first transform of the kernel that runs along a distributed axis."""
    layouts: dict[str, DeclaredArray] = dict(kernel.arrays)
    for place, statement in enumerate(kernel.body):
        if not isinstance(statement, Bind | Store):
            continue
        for transform in _transforms(statement.value):
            like = _layout(transform.operand, layouts)
            if like is None or not kernels.is_spread(like.spec, transform.axis):
                continue
            others = [
                d
                for d in range(len(like.extents))
                if d != transform.axis and not kernels.is_spread(like.spec, d)
            ]
            if others:
                return _Across(place, transform.axis, others[0], like, statement.span)
        if isinstance(statement, Bind):
            layout = _layout(statement.value, layouts)
            if layout is not None:
                layouts[statement.name] = layout
    return None


def _transforms(value: Value) -> list[Fourier]:
    """Return the transforms in a value, innermost first."""
    return [part for part in kernels.inner_first(value) if isinstance(part, Fourier)]


def _layout(value: Value, layouts: Mapping[str, DeclaredArray]) -> DeclaredArray | None:
    """Return a declared array beside whose elements those of a value lie."""
    match value:
        case Read(array, region) if array in layouts:
            known = layouts[array]
            return known if all(isinstance(part, Range) for part in region) else None
        case Copy(operand, _) | Fourier(operand, _, _, _, _):
            return _layout(operand, layouts)
        case Elementwise(_, parts):
            found = [_layout(part, layouts) for part in parts if not isinstance(part, Scalar)]
            known_ones = [one for one in found if one is not None]
            return max(known_ones, key=lambda one: len(one.extents), default=None)
    return None


def _has_butterflies(statement: Statement) -> bool:
    return isinstance(statement, Bind | Store) and any(
        transform.butterflies for transform in _transforms(statement.value)
    )


def _by_butterflies(kernel: Kernel, found: _Across) -> Proposal:
    def exchanged(part: object) -> object:
        if isinstance(part, Fourier):
            return replace(part, butterflies=part.axis == found.axis)
        return part

    return Proposal(
        title=f"transform along axis {found.axis} by butterflies between ranks",
        reason="pairs of ranks exchange whole parts in few messages, instead of all with all",
        span=found.span,
        variant=kernel.with_body(kernels.mapped(kernel.body, exchanged)),
        legality=kernels.displayed("which algorithm a transform uses is for its library to say"),
        edits=tuple,
    )


def _turned(kernel: Kernel, found: _Across) -> Proposal:
    """Propose to copy what is transformed into arrays distributed along the other axis."""
    before, after = kernel.body[: found.first], kernel.body[found.first :]
    bound = {statement.name for statement in after if isinstance(statement, Bind)}
    used = [read.array for statement in after for read in kernels.accesses(statement)]
    rank = len(found.like.extents)
    used = [name for name in used if name not in bound and len(kernel.extents(name)) == rank]
    names, variant = kernels.turned(
        dict.fromkeys(used), found.axis, found.other, found.like, kernel
    )
    made = [
        kernels.copied(names[name], name, kernel, found.span)
        for name in names
        if _needs_elements(name, after, kernel)
    ]
    return Proposal(
        title="transpose once, and leave the results so, for all transforms along axis"
        f" {found.axis}",
        reason="between transforms along the same axis nothing need be transposed",
        span=found.span,
        variant=variant.with_body((*before, *made, *kernels.renamed(after, names))),
        legality=kernels.displayed(
            "the arrays to copy into must be declared by hand, and the results lie by the other"
            " axis for the caller"
        ),
        edits=tuple,
    )


def _needs_elements(name: str, statements: tuple[Statement, ...], kernel: Kernel) -> bool:
    """Return whether what an array holds matters, and is not all overwritten unread."""
    for statement in only(Bind | Store, statements):
        if any(read.array == name for read in reads(statement.value)):
            return True
        if isinstance(statement, Store) and statement.array == name:
            return not is_whole(statement.region, kernel.extents(name))
    return False


TRANSFORM = kernels.KernelRule("ADV203", "transform-across-ranks", __doc__, propose)
