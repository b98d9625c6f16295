"""# ADV604 wrong-collective

**What it does.** Finds collectives that move more than is used of it: a broadcast of a whole array
of which every rank uses its block (`Scatter`), a sum of which every rank uses its block
(`Reduce_scatter_block`), a sum over arrays that are zero but for the own block (`Allgather`), a
field that is gathered for one number (`reduce`, `allreduce`), a field that is gathered on all ranks
but used on one (`Gather`), and a field that is gathered in every step but used behind the loop
only.

**Why it costs.** The time of a collective grows with what it moves. A scatter moves `n` elements
from the root, a broadcast `n` for every rank; a sum of padded arrays moves and adds a zero for
every element and every other rank; and a number is less than a field.

**Example**

```python
full = np.zeros(n * size)
full[rank * n : (rank + 1) * n] = mine
comm.Allreduce(MPI.IN_PLACE, full)
```

**Use instead**

```python
full = np.zeros(n * size)
full[rank * n : (rank + 1) * n] = mine
comm.Allgather(MPI.IN_PLACE, full)
```

**When it stays quiet.** Arrays of which anything else is used anywhere in the function, or that it
returns or was given; blocks of different lengths, or that are not in the order of ranks;
collectives outside loops, which are set-up or output; numbers that are made of more than one
field, or in more than one step; gathers that not every iteration does, or behind which what was
sent is changed; reductions in place, or by an operation of the program's own.

**Fix safety.** Sums of floating-point numbers are collected in another order and agree to
rounding; a padded sum turns a negative zero into a positive one, a gather keeps it; a scatter
leaves the rest of the array as it was; a loop without any iteration gathered nothing. Such fixes
are unsafe. A field that only one rank uses
is gathered there safely. Pickled forms are shown only.

**Models used.** Lines (collectives, array statements), pickle.

**References.** Costs of collective operations by volume: any text on parallel algorithms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from advisor.ir.spmd.memory import Order, Part, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Communicate, Op, Visit
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.wording import IDENTIFIER
from transforms.kit.memory import (
    block_of,
    blocks_fit,
    is_whole_behind,
    may_share,
    reads_of,
    same_memory,
    written,
)
from transforms.kit.names import (
    argument,
    is_binding,
    is_name,
    is_simple,
    occurrences,
    root_lines,
    within,
)
from transforms.kit.ranks import root_only
from transforms.kit.rewrite import in_place_of
from transforms.kit.rule import ProgramRule, offer
from transforms.messages.gathered_fields import gathered_fields, gathered_too_often
from transforms.messages.padded_sums import padded_sums

_GIVEN = r"\b{name}\b\s*(,[^=]*)?[-+*/%&|^@<>:]*=(?!=)|\bfor\b.*\b{name}\b.*\bin\b"
"""A name that gets another value."""

_NAMES = re.compile(IDENTIFIER)


@dataclass(frozen=True, slots=True)
class _Used:
    """What every rank uses of an array that a collective brings whole.

    Attributes
    ----------
    array : Payload
    view : View
        All of it.
    length : Expr
        Of the own block.
    blocks : list of View
        Where it is read, never empty.
    """

    array: Payload
    view: View
    length: Expr
    blocks: list[View]

    @property
    def shown(self) -> str:
        """The own block, as the source calls it."""
        return " ".join(self.blocks[0].text.split())

    def own(self, step: Communicate) -> Payload:
        """Return the own block, as long on every rank, not as the difference of its bounds."""
        assert self.view.region is not None
        rank, behind = step.communicator.rank, self.view.region[1:]
        block = Part(rank * self.length, (rank + 1) * self.length)
        count = self.length
        for index in behind:
            count = count * index.count
        return replace(self.array, view=replace(self.view, region=(block, *behind)), count=count)


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield a collective that moves what is used, for every one that moves more."""
    for function in program.functions:
        for collective in (_scattered, _reduced_by_blocks):
            for visit, step in function.operations():
                if step.blocking and function.weight(visit) > 0:
                    yield from collective(program, function, visit, step)
        yield from padded_sums(program, function)
        yield from gathered_fields(program, function)
        yield from gathered_too_often(program, function)


def _scattered(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield a `Scatter` for a broadcast of which each rank uses only its own block."""
    if step.op is not Op.BCAST or step.root is None:
        return
    used = _used(program, function, step, step.send)
    if used is None:
        return
    assert used.view.region is not None
    size, sent = step.communicator.size, used.array
    pieces = replace(used.view, region=(Part(num(0), used.length * size), *used.view.region[1:]))
    scatter = replace(
        step,
        op=Op.SCATTER,
        method="scatter" if step.pickled else "Scatter",
        send=replace(sent, view=pieces, count=pieces.count),
        receive=None if step.pickled else used.own(step),
        result=None,
    )
    lines, texts = None, _texts(program, step, used)
    if texts is not None and program.mpi_module is not None and not step.pickled:
        root = argument(step, "root", program) or "0"
        own = (
            f"{program.mpi_module}.IN_PLACE if {step.receiver}.Get_rank() == {root} else {texts[1]}"
        )
        lines = [f"{step.receiver}.Scatter({texts[0]}, {own}, root={root})"]
    yield offer(
        function,
        visit,
        step.span,
        f"scatter `{sent.text}`: every rank uses `{used.shown}` of it",
        "a broadcast sends the whole array to every rank, a scatter only what it uses",
        (step,),
        (scatter,),
        "within this function no rank but the root uses more of the array than its block, which"
        " nothing writes to; a collective has to come in the same order on all ranks; where the"
        " array ends within a block, lengths differ, which takes `Scatterv`",
        None if lines is None else in_place_of(step.statement, lines, program.context),
    )


def _reduced_by_blocks(
    program: Program, function: SpmdFunction, visit: Visit, step: Communicate
) -> Iterator[ProgramProposal]:
    """Yield a `Reduce_scatter_block` for a reduction of which ranks use their own blocks."""
    # another operation may hang on the order of its operands
    if step.op is not Op.ALLREDUCE or step.pickled or step.in_place or step.operation is None:
        return
    sent, got = step.send, step.receive
    if sent is None or got is None or not (_is_plain(sent) and _is_plain(got)):
        return
    assert sent.view is not None and got.view is not None
    if sent.dtype != got.dtype or sent.view.shape != got.view.shape or not is_name(sent.text):
        return
    used = _used(program, function, step, got)
    if used is None:
        return
    method = "Reduce_scatter_block"
    scattered = replace(
        step, op=Op.REDUCE_SCATTER, method=method, receive=used.own(step), result=None
    )
    lines, texts = None, _texts(program, step, replace(used, array=sent))
    if texts is not None:
        operation = argument(step, "op", program)
        stated = "" if operation is None else f", op={operation}"
        lines = [f"{step.receiver}.{method}({texts[0]}, {texts[1]}{stated})"]
    yield offer(
        function,
        visit,
        step.span,
        f"reduce `{sent.text}` by blocks: every rank uses `{used.shown}` of the result",
        "an allreduce brings the whole result to every rank, a reduce-scatter only what it uses",
        (step,),
        (scattered,),
        "within this function no rank uses more of the result than its block; sums of"
        " floating-point numbers are collected in another order, and the rest of the array stays"
        " as it was; where the array ends within a block, lengths differ, which takes"
        " `Reduce_scatter` with counts",
        None if lines is None else in_place_of(step.statement, lines, program.context),
    )


def _is_plain(payload: Payload) -> bool:
    view = payload.view
    if payload.described or view is None or view.flat:
        return False
    return payload.kind is PayloadKind.ARRAY and view.is_whole and view.order is Order.C


def _used(
    program: Program, function: SpmdFunction, step: Communicate, array: Payload | None
) -> _Used | None:
    """Return the blocks of an array that ranks use; None if anything else of it is used.

    What the root alone does counts for nothing, where a collective has one.
    """
    if array is None or array.kind is not PayloadKind.ARRAY or array.view is None:
        return None
    view, root = array.view, step.root if step.op is Op.BCAST else None
    if not view.is_whole or view.buffer.order is not Order.C or array.dtype is None:
        return None
    if not is_name(array.text) or not function.whole.contains(view.buffer.allocation.span):
        return None  # others have it, too
    lengths: set[Expr | None] = set()
    found: list[View] = []
    for visit in function.visits():
        if visit.step == step or (root is not None and root_only(visit, step.communicator, root)):
            continue
        if any(may_share(one, view) for one in written(visit.step) or ()):
            return None
        for one in reads_of(visit.step):
            if not _is_sent(one, step, view):
                continue
            if not one.region or not is_whole_behind(one.region):
                return None
            lengths.add(block_of(one.region[0], visit, step.communicator))
            found.append(one)
    (length, *others) = lengths or {None}
    if length is None or others:
        return None
    allowed = [step.statement, *(one.span for one in found)]
    if root is not None:
        allowed += root_lines(function, step.communicator, root, program)
    for place in occurrences(array.text, function, program):
        if not within(place, allowed) and not is_binding(place, program):
            return None
    return _Used(array, view, length, found)


def _is_sent(one: View, step: Communicate, view: View) -> bool:
    """Return whether a view is of what was broadcast, or of the object that a pickled one gave."""
    if step.pickled and one.buffer.allocation.span == step.span:
        return True
    return same_memory(one, view)


def _texts(program: Program, step: Communicate, used: _Used) -> tuple[str, str] | None:
    """Return the blocks of all ranks, and the own one, as Python that means them at a call."""
    view, first = used.array.view, min(used.blocks, key=lambda block: block.span)
    assert first.region is not None and view is not None and view.region is not None
    extent, size = view.region[0].count, step.communicator.size
    if not is_simple(step, program) or not isinstance(first.region[0], Part):
        return None
    if first.span < step.statement or not blocks_fit(used.length, size, extent):
        return None
    if not _means_the_same(program, step, first.span):
        return None
    text, whole = program.context.text(first.span), used.array.text
    if extent != used.length * size:
        whole = f"{whole}[:len({text}) * {step.receiver}.Get_size()]"
    return whole, text


def _means_the_same(program: Program, step: Communicate, block: Span) -> bool:
    """Return whether the text of a block behind a call would mean the same where the call is."""
    between = program.context.lines[step.statement.end_line : block.start_line]
    return not any(
        re.search(_GIVEN.format(name=name), line)
        for name in set(_NAMES.findall(program.context.text(block)))
        for line in between
    )


TRANSFORM = ProgramRule("ADV604", "wrong-collective", __doc__, propose)
