"""Loops whose iterations belong to one rank each: in turn, or side by side.

``for j in ...: x[:, j] = ...`` with columns dealt out gives each iteration to the owner of its
column. Where iterations need nothing of one another, all owners work at the same time, and the
loop takes as long as the owner with most to do; where one waits for another, they take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.facts import Facts
from advisor.analysis.placed.along import Along, owners
from advisor.analysis.placed.operands import pairs_of
from advisor.analysis.processes import meets, works
from advisor.analysis.transfers.reads import fetched
from advisor.distribution import CyclicDim
from advisor.ir.concrete import rebuilt, symbols, with_part
from advisor.ir.dependence import carried
from advisor.ir.statements import Loop, Statement, Store, walk
from advisor.ir.values import (
    Point,
    Range,
    reads,
)
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    equal,
    floor_div,
    free_symbols,
    maximum,
    minimum,
    num,
    substitute,
    sym,
)
from costdb.work import (
    NOTHING,
    Branch,
    Message,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
)

# Loops that do the same with another index: in steps of 1, or cut where a shift turns round.


def with_unit_steps(loop: Loop) -> Loop:
    """Return a loop that counts its iterations from 0."""
    if loop.step == 1:
        return loop
    index = {loop.variable: loop.low + sym(loop.variable) * loop.step}
    body = _body(loop, index)
    trips = ceil_div(loop.high - loop.low, num(loop.step))
    return replace(loop, low=ZERO, high=trips, step=1, body=body)


def cut_where_it_turns(loop: Loop, shift: Expr, facts: Facts) -> tuple[Statement, ...] | None:
    """Return a loop as the iterations before, at and after the one whose shift is 0.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    shift : Expr
        Which grows or falls by 1 from one iteration to the next.
    facts : Facts
        What is known outside the loop.

    Returns
    -------
    tuple of Statement, or None
        None where it is not shown that one of the iterations has no shift.
    """
    turn = _turn(loop, shift)
    inner = {each.variable for each in walk(loop.body) if isinstance(each, Loop)}
    if turn is None or free_symbols(turn) & inner:
        return None
    before, after = turn - loop.low, loop.high - 1 - turn
    if not (facts.non_negative(before) and facts.non_negative(after)):
        return None
    index = sym(loop.variable)
    earlier = _iterations(replace(loop, high=turn))
    at_turn = _body(loop, {loop.variable: turn})
    body = _body(loop, {loop.variable: index + turn})
    later = _iterations(replace(loop, low=ONE, high=after + 1, body=body))
    return (*earlier, *at_turn, *later)


def _iterations(loop: Loop) -> tuple[Statement, ...]:
    """Return a loop without what is surely one iteration, or none, being called a loop."""
    trips = loop.high - loop.low
    if trips == ZERO:
        return ()
    return _body(loop, {loop.variable: loop.low}) if trips == ONE else (loop,)


def _turn(loop: Loop, shift: Expr) -> Expr | None:
    """Return the index at which a shift is 0; None where it is not the index and a constant."""
    name = loop.variable
    at_zero = substitute(shift, {name: ZERO})
    growth = substitute(shift, {name: ONE}) - at_zero
    if growth not in (ONE, num(-1)) or shift != at_zero + growth * sym(name):
        return None
    return -at_zero if growth == ONE else at_zero


def _body(loop: Loop, index: Mapping[str, Expr]) -> tuple[Statement, ...]:
    return rebuilt(loop.body, lambda part: substitute(part, index))


# What iterations that belong to one rank each read at a place of another: fetched before them.
#
# ``for i in range(k + 1, n): a[i, :] -= a[i, k] * a[k, :]`` needs row ``k`` on every rank that has
# rows below it, once, since no iteration changes it.


def fetched_before(loop: Loop, arrays: Arrays) -> tuple[list[Process], Loop]:
    """Return what is fetched before a loop, and the loop with that at hand.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    arrays : Arrays

    Raises
    ------
    NotPriced
        Where the ranks that need it have no closed form.
    """
    if any(isinstance(inner, Loop) for inner in loop.body):
        return [], loop
    if owned_by(loop, arrays) is None or carried(loop, arrays.facts.minima):
        return [], loop
    made: list[Process] = []
    body = []
    for statement in walk(loop.body):
        assert isinstance(statement, Store)
        target, value, region = arrays.placement(statement.array), statement.value, statement.region
        dimension, here = next(
            (d, part)
            for d, part in enumerate(region)
            if isinstance(part, Point)
            and target.is_spread(d)
            and loop.variable in free_symbols(part.at)
        )
        others = (*region[:dimension], *region[dimension + 1 :])
        offset = here.at - sym(loop.variable)
        all_of_it = Range(loop.low + offset, loop.high + offset)
        for read in dict.fromkeys(reads(value)):
            source = arrays.named(read.array, read.region)
            spread = [d for d in range(len(read.region)) if source.placement.is_spread(d)]
            # what an iteration needs, or does, may be another part of it each time
            moves = loop.variable in symbols((*read.region, *others))
            if moves or len(spread) != 1 or not isinstance(read.region[spread[0]], Point):
                continue
            if not source.placement.along_as(spread[0], target, dimension):
                continue
            over = (*region[:dimension], all_of_it, *region[dimension + 1 :])
            pairs = [(source, pairs_of(source, over))]
            made += fetched(pairs, over, target, arrays.facts, arrays.halos)
            # what was read elsewhere is read at the place of the owner
            place = (*read.region[: spread[0]], here, *read.region[spread[0] + 1 :])
            value = with_part(value, read, replace(read, region=place))
        body.append(replace(statement, value=value))
    return made, replace(loop, body=tuple(body)) if made else loop


# Recurrences along a distributed axis, done in chunks of another axis.
#
# Each rank does its part of a recurrence for one chunk and hands the edge on; while the next rank
# goes on with that chunk, it begins the next one. With ``C`` chunks over ``R`` ranks the last rank
# is done after ``C + R - 1`` stages: the first chunk fills the pipeline, the last one drains it.


def recurrence_of(chunks: Loop, arrays: Arrays) -> Loop | None:
    """Return the recurrence that independent chunks repeat, if ranks can do it as a pipeline.

    Parameters
    ----------
    chunks : Loop
        Over chunks, with steps of 1.
    arrays : Arrays
    """
    if len(chunks.body) != 1 or not isinstance(chunks.body[0], Loop):
        return None
    inner = chunks.body[0]
    if inner.step != 1 or any(not isinstance(s, Store) for s in walk(inner.body)):
        return None
    if carried(chunks, arrays.facts.minima) or not carried(inner, arrays.facts.minima):
        return None
    owned = owned_by(inner, arrays)
    return None if owned is None or isinstance(owned.dim, CyclicDim) else inner


def pipelined(chunks: Loop, inner: Loop, body: Process, arrays: Arrays) -> Process | None:
    """Return the stages of a pipeline, None where one stage is not like another.

    Exact where all ranks that take part have equally much to do and chunks are equally large;
    otherwise an upper bound, with every stage as long as the longest.

    Parameters
    ----------
    chunks, inner : Loop
    body : Process
        The work of one iteration of `inner`.
    arrays : Arrays
    """
    owned = owned_by(inner, arrays)
    if owned is None or meets(body) or chunks.variable in symbols(body):
        return None
    if inner.variable in symbols(tuple(_statements(body))):
        return None
    stages = chunks.high - chunks.low + owners(owned.low, owned.high, owned) - 1
    # the first rank receives nothing, the second one is like all that follow, if not more
    stage = Parallel((of_rank(inner, body, owned, ZERO), of_rank(inner, body, owned, ONE)))
    return SeqLoop(f"{chunks.variable}.stage", ONE, stages, stage)


def _statements(process: Process) -> Iterator[object]:
    return (work for work in works(process) if not isinstance(work, Message))


def side_by_side(loop: Loop, body: Process, arrays: Arrays) -> Process | None:
    """Return a loop with its iterations done by their owners at the same time.

    None where they take turns, where an iteration belongs to several ranks, or where they meet
    in a collective operation.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    body : Process
        The work of one iteration.
    arrays : Arrays
    """
    owned = owned_by(loop, arrays)
    if owned is None or meets(body) or carried(loop, arrays.facts.minima):
        return None
    if loop.variable not in symbols(body):
        return SeqLoop(loop.variable, ONE, owned.count(arrays.facts), body)
    rank = f"{loop.variable}.owner"
    return ParLoop(rank, ZERO, owned.ranks - 1, of_rank(loop, body, owned, sym(rank)))


def of_rank(loop: Loop, body: Process, owned: Along, rank: Expr) -> Process:
    """Return the iterations of a loop that one rank owns."""
    shift, last = owned.low - loop.low, loop.high - 1
    if isinstance(owned.dim, CyclicDim):
        owner = floor_div(sym(loop.variable) + shift, owned.piece) % owned.ranks
        mine = Branch(equal(owner, rank), body, NOTHING)
        return SeqLoop(loop.variable, loop.low, last, mine)
    begin = rank * owned.piece - shift
    first = begin if loop.low == ZERO and shift == ZERO else maximum(loop.low, begin)
    return SeqLoop(loop.variable, first, minimum(last, begin + owned.piece - 1), body)


def owned_by(loop: Loop, arrays: Arrays) -> Along | None:
    """Return which indices of a distributed dimension decide who does an iteration."""
    found: set[Along] = set()
    for statement in walk(loop.body):
        if isinstance(statement, Loop):
            continue
        if not isinstance(statement, Store):
            return None
        placement = arrays.placement(statement.array)
        places = [
            (dimension, part.at)
            for dimension, part in enumerate(statement.region)
            if isinstance(part, Point) and placement.is_spread(dimension)
        ]
        moving = [(d, at) for d, at in places if loop.variable in free_symbols(at)]
        if len(moving) != 1 or len(places) != 1:
            return None
        dimension, at = moving[0]
        offset = at - sym(loop.variable) + placement.origin[dimension]
        if loop.variable in free_symbols(offset):
            return None
        found.add(
            Along(
                loop.low + offset,
                loop.high + offset,
                placement.template[dimension],
                placement.ranks(dimension),
                placement.dims[dimension],
            )
        )
    return found.pop() if len(found) == 1 else None
