"""# ADV202 recurrence-across-ranks

**What it does.** Finds loops in which every index of a distributed axis needs the one before, and
proposes to do them in chunks of another axis, so that ranks work as a pipeline; or to transpose
before and after, so that the axis is whole on every rank. To distribute the other axis from the
start is ADV101.

**Why it costs.** A rank can only begin when the rank before it is done: all the others wait, and
the loop takes as long as on one rank. In chunks, a rank hands on the edge of one chunk and begins
the next. Small chunks fill the pipeline sooner, large ones send fewer messages: with `C` chunks
over `P` ranks there are `C + P - 1` stages, each with one message.

**Example**

```python
for j in range(1, x.shape[1]):
    x[:, j] = x[:, j] - a[:, j] * x[:, j - 1]
```

**Use instead**

```python
for begin in range(0, x.shape[0], 16):
    for j in range(1, x.shape[1]):
        x[begin : begin + 16, j] = (
            x[begin : begin + 16, j] - a[begin : begin + 16, j] * x[begin : begin + 16, j - 1]
        )
```

**Fix safety.** Each element is computed from the same elements by the same operations, so results
are equal bit for bit. Where several parameters could share memory the fix is unsafe: nothing says
that they do not. A transposition is shown only. The time that the interpreter takes for each
statement is not part of the prediction, and chunks multiply the statements.

**Models used.** Lines (messages, all-to-alls, array statements); the symbolic model for the
pipeline's stages.

**References.** Alternating directions: the PAMELA compiler's study of data-parallel programs, where
the axis that is swept, or the other one, is distributed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from advisor.ir.dependence import carried
from advisor.ir.kernel import Kernel, Legality, Proposal
from advisor.ir.nests import index_name, renamed_index
from advisor.ir.statements import Loop, Store, walk
from advisor.ir.values import (
    Copy,
    Elementwise,
    Point,
    Range,
    Read,
    Scalar,
    Subscript,
    parts_of,
)
from costdb.expr import free_symbols, num, sym
from costdb.records import dataclass, replace
from transforms.kit import kernels
from transforms.kit.rewrite import fresh_name
from transforms.loops.array_statements import edit

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
"""Chunks that are tried."""


@dataclass(frozen=True, slots=True)
class _Recurrence:
    """A loop along a distributed axis, and another axis that all its statements have whole."""

    loop: Loop
    along: int
    across: int
    stored: str


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield pipelines with chunks of several widths, and transpositions."""
    for loop in walk(kernel.body, rewritable=True):
        found = _recurrence(loop, kernel) if isinstance(loop, Loop) else None
        if found is not None:
            for width in WIDTHS:
                yield _in_chunks(kernel, found, width)
            yield _transposed(kernel, found)


def _recurrence(loop: Loop, kernel: Kernel) -> _Recurrence | None:
    stores = [statement for statement in loop.body if isinstance(statement, Store)]
    if not stores or len(stores) < len(loop.body) or loop.step != 1 or loop.stated:
        return None
    if any(store.array not in kernel.arrays for store in stores):
        return None
    parts = [part for store in stores for part in parts_of(store.value)]
    if not all(isinstance(one, Read | Scalar | Copy | Elementwise) for one in parts):
        return None
    if not carried(loop):
        return None
    used = [one for s in stores for one in kernels.accesses(s) if one.region]
    first = stores[0]
    spec = kernel.arrays[first.array].spec
    along = [
        d
        for d, part in enumerate(first.region)
        if kernels.is_spread(spec, d) and _moves(part, loop)
    ]
    if len(along) != 1 or any(one.array not in kernel.arrays for one in used):
        return None
    for across, part in enumerate(first.region):
        extent = kernel.extents(first.array)[across]
        if part == Range(num(0), extent) and not kernels.is_spread(spec, across):
            alike = all(
                len(one.region) == len(first.region)
                and one.region[across] == part
                and isinstance(one.region[along[0]], Point)
                and kernel.extents(one.array)[across] == extent
                and kernel.arrays[one.array].spec.dims == spec.dims
                for one in used
            )
            # the same dimensions are singled out everywhere, so that the others pair
            if (
                alike
                and len({tuple(isinstance(p, Point) for p in one.region) for one in used}) == 1
            ):
                return _Recurrence(loop, along[0], across, first.array)
    return None


def _moves(part: Subscript, loop: Loop) -> bool:
    return isinstance(part, Point) and loop.variable in free_symbols(part.at)


def _names(found: _Recurrence) -> list[str]:
    names = [s.array for s in found.loop.body if isinstance(s, Store)]
    names += [read.array for one in found.loop.body for read in kernels.accesses(one)]
    return list(dict.fromkeys(names))


def _in_chunks(kernel: Kernel, found: _Recurrence, width: int) -> Proposal:
    loop, across = found.loop, found.across
    name = fresh_name("begin", kernel.context.identifiers)
    variable = renamed_index(loop.variable, name)
    texts = {**kernel.context.scalar_texts, variable: name}
    named = replace(kernel, context=replace(kernel.context, scalar_texts=texts))
    part = Range(sym(variable), sym(variable) + width)

    def cut(node: object) -> object:
        if isinstance(node, Read | Store):
            region = (*node.region[:across], part, *node.region[across + 1 :])
            return replace(node, region=region)
        return node

    inner = replace(loop, body=kernels.mapped(loop.body, cut))
    extent = kernel.extents(found.stored)[across]
    chunks = Loop(variable, num(0), extent, width, (inner,), loop.span)
    return kernels.offered(
        kernel,
        title=f"do the recurrence in chunks of {width} along axis {across}, as a pipeline",
        reason="ranks wait for the one before them; in chunks they work at the same time",
        span=loop.span,
        variant=kernel.with_body(kernels.with_statement(kernel.body, loop, (chunks,))),
        argued=_legality(kernel, found),
        edits=partial(edit, loop, (chunks,), named),
    )


def _legality(kernel: Kernel, found: _Recurrence) -> Legality:
    if index_name(found.loop.variable) in kernel.observed:
        return kernels.displayed(
            f"`{index_name(found.loop.variable)}` is used after the loop, which may not run then"
        )
    names = _names(found)
    if len(names) > 1 or set(names) & kernel.aliases:
        shown = ", ".join(f"`{name}`" for name in names)
        return kernels.unsafe(f"results are equal if {shown} share no memory with one another")
    return kernels.safe(
        "every element is computed from the same elements in the same order, bit for bit"
    )


def _transposed(kernel: Kernel, found: _Recurrence) -> Proposal:
    """Propose to copy into arrays distributed along the other axis, and back."""
    loop, written = found.loop, {s.array for s in found.loop.body if isinstance(s, Store)}
    like = kernel.arrays[found.stored]
    others, variant = kernels.turned(_names(found), found.along, found.across, like, kernel)
    there = [kernels.copied(others[name], name, kernel, loop.span) for name in others]
    back = [kernels.copied(name, others[name], variant, loop.span) for name in sorted(written)]
    inner = replace(loop, body=kernels.renamed(loop.body, others))
    body = kernels.with_statement(kernel.body, loop, (*there, inner, *back))
    return Proposal(
        title=f"transpose before the recurrence and after it, so that axis {found.along} is whole",
        reason="with the axis whole on every rank no rank waits; two exchanges pay for it",
        span=loop.span,
        variant=variant.with_body(body),
        legality=kernels.displayed(
            "results stay the same, but the arrays to copy into must be declared by hand"
        ),
        edits=tuple,
    )


TRANSFORM = kernels.KernelRule("ADV202", "recurrence-across-ranks", __doc__, propose)
