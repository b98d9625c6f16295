"""# ADV606 partition-axis

**What it does.** Finds arrays that are split among ranks along one axis, where splitting them
along the other one moves less: stencils whose faces lie across the storage order, so that each is
copied element by element before it is sent and after it came.

**Why it costs.** A column of an array in C order is one element of every row: copying it loads as
many cache lines as it has elements. A row is one stretch, and goes as it is.

**Example**

```python
u = np.zeros((n, m // size + 2))
comm.Sendrecv(np.ascontiguousarray(u[:, 1]), dest=left, recvbuf=ghost, source=right)
u[:, -1] = ghost
```

**Use instead**

```python
u = np.zeros((n // size + 2, m))
comm.Sendrecv(u[1, :], dest=left, recvbuf=u[-1, :], source=right)
```

Faces are followed through copies of any kind and through buffers that are filled, whatever these
are called (names, attributes, entries), and into functions that send.

**When it stays quiet.** Arrays whose extents do not show along which axis they are split; arrays
that are split along both, or whose faces go along both; arrays of three dimensions; meshes with
more than one rank along several axes; faces that go by derived datatypes, or once. Where something
is summed or multiplied along whole lines of the other axis, only the other order is proposed.

**Fix safety.** Shown only: the split is in the whole program. The other storage order
(`order="F"`) keeps all indices as they are, but what is done along rows gets slower.

**Models used.** Lines (messages, collectives, array statements).

**References.** Rows and columns at different cost: the study of communication costs with cache
effects for ZPL and MPI programs.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.ir.shapes import whole
from advisor.ir.spmd.memory import Buffer, Contiguity, Order, View, contiguity, extent_of
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.steps import (
    Branch,
    Communicate,
    Communicator,
    Compute,
    Copy,
    Loop,
    Op,
    PartnerKind,
    Step,
    Unknown,
    Visit,
    Wait,
    walk,
)
from advisor.ir.values import Called, MatMul, Point, Range, Reduction, Strided, Subscript
from advisor.source import Span
from costdb.expr import free_symbols, num
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace
from transforms.kit.memory import carried, disjoint, may_share, written
from transforms.kit.names import is_name
from transforms.kit.programs import ProgramRule, offer
from transforms.kit.ranks import Move, moves_of


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield other splits of stencils."""
    found: dict[tuple[Buffer, str, tuple[Loop, ...]], list[Face]] = {}
    dimensions: dict[Buffer, set[int | None]] = {}
    for face in faces_of(program):
        buffer = face.view.buffer
        found.setdefault((buffer, face.function.name, face.visit.loops), []).append(face)
        dimensions.setdefault(buffer, set()).add(dimension_of(face.view))
    for (buffer, _, _), faces in found.items():
        (dimension, *others) = dimensions[buffer]
        if dimension is not None and not others and _is_split(faces[0], dimension):
            yield from _other_split(program, faces, dimension)


def _is_split(face: Face, dimension: int) -> bool:
    """Return whether ranks share out the dimension that faces are indices of, and no other."""
    size = free_symbols(face.step.communicator.size)
    shared = [bool(free_symbols(extent) & size) for extent in face.view.buffer.extents or ()]
    return shared == [k == dimension for k in range(len(shared))]


def _other_split(program: Program, faces: list[Face], dimension: int) -> Iterator[ProgramProposal]:
    first = faces[0]
    view = first.view
    if contiguity(view) is not Contiguity.NO:
        return
    own = view.buffer.name
    name = f"`{own}`" if all(map(is_name, own.split("."))) else "the array"
    order, called = (Order.F, "Fortran") if view.buffer.order is Order.C else (Order.C, "C")
    turned = (
        [replace(f, view=_turned(f.view, dimension, f.step.communicator)) for f in faces],
        f"split {name} along its {('first', 'last')[1 - dimension]} dimension: its faces are one"
        " stretch of memory",
        "the indices of the array change with the split, throughout the program",
    )
    ordered = (
        [replace(f, view=replace(f.view, buffer=replace(view.buffer, order=order))) for f in faces],
        f"store {name} in {called} order: its faces are one stretch of memory",
        "indices stay as they are; what is done along the other dimension gets slower",
    )
    ways = (ordered,) if _goes_along(program, view.buffer, 1 - dimension) else (turned, ordered)
    for after, title, words in ways:
        yield offer(
            first.function,
            first.visit,
            first.span,
            title,
            "its faces lie across the storage order: each is copied element by element before it"
            " is sent and after it came",
            _exchange(faces),
            _exchange(after),
            words,
        )


def _goes_along(program: Program, buffer: Buffer, dimension: int) -> bool:
    """Return whether anything needs a whole line of an array along a dimension at once.

    Splitting it along that one would take messages that are not there now.
    """
    for function in program.functions:
        for visit in function.visits():
            step = visit.step
            if not isinstance(step, Compute) or not any(v.buffer == buffer for v in step.reads):
                continue
            match step.value:
                case Reduction(axis=axis, fused=False):
                    if axis == dimension:
                        return True
                case Reduction() | MatMul() | Called():
                    return True
                case None if step.what == "call":
                    return True
    return False


def _turned(view: View, dimension: int, communicator: Communicator) -> View:
    """Return the face of an array that is split along its other dimension."""
    assert view.buffer.extents is not None and view.region is not None
    size = communicator.size
    extents = tuple(
        extent * size if k == dimension else extent / size
        for k, extent in enumerate(view.buffer.extents)
    )
    layers = extent_of(view.region[dimension])
    thin: Subscript = Point(num(0)) if layers == num(1) else Range(num(0), layers)
    region: tuple[Subscript, ...] = tuple(
        Range(num(0), extent) if k == dimension else thin for k, extent in enumerate(extents)
    )
    return replace(view, buffer=replace(view.buffer, extents=extents), region=region)


def _exchange(faces: list[Face]) -> tuple[Step, ...]:
    """Return the exchange of faces, with their copies where they are needed."""
    return tuple(
        step
        for face in faces
        for step in carried(face.step, face.view, face.staging, copied=face.protected, stays=False)
    )


# --- faces of matrices that go to neighbours, and the copies that make one stretch of them --------


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
    moves = set(moves_of(partner.rank, communicator, there=False))
    return partner.kind is PartnerKind.RANK and moves <= set(beside)


TRANSFORM = ProgramRule("ADV606", "partition-axis", __doc__, propose)
