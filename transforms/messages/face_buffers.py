"""Buffers of faces that are filled anew in every step, and faces that are copied twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from advisor.ir.spmd.memory import Buffer, Origin
from advisor.ir.spmd.program import RANK, RANKS, Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import PartnerKind
from advisor.ir.spmd.steps import (
    Allocate,
    Communicate,
    Copy,
    Leave,
    Loop,
    LoopKind,
    Op,
    Unknown,
    Visit,
)
from advisor.source import Edit, Span
from costdb.expr import free_symbols
from transforms.kit.names import bound_in, is_name, occurrences, words
from transforms.kit.rewrite import line_of
from transforms.kit.rule import offer

_SIMPLE = re.compile(
    r"([\w.]+\.)?(zeros|ones)(_like)?\((\([\w\s.,+\-*/%]*\)[\w\s.,=]*|[\w\s.,+\-*/%=]*)\)"
)
"""What makes an array of a shape that is of numbers, names and arithmetic on them."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A buffer that a loop makes, and the receive that overwrites it."""

    visit: Visit
    step: Allocate
    loop: Loop
    receive: Communicate


def made_again(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield buffers that are filled in every step, and then received into.

    Memory that is left undefined (``np.empty``) costs next to nothing to get again.
    """
    found: dict[Loop, list[_Made]] = {}
    for visit in function.visits():
        if isinstance(visit.step, Allocate) and visit.step.filled and visit.depth > 0:
            made = _made(program, function, visit, visit.step)
            if made is not None:
                found.setdefault(made.loop, []).append(made)
    for loop, several in found.items():
        receives = tuple(made.receive for made in several)
        names = " and ".join(f"`{made.step.buffer.name}`" for made in several)
        yield offer(
            function,
            several[0].visit,
            several[0].step.span,
            f"make {names} once, before the loop",
            "memory is taken and filled in every step, and the message that comes overwrites it",
            (*(made.step for made in several), *receives),
            receives,
            "nothing but messages, each of all of it, is written to the buffer, and nothing keeps"
            " it: where none comes it stays as it was made",
            partial(_before_the_loop, program, loop, tuple(several)),
            safe=True,
        )


def _made(program: Program, function: SpmdFunction, visit: Visit, step: Allocate) -> _Made | None:
    buffer = step.buffer
    name, place = buffer.name, buffer.allocation.span
    if buffer.allocation.origin is not Origin.NEW or not is_name(name):
        return None
    call = program.context.text(place)
    line = program.context.lines[place.start_line - 1]
    # what it is made for stands behind it, so that something is left of the block
    if line.strip() != f"{name} = {call}" or len(visit.block) < 2 or not _SIMPLE.fullmatch(call):
        return None
    receive = _only_received(program, function, visit, buffer)
    if receive is None:
        return None
    for loop in visit.loops:
        if _may_stand_before(program, loop, place, call):
            return _Made(visit, step, loop, receive) if _is_fixed(program, receive, loop) else None
    return None


def _only_received(
    program: Program, function: SpmdFunction, made: Visit, buffer: Buffer
) -> Communicate | None:
    """Return the one receive into a buffer that is made, received into and then taken out of.

    With two, the second one of an iteration would leave its message to the first of the next,
    on a rank to which that one brings none.
    """
    received: Communicate | None = None
    uses: list[Span] = []
    is_made = False
    for visit in function.visits():
        step = visit.step
        is_made = is_made or step is made.step
        if is_made and received is None and isinstance(step, Leave | Unknown):
            return None  # behind it, the buffer may be taken out as it was made
        if isinstance(step, Communicate) and _receives_into(step, buffer):
            if received is not None or not is_made:
                return None
            if step.receive is None or not _overwrites(step) or not _always(visit, made):
                return None
            received = step
            uses.append(step.receive.span)
        elif isinstance(step, Copy) and step.source.buffer == buffer:
            text = program.context.text(step.span)
            if received is None or not re.search(rf"\]\s*=\s*{re.escape(buffer.name)}\Z", text):
                return None
            uses.append(step.span)
    line = buffer.allocation.span.start_line
    places = occurrences(buffer.name, function, program)
    others = [place for place in places if place.start_line != line]
    known = all(sum(use.contains(place) for use in uses) == 1 for place in others)
    whole = len(places) == len(uses) + 1 and len(others) == len(uses)
    return received if known and whole else None


def _receives_into(step: Communicate, buffer: Buffer) -> bool:
    got = step.receive
    return got is not None and got.view is not None and got.view.buffer == buffer


def _overwrites(step: Communicate) -> bool:
    """Return whether a message that comes is as long as the buffer that it comes to.

    What comes is what another rank sends in the same call.
    """
    got, sent = step.receive, step.send
    if step.op is not Op.SENDRECV or not step.blocking or step.pickled or "status" in step.places:
        return False
    if step.replaces:
        return False  # it sends what the buffer was made with
    if got is None or sent is None or got.view is None or got.described or sent.described:
        return False
    alike = got.count is not None and got.count == sent.count and got.dtype == sent.dtype
    return got.view.is_whole and alike and got.dtype is not None


def _always(visit: Visit, made: Visit) -> bool:
    """Return whether a receive runs in each iteration that makes its buffer, on the same ranks."""
    if visit.loops != made.loops:
        return False
    for branch, _ in visit.branches[len(made.branches) :]:
        value = branch.condition.value
        if value is None or free_symbols(value) - {RANK, RANKS}:
            return False
    return visit.branches[: len(made.branches)] == made.branches


def _is_fixed(program: Program, step: Communicate, loop: Loop) -> bool:
    """Return whether a rank receives in every iteration of a loop, or in none."""
    source = step.source
    if source is None or source.kind not in (PartnerKind.RANK, PartnerKind.NEIGHBOUR):
        return False
    of_rank = source.kind is PartnerKind.RANK
    if of_rank and (source.rank is None or free_symbols(source.rank) - {RANK, RANKS}):
        return False
    return not words(source.text) & bound_in(program, loop)


def _may_stand_before(program: Program, loop: Loop, made: Span, call: str) -> bool:
    """Return whether a call means before a loop what it means in each of its iterations."""
    if loop.timing or loop.kind not in (LoopKind.COUNTED, LoopKind.ELEMENTS, LoopKind.WHILE):
        return False
    if loop.span.end_line >= made.start_line:
        return False
    header = program.context.lines[loop.span.start_line - 1]
    if not header.lstrip().startswith(("for ", "while ")):
        return False
    return not words(call) & bound_in(program, loop)


def _before_the_loop(program: Program, loop: Loop, several: tuple[_Made, ...]) -> tuple[Edit, ...]:
    lines = program.context.lines
    place = loop.span.start_line
    header = lines[place - 1]
    indent = header[: len(header) - len(header.lstrip())]
    numbers = [made.step.buffer.allocation.span.start_line for made in several]
    moved = "".join(f"{indent}{lines[number - 1].strip()}\n" for number in numbers)
    gone = tuple(Edit(line_of(number), "") for number in numbers)
    return (Edit(Span(place, 0, place, 0), moved), *gone)


def copied_twice(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield faces that are copied, and of which another copy is sent."""
    sent = {
        step.send.view.buffer
        for _, step in function.operations()
        if step.send is not None and step.send.view is not None
    }
    for visit in function.visits():
        step = visit.step
        if not isinstance(step, Copy) or function.weight(visit) == 0:
            continue
        if step.target.buffer not in sent or step.target.buffer == step.source.buffer:
            continue
        first = _first_copy(visit, step)
        if first is None or len(first.source.shape or ()) != 1:
            continue
        inner, face = first.target.buffer.allocation.span, first.source
        # a copy that has a name may be used for anything else
        if not (_around(step).contains(inner) and inner.contains(face.span)) or inner == face.span:
            continue
        if face.buffer == step.target.buffer:
            continue
        yield offer(
            function,
            visit,
            step.span,
            f"copy `{face.text}` once, not twice",
            "what is copied is a copy already, which nothing else uses",
            (first, step),
            (replace(step, source=face),),
            "the same elements come to the same places",
            partial(_once, program, inner, face.span),
            safe=True,
        )


def _first_copy(visit: Visit, step: Copy) -> Copy | None:
    """Return the copy that made what is copied, right before."""
    before: Iterable[object] = visit.block[: visit.position][-1:]
    for other in before:
        if isinstance(other, Copy) and other.allocates and step.source.is_whole:
            made_here = other.target.buffer == step.source.buffer
            return other if made_here and not step.source.flat else None
    return None


def _around(step: Copy) -> Span:
    return step.target.buffer.allocation.span if step.allocates else step.span


def _once(program: Program, inner: Span, face: Span) -> tuple[Edit, ...]:
    return (Edit(inner, program.context.text(face)),)
