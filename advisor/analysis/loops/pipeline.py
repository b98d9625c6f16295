"""Recurrences along a distributed axis, done in chunks of another axis.

Each rank does its part of a recurrence for one chunk and hands the edge on; while the next rank
goes on with that chunk, it begins the next one. With ``C`` chunks over ``R`` ranks the last rank
is done after ``C + R - 1`` stages: the first chunk fills the pipeline, the last one drains it.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.loops.turns import meets, of_rank, owned_by, process_symbols, works
from advisor.analysis.placed.along import ONE, ZERO
from advisor.analysis.placed.participants import owners
from advisor.distribution import CyclicDim
from advisor.ir.dependence import carried
from advisor.ir.statements import Loop, Store, walk
from costdb.process.terms import Parallel, Process, SeqLoop
from costdb.work import Message


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
    if owned is None or meets(body) or chunks.variable in process_symbols(body):
        return None
    if inner.variable in process_symbols(tuple(_statements(body))):
        return None
    stages = chunks.high - chunks.low + owners(owned.low, owned.high, owned) - 1
    # the first rank receives nothing, the second one is like all that follow, if not more
    stage = Parallel((of_rank(inner, body, owned, ZERO), of_rank(inner, body, owned, ONE)))
    return SeqLoop(f"{chunks.variable}.stage", ONE, stages, stage)


def _statements(process: Process) -> Iterator[object]:
    return (work for work in works(process) if not isinstance(work, Message))
