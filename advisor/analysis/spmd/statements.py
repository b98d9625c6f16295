"""The work of one step of a program: of the interpreter, of array operations, of messages."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.analysis.arrays import Arrays
from advisor.analysis.calls import copied
from advisor.analysis.calls import view as view_made
from advisor.analysis.halos import Halos
from advisor.analysis.owners import local
from advisor.analysis.placement import Facts, NotPriced, Placement, pitches_bytes
from advisor.distribution import StorageOrder
from advisor.ir.dependence import bounds_of
from advisor.ir.kernel import Kernel, SourceContext, mapped
from advisor.ir.shapes import ArrayType, ShapeConflict, agreed, describe, whole
from advisor.ir.spmd.memory import (
    Constructor,
    Contiguity,
    Order,
    Payload,
    PayloadKind,
    View,
    elements,
    extent_of,
    unknown_count,
)
from advisor.ir.spmd.steps import Allocate, Communicate, Compute, Copy, Interpret, Op
from advisor.ir.statements import SET, Scatter, Store
from advisor.ir.values import Copy as Copied
from advisor.ir.values import Fill, Point, Range, Read, Strided, Subscript, Transpose, Value
from advisor.numpy_table import UNKNOWN_DTYPE, dtype_of
from costdb.expr import ZERO, Expr, num
from costdb.expr.nodes import Num
from costdb.lines.coefficients import bytes_of
from costdb.records import dataclass, field, replace
from costdb.work import (
    PICKLED_KINDS,
    Access,
    Barrier,
    Collective,
    CollectiveKind,
    Interpretation,
    Leaf,
    Message,
    Pattern,
    PickledCollective,
    PickledMessage,
    Process,
    Region,
    RemoteGroup,
    Statement,
    Visit,
    Work,
)

# --- array steps ----------------------------------------------------------------------------------
# The work of a program's array operations: that of the same operations in a kernel.
#
# A view is a region of a named array, seen otherwise. Every rank has all of what is its own.


ASSUMED_DTYPE = "float64"
"""The element type of arrays of which the source does not tell it."""

_NO_SOURCE = SourceContext("", None, {}, frozenset(), "")


def of_arrays(step: Allocate | Copy | Compute) -> list[Process]:
    """Return the work of one operation, a copy, or new memory, of which much is known.

    Raises
    ------
    NotPriced
        Its operands do not fit, or no model has it.
    """
    try:
        return agreed(lambda alike: _Memory(alike).work(step))
    except ShapeConflict as reason:
        raise NotPriced(str(reason)) from reason


@dataclass(slots=True)
class _Memory:
    """The arrays of a step, by names; `alike` says which extents are taken to be others."""

    alike: Mapping[Expr, Expr]
    types: dict[str, ArrayType] = field(default_factory=dict)
    placed: dict[str, Placement] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Of buffers: several may have one name."""

    def work(self, step: Allocate | Copy | Compute) -> list[Process]:
        """Return the work of a step."""
        target: View | None = None
        fresh = True
        match step:
            case Allocate(buffer=buffer):
                filled = "0" if step.filled else ""
                value: Value = Fill(filled, buffer.extents or (), buffer.dtype or ASSUMED_DTYPE)
            case Copy(source=source, allocates=fresh):
                target = step.target
                value = self.value(source)
                if fresh:
                    value = Copied(value, step.target.dtype or source.dtype or ASSUMED_DTYPE)
            case Compute(reads=reads, value=operation, allocates=fresh):
                target = step.target
                assert operation is not None

                def shown(part: object) -> object:
                    if part == UNKNOWN_DTYPE:
                        return ASSUMED_DTYPE
                    return self.value(reads[int(part.array)]) if isinstance(part, Read) else None

                value = mapped(operation, shown)
                if step.places and target is not None:
                    first, *others = mapped(step.places, shown)
                    name = self.place(target)[0]
                    stored = Scatter(name, first, value, SET, step.span, others=tuple(others))
                    return self._arrays(step).scattered(stored)
        if target is None and not isinstance(step, Allocate):
            return self._arrays(step).number(value)
        if fresh or target is None:
            return self._arrays(step).made(value)
        name, region = self.place(target)
        arrays = self._arrays(step)
        alike = len(describe(value, arrays.type_of).extents) == len(target.shape or ())
        if target.transposed and not target.flat and alike:
            value = _turned(value, target)
        in_place = isinstance(step, Compute)
        return arrays.stored(Store(name, region, value, step.span, in_place=in_place))

    def value(self, view: View) -> Value:
        """Return what a view shows of an array that has a name."""
        read = Read(*self.place(view))
        return _turned(read, view) if view.transposed and not view.flat else read

    def place(self, view: View) -> tuple[str, tuple[Subscript, ...]]:
        """Return the array that a view is of, and the region of it."""
        buffer, shape = view.buffer, view.shape
        if shape is None:
            raise NotPriced("the shapes of what is computed here are not known")
        plain = view.region is not None and buffer.extents is not None and not view.flat
        extents = tuple(map(self._agreed, (buffer.extents if plain else None) or shape))
        found = ArrayType(view.dtype or ASSUMED_DTYPE, extents)
        name = buffer.name
        while (
            self.types.setdefault(name, found) != found
            or self.numbers.setdefault(name, buffer.number) != buffer.number
        ):
            name += "'"
        lies: StorageOrder = "F" if plain and buffer.order is Order.F else "C"
        self.placed[name] = replace(local(extents), order=lies)
        if not plain or view.region is None:
            return name, whole(extents)
        return name, tuple(map(self._subscript, view.region))

    def _agreed(self, extent: Expr) -> Expr:
        return self.alike.get(extent, extent)

    def _subscript(self, part: Subscript) -> Subscript:
        """Return a subscript, in order also where a view goes backwards."""
        if isinstance(part, Strided) and abs(part.step) > 1:
            return replace(part, step=abs(part.step))
        low, _ = bounds_of(part)
        count = self._agreed(extent_of(part))
        return part if isinstance(part, Point) else Range(low, low + count)

    def _arrays(self, step: Allocate | Copy | Compute) -> Arrays:
        kernel = Kernel("", step.span, {}, self.types, frozenset(), {}, (), _NO_SOURCE)
        return Arrays(kernel, self.placed, Facts(), Halos())


def _turned(value: Value, view: View) -> Value:
    axes = tuple(reversed(range(len(view.shape or ()))))
    return Transpose(value, axes) if len(axes) > 1 else value


# --- statements -----------------------------------------------------------------------------------


# How much a payload or a view is, and how it lies in memory.


WORD_BYTES = 8
"""What an element, or a Python number in a pickle, is taken to be where nothing says."""


def itemsize(dtype: str | None) -> int:
    """Return the bytes of an element; of one of unknown type those of a double word."""
    return WORD_BYTES if dtype is None else dtype_of(dtype).itemsize_bytes


def run_of(count: Expr, size_bytes: int) -> Region:
    """Return so many elements one after another."""
    return Region(size_bytes, (count,), (num(size_bytes),))


def region_of(view: View) -> Region:
    """Return where the elements of a view lie, with the strides of its array."""
    size, count, along = itemsize(view.dtype), view.count, _along(view)
    if count is None:
        return run_of(unknown_count(view.buffer.name), size)
    if view.contiguity is not Contiguity.NO or along is None:
        return run_of(count, size)
    several = [(extent_of(index), pitch) for index, pitch in along if extent_of(index) != num(1)]
    counts, pitches = zip(*several, strict=True) if several else ((num(1),), (num(size),))
    return Region(size, counts, pitches)


def _along(view: View) -> list[tuple[Subscript, Expr]] | None:
    """Return each index of a view's region, and the bytes from one element to the next."""
    strides, size = view.strides(), itemsize(view.dtype)
    if strides is None or view.region is None:
        return None
    return [
        (index, stride * (size * abs(getattr(index, "step", 1))))
        for index, stride in zip(view.region, strides, strict=True)
    ]


def payload_region(payload: Payload) -> Region:
    """Return where the elements of a payload lie.

    Arrays of unknown size have a symbol for it; the parts of a list are taken to be alike where
    only one of them is known.
    """
    size = itemsize(payload.dtype)
    derived = payload.datatype
    if derived is not None and derived.constructor is Constructor.VECTOR and derived.numbers:
        count, block, stride = derived.numbers
        base = itemsize(derived.base)
        return Region(base, (count, block), (stride * base, num(base)))
    if payload.kind is PayloadKind.ARRAY:
        if payload.view is not None and payload.count == payload.view.count and derived is None:
            return region_of(payload.view)
        return run_of(elements(payload), size)
    return run_of(words(payload), WORD_BYTES)


def words(payload: Payload) -> Expr:
    """Return the double words that a Python object carries."""
    match payload.kind:
        case PayloadKind.ARRAY:
            return elements(payload) * itemsize(payload.dtype) / WORD_BYTES
        case PayloadKind.SCALAR:
            return num(1)
        case PayloadKind.UNKNOWN:
            return unknown_count(payload.text)
    if not payload.parts:
        return num(1) if payload.length is None else payload.length
    known = sum((words(part) for part in payload.parts), num(0))
    return known if payload.length is None or len(payload.parts) > 1 else known * payload.length


def objects(payload: Payload) -> Expr:
    """Return the Python objects that are serialised one by one, besides the payload itself."""
    if payload.kind is not PayloadKind.OBJECT:
        return num(0)
    if payload.length is None:
        return num(len(payload.parts))
    inner = sum((objects(part) for part in payload.parts), num(0))
    if len(payload.parts) == 1:
        inner = inner * payload.length
    return payload.length + inner


def is_plain(payload: Payload) -> bool:
    """Return whether an object is Python's alone; a number of which nothing is known is."""
    if payload.kind is PayloadKind.OBJECT:
        return all(map(is_plain, payload.parts))
    of_python = payload.dtype in (None, "bool", "int", "float", "complex")
    return payload.kind is PayloadKind.SCALAR and of_python


def kept_copy(region: Region, dtype: str | None, label: str) -> Work:
    """Return the copying of a region to memory of a library's own."""
    known = dtype or ASSUMED_DTYPE
    item = region.itemsize_bytes
    aside = Region(item, region.counts, pitches_bytes(region.counts, "C", item))
    call = copied(Visit(region), Visit(aside), (known, known), fresh=False)
    return Statement((Access(region), Access(aside, store=True)), ZERO, label, (call,))


def of_step(step: Allocate | Copy | Compute | Interpret) -> list[Process]:
    """Return the work of a step that stays within one rank; new memory alone costs nothing.

    Raises
    ------
    NotPriced
        Shapes or the cost of a library function are not known.
    """
    match step:
        case Interpret(operations=Num(value=operations)):
            return [Leaf(Interpretation(num(1), operations=int(operations)))]
        case Interpret():
            return [Leaf(Interpretation(num(1), operations=1))]
        case Allocate() if not step.filled or step.buffer.extents is None:
            return []
        case Compute(what="element", reads=reads, target=target):
            return [Leaf(Interpretation(num(1), loads=len(reads), stores=int(target is not None)))]
        case Compute(what="tolist", reads=(view,)):
            read = Statement((Access(region_of(view)),), ZERO, "lists", (view_made(),))
            count = unknown_count(view.buffer.name) if view.count is None else view.count
            # a number is made for each, as by an operation on numbers
            return [Leaf(Interpretation(count, operations=1)), Leaf(read)]
        case Compute(what="call"):
            raise NotPriced("the time of a library function is not known")
        case Compute(value=None):
            raise NotPriced("the shapes of what is computed here are not known")
    return of_arrays(step)


# The work of communication: what the models call one operation of MPI.


_COLLECTIVES = {
    Op.BCAST: CollectiveKind.BROADCAST,
    Op.REDUCE: CollectiveKind.REDUCE,
    Op.ALLREDUCE: CollectiveKind.ALLREDUCE,
    Op.ALLGATHER: CollectiveKind.ALLGATHER,
    Op.ALLTOALL: CollectiveKind.ALLTOALL,
    Op.GATHER: CollectiveKind.GATHER,
    Op.SCATTER: CollectiveKind.SCATTER,
    Op.REDUCE_SCATTER: CollectiveKind.REDUCE_SCATTER,
    Op.SCAN: CollectiveKind.PREFIX,
    Op.EXSCAN: CollectiveKind.PREFIX,
}

_VARYING = {Op.ALLGATHER: CollectiveKind.ALLGATHERV, Op.ALLTOALL: CollectiveKind.ALLTOALLV}

_PICKLED = {
    **{op: kind for op, kind in _COLLECTIVES.items() if kind in PICKLED_KINDS},
    # of objects they take as many steps as a reduction, each combining what it carries
    Op.SCAN: CollectiveKind.REDUCE,
    Op.EXSCAN: CollectiveKind.REDUCE,
}

_PIECE_OF_SENT = frozenset({Op.SCATTER, Op.ALLTOALL, Op.REDUCE_SCATTER})


def of_communication(step: Communicate) -> tuple[Work, ...]:
    """Return the work of one communication operation, of the rank that is in it longest.

    Raises
    ------
    NotPriced
        No model covers it, or nothing says how much is sent.
    """
    match step.op:
        case Op.PROBE | Op.FLUSH:
            return ()
        case Op.BARRIER | Op.FENCE:
            return (Barrier(step.communicator.size, f"{step.method}"),)
        case Op.LOCK | Op.UNLOCK:
            raise NotPriced(f"the time of `{step.method}` of a window is not modelled")
        case Op.GET | Op.PUT | Op.ACCUMULATE:
            return (_remote(step),)
        case Op.SENDRECV if step.method.endswith("_replace") and not step.pickled:
            return (_message(step), _set_aside(step))
        case Op.SEND | Op.RECV | Op.SENDRECV:
            return (_message(step),)
        case Op.NEIGHBOR_ALLGATHER | Op.NEIGHBOR_ALLTOALL:
            return _with_neighbours(step)
    return (_collective(step),)


def at_least(step: Communicate) -> tuple[Work, ...]:
    """Return the work of a pickled operation whatever it carries: that of a number."""
    number = Payload(PayloadKind.SCALAR, "", step.span, count=num(1))
    try:
        return of_communication(replace(step, send=number))
    except NotPriced:
        return ()


def _required(payload: Payload | None, step: Communicate) -> Payload:
    if payload is None:
        # the other end says what comes; a pickled receive alone is known to be one object
        does = "receives" if step.op is Op.RECV else "sends"
        raise NotPriced(f"nothing says how much `{step.method}` {does}")
    if step.pickled and payload.kind is PayloadKind.UNKNOWN:
        raise NotPriced(f"`{payload.text}`, which is sent pickled, is not known: {payload.reason}")
    return payload


def _message(step: Communicate) -> Work:
    payload = _required(
        step.send or step.comes if step.pickled else step.send or step.receive, step
    )
    if step.pickled:
        region, plain = _pickled_region(payload), is_plain(payload)
        return PickledMessage(region, objects(payload), step.method, plain)
    return Message(payload_region(payload), step.method)


def _set_aside(step: Communicate) -> Work:
    """Return the copy that a library sends from, where what comes goes to the same place."""
    payload = _required(step.send or step.receive, step)
    return kept_copy(payload_region(payload), payload.dtype, step.method)


def _pickled_region(payload: Payload) -> Region:
    if payload.kind is PayloadKind.ARRAY and payload.view is not None:
        return payload_region(payload)
    return run_of(words(payload), WORD_BYTES)


def _collective(step: Communicate) -> Work:
    ranks, label = step.communicator.size, step.method
    if step.pickled:
        kind = _PICKLED.get(step.op)
        if kind is None:
            raise NotPriced(f"mpi4py has no `{label}` of Python objects")
        payload = _required(step.send, step)
        divided = step.op in (Op.SCATTER, Op.ALLTOALL)
        if divided and not payload.parts:
            return PickledCollective(kind, ranks, _divided(payload, ranks), num(0), label)
        each = payload.parts[0] if divided else payload
        region, plain = _pickled_region(each), is_plain(each)
        return PickledCollective(kind, ranks, region, objects(each), label, plain)
    kind = _COLLECTIVES[step.op]
    if step.varying:
        kind = _VARYING.get(step.op, kind)
    whole = _required(step.send or step.receive, step)
    if step.op is Op.SCATTER and step.receive is not None:
        return Collective(kind, ranks, payload_region(step.receive), label)
    # what is gathered in place is a buffer that holds the pieces of all
    in_place = step.op is Op.ALLGATHER and step.send is None
    divided = step.op in _PIECE_OF_SENT or in_place
    region = _divided(whole, ranks) if divided else payload_region(whole)
    return Collective(kind, ranks, region, label)


def _divided(payload: Payload, ranks: Expr) -> Region:
    """Return one of as many pieces of a payload as there are ranks."""
    size = itemsize(payload.dtype)
    whole = payload_region(payload)
    count = bytes_of(whole) / size
    return run_of(count / ranks, size)


def _with_neighbours(step: Communicate) -> tuple[Work, ...]:
    dims = step.communicator.dims
    if dims is None:
        raise NotPriced(f"nothing says how many neighbours `{step.method}` has")
    neighbours = 2 * len(dims)
    payload = _required(step.send or step.receive, step)
    if step.op is Op.NEIGHBOR_ALLTOALL:
        region = _divided(payload, num(neighbours))
    else:
        region = payload_region(payload)
    return (Message(region, step.method),) * neighbours


def _remote(step: Communicate) -> Work:
    payload = _required(step.send or step.receive, step)
    region = payload_region(payload)
    count = bytes_of(region) / WORD_BYTES
    single = payload.count == num(1)
    return RemoteGroup(
        count,
        step.communicator.size,
        Pattern.BASELINE if single else Pattern.VECTOR,
        store=step.op is not Op.GET,
        label=step.method,
        calls=num(1),
    )
