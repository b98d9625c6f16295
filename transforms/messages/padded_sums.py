"""Sums over all ranks of arrays that are zero but for the own block: gathers by addition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.memory import At, Order, View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.steps import Allocate, Communicate, Compute, Copy, Op, Step, Visit
from costdb.expr import Expr, num
from transforms.kit.memory import block_of, blocks_fit, is_whole_behind, may_share, same_memory
from transforms.kit.names import is_measured, is_name, is_simple, occurrences
from transforms.kit.rewrite import fresh_name, in_place_of
from transforms.kit.rule import offer

_ZEROS = re.compile(r"\bzeros(_like)?\s*\(")
_AT_RANK = re.compile(r"(\w+)\[\s*([\w.]+(?:\(\))?)\s*(?:,\s*(?::\s*,?\s*)*|,\s*\.\.\.\s*)?\]")
_ZEROED = re.compile(r"\w+\[(:|\.\.\.)\]\s*=\s*0(\.0*)?|\w+\.fill\(\s*0(\.0*)?\s*\)")


def padded_sums(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield an `Allgather` for every sum in which each element is zero on all ranks but one."""
    for visit, step in function.operations():
        if step.op is not Op.ALLREDUCE or step.operation != "SUM" or not step.blocking:
            continue
        given = step.send if step.send is not None else step.receive
        if function.weight(visit) == 0 or given is None or given.view is None:
            continue
        if given.kind is not PayloadKind.ARRAY or not is_name(given.text) or given.dtype is None:
            continue
        if not given.view.is_whole or given.view.buffer.order is not Order.C:
            continue
        found = _own_block(program, function, visit, step, given.view, given.text)
        if found is not None:
            yield _proposal(program, function, visit, step, given, *found)


def _own_block(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    view: View,
    name: str,
) -> tuple[View, Expr] | None:
    """Return the own block, if it is all that was written since the array was zero."""
    block: View | None = None
    for before in reversed(visit.block[: visit.position]):
        target = _target(before)
        if _is_zeroing(before, view, program):
            break
        if target is None or not may_share(target, view):
            continue
        if not same_memory(target, view) or block is not None:
            return None
        block = target
    else:
        return None
    if block is None or not block.region or not is_whole_behind(block.region):
        return None
    own = block.region[0]
    # a number or a row of each rank, or a block
    at_rank = own == At(step.communicator.rank)
    length = num(1) if at_rank else block_of(own, visit, step.communicator)
    if length is None:
        return None
    # the lines between mention the array nowhere else: no alias, no call that writes to it
    between = range(before.span.end_line + 1, step.statement.start_line)
    for place in occurrences(name, function, program):
        mentioned = place.start_line in between and not block.span.contains(place)
        if mentioned and not is_measured(place, program):
            return None
    return block, length


def _target(step: Step) -> View | None:
    match step:
        case Copy(target=target, allocates=False) | Compute(target=target):
            return target
    return None


def _is_zeroing(step: Step, view: View, program: Program) -> bool:
    match step:
        case Allocate(buffer=buffer, filled=True):
            made = _ZEROS.search(buffer.allocation.text) is not None
            return made and buffer == view.buffer
        case Compute(target=target, what="fill") if target is not None:
            zeroed = _ZEROED.fullmatch(program.context.text(step.span).strip()) is not None
            return zeroed and same_memory(target, view) and target.is_whole
    return False


def _proposal(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    given: Payload,
    block: View,
    length: Expr,
) -> ProgramProposal:
    gather = replace(
        step,
        op=Op.ALLGATHER,
        method="allgather" if step.pickled else "Allgather",
        operation=None,
        send=replace(given, view=block, count=block.count, text=block.text),
        in_place=False,
    )
    lines = _lines(program, step, given, block, length)
    return offer(
        function,
        visit,
        step.span,
        f"gather `{' '.join(block.text.split())}` from all ranks, do not add zeros to it",
        "every element is zero on all ranks but one, so the sum only moves it: it sends and adds"
        " as many zeros for each element as there are other ranks",
        (step,),
        (gather,),
        "a number plus zeros is that number, but for the sign of a zero; blocks lie in the order"
        " of ranks, and are as long on each; where the array ends within one, lengths differ,"
        " which takes `Allgatherv`",
        None if lines is None else in_place_of(step.statement, lines, program.context),
    )


def _lines(
    program: Program, step: Communicate, given: Payload, block: View, length: Expr
) -> list[str] | None:
    """Return the gather, with what a sum would leave behind the last block."""
    got, view, size = step.receive, given.view, step.communicator.size
    if step.pickled or got is None or got.view is None or not is_name(got.text):
        return None
    if not is_simple(step, program) or program.mpi_module is None:
        return None
    assert view is not None and view.region is not None
    extent = view.region[0].count
    if got.view.region != view.region or not blocks_fit(length, size, extent):
        return None
    text = _own_text(block, step, program)
    if text is None or program.context.array_module is None:
        return None
    sent = f"{program.mpi_module}.IN_PLACE" if step.in_place else text
    if extent == length * size:
        return [f"{step.receiver}.Allgather({sent}, {got.text})"]
    end = fresh_name("gathered", program.context.identifiers)
    lines = [
        f"{end} = len({text}) * {step.receiver}.Get_size()",
        f"{step.receiver}.Allgather({sent}, {got.text}[:{end}])",
    ]
    return lines if step.in_place else [*lines, f"{got.text}[{end}:] = 0"]


def _own_text(block: View, step: Communicate, program: Program) -> str | None:
    """Return the own block as a slice, which also one number has to be to be sent."""
    text = program.context.text(block.span)
    assert block.region is not None
    own = block.region[0]
    if not isinstance(own, At):
        return text
    found = _AT_RANK.fullmatch(text) if own.index == step.communicator.rank else None
    return None if found is None else f"{found[1]}[{found[2]} : {found[2]} + 1]"
