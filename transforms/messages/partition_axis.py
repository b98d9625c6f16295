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
from dataclasses import replace

from advisor.ir.spmd.memory import Buffer, Contiguity, Order, View, contiguity, extent_of
from advisor.ir.spmd.program import Program, ProgramProposal
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Compute, Loop, Step
from advisor.ir.values import Called, MatMul, Point, Range, Reduction, Subscript
from costdb.expr import free_symbols, num
from transforms.kit.memory import carried
from transforms.kit.names import is_name
from transforms.kit.programs import ProgramRule, offer
from transforms.messages.staged_faces import Face, dimension_of, faces_of


def propose(program: Program) -> Iterator[ProgramProposal]:
    """Yield other splits of stencils."""
    yield from _stencils(program)


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
    layers = extent_of(view.region[dimension])
    thin: Subscript = Point(num(0)) if layers == num(1) else Range(num(0), layers)
    region: tuple[Subscript, ...] = tuple(
        Range(num(0), extent) if k == dimension else thin for k, extent in enumerate(extents)
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


def _called(view: View, otherwise: str) -> str:
    """Return how to speak of an array: by its name, where it has one of its own."""
    name = view.buffer.name
    return f"`{name}`" if all(map(is_name, name.split("."))) else otherwise


TRANSFORM = ProgramRule("ADV606", "partition-axis", __doc__, propose)
