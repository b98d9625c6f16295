"""Faces of matrices that go to neighbours, and the copies that make one stretch of them.

A face is a row or a column, or a few side by side. mpi4py takes none that is not one stretch of
memory, so what is sent is a copy: new memory for each message, or a buffer that was made once and
is filled each time, under whatever name, attribute or key, here or in a function that calls this.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.shapes import whole
from advisor.ir.spmd.memory import Order, View, extent_of
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.ranks import PartnerKind
from advisor.ir.spmd.steps import Branch, Communicate, Copy, Loop, Op, Unknown, Visit, Wait, walk
from advisor.ir.values import Point, Range, Strided, Subscript
from advisor.source import Span
from costdb.expr import num
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from transforms.kit.memory import disjoint, may_share, written
from transforms.kit.ranks import ALL, Move, moves_of

_SENDS = frozenset({Op.SEND, Op.SENDRECV})
_PLANE = 2
_LAYERS = 4
"""Rows or columns side by side that are still a face: stencils reach no farther."""


@dataclass(frozen=True, slots=True)
class Face:
    """A face and the message that carries it.

    Attributes
    ----------
    function : SpmdFunction
    visit : Visit
    step : Communicate
    view : View
        The face, where it belongs.
    staging : View or None
        The buffer, made before, that the face is copied to; None for new memory each time, or
        for a face that is sent from its place.
    protected : bool
        The face is written to before the message has surely left, so that its copy is needed
        however it lies in memory.
    """

    function: SpmdFunction
    visit: Visit
    step: Communicate
    view: View
    staging: View | None = None
    protected: bool = False

    @property
    def span(self) -> Span:
        """Where the function sends it, or calls what does."""
        return self.visit.calls[0].span if self.visit.calls else self.step.span


def faces_of(program: Program) -> Iterator[Face]:
    """Yield every face that goes to a neighbour again and again.

    A message of a function that others call is looked at there first, and where that does not
    tell what it carries, in each function that calls it.
    """
    told: set[tuple[Span, str, str]] = set()
    for into_calls in (False, True):
        for function in program.functions:
            found = list(_faces_in(function, told, into_calls=into_calls))
            told |= {_key(face.step) for face in found}
            yield from found


def _faces_in(
    function: SpmdFunction, told: set[tuple[Span, str, str]], *, into_calls: bool
) -> Iterator[Face]:
    visits = list(walk(function.body, into_calls=into_calls))
    for position, visit in enumerate(visits):
        step = visit.step
        if not isinstance(step, Communicate) or bool(visit.calls) is not into_calls:
            continue
        if _key(step) not in told and function.weight(visit) > 0:
            face = _face(function, visits, position, step)
            if face is not None:
                yield face


def _key(step: Communicate) -> tuple[Span, str, str]:
    # modules beside the file have lines of the same numbers
    return step.span, step.method, step.receiver


def dimension_of(view: View) -> int | None:
    """Return the dimension that a face is a few indices of; None for all but faces of matrices."""
    region = view.region
    if region is None or len(region) != _PLANE or view.transposed or view.flat:
        return None
    every = whole(view.buffer.extents or ())
    thin = [k for k, index in enumerate(region) if index != every[k] and _is_thin(index)]
    return thin[0] if len(thin) == 1 else None


def _is_thin(index: Subscript) -> bool:
    count = extent_of(index)
    few = isinstance(count, Num) and 0 < count.value <= _LAYERS
    return few and not isinstance(index, Strided)


def _face(
    function: SpmdFunction, visits: list[Visit], position: int, step: Communicate
) -> Face | None:
    sent = step.send
    if step.op not in _SENDS or step.pickled or sent is None or sent.view is None:
        return None
    if sent.datatype is not None or not _is_neighbour(step):
        return None
    view, staging = sent.view, None
    copied = view.buffer.allocation.copied
    if copied is not None:
        view = _first_source(copied)
    else:
        filled = _filling(visits[:position], view)
        if filled is not None:
            view, staging = _first_source(filled.source), filled.target
    if view.buffer.extents is None or view.buffer.order is Order.UNKNOWN:
        return None
    if dimension_of(view) is None:
        return None
    view = _one_index(view)
    protected = not step.blocking and _written_before_wait(visits[position + 1 :], view)
    return Face(function, visits[position], step, view, staging, protected)


def _first_source(view: View) -> View:
    """Return of what a copy of a copy is one."""
    copied = view.buffer.allocation.copied
    return _first_source(copied) if copied is not None and view.is_whole else view


def _one_index(view: View) -> View:
    """Return a face of one row or column as such, where it was written as a slice."""
    assert view.region is not None
    region = tuple(
        Point(index.low) if isinstance(index, Range) and extent_of(index) == num(1) else index
        for index in view.region
    )
    return replace(view, region=region)


def _filling(before: list[Visit], sent: View) -> Copy | None:
    """Return the copy that last filled what is sent, all of it, however far before."""
    for visit in reversed(before):
        step = visit.step
        if isinstance(step, Unknown) and sent.buffer.name in step.mentions:
            return None
        writes = written(step) or ()
        if any(may_share(view, sent) and not disjoint(view, sent) for view in writes):
            fills = isinstance(step, Copy) and _same_part(step.target, sent)
            return step if fills and isinstance(step, Copy) else None
    return None


def _same_part(one: View, other: View) -> bool:
    if one.is_whole and other.is_whole:
        return True
    plain = not (one.flat or other.flat or one.transposed or other.transposed)
    return plain and one.region is not None and one.region == other.region


def _written_before_wait(behind: list[Visit], face: View) -> bool:
    for visit in behind:
        step = visit.step
        if isinstance(step, Wait):
            return False
        if isinstance(step, Loop | Branch):
            continue  # what is in them follows
        if any(may_share(view, face) and not disjoint(view, face) for view in written(step) or ()):
            return True
    return False


def _is_neighbour(step: Communicate) -> bool:
    """Return whether a message goes to the rank before or behind, or around the ends."""
    partner, communicator = step.dest, step.communicator
    if partner is None:
        return False
    if partner.kind is PartnerKind.NEIGHBOUR:
        dims = communicator.dims
        return dims is not None and sum(extent != num(1) for extent in dims) == 1
    beside = (Move(1, num(1)), Move(1, num(-1)))
    moves = set(moves_of(partner.rank, communicator, ALL, there=False))
    return partner.kind is PartnerKind.RANK and moves <= set(beside)
