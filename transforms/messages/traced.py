"""Messages of each rank with each, or with the next, whatever loops and branches make them.

Who sends what to whom is told from what each of a few ranks does in some steps, for several
numbers of ranks. Nothing is rewritten for it: what is found is only shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from advisor.ir.spmd.memory import Payload, PayloadKind, View, elements
from advisor.ir.spmd.program import Program, SpmdFunction, number_of
from advisor.ir.spmd.steps import (
    Branch,
    Call,
    Communicate,
    Compute,
    Copy,
    Interpret,
    Leave,
    Loop,
    LoopKind,
    Op,
    Partner,
    PartnerKind,
    Step,
    Unknown,
    Visit,
    walk,
)
from advisor.ir.values import Point
from advisor.source import every
from costdb.expr import Expr, free_symbols, num, substitute
from costdb.expr.nodes import Mod
from costdb.records import replace
from transforms.kit import memory
from transforms.kit.names import bound_in, bound_names, is_uniform, loaded_names, timed, words
from transforms.kit.ranks import Bound, on_all_ranks, same_communicator
from transforms.kit.rewrite import span_of, stretch, tree_of
from transforms.messages.buffers import carried
from transforms.messages.patterns import is_clear

_RANKS = (2, 3, 4, 5)
_WAITS: Mapping[tuple[int, ...], Bound] = {
    (1, 2, 3, 4): Bound(1, -1),
    (2, 3, 4, 5): Bound(1, 0),
    (2, 2, 2, 2): Bound(0, 2),
}
"""How many messages follow one another, in chains and in turns: on these ranks, and in general."""
_ANY = -1
"""The tag of what comes in an exchange, which has one for each way."""
_MOST = 4
"""Steps with messages that are looked at together."""
_ENDS = frozenset({Op.SEND, Op.RECV, Op.SENDRECV})
_TAKEN = _ENDS | {Op.GATHER, Op.SCATTER}
_SIMPLE = ast.Assign | ast.AugAssign | ast.Expr
_MOVES = Branch | Loop | Communicate | Interpret | Copy | Compute
Found = tuple[Visit, Communicate, Loop, tuple[Communicate, ...]]
_Acts = list[tuple[Communicate, Op, int, int]]
"""What a rank does: a call or one end of it, the rank at the other end, the tag."""


class _Untold(Exception):
    """What a rank does hangs on more than its number."""


def traced(program: Program, function: SpmdFunction) -> Iterator[Found]:
    """Yield messages of all ranks: where, one of them, all, and the calls that do the same."""
    found: list[Step] = []
    for visit in function.visits():
        if not _acting((visit.step,)) or any(visit.step in _inside(one) for one in found):
            continue
        for last in range(visit.position, len(visit.block)):
            steps = visit.block[visit.position : last + 1]
            runs = _runs(steps) if _acting(steps[-1:]) else ()
            each = bool(runs) and all(map(_is_each, runs))
            waits = _waits(program, steps, runs)
            pairs = all(map(_is_of_pairs, runs))
            measured = pairs and function.name.rpartition(".")[2] in timed(program)
            if measured or not (pairs or function.weight(visit)):
                waits = None  # set-up, output in the order of ranks, or how fast messages are
            if waits is not None or (each and not _hangs_on_others(program, steps)):
                if on_all_ranks(function.visits(), visit) and is_clear(function, visit):
                    if waits is not None:
                        ends = [op for _, op, *_ in runs[-1][1]]
                        yield visit, *_exchange(steps, waits, ends.count(Op.SEND))
                    else:
                        yield visit, *_collective(program, steps, runs[-1])
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
    """Add what a rank sends and receives; return how it leaves.

    Raises
    ------
    _Untold
    """
    for step in steps:
        if not any(isinstance(one, Communicate | Leave | Unknown) for one in _inside(step)):
            continue
        how = ""
        match step:
            case Communicate(op=Op.BARRIER):
                continue  # which all come to
            case Communicate(op=op) if op in _TAKEN and "status" not in step.places:
                for end, partner in ((Op.SEND, step.dest), (Op.RECV, step.source)):
                    other = None if partner is None else _other(step, partner, here)
                    if other is not None:
                        tag = _ANY if op is not end is Op.RECV else _number(step.tag, here)
                        done.append((step, end, other, tag))
                if step.root is not None:
                    done.append((step, op, _number(step.root, here), 0))
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


def _other(step: Communicate, partner: Partner, here: Mapping[str, int]) -> int | None:
    """Return the rank at the other end; None for nobody."""
    of, at = step.communicator, partner.rank
    if partner.kind is PartnerKind.NOBODY:
        return None
    if partner.displacement is not None and of.periods in ((True,), (False,)):
        at = of.rank + partner.displacement
        at = Mod(at, of.size) if of.periods == (True,) else at
    other = _number(at, here)
    if 0 <= other < _number(of.size, here):
        return other
    if not partner.may_be_nobody:
        raise _Untold
    return None


def _runs(steps: tuple[Step, ...]) -> tuple[list[_Acts], ...]:
    """Return what each rank does, for a few numbers of ranks; none where more has to be known."""
    communicator, runs = _acting(steps)[0].communicator, list[list[_Acts]]()
    names = [*free_symbols(communicator.rank), *free_symbols(communicator.size)]
    for size in _RANKS:
        runs.append([])
        for rank in range(size):
            done: _Acts = []
            try:
                left = _done(steps, dict(zip(names, (rank, size), strict=False)), done)
            except _Untold:
                return ()
            others = (one.communicator for one, *_ in done)
            if left or not all(same_communicator(one, communicator) for one in others):
                return ()
            runs[-1].append(done)
    return tuple(runs)


def _is_each(run: list[_Acts]) -> bool:
    """Return whether every rank sends once to every other, and receives once from it."""
    size, sent, got = len(run), list[tuple[int, ...]](), list[tuple[int, ...]]()
    tagged = all("tag" in one.places for done in run for one, op, *_ in done if op is Op.RECV)
    for rank, done in enumerate(run):
        for _, op, other, tag in done:
            pair = (rank, other) if op in (Op.SEND, Op.GATHER) else (other, rank)
            message = [(*pair, tag * tagged)] * (rank != other)
            sent += message if op is not Op.RECV else []
            got += message if op is not Op.SEND else []
    every = [(one, other) for one in range(size) for other in range(size) if one != other]
    return sorted(sent) == sorted(got) and sorted(one[:2] for one in sent) == every


# --- messages that wait for one another ---------------------------------------------------------


def _waits(program: Program, steps: tuple[Step, ...], runs: tuple[list[_Acts], ...]) -> Expr | None:
    """Return how many messages follow one another; None where they have to, or wait for ever."""
    waits = _WAITS.get(tuple(map(_last, runs)))
    if waits is None or not _is_ready(program, steps):
        return None
    if not waits.ranks and all(one.op is Op.SENDRECV for one in _acting(steps)):
        return None  # one way after the other, as it should be
    return _acting(steps)[0].communicator.size * waits.ranks + waits.constant


def _last(run: list[_Acts]) -> int:
    """Return after how many messages the last one has come, of each rank's two to others at most.

    A message leaves at once; a rank waits for what it receives.
    """
    clocks, left = [0] * len(run), [list(done) for done in run]
    under_way: dict[tuple[int, int, int], int] = {}
    sends = [(to - rank, op) for rank, done in enumerate(run) for _, op, to, _ in done]
    ways = [way % len(run) for way, op in sends if op is Op.SEND]
    same = all(len(run) - 1 <= ways.count(way) <= len(run) for way in ways)
    if not same and not _is_of_pairs(run):
        return 0  # not all send the same way, or some more than once
    for _ in range(sum(map(len, run))):
        for rank, done in enumerate(left):
            if not done:
                continue
            _, op, other, tag = done[0]
            if op is Op.SEND:
                under_way[rank, other, tag] = clocks[rank] + 1
            else:
                came = (one for one in under_way if one[:2] == (other, rank))
                message = next((one for one in came if tag in (_ANY, one[2])), None)
                if message is None:
                    continue
                clocks[rank] = max(clocks[rank], under_way.pop(message))
            done.pop(0)
    return 0 if any(left) or under_way else max(clocks)


def _is_of_pairs(run: list[_Acts]) -> bool:
    """Return whether ranks that send anything send one array to whom they receive one from."""
    ends = [sorted((op, to) for _, op, to, _ in done) for done in run if done]
    plain = not any(one.pickled for done in run for one, *_ in done)
    return plain and all(
        [op for op, _ in one] == [Op.RECV, Op.SEND] and one[0][1] == one[1][1] for one in ends
    )


def _is_ready(program: Program, steps: tuple[Step, ...]) -> bool:
    """Return whether nothing that ranks send is made of what comes."""
    inside, acting = [one for step in steps for one in _inside(step)], _acting(steps)
    plain = all(one.op in _ENDS and one.blocking and not one.replaces for one in acting)
    if not plain or not all(isinstance(one, _MOVES) for one in inside):
        return False
    sizes, came = memory.written_sizes(program), list[View | None]()
    made = {one.span for one in acting if one.op is not Op.SEND}
    # a number is sent as it is read
    numbers = [one.span for one in inside if isinstance(one, Copy | Compute) and not one.target]

    def is_apart(one: View | None) -> bool:
        if one is None or one.buffer.memory.allocation.span in made:
            return False
        return all(_is_apart(one, other, sizes) for other in came)

    # a loop comes to what it sends again
    for step in inside * (1 + any(isinstance(one, Loop) for one in inside)):
        match step:
            case Communicate(send=sent, receive=got) if step.op in _ENDS:
                number = sent is None or any(map(sent.span.contains, numbers))
                if not (number or is_apart(memory.plain_array(sent))):
                    return False
                came += [memory.plain_array(got)] if got is not None and not step.pickled else []
            case Copy(target=target) | Compute(target=target):
                if not all(map(is_apart, memory.reads_of(step) or (None,))):
                    if target is None:
                        return False
                    came.append(target)
    return True


def _is_apart(one: View, other: View | None, sizes: Mapping[str, Expr]) -> bool:
    """Return whether views share nothing, as lines told apart by numbers from either end do."""
    if other is None or memory.apart(one, other, sizes):
        return other is not None
    pairs = zip(one.region or (), other.region or (), strict=False)
    points = [(a.at, b.at) for a, b in pairs if isinstance(a, Point) and isinstance(b, Point)]
    return memory.same_memory(one, other) and any(a != b for a, b in points)


def _exchange(
    steps: tuple[Step, ...], waits: Expr, many: int
) -> tuple[Communicate, Loop, tuple[Communicate, ...]]:
    """Return a message, all that wait for one another, and the exchanges."""
    acting = _acting(steps)
    send = [one for one in acting if one.op is not Op.RECV][-1]
    receive = [one for one in acting if one.op is not Op.SEND][-1]
    comes = send.send if receive.pickled else receive.receive
    call = replace(send, op=Op.SENDRECV, method="Sendrecv", receive=comes, source=receive.source)
    chain = Loop(LoopKind.COUNTED, "", num(0), waits, 1, waits, (send,), send.span)
    return send, chain, (replace(call, pickled=False),) * many


# --- messages of each with each -----------------------------------------------------------------


def _hangs_on_others(program: Program, steps: tuple[Step, ...]) -> bool:
    """Return whether what is sent may be made of what comes."""
    acting, lines = _acting(steps), program.context.lines
    place = stretch(steps[0].span, max(one.statement for one in acting))
    takes = {one.span: one for one in acting if one.op is not Op.SEND}
    sent = [one.send for one in acting if one.send is not None]
    parts = every(_SIMPLE, tree_of(program.context.source))
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
    return any(memory.may_be_written(one, view) for one in inside for view in views)


def _collective(
    program: Program, steps: tuple[Step, ...], run: list[_Acts]
) -> tuple[Communicate, Loop, tuple[Communicate, ...]]:
    """Return one of the messages, all of them, and the collective."""
    sends = ((one, one.send) for one in _acting(steps))
    step, sent = next((one, sent) for one, sent in sends if sent is not None)
    size = step.communicator.size
    loops = [one for step in steps for one in _inside(step) if isinstance(one, Loop)]
    ranks = {one.variable: step.communicator.rank for one in loops if one.variable}
    count = substitute(elements(sent), ranks)
    to_itself = any(rank == other for rank, done in enumerate(run) for _, _, other, _ in done)
    trips = size - (not to_itself)
    array = sent.kind is PayloadKind.ARRAY
    each = replace(sent, view=None, count=count) if array else sent
    body = (replace(step, send=each, receive=None),)
    loop = Loop(LoopKind.COUNTED, "", num(0), trips, 1, trips, body, step.span)
    bound = frozenset[str]().union(*(bound_in(program, one) for one in loops))
    op = Op.ALLTOALL if words(sent.text) & bound else Op.ALLGATHER
    varying = array and not is_uniform(program, [count])
    call = carried(step, op, sent.dtype, (count,), varying=varying)
    if not array:
        listed = Payload(PayloadKind.OBJECT, sent.text, sent.span, parts=(sent,), length=size)
        given = listed if op is Op.ALLTOALL else sent
        call = replace(call, send=given, receive=None, pickled=True, method=op.value)
    return step, loop, (call,)
