"""What calls wait for beside the lines they touch: crowded sets of caches, and pages looked up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from costdb.arrays.hierarchy import PAGE_BYTES, Hierarchy
from costdb.arrays.memory import Lie, Shape, distinct
from costdb.expr import ONE, ZERO, Expr, maximum, minimum, num
from costdb.work import ArrayCall, ArrayOperation, Visit

# Memory that a call goes through otherwise than line by line: walks across lines, and tables.

_WALKING = (ArrayOperation.SCAN, ArrayOperation.SORT, ArrayOperation.FFT)


def is_table(call: ArrayCall, visit: Visit) -> bool:
    """Return whether a call refers to places of this memory that only the data know."""
    match call.operation:
        case ArrayOperation.TAKE:
            return visit is call.operands[0]
        case ArrayOperation.ADD_AT | ArrayOperation.ADD_AT_CAST:
            return visit is call.result
        case _:
            return False


def lines_referred_to(references: Expr, lines: Expr) -> Expr:
    """Return how many of so many lines references to random places come to, as expected.

    The share is ``1 - exp(-references/lines)``, by the series of the exponential up to its cube,
    which is short of it by less than a thirtieth.
    """
    each = references / lines
    return lines * (1 - 1 / (1 + each + each**2 / 2 + each**3 / 6))


def walked_across(call: ArrayCall, visit: Visit) -> tuple[Expr, Expr] | None:
    """Return pitch and length of a walk that takes one element of each line it comes to.

    Operations along an axis that is not the last one do one walk after another; so does a copy
    that transposes, in its source.
    """
    axis = call.axis_from_last
    if call.operation is ArrayOperation.TRANSPOSE:
        axis = 0 if visit in call.operands else None
    elif call.operation not in _WALKING or axis == 0:
        axis = None
    if axis is None or len(visit.region.counts) < 2:
        return None
    place = len(visit.region.counts) - 1 - axis
    return visit.region.pitches_bytes[place], visit.region.counts[place]


def in_walks(visit: Visit, line_bytes: int) -> tuple[Expr, Expr]:
    """Return the elements of all walks of a visit, and which share is the first of its line."""
    elements = ONE
    for count in visit.region.counts:
        elements = elements * count
    return elements, minimum(1, num(visit.region.itemsize_bytes) / line_bytes)


def walk_bytes(call: ArrayCall, line_bytes: int) -> Expr:
    """Return what one walk of a call touches in all its arrays: the next one comes so much later.

    Operations that gather a walk's elements, and copies, have these once more.
    """
    found = ZERO
    for visit in distinct(call):
        walked = walked_across(call, visit)
        if walked is not None:
            own = 0 if call.operation is ArrayOperation.SCAN else visit.region.itemsize_bytes
            found = found + walked[1] * (line_bytes + own)
    return found


def lines_walked(call: ArrayCall) -> Expr:
    """Return how many lines one walk of a call comes to in all its arrays."""
    found = ZERO
    for visit in distinct(call):
        walked = walked_across(call, visit)
        if walked is not None:
            found = found + walked[1]
    return found


_SETS_TO_STORE = 8
"""In the lines of so many sets stores do not wait for one another."""


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Lines that crowd into few sets.

    Attributes
    ----------
    by_piece : tuple of Expr
        Lines that come from each piece beyond the first level only because they crowd; of walks,
        those that are waited for longer because they do.
    waiting : Expr
        Lines, as many as would take as long if all went through one set of the first level.
    """

    by_piece: tuple[Expr, ...]
    waiting: Expr


def conflicts(
    call: ArrayCall, shapes: Sequence[tuple[Visit, Shape]], own: Expr, memory: Hierarchy
) -> tuple[Conflicts | None, Conflicts | None]:
    """Return what a call waits for of the lines it loads, and of those it stores.

    The processor waits for the dearest of the lines that an element needs and gets the others
    meanwhile, so one array that is crowded takes as long as several.

    Parameters
    ----------
    call : ArrayCall
    shapes : sequence of (Visit, Shape)
        Of all its memory, each part once.
    own : Expr
        Bytes of all lines that it touches.
    memory : Hierarchy
    """
    loaded: dict[Conflicts, None] = {}
    stored = None
    for visit, shape in shapes:
        found = _of(call, visit, shape, own, memory)
        if found is not None and visit == call.result:
            stored = found
        elif found is not None:
            loaded[found] = None
    return _dearest(list(loaded), stored), stored


def _of(
    call: ArrayCall, visit: Visit, shape: Shape, own: Expr, memory: Hierarchy
) -> Conflicts | None:
    walked = walked_across(call, visit)
    if walked is not None:
        return _of_walks(call, visit, walked[0], memory)
    if shape.lie is Lie.APART and not is_table(call, visit):
        pitch, lines, distance = shape.pitch_bytes, shape.lines, own
        if visit.distance_bytes is not None:
            distance = maximum(own, visit.distance_bytes)
    else:
        return None
    crowding = memory.crowding(pitch)
    if all(times == ONE for times in crowding):
        return None
    anyway, crowded = memory.lost(distance), memory.lost(distance, crowding)
    by_piece = tuple(lines * lost for lost in _more(anyway, crowded))
    return Conflicts(by_piece, lines * crowded[0] * _few(call, visit, crowding[0], memory))


def _of_walks(call: ArrayCall, visit: Visit, pitch: Expr, memory: Hierarchy) -> Conflicts | None:
    """Return the lines that walks come back to and find gone, as they crowd.

    Lines that the first level loses anyway are waited for longer, too, where they go through few of
    its sets: as much as the others stand idle. What the walks store beside them crowds nowhere.
    """
    crowding = memory.crowding(pitch)
    if all(times == ONE for times in crowding):
        return None
    elements, first = in_walks(visit, memory.line_bytes)
    lines = elements * (1 - first)
    anyway = memory.lost(walk_bytes(call, memory.line_bytes))
    near, *farther = memory.lost(lines_walked(call) * memory.line_bytes, crowding)
    idle = 1 - 1 / crowding[0]
    more = _more(anyway[1:], farther)
    waiting = lines * near * _few(call, visit, crowding[0], memory)
    return Conflicts((lines * near * idle, *(lines * lost for lost in more)), waiting)


def _few(call: ArrayCall, visit: Visit, crowding: Expr, memory: Hierarchy) -> Expr:
    """Return the share of lines that wait for one another in a set of the first level.

    Lines go through as few of the sets as they seem larger.
    """
    sets = memory.ways[0] // memory.line_bytes
    spread_over = min(_SETS_TO_STORE, sets - 1) if visit == call.result else 1
    return maximum(0, crowding - spread_over) / (sets - spread_over)


def _more(anyway: Sequence[Expr], crowded: Sequence[Expr]) -> Iterator[Expr]:
    """Yield which share of lines each level loses only because they crowd."""
    for spread, lost in zip(anyway, crowded, strict=True):
        yield maximum(0, lost - spread)


def _dearest(loaded: Sequence[Conflicts], stored: Conflicts | None) -> Conflicts | None:
    """Return what loads wait for longer than stores do."""
    if not loaded:
        return None
    by_piece = tuple(
        _greatest(of_all) for of_all in zip(*(c.by_piece for c in loaded), strict=True)
    )
    waiting = _greatest([one.waiting for one in loaded])
    if stored is None:
        return Conflicts(by_piece, waiting)
    longer = (maximum(0, a - b) for a, b in zip(by_piece, stored.by_piece, strict=True))
    return Conflicts(tuple(longer), maximum(0, waiting - stored.waiting))


def _greatest(amounts: Iterable[Expr]) -> Expr:
    first, *others = amounts
    for amount in others:
        first = maximum(first, amount)
    return first


def pages(call: ArrayCall, shapes: Sequence[tuple[Visit, Shape]]) -> tuple[Expr, Expr]:
    """Return how often a call comes to another page, and how many pages it comes back to.

    Elements that lie apart, and walks across lines, come to a page with each element or few.
    """
    visits, within = ZERO, ZERO
    for visit, shape in shapes:
        walked = walked_across(call, visit)
        if walked is not None:
            share = minimum(1, walked[0] / PAGE_BYTES)
            visits, within = visits + shape.elements * share, within + walked[1] * share
        elif shape.lie is Lie.APART:
            each = shape.elements * minimum(1, shape.pitch_bytes / PAGE_BYTES)
            visits, within = visits + each, within + each
    return visits, within
