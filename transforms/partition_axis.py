"""ADV606: split arrays along the other axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from advisor.finding import Applicability
from advisor.ir.proposal import Legality
from advisor.ir.spmd.memory import (
    Allocation,
    At,
    Buffer,
    Contiguity,
    Index,
    Order,
    Origin,
    View,
    Whole,
    contiguity,
)
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.program import Program, SpmdFunction
from advisor.ir.spmd.proposal import ProgramProposal
from advisor.ir.spmd.ranks import Communicator, PartnerKind
from advisor.ir.spmd.steps import Communicate, Compute, Copy, Loop, Op, Step, Visit
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num
from transforms.rank_facts import follow, places
from transforms.spmd_calls import is_name
from transforms.views import same_memory

DOCUMENTATION = """\
# ADV606 partition-axis

**What it does.** Finds arrays that are split among ranks along one axis, where splitting them
along the other one moves less: stencils whose faces lie across the storage order, so that each is
copied element by element before it is sent and after it came; and products of a matrix and a
vector by columns, which add up a whole vector over all ranks where rows need only gather its
blocks.

**Why it costs.** A column of an array in C order is one element of every row: copying it loads as
many cache lines as it has elements. A row is one stretch, and goes as it is. A sum over all ranks
moves the whole vector twice and adds it up, a gather moves it once.

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

**When it stays quiet.** Arrays whose extents do not show along which axis they are split; meshes
with more than one rank along several axes; faces that go by derived datatypes, or once.

**Fix safety.** Shown only: the split is in the whole program. The other storage order
(`order="F"`) keeps all indices as they are, but what is done along rows gets slower.

**Models used.** Lines (messages, collectives, array statements).

**References.** Rows and columns at different cost: the study of communication costs with cache
effects for ZPL and MPI programs. Row-wise and column-wise products of a matrix and a vector: any
text on parallel algorithms.
"""

_SENDS = frozenset({Op.SEND, Op.SENDRECV})
_PLANE = 2


@dataclass(frozen=True, slots=True)
class PartitionAxis:
    """The rule ADV606; see its page in `documentation`."""

    code: str = "ADV606"
    name: str = "partition-axis"
    documentation: str = DOCUMENTATION

    def propose_program(self, program: Program) -> Iterator[ProgramProposal]:
        """Yield other splits of stencils and of products of matrix and vector."""
        for function in program.functions:
            yield from _stencils(function)
            for visit, step in function.operations():
                if step.op is Op.ALLREDUCE and function.weight(visit) > 0:
                    yield from _product(function, visit, step)


# --- stencils -----------------------------------------------------------------------------------


def _stencils(function: SpmdFunction) -> Iterator[ProgramProposal]:
    found: dict[tuple[Buffer, tuple[Loop, ...]], list[tuple[Visit, Communicate, View]]] = {}
    for visit, step in function.operations():
        view = _face(step)
        if view is not None and function.weight(visit) > 0:
            found.setdefault((view.buffer, visit.loops), []).append((visit, step, view))
    for faces in found.values():
        dimension = _split_dimension([(step, view) for _, step, view in faces])
        if dimension is not None:
            yield from _other_split(function, faces[0][0], faces, dimension)


def _face(step: Communicate) -> View | None:
    """Return the face of a matrix that a message to a neighbour carries."""
    sent = step.send
    if step.op not in _SENDS or step.pickled or sent is None or sent.view is None:
        return None
    if sent.datatype is not None or not _is_neighbour(step):
        return None
    copied = sent.view.buffer.allocation.copied
    view = sent.view if copied is None else copied
    if view.region is None or view.buffer.extents is None or view.buffer.order is Order.UNKNOWN:
        return None
    flags = [isinstance(index, At) for index in view.region]
    plain = not (view.transposed or view.flat) and len(flags) == _PLANE
    return view if plain and sum(flags) == 1 else None


def _is_neighbour(step: Communicate) -> bool:
    """Return whether a message goes to the rank before or behind, or around the ends."""
    partner, communicator = step.dest, step.communicator
    if partner is None:
        return False
    if partner.kind is PartnerKind.NEIGHBOUR:
        dims = communicator.dims
        return dims is not None and sum(extent != num(1) for extent in dims) == 1
    if partner.kind is not PartnerKind.RANK:
        return False
    whom = follow(partner.rank, communicator)
    if whom is None:
        return False
    for place, rank in zip(places(communicator), whom, strict=True):
        own, size = place.values()
        if (rank - own) % size not in (1 % size, -1 % size):
            return False
    return True


def _split_dimension(faces: list[tuple[Communicate, View]]) -> int | None:
    """Return the one dimension that all faces are indices of, if ranks share that one out."""
    found = {k for _, view in faces for k, i in enumerate(view.region or ()) if isinstance(i, At)}
    if len(found) != 1:
        return None
    (dimension,) = found
    step, view = faces[0]
    size = free_symbols(step.communicator.size)
    extents = view.buffer.extents or ()
    shared = [bool(free_symbols(extent) & size) for extent in extents]
    return dimension if shared == [k == dimension for k in range(_PLANE)] else None


def _other_split(
    function: SpmdFunction,
    first: Visit,
    faces: list[tuple[Visit, Communicate, View]],
    dimension: int,
) -> Iterator[ProgramProposal]:
    if contiguity(faces[0][2]) is not Contiguity.NO:
        return
    before = _exchange([(step, view) for _, step, view in faces])
    turned = [(step, _turned(view, dimension, step.communicator)) for _, step, view in faces]
    ordered = [(step, _reordered(view)) for _, step, view in faces]
    view = faces[0][2]
    name = _called(view, "the array")
    ways = (
        (
            turned,
            f"split {name} along its {_ORDINALS[1 - dimension]} dimension: its faces are one"
            " stretch of memory",
            "the indices of the array change with the split, throughout the program",
        ),
        (
            ordered,
            f"store {name} in {_other(view.buffer.order)} order: its faces are one stretch of"
            " memory",
            "indices stay as they are; what is done along the other dimension gets slower",
        ),
    )
    for after, title, words in ways:
        yield ProgramProposal(
            title=title,
            reason="its faces lie across the storage order: each is copied element by element"
            " before it is sent and after it came",
            span=faces[0][1].span,
            function=function,
            before=before,
            after=_exchange(after),
            legality=Legality(Applicability.DISPLAY, words),
            loops=first.loops,
        )


_ORDINALS = ("first", "last")


def _other(order: Order) -> str:
    return "Fortran" if order is Order.C else "C"


def _turned(view: View, dimension: int, communicator: Communicator) -> View:
    """Return the face of an array that is split along its other dimension."""
    assert view.buffer.extents is not None and view.region is not None
    size = communicator.size
    extents = tuple(
        extent * size if k == dimension else extent / size
        for k, extent in enumerate(view.buffer.extents)
    )
    region: tuple[Index, ...] = tuple(
        Whole(extent) if k == dimension else At(num(0)) for k, extent in enumerate(extents)
    )
    return replace(view, buffer=replace(view.buffer, extents=extents), region=region)


def _reordered(view: View) -> View:
    order = Order.F if view.buffer.order is Order.C else Order.C
    return replace(view, buffer=replace(view.buffer, order=order))


def _exchange(faces: list[tuple[Communicate, View]]) -> tuple[Step, ...]:
    """Return the exchange of faces, with their copies where they are not one stretch."""
    steps: list[Step] = []
    for step, view in faces:
        sent = view
        if contiguity(view) is Contiguity.NO:
            sent = _fresh(view.shape or (), view.dtype, step.span)
            steps.append(Copy(sent, view, step.span, allocates=True))
        steps.append(replace(step, op=Op.SEND, send=_payload(sent, step.span), receive=None))
        if sent != view:
            steps.append(Copy(view, sent, step.span))
    return tuple(steps)


def _fresh(shape: tuple[Expr, ...], dtype: str | None, span: Span) -> View:
    allocation = Allocation(Origin.COPY, "face", span)
    memory = Buffer("face", -1, dtype, shape, Order.C, allocation)
    return View(memory, tuple(Whole(extent) for extent in shape), "face", span)


def _payload(view: View, span: Span) -> Payload:
    return Payload(PayloadKind.ARRAY, view.text, span, view, view.dtype, view.count)


# --- products of a matrix and a vector ----------------------------------------------------------


def _product(function: SpmdFunction, visit: Visit, step: Communicate) -> Iterator[ProgramProposal]:
    """Yield rows, where columns of a matrix are multiplied and whole vectors summed."""
    given = step.send if step.send is not None else step.receive
    if step.operation != "SUM" or step.pickled or not step.blocking:
        return
    if given is None or given.view is None or given.dtype is None:
        return
    made = _made_by(visit, given.view)
    if made is None:
        return
    matrix, vector = made.reads
    size = step.communicator.size
    extents, length = matrix.shape, vector.count
    if extents is None or length is None or given.count != extents[0]:
        return
    # as many columns as elements of the own block, which depends on how many ranks there are
    shared = free_symbols(size)
    if extents[1] != length or not shared & free_symbols(length):
        return
    if shared & free_symbols(extents[0]):
        return
    block = extents[0] / size
    rows = _array((block, extents[0]), matrix.dtype, matrix.text, matrix.order, step.span)
    whole = _array((extents[0],), vector.dtype, vector.text, Order.C, step.span)
    own = _array((block,), given.dtype, given.text, Order.C, step.span)
    multiplied = replace(made, target=own, reads=(rows, whole), length=extents[0])
    gather = replace(
        step,
        op=Op.ALLGATHER,
        method="Allgather",
        operation=None,
        in_place=False,
        send=_payload(own, step.span),
        receive=_payload(whole, step.span),
    )
    yield ProgramProposal(
        title=f"give each rank rows of {_called(matrix, 'the matrix')}, not columns: gather blocks"
        " of the product, do not sum whole vectors",
        reason="by columns every rank has a part of each element, and whole vectors are added up;"
        " by rows each has whole elements, which are gathered",
        span=step.span,
        function=function,
        before=(made, step),
        after=(multiplied, gather),
        legality=Legality(
            Applicability.DISPLAY,
            "every rank has the whole product in both; sums within it are collected in another"
            " order",
        ),
        loops=visit.loops,
        conditions=(
            f"each rank has the whole of which {_called(vector, 'the vector')} is a block",
        ),
    )


def _called(view: View, otherwise: str) -> str:
    """Return how to speak of an array: by its name, where it has one of its own."""
    name = view.buffer.name
    return f"`{name}`" if is_name(name) else otherwise


def _made_by(visit: Visit, view: View) -> Compute | None:
    """Return the product of a matrix and a vector that a view is, made in the same block."""
    for step in reversed(visit.block[: visit.position]):
        if isinstance(step, Copy) and same_memory(step.target, view) and step.target.is_whole:
            view = step.source
        if not isinstance(step, Compute) or step.target is None:
            continue
        if same_memory(step.target, view):
            shapes = [one.shape for one in step.reads]
            is_product = step.what == "product" and [len(s or ()) for s in shapes] == [2, 1]
            return step if is_product else None
    return None


def _array(shape: tuple[Expr, ...], dtype: str | None, text: str, order: Order, span: Span) -> View:
    allocation = Allocation(Origin.NEW, text, span)
    memory = Buffer(text, -1, dtype, shape, order, allocation)
    return View(memory, tuple(Whole(extent) for extent in shape), text, span)


TRANSFORM = PartitionAxis()
