"""# ADV606 partition-axis

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
effects for ZPL and MPI programs. Row-wise and column-wise products of a matrix and a vector: any
text on parallel algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.spmd.memory import (
    At,
    Buffer,
    Contiguity,
    Index,
    Order,
    Part,
    View,
    Whole,
    contiguity,
)
from advisor.ir.spmd.program import Program, ProgramProposal, SpmdFunction
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Communicate, Compute, Copy, Loop, Op, Step, Visit
from advisor.ir.values import Called, MatMul, Reduction
from costdb.expr import free_symbols, num
from transforms.kit.memory import carried, new_array, payload_of, same_memory
from transforms.kit.names import is_name
from transforms.kit.programs import ProgramRule, offer
from transforms.messages.staged_faces import Face, dimension_of, faces_of


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield other splits of stencils and of products of matrix and vector."""
    yield from _stencils(program)
    for function in program.functions:
        for visit, step in function.operations():
            if step.op is Op.ALLREDUCE and function.weight(visit) > 0:
                yield from _product(function, visit, step)


# --- stencils -----------------------------------------------------------------------------------


def _stencils(program: Program) -> Iterator[ProgramProposal]:
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
    name = _called(view, "the array")
    turned = (
        [replace(f, view=_turned(f.view, dimension, f.step.communicator)) for f in faces],
        f"split {name} along its {_ORDINALS[1 - dimension]} dimension: its faces are one"
        " stretch of memory",
        "the indices of the array change with the split, throughout the program",
    )
    ordered = (
        [replace(f, view=_reordered(f.view)) for f in faces],
        f"store {name} in {_other(view.buffer.order)} order: its faces are one stretch of memory",
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
    layers = view.region[dimension].count
    thin: Index = At(num(0)) if layers == num(1) else Part(num(0), layers)
    region: tuple[Index, ...] = tuple(
        Whole(extent) if k == dimension else thin for k, extent in enumerate(extents)
    )
    return replace(view, buffer=replace(view.buffer, extents=extents), region=region)


def _reordered(view: View) -> View:
    order = Order.F if view.buffer.order is Order.C else Order.C
    return replace(view, buffer=replace(view.buffer, order=order))


def _exchange(faces: list[Face]) -> tuple[Step, ...]:
    """Return the exchange of faces, with their copies where they are needed."""
    return tuple(
        step
        for face in faces
        for step in carried(face.step, face.view, face.staging, copied=face.protected, stays=False)
    )


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
    at, dtype = step.span, vector.dtype
    rows = new_array(matrix.text, matrix.dtype, (block, extents[0]), at, matrix.order)
    whole = new_array(vector.text, dtype, (extents[0],), at)
    own = new_array(given.text, given.dtype, (block,), at)
    multiplied = replace(made, target=own, reads=(rows, whole))
    gather = replace(
        step,
        op=Op.ALLGATHER,
        method="Allgather",
        operation=None,
        in_place=False,
        send=payload_of(own, step.span),
        receive=payload_of(whole, step.span),
    )
    yield offer(
        function,
        visit,
        step.span,
        f"give each rank rows of {_called(matrix, 'the matrix')}, not columns: gather blocks of the"
        " product, do not sum whole vectors",
        "by columns every rank has a part of each element, and whole vectors are added up; by rows"
        " each has whole elements, which are gathered",
        (made, step),
        (multiplied, gather),
        "every rank has the whole product in both; sums within it are collected in another order",
        conditions=(
            f"each rank has the whole of which {_called(vector, 'the vector')} is a block",
        ),
    )


def _called(view: View, otherwise: str) -> str:
    """Return how to speak of an array: by its name, where it has one of its own."""
    name = view.buffer.name
    return f"`{name}`" if all(map(is_name, name.split("."))) else otherwise


def _made_by(visit: Visit, view: View) -> Compute | None:
    """Return the product of a matrix and a vector that a view is, made in the same block."""
    for step in reversed(visit.block[: visit.position]):
        if isinstance(step, Copy) and same_memory(step.target, view) and step.target.is_whole:
            view = step.source
        if not isinstance(step, Compute) or step.target is None:
            continue
        if same_memory(step.target, view):
            shapes = [one.shape for one in step.reads]
            is_product = step.is_product and [len(s or ()) for s in shapes] == [2, 1]
            return step if is_product else None
    return None


TRANSFORM = ProgramRule("ADV606", "partition-axis", __doc__, propose)
