"""Loops that pass messages round a ring of ranks until every rank has seen those of all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from advisor.ir.spmd.memory import Order
from advisor.ir.spmd.payloads import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import Communicate, Compute, Interpret, Loop, Op, Step, Visit, Wait
from advisor.ir.values import Point, Range
from costdb.expr import Expr, num, substitute, sym
from costdb.records import replace
from transforms.kit.memory import (
    SENDABLE,
    is_counted,
    is_whole_behind,
    new_array,
    payload_of,
    plain_array,
    same_memory,
)
from transforms.kit.names import (
    BASE,
    bound_names,
    is_name,
    loaded_names,
    occurrences,
    used_outside,
    words,
)
from transforms.kit.programs import collective, instead, offer
from transforms.kit.ranks import Move, is_shift, modulo, move_of, named_rank, on_all_ranks
from transforms.kit.rewrite import Edits, in_place_of, span_of, starts_line, suite_at
from transforms.messages.patterns import are_ends

_TWO = {Op.SEND, Op.RECV}
_Found = tuple[Communicate, Edits | str, str, str, str]
"""The call, what writes it, what it does, why, and why results are the same."""


def rings(program: Program, function: SpmdFunction) -> Iterator[ProgramProposal]:
    """Yield the collective that a loop round all ranks stands for."""
    for visit in function.visits():
        loop = visit.step
        ends = _ends(loop) if isinstance(loop, Loop) and is_counted(loop) else []
        step = _exchange(ends)
        if step is None or not isinstance(loop, Loop):
            continue
        short, found = step.communicator.size - (loop.high - loop.low), None
        if short == num(1) and not step.pickled:
            found = _all_gather(program, function, loop, step, ends)
        if found is None and short in (num(0), num(1)):
            found = _all_reduce(program, function, visit, step, ends, again=short == num(0))
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


def _ends(loop: Loop) -> list[Step]:
    return [one for one in loop.body if isinstance(one, Communicate | Wait)]


def _exchange(ends: list[Step]) -> Communicate | None:
    """Return the one exchange of an iteration; a send and a receive that end there are one, too."""
    match [one for one in ends if isinstance(one, Communicate)]:
        case [Communicate(op=Op.SENDRECV, blocking=True) as step]:
            return None if step.replaces or "status" in step.places else step
        case [Communicate() as one, Communicate() as other] if {one.op, other.op} == _TWO:
            send, receive = (one, other) if one.op is Op.SEND else (other, one)
            waited = len(ends) > 2 or (send.blocking and receive.blocking)
            if not waited or not are_ends(send, receive) or receive.pickled > receive.blocking:
                return None
            given = receive.receive, receive.result, receive.source
            step = replace(send, receive=given[0], result=given[1], source=given[2])
            return replace(step, op=Op.SENDRECV, blocking=True, mode="", places={})
    return None


def _all_gather(
    program: Program, function: SpmdFunction, loop: Loop, step: Communicate, ends: list[Step]
) -> _Found | None:
    """Return one `Allgather` for a loop that passes rows on until every rank has all of them."""
    given = step.receive
    if not all(one in ends or _is_of_numbers(one) for one in loop.body):
        return None
    sent, taken = _row(step.send, step), _row(step.receive, step)
    if sent is None or taken is None or given is None or not _gathers(loop, step, sent, taken):
        return None
    view, base = given.view, BASE.fullmatch(given.text.strip())
    assert view is not None and view.region is not None
    whole = replace(view, region=(Range(num(0), step.communicator.size), *view.region[1:]))
    name = base[1] if base is not None and "." not in base[1] else given.text
    received = replace(given, view=whole, count=whole.count, text=name)
    line = f"{step.receiver}.Allgather({program.mpi_module}.IN_PLACE, {name})"
    nodes, at = suite_at(loop.span, program.context) or ([], 0)
    place = span_of(nodes[at], program.context.lines) if nodes else loop.span
    return (
        collective(step, Op.ALLGATHER, None, received),
        "the array has no name"
        if name == given.text
        else instead(program, function, place, [line], ends),
        f"collect the rows of `{name}`",
        "the library knows algorithms of fewer steps for small pieces, has several messages under"
        " way for large ones, and costs one call from Python",
        "every rank ends with each row as the rank of that number had it",
    )


def _all_reduce(
    program: Program,
    function: SpmdFunction,
    visit: Visit,
    step: Communicate,
    ends: list[Step],
    *,
    again: bool,
) -> _Found | None:
    """Return one `Allreduce` for blocks that go round a ring, each rank adding what comes by.

    The total begins with the own block, or with 0 where that comes `again` in the end.
    """
    sent, context = step.send, program.context
    on = move_of(named_rank(step.dest), step.communicator)
    if not is_shift(step) or on is None or on.by not in (num(1), num(-1)):
        return None
    nodes, at = suite_at(visit.step.span, context) or ([], 0)
    number = sent is not None and step.pickled and sent.kind is PayloadKind.SCALAR
    if sent is None or not (number or sent.dtype in SENDABLE) or not nodes:
        return None
    node = nodes[at]
    given = ast.unparse(ast.parse(sent.text.strip())) if step.pickled else sent.text
    lines = [span_of(one, context.lines) for one in getattr(node, "body", [])]
    others = [number for number, s in enumerate(lines) if not any(s.contains(e.span) for e in ends)]
    total, block = _added_round(node, step, given, others) or ("", "")
    begins = _begins(nodes[:at], total, block, number=number)
    exact = begins == "0" or (begins == "0.0" and str(sent.dtype).startswith("float"))
    if not total or not (number and exact if again else begins == "own"):
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
    if number:
        line = f"{total} = {step.receiver}.allreduce({block}, op={mpi}.SUM)"
        call = replace(call, method="allreduce", send=sent, receive=None, in_place=False)
    writable = mpi is not None and starts_line(place, context)
    return (
        replace(call, pickled=number, operation="SUM"),
        in_place_of(place, [line], context) if writable else "the loop shares its line",
        f"add up `{total}`",
        "round a ring every rank sends all blocks; a reduction of large arrays sends two, of small"
        " ones takes as many steps as the logarithm of the number of ranks",
        "the same terms are added, in another order, the same on each rank: sums of floating-point"
        " numbers agree to rounding",
    )


def _added_round(
    node: ast.stmt, step: Communicate, given: str, others: list[int]
) -> tuple[str, str] | None:
    """Return the total and the block of a loop that passes on a block and adds what comes."""
    if not isinstance(node, ast.For) or node.orelse or others[-1:] != [len(node.body) - 1]:
        return None
    if others != list(range(others[0], len(node.body))):
        return None  # a message follows
    received = str(step.result if step.pickled else step.receive and step.receive.text)
    added, *passed = (ast.unparse(node.body[number]) for number in others)
    found = re.fullmatch(rf"(\w+) (\+= |= \1 \+ ){re.escape(received)}", added)
    if found is None or found[1] in (given, received):
        return None
    swaps = [f"{a}, {b} = {b}, {a}" for a, b in ((given, received), (received, given))]
    goes_on = [ast.unparse(ast.parse(text)) for text in swaps]
    again = received == given and not passed if step.pickled else len(passed) == 1
    if step.pickled and passed == [f"{given} = {received}"]:
        return found[1], given
    return (found[1], given) if again and set(passed) <= set(goes_on) else None


def _begins(nodes: list[ast.stmt], total: str, block: str, *, number: bool) -> str:
    """Return what a total begins with, ``"own"`` for what goes round, if nothing touches either."""
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
    begun = given.get(total, "")
    own = begun.removesuffix(".copy()")
    if (bound_names(between) | loaded_names(between)) & {total, block, *words(own)}:
        return ""
    if number:
        return "own" if begun == block or (begun == given.get(block) and is_name(begun)) else begun
    copied = begun == f"{own}.copy()" and given.get(block) in (own, f"{own}.copy()")
    return "own" if copied else ""


def _is_of_numbers(step: object) -> bool:
    plain = isinstance(step, Compute) and step.target is None and not step.reads
    return plain or isinstance(step, Interpret)


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
