"""# ADV403 shared-increments

**What it does.** Finds increments of elements at places that only the data know, of an array that
is distributed: a histogram. It proposes that every rank counts into an array of its own, and that
these are added up in one reduction.

**Why it costs.** An increment of an element that another rank owns is a remote read and a remote
write. With `P` ranks that is all but one in `P` of them. Counted privately, all increments are
local, and one reduction over the array combines them.

**Example**

```python
np.add.at(counts, keys, 1)
```

**Use instead**

```python
counts += np.bincount(keys, minlength=counts.shape[0])
```

**When it stays quiet.** Increments by anything but 1, arrays of other than whole numbers, tables of
more than one dimension: sums of weights would come in another order.

**Fix safety.** Unsafe: `np.bincount` refuses negative places, which `np.add.at` counts from the
end. For places from 0 on, results are equal bit for bit.

**Models used.** PGAS (remote references by pattern, where the profile has their rates; where it has
none, each is a message), lines (collectives).

**References.** Histogram by private counts: the performance model for Unified Parallel C.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none, whole
from advisor.ir.statements import Loop, Scatter, Statement, Store
from advisor.ir.values import Elementwise, Read, Scalar, Tally
from advisor.source import Edit
from transforms.kit.kernels import compiled, type_of, with_statement
from transforms.kit.rewrite import first_line, replace_statement, stands_alone, statement_at
from transforms.kit.rule import KernelRule
from transforms.loops.array_text import read_text


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield private counts for every scattered increment."""
    for statement in _scatters(kernel.body):
        found = _proposal(statement, kernel)
        if found is not None:
            yield found


def _scatters(body: tuple[Statement, ...]) -> Iterator[Scatter]:
    for statement in body:
        if isinstance(statement, Scatter) and statement.operation == "add":
            yield statement
        elif isinstance(statement, Loop):
            yield from _scatters(statement.body)


def _proposal(scatter: Scatter, kernel: Kernel) -> Proposal | None:
    array = scatter.array
    ones = isinstance(scatter.value, Scalar) and scatter.value.text == "1"
    places = type_of(scatter.places, kernel)
    if not ones or array not in kernel.arrays or len(places.extents) != 1:
        return None
    if kind_of_or_none(kernel.dtype(array)) is not Kind.INTEGER or kernel.dtype(array) == "uint64":
        return None
    if not isinstance(scatter.places, Read) or scatter.places.array == array:
        return None
    extents = kernel.extents(array)
    region = whole(extents)
    counts = Tally(scatter.places, None, extents[0], "int64")
    added = Elementwise("add", (Read(array, region), counts))
    store = Store(array, region, added, scatter.span, in_place=True)
    left_alone = compiled(kernel)
    return Proposal(
        title=f"count into an array of each rank's own, and add these to `{array}` at once",
        reason="increments of what other ranks own are a remote read and a remote write each;"
        " private ones are local, and one reduction combines them",
        span=first_line(scatter.span, kernel.context),
        variant=kernel.with_body(with_statement(kernel.body, scatter, (store,))),
        legality=left_alone
        or Legality(
            Applicability.UNSAFE,
            "results are equal bit for bit where no place is negative, which np.bincount refuses",
        ),
        edits=partial(_edits, scatter, kernel),
    )


def _edits(scatter: Scatter, kernel: Kernel) -> tuple[Edit, ...]:
    context, span = kernel.context, scatter.span
    module = context.array_module
    node = statement_at(span, context)
    if node is None or module is None or not stands_alone(context, span):
        return ()
    assert isinstance(scatter.places, Read)
    if scatter.by_element:
        text = read_text(scatter.places, (), kernel)
    else:
        call = node.value if isinstance(node, ast.Expr) else None
        at = call.args[1] if isinstance(call, ast.Call) and len(call.args) == 3 else None
        text = ast.get_source_segment(context.source, at) if at is not None else None
    if text is None or "\n" in text:
        return ()
    array = scatter.array
    line = f"{array} += {module}.bincount({text}, minlength={array}.shape[0])"
    return (replace_statement(span, [line], context),)


TRANSFORM = KernelRule("ADV403", "shared-increments", __doc__, propose)
