"""Loops that pass messages round a ring of ranks until every rank has seen those of all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from advisor.ir.spmd.memory import Order, View
from advisor.ir.spmd.payloads import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Allocate,
    Communicate,
    Compute,
    Copy,
    Interpret,
    Loop,
    Op,
    Visit,
    Wait,
)
from advisor.ir.values import Point, Range
from costdb.expr import Expr, num, substitute, sym
from costdb.records import replace
from transforms.kit.memory import (
    SENDABLE,
    is_counted,
    is_whole_behind,
    may_share,
    new_array,
    payload_of,
    plain_array,
    same_memory,
)
from transforms.kit.names import BASE, bound_names, loaded_names, occurrences, used_outside, words
from transforms.kit.programs import collective, instead, offer
from transforms.kit.ranks import (
    Move,
    is_shift,
    modulo,
    move_of,
    named_rank,
    on_all_ranks,
    same_communicator,
)
from transforms.kit.rewrite import Edits, in_place_of, span_of, starts_line, stretch, suite_at

_Found = tuple[Communicate, Edits | str, str, str, str]
"""The call, what writes it, what it does, why, and why results are the same."""


def rings(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that a loop round all ranks stands for."""
    for visit in function.visits():
        loop = visit.step
        step = _exchange_in(loop) if isinstance(loop, Loop) and is_counted(loop) else None
        if step is None or not isinstance(loop, Loop) or "status" in step.places:
            continue
        short = step.communicator.size - (loop.high - loop.low)
        found = _number_round(program, function, visit, loop, step, short)
        if short != num(1) and found is None:
            continue
        if found is None and not step.pickled:
            found = _all_gather(program, function, visit, loop, step)
        if found is None and step in loop.body and not step.replaces:
            found = _all_reduce(program, function, visit, loop, step)
        if found is None:
            continue
        call, edits, does, reason, argued = found
        yield offer(
            function,
            visit,
            step.span,
            f"let one `{call.method}` {does}, not a loop round a ring",
            reason,
            (loop,),
            (call,),
            f"{argued}; a collective has to come in the same order on all ranks",
            edits,
        )


def _exchange_in(loop: Loop) -> Communicate | None:
    """Return the one exchange of an iteration; a send and a receive are one, too."""
    calls = [one for one in loop.body if isinstance(one, Communicate)]
    match calls:
        case [Communicate(op=Op.SENDRECV, blocking=True) as step]:
            return step
        case [one, other] if {one.op, other.op} == {Op.SEND, Op.RECV}:
            send, receive = (one, other) if one.op is Op.SEND else (other, one)
            waits = sum(isinstance(step, Wait) for step in loop.body)
            alike = same_communicator(send.communicator, receive.communicator)
            tagged = "tag" not in receive.places or (
                send.tag is not None and send.tag == receive.tag
            )
            ended = waits > 0 or (send.blocking and receive.blocking)
            if send.pickled != receive.pickled or not (alike and tagged and ended):
                return None
            if receive.pickled and not receive.blocking:
                return None
            if "status" in receive.places:
                return None
            both = replace(send, op=Op.SENDRECV, blocking=True, mode="", source=receive.source)
            return replace(both, receive=receive.receive, result=receive.result, places={})
    return None


def _stored(loop: Loop, step: Communicate) -> Payload | None:
    """Return where what a buffer that goes round brings is copied to."""
    copies = [one for one in loop.body if isinstance(one, Copy)]
    got, sent = step.receive, step.send
    if got is None or got.view is None or sent is None or len(copies) != 1:
        return None
    (copy,) = copies
    whole = same_memory(copy.source, got.view) and copy.source.is_whole and got.view.is_whole
    later = loop.body.index(copy) > loop.body.index(step)
    if not (whole and later) or copy.allocates or copy.target.count != got.count:
        return None
    return replace(got, view=copy.target, text=copy.target.text, dtype=copy.target.dtype)


def _begins_as_row(visit: Visit, step: Communicate, row: View) -> bool:
    """Return whether a buffer that goes round begins as a copy of the own row.

    Both are copies of the same, or one is of the other, and nothing comes in between.
    """
    assert step.send is not None and step.send.view is not None
    own = replace(row, region=(Point(step.communicator.rank), *(row.region or ())[1:]))
    sources: dict[bool, View] = {}
    for one in visit.block[: visit.position][::-1]:
        if not isinstance(one, Copy):
            if isinstance(one, Interpret | Allocate):
                continue
            break
        for is_row, view in ((True, own), (False, step.send.view)):
            if same_memory(one.target, view) and one.target.region == view.region:
                sources.setdefault(is_row, one.source)
    first, other = sources.get(True), sources.get(False)
    if other is None:
        return False
    if same_memory(other, own) and other.region == own.region:
        return True
    return (
        first is not None
        and same_memory(first, other)
        and first.region == other.region
        and not may_share(first, own)
        and not may_share(first, step.send.view)
    )


def _all_gather(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop, step: Communicate
) -> _Found | None:
    """Return one `Allgather` for a loop that passes rows on until every rank has all of them."""
    given, ends = step.receive, [one for one in loop.body if isinstance(one, Communicate | Wait)]
    rest, stored = [one for one in loop.body if one not in ends], None
    if step.replaces:
        given = stored = _stored(loop, step)
        rest = [one for one in rest if not isinstance(one, Copy)]
    if not all(map(_is_of_numbers, rest)):
        return None
    taken = _row(given, step)
    # what goes round first is the own row, and then what came last
    sent = taken if stored is None else _before(loop, taken)
    sent = _row(step.send, step) if stored is None else sent
    if sent is None or taken is None or given is None:
        return None
    rows = given if stored is not None else step.send
    if not _gathers(loop, replace(step, send=rows, receive=given), sent, taken):
        return None
    view, base = given.view, BASE.fullmatch(given.text.strip())
    assert view is not None and view.region is not None
    whole = replace(view, region=(Range(num(0), step.communicator.size), *view.region[1:]))
    name = base[1] if base is not None and "." not in base[1] else given.text
    received = replace(given, view=whole, count=whole.count, text=name)
    if stored is not None and not _begins_as_row(visit, step, view):
        return None
    line = f"{step.receiver}.Allgather({program.mpi_module}.IN_PLACE, {name})"
    nodes, at = suite_at(loop.span, program.context) or ([], 0)
    place = stretch(loop.span, step.statement)
    place = span_of(nodes[at], program.context.lines) if nodes else place
    edits: Edits | str = "the array has no name"
    if name != given.text and stored is None:
        edits = instead(program, function, place, [line], ends)
    elif name != given.text and nodes:
        # behind the loop the buffer has what nobody else sends
        names = bound_names([nodes[at]]) - {name, *words(step.receiver), str(program.mpi_module)}
        kept = used_outside(names, place, function, program)
        edits = f"`{kept}` is used elsewhere"
        if kept is None and starts_line(place, program.context):
            edits = in_place_of(place, [line], program.context)
    return (
        replace(collective(step, Op.ALLGATHER, None, received), places={}, blocking=True),
        edits,
        f"collect the rows of `{name}`",
        "the library knows algorithms of fewer steps for small pieces, has several messages under"
        " way for large ones, and costs one call from Python",
        "every rank ends with each row as the rank of that number had it",
    )


def _before(loop: Loop, taken: Expr | None) -> Expr | None:
    """Return what an iteration sends that passes on what came in the one before."""
    if taken is None:
        return None
    return substitute(taken, {loop.variable: sym(loop.variable) - 1})


def _all_reduce(
    program: Program, function: SpmdFunction, visit: Visit, loop: Loop, step: Communicate
) -> _Found | None:
    """Return one `Allreduce` for blocks that go round a ring, each rank adding what comes by."""
    sent, context = step.send, program.context
    on = move_of(named_rank(step.dest), step.communicator)
    if not is_shift(step) or on is None or on.by not in (num(1), num(-1)):
        return None
    nodes, at = suite_at(loop.span, context) or ([], 0)
    if sent is None or sent.dtype not in SENDABLE or not nodes:
        return None
    node = nodes[at]
    given = ast.unparse(ast.parse(sent.text.strip())) if step.pickled else sent.text
    total, block = _added_round(node, step, given) or ("", "")
    if not total or not _begins_with_block(nodes[:at], total, block):
        return None
    place = span_of(node, context.lines)
    # of what the loop leaves, only the total is there without it
    left = bound_names([node]) - {total, block, *words(step.receiver)}
    later = any(one.start_line > place.end_line for one in occurrences(block, function, program))
    if later or used_outside(left, place, function, program) is not None:
        return None
    if not on_all_ranks(function.visits(), visit):
        return None
    memory = payload_of(new_array(total, sent.dtype, (elements(sent),), step.span), step.span)
    call, mpi = collective(step, Op.ALLREDUCE, None, memory), program.mpi_module
    line = f"{step.receiver}.Allreduce({mpi}.IN_PLACE, {total}, op={mpi}.SUM)"
    writable = mpi is not None and starts_line(place, context)
    return (
        replace(call, pickled=False, operation="SUM"),
        in_place_of(place, [line], context) if writable else "the loop shares its line",
        f"add up `{total}`",
        "round a ring every rank sends all blocks; a reduction of large arrays sends two, of small"
        " ones takes as many steps as the logarithm of the number of ranks",
        "the same terms are added, in another order, the same on each rank: sums of floating-point"
        " numbers agree to rounding",
    )


def _number_round(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    loop: Loop,
    step: Communicate,
    short: Expr,
) -> _Found | None:
    """Return one `allreduce` for a number of each rank that goes round and is added up.

    A total that begins with 0 gets the own number from the last of `P` passes.
    """
    sent, context, mpi = step.send, program.context, program.mpi_module
    on = move_of(named_rank(step.dest), step.communicator)
    if not is_shift(step) or on is None or on.by not in (num(1), num(-1)) or sent is None:
        return None
    nodes, at = suite_at(loop.span, context) or ([], 0)
    node = nodes[at] if nodes else None
    if not step.pickled or sent.kind is not PayloadKind.SCALAR or not isinstance(node, ast.For):
        return None
    ends = [one for one in loop.body if isinstance(one, Communicate | Wait)]
    begun = [any(span_of(n, context.lines).contains(e.span) for e in ends) for n in node.body]
    rest = [ast.unparse(n) for n, is_end in zip(node.body, begun, strict=True) if not is_end]
    given, got = ast.unparse(ast.parse(sent.text.strip())), str(step.result)
    passed = f"{given} = {got}"
    added = next((re.fullmatch(rf"(\w+) \+= {re.escape(got)}", one) for one in rest[:1]), None)
    goes_on = rest[1:] == [passed] or (given == got and len(rest) == 1)
    if node.orelse or added is None or not goes_on or begun != sorted(begun, reverse=True):
        return None
    total, place = added[1], span_of(node, context.lines)
    inits = [_init(nodes[:at], name) for name in (total, given)]
    exact = inits[0] == "0" or (inits[0] == "0.0" and str(sent.dtype).startswith("float"))
    whole = short == num(1) and inits[0] in (given, inits[1]) and str(inits[0]).isidentifier()
    if total in (given, got) or not (whole or (short == num(0) and exact)):
        return None
    left = bound_names([node]) - {total, given, *words(step.receiver), str(mpi)}
    later = any(one.start_line > place.end_line for one in occurrences(given, function, program))
    if later or used_outside(left, place, function, program) is not None or mpi is None:
        return None
    if not on_all_ranks(function.visits(), visit) or not starts_line(place, context):
        return None
    line = f"{total} = {step.receiver}.allreduce({given}, op={mpi}.SUM)"
    call = replace(collective(step, Op.ALLREDUCE, sent, None), method="allreduce", places={})
    return (
        replace(call, operation="SUM", result=total),
        in_place_of(place, [line], context),
        f"add up `{total}`",
        "round a ring every rank sends the numbers of all, one after another",
        "the same terms are added, in another order, the same on each rank: sums of floating-point"
        " numbers agree to rounding",
    )


def _init(nodes: list[ast.stmt], name: str) -> str | None:
    """Return what a name is given last, if nothing may change it then."""
    for node in nodes[::-1]:
        match node:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                return ast.unparse(value)
        if name in bound_names([node]):
            return None
    return None


def _added_round(node: ast.stmt, step: Communicate, given: str) -> tuple[str, str] | None:
    """Return the total and the block of a loop that passes on a block and adds what comes."""
    if not isinstance(node, ast.For) or node.orelse or len(node.body) < 2:
        return None
    received = str(step.result if step.pickled else step.receive and step.receive.text)
    added, *passed = (ast.unparse(one) for one in node.body[1:])
    found = re.fullmatch(rf"(\w+) (\+= |= \1 \+ ){re.escape(received)}", added)
    if found is None or found[1] in (given, received):
        return None
    swaps = [f"{a}, {b} = {b}, {a}" for a, b in ((given, received), (received, given))]
    goes_on = [ast.unparse(ast.parse(text)) for text in swaps]
    again = received == given and not passed if step.pickled else len(passed) == 1
    return (found[1], given) if again and set(passed) <= set(goes_on) else None


def _begins_with_block(nodes: list[ast.stmt], total: str, block: str) -> bool:
    """Return whether a total begins as a copy of what goes round, and nothing touches either."""
    given: dict[str, str] = {}
    between: list[ast.stmt] = []
    for node in nodes[::-1]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in (total, block):
                given.setdefault(name, ast.unparse(value))
            case _:
                between.append(node)
        if len(given) == 2:
            break
    own = given.get(total, "").removesuffix(".copy()")
    touched = bound_names(between) | loaded_names(between)
    copied = given.get(total) == f"{own}.copy()" and given.get(block) in (own, f"{own}.copy()")
    return copied and not touched & {total, block, *words(own)}


def _is_of_numbers(step: object) -> bool:
    return isinstance(step, Interpret) or (
        isinstance(step, Compute) and step.target is None and not step.reads
    )


def _row(payload: Payload | None, step: Communicate) -> Expr | None:
    """Return which row of an array with a row for every rank a payload is."""
    view = plain_array(payload)
    if view is None or view.buffer.order is not Order.C or not view.region:
        return None
    first, extents = view.region[0], view.buffer.extents
    if not isinstance(first, Point) or not is_whole_behind(view):
        return None
    return first.at if extents and extents[0] == step.communicator.size else None


def _gathers(loop: Loop, step: Communicate, sent: Expr, taken: Expr) -> bool:
    """Return whether each rank ends with every row as the rank of that number had it at first.

    It sends its own row first, and then what it took last, always to the same neighbour: after
    `k` passes it has the row of the rank `k` before it, which no later pass writes to.
    """
    assert step.send is not None and step.receive is not None
    assert step.send.view is not None and step.receive.view is not None
    if not same_memory(step.send.view, step.receive.view):
        return False
    ends = (named_rank(step.dest), named_rank(step.source), sent, taken)
    dest, source, gives, takes = (move_of(end, step.communicator) for end in ends)
    if dest is None or source is None or gives is None or takes is None:
        return False
    if {move.sign for move in (dest, source, gives, takes)} != {1}:
        return False
    if dest.by not in (num(1), num(-1)) or not dest.follows(source, step.communicator):
        return False

    def by(move: Move, index: Expr) -> Expr:
        return modulo(substitute(move.by, {loop.variable: index}), step.communicator)

    index = sym(loop.variable)
    return (
        by(gives, loop.low) == num(0)
        and by(takes, index) == modulo(gives.by - dest.by, step.communicator)
        and by(gives, index + 1) == by(takes, index)
    )
