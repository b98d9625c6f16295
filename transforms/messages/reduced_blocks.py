"""ADV604: sums that every rank gets whole and of which it uses its block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import Order, Part, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Communicate, Op
from advisor.source import Edit
from costdb.expr import Expr
from transforms.messages.used_blocks import blocks_used, means_the_same
from transforms.programs.spmd_calls import argument, is_name, is_simple, statement_edit
from transforms.programs.uses import blocks_fit


def reduced_blocks(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield a `Reduce_scatter_block` for every reduction of which ranks use their own blocks."""
    for visit, step in function.operations():
        got = step.receive
        if step.op is not Op.ALLREDUCE or function.weight(visit) == 0 or got is None:
            continue
        # another operation may hang on the order of its operands
        if step.pickled or not step.blocking or step.in_place or step.operation is None:
            continue
        if not _is_array(got) or got.view is None or not is_name(got.text):
            continue
        if step.send is None or not _is_alike(step.send, got):
            continue
        used = blocks_used(program, function, step, got.view, got.text)
        if used is None:
            continue
        length, blocks = used
        edits = _edit(program, step, length, blocks)
        shown = " ".join(blocks[0].text.split())
        yield ProgramProposal(
            title=f"reduce `{step.send.text}` by blocks: every rank uses `{shown}` of the result",
            reason="an allreduce brings the whole result to every rank, a reduce-scatter only"
            " what it uses",
            span=step.span,
            function=function,
            before=(step,),
            after=(_scattered(step, got, length),),
            legality=Legality(
                Applicability.DISPLAY if edits is None else Applicability.UNSAFE,
                "within this function no rank uses more of the result than its block; sums of"
                " floating-point numbers are collected in another order, and the rest of the"
                " array stays as it was; where the array ends within a block, lengths differ, which"
                " takes `Reduce_scatter` with counts",
            ),
            loops=visit.loops,
            edits=tuple if edits is None else partial(tuple, edits),
        )


def _is_array(payload: Payload) -> bool:
    view = payload.view
    if payload.kind is not PayloadKind.ARRAY or payload.described or payload.dtype is None:
        return False
    return view is not None and view.is_whole and view.order is Order.C and not view.flat


def _is_alike(sent: Payload, got: Payload) -> bool:
    """Return whether what is reduced lies as its result does, so that blocks are the same."""
    if not _is_array(sent) or sent.view is None or got.view is None or not is_name(sent.text):
        return False
    return sent.dtype == got.dtype and sent.view.shape == got.view.shape


def _scattered(step: Communicate, got: Payload, length: Expr) -> Communicate:
    view, rank = got.view, step.communicator.rank
    assert view is not None and view.region is not None
    mine = replace(view, region=(Part(rank * length, (rank + 1) * length), *view.region[1:]))
    count = length
    for index in view.region[1:]:
        count = count * index.count
    received = replace(got, view=mine, count=count)
    return replace(
        step, op=Op.REDUCE_SCATTER, method="Reduce_scatter_block", receive=received, result=None
    )


def _edit(
    program: Program, step: Communicate, length: Expr, blocks: list[View]
) -> tuple[Edit, ...] | None:
    first = min(blocks, key=lambda block: block.span)
    assert first.region is not None and step.send is not None
    assert step.send.view is not None and step.send.view.region is not None
    extent = step.send.view.region[0].count
    if not blocks_fit(length, step.communicator.size, extent):
        return None
    if not is_simple(step, program) or not isinstance(first.region[0], Part):
        return None
    if first.span < step.statement or not means_the_same(program, step, first.span):
        return None
    text, sent = program.context.text(first.span), step.send
    exact = extent == length * step.communicator.size
    whole = sent.text if exact else f"{sent.text}[:len({text}) * {step.receiver}.Get_size()]"
    operation = argument(step, "op", program)
    stated = "" if operation is None else f", op={operation}"
    call = f"{step.receiver}.Reduce_scatter_block({whole}, {text}{stated})"
    return (statement_edit(step, [call], program),)
