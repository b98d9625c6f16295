"""Memory that a call goes through otherwise than line by line: walks across lines, and tables."""

from __future__ import annotations

from costdb.arrays.memory import distinct
from costdb.expr import Expr, minimum, num
from costdb.work import ArrayCall, ArrayOperation, Visit

ZERO, ONE = num(0), num(1)
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
