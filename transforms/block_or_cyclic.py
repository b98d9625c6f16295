"""ADV102: deal the indices out in blocks, or cyclically in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.distribution import AxisMap, BlockDim, CyclicDim, NotDistributed
from advisor.finding import Applicability
from advisor.ir.kernel import DeclaredArray, Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.source import Edit, Span

DOCUMENTATION = """\
# ADV102 unbalanced-blocks

**What it does.** Tries blocks and cyclic pieces of 1, 2, 4, ... elements for each distributed
dimension, and names the best piece.

**Why it costs.** A region that shrinks from step to step, as in an elimination, leaves the ranks
that own the first blocks with nothing to do; dealt out cyclically, every rank has work to the end.
But neighbours of cyclic pieces are always elsewhere: every shift by one then sends whole pieces,
and what one rank holds is strided. The piece trades the one against the other.

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

**Models used.** Lines (messages, array statements); the symbolic model for load imbalance.

**References.** Gaussian elimination by blocks and cyclically: the PAMELA compiler's study of
data-parallel programs.
"""

PIECES = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class BlockOrCyclic:
    """The rule ADV102; see its page in `documentation`."""

    code: str = "ADV102"
    name: str = "unbalanced-blocks"
    documentation: str = DOCUMENTATION

    def propose(self, kernel: Kernel) -> Iterator[Proposal]:
        """Yield the other ways to deal out each dimension, for all arrays dealt out alike."""
        dealt = dict.fromkeys(
            (dimension, dim, len(array.spec.dims))
            for array in kernel.arrays.values()
            for dimension, dim in enumerate(array.spec.dims)
            if not isinstance(dim, NotDistributed)
        )
        for dimension, dim, dimensions in dealt:
            arrays = {
                name: array
                for name, array in kernel.arrays.items()
                if len(array.spec.dims) == dimensions and array.spec.dims[dimension] == dim
            }
            yield from _dealt_otherwise(kernel, arrays, dimension, dim)


def _dealt_otherwise(
    kernel: Kernel, arrays: dict[str, DeclaredArray], dimension: int, dim: AxisMap
) -> Iterator[Proposal]:
    names = ", ".join(f"`{name}`" for name in arrays)
    candidates: list[AxisMap] = [BlockDim(dim.axes)]
    candidates += [CyclicDim(dim.axes, piece) for piece in PIECES]
    for other in candidates:
        if other == dim:
            continue
        changed = {
            name: replace(array, spec=replace(array.spec, dims=_with(array, dimension, other)))
            for name, array in arrays.items()
        }
        yield Proposal(
            title=f"deal axis {dimension} of {names} out {_described(other)}",
            reason="the pieces decide how evenly the work stays spread and how much neighbours"
            " exchange",
            span=next(iter(arrays.values())).places.whole,
            variant=kernel.with_arrays({**kernel.arrays, **changed}),
            legality=_legality(kernel, arrays, dimension),
            edits=partial(_edits, kernel, arrays, dimension, other),
        )


def _with(array: DeclaredArray, dimension: int, other: AxisMap) -> tuple[AxisMap, ...]:
    return tuple(
        other if position == dimension else dim for position, dim in enumerate(array.spec.dims)
    )


def _described(dim: AxisMap) -> str:
    if isinstance(dim, CyclicDim):
        return "cyclically" if dim.k == 1 else f"cyclically in pieces of {dim.k}"
    return "in blocks"


def _legality(kernel: Kernel, arrays: dict[str, DeclaredArray], dimension: int) -> Legality:
    places = {
        array.places.dimensions[dimension]
        for array in arrays.values()
        if dimension < len(array.places.dimensions)
    }
    others = {
        span
        for name, array in kernel.arrays.items()
        if name not in arrays
        for span in array.places.dimensions
    }
    if places & (kernel.context.shared | others):
        return Legality(
            Applicability.DISPLAY,
            "the distribution is shared with other kernels or arrays, which would change too",
        )
    return Legality(
        Applicability.SAFE, "the annotation is inert at run time, so no result can change"
    )


def _edits(
    kernel: Kernel, arrays: dict[str, DeclaredArray], dimension: int, other: AxisMap
) -> tuple[Edit, ...]:
    lines = kernel.context.source.splitlines()
    edits: set[Edit] = set()
    for array in arrays.values():
        if dimension >= len(array.places.dimensions):
            return ()
        span = array.places.dimensions[dimension]
        if span.start_line != span.end_line:
            return ()
        line = lines[span.start_line - 1]
        text = _entry(line[span.start_column : span.end_column], other, "#" in line)
        edits.add(Edit(span, text))
        wanted = re.match(r"Cyclic|Block", text)
        if wanted is not None and wanted.group() not in kernel.context.identifiers:
            imported = _import(lines, wanted.group())
            if imported is None:
                return ()
            edits.add(imported)
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _entry(text: str, other: AxisMap, in_comment: bool) -> str:
    """Return the entry of a dimension dealt out otherwise, in the manner of the old one."""
    is_comment = in_comment and not re.search(r"[\"']", text)
    called = re.match(r"((?:\w+\.)*)\w+\s*\((.*)\)$", text, re.DOTALL)
    prefix, inside = called.groups() if called else ("", text)
    axes = re.split(r",\s*(?:k\s*=\s*)?\d+\s*$", inside)[0].strip()
    cyclic = isinstance(other, CyclicDim)
    word = "Cyclic" if cyclic else "Block"
    piece = other.k if isinstance(other, CyclicDim) else 1
    if is_comment:
        return f"{word.lower()}({axes}{f', {piece}' if piece > 1 else ''})"
    return f"{prefix}{word}({axes}{f', k={piece}' if piece > 1 else ''})"


def _import(lines: list[str], name: str) -> Edit | None:
    """Return the edit that imports a name beside what the file imports from ``advisor``."""
    for number, line in enumerate(lines, start=1):
        found = re.match(r"from advisor import (?P<open>\(?)\s*(?P<names>[\w, ]*)", line)
        if found is None:
            continue
        names = [part.strip() for part in found["names"].split(",") if part.strip()]
        if found["open"]:
            column = found.start("open") + 1
            indent = "" if names or number == len(lines) else None
            if indent is None:
                following = lines[number]
                indent = following[: len(following) - len(following.lstrip())]
                return Edit(Span(number + 1, 0, number + 1, 0), f"{indent}{name},\n")
            return Edit(Span(number, column, number, column), f"{name}, ")
        ordered = ", ".join(sorted({*names, name}))
        start = found.start("names")
        return Edit(Span(number, start, number, start + len(found["names"].rstrip())), ordered)
    return None


TRANSFORM = BlockOrCyclic()
