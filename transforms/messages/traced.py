"""Messages of each rank with each, whatever loops, branches and calls they are made of.

Who sends what to whom is told from what each of a few ranks does in some steps, for several
numbers of ranks. Nothing is rewritten for it: what is found is only shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from advisor.ir.spmd.memory import Payload, PayloadKind, elements
from advisor.ir.spmd.program import Program, SpmdFunction, number_of
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Leave,
    Loop,
    LoopKind,
    Op,
    Step,
    Unknown,
    Visit,
    walk,
)
from costdb.expr import Expr, free_symbols, num, substitute
from costdb.records import replace
from transforms.kit.memory import may_be_written
from transforms.kit.names import bound_in, bound_names, loaded_names, words
from transforms.kit.ranks import on_all_ranks, same_communicator
from transforms.kit.rewrite import span_of, stretch, tree_of
from transforms.messages.buffers import carried
from transforms.messages.patterns import is_clear

_RANKS = (2, 3, 4, 5)
_MOST = 4
"""Steps with messages that are looked at together."""
_TAKEN = frozenset({Op.SEND, Op.RECV, Op.GATHER, Op.SCATTER})
_SIMPLE = ast.Assign | ast.AugAssign | ast.Expr
Found = tuple[Visit, Communicate, Loop, Communicate]
_Acts = list[tuple[Communicate, int, int]]


class _Untold(Exception):
    """What a rank does hangs on more than its number."""


def traced(program: Program, function: SpmdFunction) -> Iterator[Found]:
    """Yield messages of each rank with each: where, one of them, all, and the collective."""
    found: list[Step] = []
    for visit in function.visits():
        if not _acting((visit.step,)) or any(visit.step in _inside(one) for one in found):
            continue
        for last in range(visit.position, len(visit.block)):
            steps = visit.block[visit.position : last + 1]
            if _acting(steps[-1:]) and _is_each(steps):
                clear = on_all_ranks(function.visits(), visit) and is_clear(function, visit)
                if clear and not _hangs_on_others(program, steps):
                    yield visit, *_instead(program, steps)
                found += steps
                break
            if len([one for one in steps if _acting((one,))]) == _MOST:
                break


def _inside(step: Step) -> list[Step]:
    return [one.step for one in walk((step,), into_calls=True)]


def _acting(steps: tuple[Step, ...]) -> list[Communicate]:
    """Return the messages that steps consist of, or hold."""
    inside = (one.step for one in walk(steps))
    return [one for one in inside if isinstance(one, Communicate) and one.op in _TAKEN]


# --- what ranks do ------------------------------------------------------------------------------


def _done(steps: tuple[Step, ...], here: Mapping[str, int], done: _Acts) -> str:
    """Add what a rank sends and receives, the rank at the other end, the tag; return how it leaves.

    Raises
    ------
    _Untold
    """
    for step in steps:
        if not any(isinstance(one, Communicate | Leave | Unknown) for one in _inside(step)):
            continue
        how = ""
        match step:
            case Communicate(op=op) if op in _TAKEN and "status" not in step.places:
                partner = step.dest or step.source
                other = _number(step.root if partner is None else partner.rank, here)
                done.append((step, other, _number(step.tag, here)))
            case Branch():
                first = _number(step.condition.value, here)
                how = _done(step.then if first else step.orelse, here, done)
            case Loop(kind=LoopKind.COUNTED):
                low, high, every = (_number(one, here) for one in (step.low, step.high, step.every))
                for index in range(low, high, every):
                    how = _done(step.body, {**here, step.variable: index}, done)
                    if how not in ("", "continue") or len(done) > _MOST * _RANKS[-1]:
                        break
                how = how if how not in ("break", "continue") else ""
            case Leave():
                return step.how
            case _:
                raise _Untold
        if how:
            return how
    return ""


def _number(expr: Expr | None, here: Mapping[str, int]) -> int:
    found = number_of(expr, here)
    if found is None:
        raise _Untold
    return found


def _is_each(steps: tuple[Step, ...]) -> bool:
    """Return whether every rank sends once to every other, and receives once from it."""
    acting = _acting(steps)
    communicator = acting[0].communicator
    tagged = all("tag" in one.places for one in acting if one.op is Op.RECV)
    names = [*free_symbols(communicator.rank), *free_symbols(communicator.size)]
    for size in _RANKS:
        sent, got = list[tuple[int, ...]](), list[tuple[int, ...]]()
        for rank in range(size):
            done: _Acts = []
            try:
                left = _done(steps, dict(zip(names, (rank, size), strict=False)), done)
            except _Untold:
                return False
            for step, other, tag in done:
                if left or not same_communicator(step.communicator, communicator):
                    return False
                pair = (rank, other) if step.op in (Op.SEND, Op.GATHER) else (other, rank)
                message = [(*pair, tag * tagged)] * (rank != other)
                sent += message if step.op is not Op.RECV else []
                got += message if step.op is not Op.SEND else []
        every = [(one, other) for one in range(size) for other in range(size) if one != other]
        if sorted(sent) != sorted(got) or sorted(one[:2] for one in sent) != every:
            return False
    return True


def _hangs_on_others(program: Program, steps: tuple[Step, ...]) -> bool:
    """Return whether what is sent may be made of what comes."""
    acting, lines = _acting(steps), program.context.lines
    place = stretch(steps[0].span, max(one.statement for one in acting))
    takes = {one.span: one for one in acting if one.op is not Op.SEND}
    sent = [one.send for one in acting if one.send is not None]
    parts = (one for one in ast.walk(tree_of(program.context.source)) if isinstance(one, _SIMPLE))
    nodes = [(one, span) for one in parts if place.contains(span := span_of(one, lines))]
    came: frozenset[str] = frozenset()
    for node, span in nodes * 2:
        got = [one.receive for call, one in takes.items() if span.contains(call)]
        if got or loaded_names([node]) & came:
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=grown, attr="append"))):
                    came |= words(ast.unparse(grown))
                case ast.Expr() if got and got[0] is not None:
                    came |= words(got[0].text.partition("[")[0])
                case _:
                    came |= bound_names([node])
    if words(" ".join(one.text for one in sent)) & came:
        return True
    inside = [one for step in steps for one in _inside(step)]
    views = [one.view for one in sent if one.view is not None]
    inside = [one for one in inside if not isinstance(one, Call | Leave)]
    return any(may_be_written(one, view) for one in inside for view in views)


# --- what takes their place ---------------------------------------------------------------------


def _instead(program: Program, steps: tuple[Step, ...]) -> tuple[Communicate, Loop, Communicate]:
    sends = ((one, one.send) for one in _acting(steps))
    step, sent = next((one, sent) for one, sent in sends if sent is not None)
    size = step.communicator.size
    loops = [one for step in steps for one in _inside(step) if isinstance(one, Loop)]
    ranks = {one.variable: step.communicator.rank for one in loops if one.variable}
    count, trips = substitute(elements(sent), ranks), size - (step.op is Op.SEND)
    array = sent.kind is PayloadKind.ARRAY
    each = replace(sent, view=None, count=count) if array else sent
    body = (replace(step, send=each, receive=None),)
    loop = Loop(LoopKind.COUNTED, "", num(0), trips, 1, trips, body, step.span)
    bound = frozenset[str]().union(*(bound_in(program, one) for one in loops))
    op = Op.ALLTOALL if words(sent.text) & bound else Op.ALLGATHER
    call = carried(step, op, sent.dtype, (count,), varying=array)
    if not array:
        listed = Payload(PayloadKind.OBJECT, sent.text, sent.span, parts=(sent,), length=size)
        given = listed if op is Op.ALLTOALL else sent
        call = replace(call, send=given, receive=None, pickled=True, method=op.value)
    return step, loop, call
