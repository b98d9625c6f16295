"""Broadcasts of whole arrays of which every rank uses its block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Order, Part, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Communicate, Op, Visit
from advisor.source import Edit, Span
from costdb.expr import Expr, num
from costdb.wording import IDENTIFIER
from transforms.programs.spmd_calls import argument, is_name, is_simple, statement_edit
from transforms.programs.uses import (
    block_of,
    blocks_fit,
    is_binding,
    is_whole_behind,
    occurrences,
    reads_of,
    root_lines,
    root_only,
    within,
)
from transforms.programs.views import may_share, same_memory, written

_GIVEN = r"\b{name}\b\s*(,[^=]*)?[-+*/%&|^@<>:]*=(?!=)|\bfor\b.*\b{name}\b.*\bin\b"
"""A name that gets another value."""

_NAMES = re.compile(IDENTIFIER)


def used_blocks(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a `Scatter` for every broadcast of which each rank uses only its own block."""
    for visit, step in function.operations():
        sent = step.send
        if step.op is not Op.BCAST or function.weight(visit) == 0 or sent is None:
            continue
        view = sent.view
        if sent.kind is not PayloadKind.ARRAY or view is None or not view.is_whole:
            continue
        if not is_name(sent.text) or sent.dtype is None or not step.blocking or step.root is None:
            continue
        used = blocks_used(program, function, step, view, sent.text)
        if used is not None:
            yield _proposal(program, function, visit, step, sent, *used)


def blocks_used(
    program: Program, function: SpmdFunction, step: Communicate, view: View, name: str
) -> tuple[Expr, list[View]] | None:
    """Return the length of the blocks and where they are read; None if anything else is used.

    What the root alone does counts for nothing, where a collective has one.
    """
    root = step.root if step.op is Op.BCAST else None
    if view.region is None or view.buffer.order is not Order.C:
        return None
    if not function.whole.contains(view.buffer.allocation.span):
        return None  # others have it, too
    lengths: set[Expr] = set()
    found: list[View] = []
    loops: list[Span] = []
    for visit in function.visits():
        if root is not None and root_only(visit, step.communicator, root):
            continue
        writes = written(visit.step)
        if visit.step != step and any(may_share(one, view) for one in writes or ()):
            return None
        for one in reads_of(visit.step):
            if visit.step == step or not _is_sent(one, step, view):
                continue
            if not one.region or not is_whole_behind(one.region):
                return None
            length = block_of(one.region[0], visit, step.communicator)
            if length is None:
                return None
            lengths.add(length)
            found.append(one)
            loops += [loop.span for loop in visit.loops]
    if len(lengths) != 1:
        return None
    (length,) = lengths
    allowed = [step.statement, *(one.span for one in found)]
    if root is not None:
        allowed += root_lines(function, step.communicator, root, program)
    for place in occurrences(name, function, program):
        if not within(place, allowed) and not is_binding(place, program):
            return None
    return length, found


def _is_sent(one: View, step: Communicate, view: View) -> bool:
    """Return whether a view is of what was broadcast, or of the object that a pickled one gave."""
    if step.pickled and one.buffer.allocation.span == step.span:
        return True
    return same_memory(one, view)


def _proposal(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    sent: Payload,
    length: Expr,
    blocks: list[View],
) -> ProgramProposal:
    view = sent.view
    assert view is not None and view.region is not None
    size = step.communicator.size
    pieces = replace(view, region=(Part(num(0), length * size), *view.region[1:]))
    own = Part(step.communicator.rank * length, (step.communicator.rank + 1) * length)
    mine = replace(view, region=(own, *view.region[1:]))
    # as long as on every rank, not as the difference of its bounds
    count = length
    for index in view.region[1:]:
        count = count * index.count
    scatter = replace(
        step,
        op=Op.SCATTER,
        method="Scatter" if not step.pickled else "scatter",
        send=replace(sent, view=pieces, count=pieces.count),
        receive=None if step.pickled else replace(sent, view=mine, count=count),
        result=None,
    )
    edits = None if step.pickled else _edit(program, step, sent, blocks, length)
    legality = Legality(
        Applicability.DISPLAY if edits is None else Applicability.UNSAFE,
        "within this function no rank but the root uses more of the array than its block, which"
        " nothing writes to; a collective has to come in the same order on all ranks; where the"
        " array ends within a block, lengths differ, which takes `Scatterv`",
    )
    shown = " ".join(blocks[0].text.split())
    return ProgramProposal(
        title=f"scatter `{sent.text}`: every rank uses `{shown}` of it",
        reason="a broadcast sends the whole array to every rank, a scatter only what it uses",
        span=step.span,
        function=function,
        before=(step,),
        after=(scatter,),
        legality=legality,
        loops=visit.loops,
        edits=tuple if edits is None else partial(tuple, edits),
    )


def _edit(
    program: Program,
    step: Communicate,
    sent: Payload,
    blocks: list[View],
    length: Expr,
) -> tuple[Edit, ...] | None:
    """Return the call that leaves the root's block where it is, and others' in its place."""
    view = sent.view
    assert view is not None and view.region is not None
    first = min(blocks, key=lambda block: block.span)
    if program.mpi_module is None or not is_simple(step, program):
        return None
    assert first.region is not None
    if not isinstance(first.region[0], Part) or first.span < step.statement:
        return None
    text = program.context.text(first.span)
    if not blocks_fit(length, step.communicator.size, view.region[0].count):
        return None
    if not means_the_same(program, step, first.span):
        return None
    exact = view.region[0].count == length * step.communicator.size
    whole = sent.text if exact else f"{sent.text}[:len({text}) * {step.receiver}.Get_size()]"
    root = argument(step, "root", program) or "0"
    here = f"{step.receiver}.Get_rank() == {root}"
    own = f"{program.mpi_module}.IN_PLACE if {here} else {text}"
    call = f"{step.receiver}.Scatter({whole}, {own}, root={root})"
    return (statement_edit(step, [call], program),)


def means_the_same(program: Program, step: Communicate, block: Span) -> bool:
    """Return whether the text of a block behind a call would mean the same where the call is."""
    between = range(step.statement.end_line, block.start_line)
    lines = program.context.lines
    return not any(
        re.search(_GIVEN.format(name=name), lines[number])
        for name in set(_NAMES.findall(program.context.text(block)))
        for number in between
    )
