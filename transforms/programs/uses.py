"""Where names stand in a function, and what those places do with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from advisor.ir.kernel import lines_of
from advisor.ir.spmd.memory import At, Index, Part, View, Whole
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Compute,
    Copy,
    Loop,
    Step,
    Visit,
)
from advisor.source import Span
from costdb.expr import Expr, ExprError, free_symbols, num, substitute, sym
from costdb.expr.facts import Facts
from costdb.expr.nodes import FloorDiv
from costdb.wording import IDENTIFIER, NAME_PART
from transforms.programs.rank_facts import root_arms

_TRIED_BLOCKS = 9
_COMMENT_OR_STRING = re.compile(
    r"""(\"{3}|'{3})(?:\\.|(?!\1).)*\1|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'|\#[^\r\n]*""",
    re.DOTALL,
)
_FORMATTED = re.compile(r"""\b[rR]?[fFtT][rR]?["']""")
_LIKE = re.compile(r"\b(?:(?:empty|zeros|ones|full)_like|len)\(\s*$")
_MEASURE = re.compile(r"\.(?:shape|size|dtype|ndim|nbytes|itemsize)\b(?!\s*=(?!=))")
_TARGETS_BEFORE = re.compile(rf"\s*({IDENTIFIER}\s*,\s*)*")
_TARGETS_BEHIND = re.compile(rf"\s*(,\s*{IDENTIFIER}\s*)*(:[^=]*)?=(?!=)")


def occurrences(name: str, function: SpmdFunction, program: Program) -> list[Span]:
    """Return every place of a name in a function, strings included, which may be evaluated."""
    pattern = re.compile(rf"(?<![{NAME_PART}.]){re.escape(name)}(?![{NAME_PART}])")
    whole, found = function.whole, []
    lines = without_comments(program.context.source)
    for number, line in enumerate(lines[whole.start_line - 1 : whole.end_line], whole.start_line):
        found += [
            Span(number, match.start(), number, match.end()) for match in pattern.finditer(line)
        ]
    return found


@lru_cache(maxsize=4)
def without_comments(source: str) -> tuple[str, ...]:
    """Return the lines of a source with blanks in the place of its comments.

    On lines with formatted strings they are left: those may hold anything between their quotes.
    """
    lines = lines_of(_COMMENT_OR_STRING.sub(_blanked, source))
    if not _FORMATTED.search(source):
        return tuple(lines)
    pairs = zip(lines, lines_of(source), strict=True)
    return tuple(whole if _FORMATTED.search(whole) else line for line, whole in pairs)


def _blanked(found: re.Match[str]) -> str:
    return " " * len(found[0]) if found[0].startswith("#") else found[0]


def is_binding(place: Span, program: Program) -> bool:
    """Return whether a name at a place is what a statement gives a value to."""
    line = program.context.lines[place.start_line - 1]
    return bool(
        _TARGETS_BEFORE.fullmatch(line[: place.start_column])
        and _TARGETS_BEHIND.match(line[place.end_column :])
    )


def is_measured(place: Span, program: Program) -> bool:
    """Return whether only the shape or the type of what a name denotes is asked for at a place."""
    line = program.context.lines[place.start_line - 1]
    before, behind = line[: place.start_column], line[place.end_column :]
    return _LIKE.search(before) is not None or _MEASURE.match(behind) is not None


def within(place: Span, spans: Iterable[Span]) -> bool:
    """Return whether a place is in one of several spans."""
    return any(span.contains(place) for span in spans)


def root_only(visit: Visit, communicator: Communicator, root: Expr) -> bool:
    """Return whether only the root gets to a step."""
    for branch, first in visit.branches:
        arms = root_arms(branch, communicator, root)
        if arms is not None and arms[0] == (branch.then if first else branch.orelse):
            return True
    return False


def reads_of(step: Step) -> tuple[View, ...]:
    """Return the views that a step reads."""
    match step:
        case Compute(reads=reads):
            return reads
        case Copy(source=source):
            return (source,)
        case Communicate(send=send) if send is not None and send.view is not None:
            return (send.view,)
    return ()


def block_of(index: Index, visit: Visit, communicator: Communicator) -> Expr | None:
    """Return the length of the own rank's block, if an index goes over that and nothing else.

    Blocks lie one after the other in the order of ranks, all of one length.
    """
    match index:
        case Part(low=low, high=high, step=1):
            return own_block(low, high, communicator.rank)
        case At(index=place):
            for loop in visit.loops:
                if loop.variable and place == sym(loop.variable) and _is_plain(loop):
                    return own_block(loop.low, loop.high, communicator.rank)
    return None


def blocks_fit(length: Expr, ranks: Expr, extent: Expr) -> bool:
    """Return whether blocks of all ranks certainly lie within an array, so that none is cut."""
    known = Facts(positive=free_symbols(length) | free_symbols(ranks) | free_symbols(extent))
    match length:
        case FloorDiv(dividend=whole, divisor=divisor) if divisor == ranks:
            return known.proves_at_least(extent, whole)
    return known.proves_at_least(extent, length * ranks)


def _is_plain(loop: Loop) -> bool:
    return loop.step == 1 and loop.stride is None


def own_block(low: Expr, high: Expr, rank: Expr) -> Expr | None:
    """Return the length of a block, if bounds are those of the own one: all are as long.

    Blocks lie one after the other in the order of ranks.
    """
    (own, *others) = free_symbols(rank) or ("",)
    if others or own not in free_symbols(low):
        return None
    # products are not multiplied out, so ranks are tried one by one, with all sizes left open
    try:
        length = substitute(high, {own: num(0)})
        for tried in range(_TRIED_BLOCKS):
            place = {own: num(tried)}
            if substitute(low, place) != length * tried:
                return None
            if substitute(high, place) != length * (tried + 1):
                return None
    except ExprError:
        return None  # no such bounds on some rank
    return length


def is_whole_behind(region: tuple[Index, ...]) -> bool:
    """Return whether a region takes all of every dimension but the first."""
    return all(isinstance(index, Whole) for index in region[1:])


def root_lines(
    function: SpmdFunction, communicator: Communicator, root: Expr, program: Program
) -> list[Span]:
    """Return the stretches of source that only the root gets to: whole suites of branches."""
    found: list[Span] = []
    for visit in function.visits():
        branch = visit.step
        if not isinstance(branch, Branch):
            continue
        arms = root_arms(branch, communicator, root)
        if arms is None or arms[0] != branch.then or branch.then == branch.orelse:
            continue
        found.append(suite_of(branch.span, program))
    return found


def suite_of(header: Span, program: Program) -> Span:
    """Return the lines that belong to the header of an ``if``, by their indentation."""
    lines = program.context.lines
    indent = header.start_column
    last = header.end_line
    for number in range(header.end_line + 1, len(lines) + 1):
        line = lines[number - 1]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        if line.strip():
            last = number
    return Span(header.start_line, header.start_column, last, len(lines[last - 1]))
