"""# ADV605 shape-of-the-ranks

**What it does.** Tries every arrangement of the ranks of a Cartesian communicator: 8 ranks as
4 x 2, 2 x 4, 8 x 1 and 1 x 8. Where the program uses fewer ranks than it was started with, as
`int(sqrt(size))` ranks in each direction do unless their number is a square, it says how many
have nothing to do, and counts what the others do for them.

**Why it costs.** Faces are as long as blocks are, so a square mesh sends the fewest bytes. But a
face across the storage order is copied element by element from as many cache lines, a face along
it goes as it is, and a mesh with one rank along an axis sends nothing there. An idle rank's share
is work for the others.

**Example**

```python
cart = comm.Create_cart((1, 8))
```

**Use instead**

```python
cart = comm.Create_cart((4, 2))
```

**When it stays quiet.** Meshes whose extents the source does not tell; arrays of which it is not
seen along which of their dimensions each axis of the mesh cuts; meshes of one or of more than two
axes; faces that are exchanged once.

**Fix safety.** Shown only: what the program derives from the shape, such as the extents of blocks,
has to follow.

**Models used.** Lines (messages, array statements).

**References.** Best aspect ratios by model and by measurement: the study of a parallel spectral
transform code on the Intel Paragon. Rows and columns at different cost: the study of
communication costs with cache effects for ZPL and MPI programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from advisor.ir.spmd.memory import (
    Order,
    View,
)
from advisor.ir.spmd.program import RANKS, Program, ProgramProposal, SpmdFunction, with_derived
from advisor.ir.spmd.steps import (
    CommKind,
    Communicate,
    Communicator,
    Compute,
    Loop,
    Op,
    PartnerKind,
    Step,
)
from advisor.ir.values import Point, Range, Subscript
from advisor.source import Span
from costdb.expr import ExprError, evaluate, num
from costdb.records import dataclass, replace
from transforms.distributions.entries import factorisations
from transforms.kit.memory import carried
from transforms.kit.programs import ProgramRule, offer
from transforms.messages.partition_axis import Face

_AXES = 2
_SENDS = frozenset({Op.SEND, Op.SENDRECV})


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What blocks of a mesh exchange, and how the mesh cuts them.

    Attributes
    ----------
    dims : tuple of int
    faces : tuple of Face
    cuts : mapping of int to int
        Which axis of the mesh cuts a dimension of the array.
    work : tuple of Compute
        What is computed beside the exchange.
    """

    dims: tuple[int, ...]
    faces: tuple[Face, ...]
    cuts: Mapping[int, int]
    work: tuple[Compute, ...]

    @property
    def weight(self) -> int:
        """Loops around the exchange."""
        return self.faces[0].function.weight(self.faces[0].visit)

    @property
    def communicator(self) -> Communicator:
        """The mesh."""
        return self.faces[0].step.communicator


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield every other arrangement of the ranks that exchange faces in a loop."""
    exchanges: dict[Span, _Exchange] = {}
    for function in program.functions:
        for exchange in _exchanges(program, function):
            # one for each mesh, for shapes of one mesh compete: what is deepest in loops
            known = exchanges.setdefault(exchange.communicator.span, exchange)
            if exchange.weight > known.weight:
                exchanges[exchange.communicator.span] = exchange
    for exchange in exchanges.values():
        yield from _arrangements(program, exchange)


def _exchanges(program: Program, function: SpmdFunction) -> Iterator[_Exchange]:
    """Yield what is exchanged over each mesh in each innermost loop."""
    found: dict[tuple[str, tuple[Loop, ...]], list[Face]] = {}
    for visit, step in function.operations():
        view = _face(step)
        if view is not None and function.weight(visit) > 0:
            key = (step.communicator.text, visit.loops)
            found.setdefault(key, []).append(Face(function, visit, step, view))
    for (_, loops), faces in found.items():
        dims = _numbers(program, faces[0].step.communicator)
        pairs = {_cut(face) for face in faces}
        shapes = {(face.view.buffer.extents, face.view.buffer.order) for face in faces}
        # each axis of the mesh cuts one dimension of arrays of one shape
        if dims is None or not len(pairs) == len(dict(pairs)) == _AXES or len(shapes) > 1:
            continue
        work = tuple(
            visit.step
            for visit in function.visits()
            if visit.loops == loops and isinstance(visit.step, Compute) and not visit.branches
        )
        cuts = {dimension: axis for axis, dimension in pairs}
        yield _Exchange(dims, tuple(faces), cuts, work)


def _face(step: Communicate) -> View | None:
    """Return the face of a matrix that goes to a neighbour, not a copy sent in its place."""
    partner, sent = step.dest, step.send
    if step.op not in _SENDS or partner is None or sent is None or sent.view is None:
        return None
    if step.communicator.kind is not CommKind.CARTESIAN or sent.datatype:
        return None
    if partner.kind is not PartnerKind.NEIGHBOUR or partner.axis is None:
        return None
    view = sent.view.buffer.allocation.copied or sent.view
    if view.region is None or view.buffer.order is Order.UNKNOWN or view.buffer.extents is None:
        return None
    single = sum(isinstance(index, Point) for index in view.region)
    plain = len(view.region) == _AXES and not (view.transposed or view.flat)
    return view if plain and single == 1 else None


def _cut(face: Face) -> tuple[int, int]:
    """Return along which axis of the mesh a face goes, and of which dimension it is one index."""
    partner = face.step.dest
    assert partner is not None and partner.axis is not None and face.view.region is not None
    return partner.axis, [isinstance(index, Point) for index in face.view.region].index(True)


def _numbers(program: Program, communicator: Communicator) -> tuple[int, ...] | None:
    """Return the extents of a mesh of two axes; None where the source does not tell them."""
    dims = communicator.dims
    if dims is None or len(dims) != _AXES:
        return None
    stated = {name: fact.value for name, fact in program.sizes.items() if fact.value is not None}
    known = with_derived({name: fact.derived for name, fact in program.sizes.items()}, stated)
    try:
        found = tuple(evaluate(extent, known) for extent in dims)
    except (ExprError, ArithmeticError):
        return None
    if any(extent != int(extent) or extent < 1 for extent in found):
        return None
    return tuple(int(extent) for extent in found)


def _arrangements(program: Program, exchange: _Exchange) -> Iterator[ProgramProposal]:
    used = exchange.dims[0] * exchange.dims[1]
    started = program.sizes[RANKS].value
    ranks = started if isinstance(started, int) and started > used else used
    idle = ranks - used
    before = _exchanged(exchange, exchange.dims, with_work=bool(idle))
    old = " x ".join(map(str, exchange.dims))
    for shape in factorisations(ranks, _AXES):
        if shape == exchange.dims:
            continue
        new = " x ".join(map(str, shape))
        title = f"arrange the {ranks} ranks as {new}, not {old}"
        if idle:
            title = f"{title}, which leaves {idle} of them idle"
        yield offer(
            exchange.faces[0].function,
            exchange.faces[0].visit,
            exchange.communicator.span,
            title,
            "the shape sets which faces go to neighbours, how long they are, and whether they lie"
            " across the storage order",
            before,
            _exchanged(exchange, shape, with_work=bool(idle)),
            "the communicator is created with any shape of as many ranks",
            conditions=("what the program derives from the shape of the mesh follows it",),
        )


def _exchanged(exchange: _Exchange, shape: tuple[int, ...], *, with_work: bool) -> tuple[Step, ...]:
    """Return the exchange of blocks as another mesh cuts them."""
    steps: list[Step] = []
    scales = {
        dimension: Fraction(exchange.dims[axis], shape[axis])
        for dimension, axis in exchange.cuts.items()
    }
    periods = exchange.communicator.periods
    for face in exchange.faces:
        axis, _ = _cut(face)
        alone = shape[axis] == 1
        if alone and periods is not None and periods[axis] is False:
            continue  # there is nobody to send to
        # what comes in goes to a face like the one that went out
        steps += carried(face.step, _scaled(face.view, scales), None, copied=False, stays=alone)
    if with_work:
        steps += [_work(step, scales) for step in exchange.work]
    return tuple(steps)


def _scaled(view: View, scales: Mapping[int, Fraction]) -> View:
    """Return a view of a block that is cut otherwise."""
    assert view.buffer.extents is not None and view.region is not None
    extents = tuple(
        extent * num(scales.get(k, Fraction(1))) for k, extent in enumerate(view.buffer.extents)
    )
    region: tuple[Subscript, ...] = tuple(
        Point(num(0)) if isinstance(index, Point) else Range(num(0), extent)
        for index, extent in zip(view.region, extents, strict=True)
    )
    return replace(view, buffer=replace(view.buffer, extents=extents), region=region)


def _work(step: Compute, scales: Mapping[int, Fraction]) -> Step:
    target = None if step.target is None else _block(step.target, scales)
    reads = tuple(_block(view, scales) for view in step.reads)
    return replace(step, target=target, reads=reads)


def _block(view: View, scales: Mapping[int, Fraction]) -> View:
    whole = view.region is not None and view.buffer.extents is not None
    if not whole or len(view.region or ()) != _AXES:
        return view
    return _scaled(view, scales)


TRANSFORM = ProgramRule("ADV605", "shape-of-the-ranks", __doc__, propose)
