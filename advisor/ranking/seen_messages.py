"""What a run showed of a program's messages: how many ranks, and sizes that buffers had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.analysis.spmd.statements import itemsize
from advisor.dtypes import UnknownDtype, itemsize_of
from advisor.frontend.seen import solved
from advisor.ir.spmd.payloads import unknown_count
from advisor.ir.spmd.program import RANKS, Program, SizeFact
from advisor.ir.spmd.steps import Communicate
from advisor.observed import SeenMessages
from costdb.expr import Expr, num, substitute

_LITERAL = "line "
"""How the origin of a size begins that an assignment of the source states: newer than any run."""


def as_observed(program: Program, messages: Sequence[SeenMessages]) -> Program:
    """Return a program with the sizes that a run showed.

    They go over what only stands in for the user's choice (the default of an option, a number of
    ranks in a comment), not over what an assignment states: the run was of an older text if it
    differs. Sizes on which two messages disagree, and those of messages that were not all of one
    size, are left as the source says.

    Parameters
    ----------
    program : Program
    messages : sequence of SeenMessages
        Of the lines of its file, which may have moved since.
    """
    if not messages:
        return program
    found: dict[str, set[int]] = {}
    ranks = {one.world for one in messages}
    if len(ranks) == 1 and _is_open(program, RANKS):
        found[RANKS] = ranks
    known = _known(program, found)
    for step, seen in _matched(program, messages):
        for extent, value in _extents(step, seen):
            for name, size in solved(substitute(extent, known), value):
                if _is_open(program, name):
                    found.setdefault(name, set()).add(size)
    origin = messages[0].origin
    sizes = dict(program.sizes)
    for name, values in found.items():
        if len(values) == 1 and min(values) >= 1:
            (value,) = values
            span = sizes[name].span if name in sizes else None
            sizes[name] = SizeFact(value, origin, span)
    return replace(program, sizes=sizes)


def _is_open(program: Program, name: str) -> bool:
    fact = program.sizes.get(name)
    if fact is None:
        return True
    # what follows from other sizes goes on following from them
    return fact.derived is None and (fact.value is None or not fact.origin.startswith(_LITERAL))


def _known(program: Program, found: Mapping[str, set[int]]) -> dict[str, Expr]:
    """Return what is certain before any message is looked at."""
    stated = {
        name: num(fact.value)
        for name, fact in program.sizes.items()
        if fact.value is not None and not _is_open(program, name)
    }
    return stated | {name: num(next(iter(values))) for name, values in found.items()}


def _matched(
    program: Program, messages: Iterable[SeenMessages]
) -> Iterator[tuple[Communicate, SeenMessages]]:
    """Yield operations with what a run showed of them: by method and text, not by line."""
    lines = program.context.source.splitlines()
    by_text: dict[tuple[str, str], list[SeenMessages]] = {}
    for one in messages:
        by_text.setdefault((one.method, one.text), []).append(one)
    for function in program.functions:
        for _, step in function.operations():
            line = step.span.start_line
            text = lines[line - 1].strip() if line <= len(lines) else ""
            seen = by_text.get((step.method, text), [])
            if len({one.line for one in seen}) > 1:
                # alike lines: only where none has moved can they be told apart
                seen = [one for one in seen if one.line == line]
            if len(seen) == 1:
                yield step, seen[0]


def _extents(step: Communicate, seen: SeenMessages) -> Iterator[tuple[Expr, int]]:
    """Yield formulas with the values that they had."""
    payload = step.send or step.receive
    if payload is None or seen.least_bytes != seen.most_bytes or not seen.most_bytes:
        return
    view = payload.view
    for stated, found in (
        (None if view is None else view.shape, seen.shape),
        (None if view is None else view.buffer.extents, seen.whole),
    ):
        if stated is not None and found is not None and len(stated) == len(found):
            yield from zip(stated, found, strict=True)
    if payload.datatype is not None:
        return
    if payload.count is None:
        name = payload.text if view is None else view.buffer.name
        size = itemsize(payload.dtype)
        count = unknown_count(name)
    else:
        size, count = _itemsize(seen.dtype), payload.count
    if size and seen.most_bytes % size == 0:
        yield count, seen.most_bytes // size


def _itemsize(dtype: str) -> int:
    try:
        return itemsize_of(dtype)
    except UnknownDtype:
        return 0
