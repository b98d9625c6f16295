"""How much a payload or a view is, and how it lies in memory."""

from __future__ import annotations

from advisor.dtypes import UnknownDtype, dtype_of
from advisor.ir.spmd.memory import At, Contiguity, View
from advisor.ir.spmd.payloads import Constructor, Payload, PayloadKind
from costdb.expr import Expr, num, sym
from costdb.expr.names import name_like
from costdb.work import Region

WORD_BYTES = 8
"""What an element, or a Python number in a pickle, is taken to be where nothing says."""


def itemsize(dtype: str | None) -> int:
    """Return the bytes of an element; of one of unknown type those of a double word."""
    if dtype is None:
        return WORD_BYTES
    try:
        return dtype_of(dtype).itemsize_bytes
    except UnknownDtype:
        return WORD_BYTES


def run_of(count: Expr, size_bytes: int) -> Region:
    """Return so many elements one after another."""
    return Region(size_bytes, (count,), (num(size_bytes),))


def unknown_count(name: str) -> Expr:
    """Return the symbol for the elements of an array of unknown size."""
    bare = name_like(name.replace(".", " ")).strip("_") or "array"
    return sym(f"{bare}.size" if bare.isidentifier() else f"_{bare}.size")


def region_of(view: View) -> Region:
    """Return where the elements of a view lie, with the strides of its array."""
    size = itemsize(view.dtype)
    count = view.count
    if count is None:
        return run_of(unknown_count(view.buffer.name), size)
    strides = view.strides()
    if view.contiguity is not Contiguity.NO or strides is None or view.region is None:
        return run_of(count, size)
    counts: list[Expr] = []
    pitches: list[Expr] = []
    for index, stride in zip(view.region, strides, strict=True):
        if index.count == num(1):
            continue
        step = getattr(index, "step", 1)
        counts.append(index.count)
        pitches.append(stride * (size * abs(step)))
    return Region(size, tuple(counts), tuple(pitches)) if counts else run_of(num(1), size)


def visited_region(view: View) -> Region:
    """Return where the elements of a view lie, with a count and a pitch for each dimension.

    As a call of an array library goes over them, whether or not they are one stretch of memory.
    """
    shape, strides, size = view.shape, view.strides(), itemsize(view.dtype)
    if not shape:
        return region_of(view)
    if view.flat or strides is None or view.region is None:
        pitches = [num(size)]
        for extent in shape[:0:-1]:
            pitches.append(pitches[-1] * extent)
        return Region(size, shape, tuple(pitches[::-1]))
    apart = [
        stride * (size * abs(getattr(index, "step", 1)))
        for index, stride in zip(view.region, strides, strict=True)
        if not isinstance(index, At)
    ]
    return Region(size, shape, tuple(apart[::-1] if view.transposed else apart))


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
        name = payload.view.buffer.name if payload.view is not None else payload.text
        return run_of(unknown_count(name) if payload.count is None else payload.count, size)
    if payload.kind is PayloadKind.SCALAR:
        return run_of(num(1), WORD_BYTES)
    return run_of(words(payload), WORD_BYTES)


def words(payload: Payload) -> Expr:
    """Return the double words that a Python object carries."""
    match payload.kind:
        case PayloadKind.ARRAY:
            count = payload.count
            if count is None:
                name = payload.view.buffer.name if payload.view is not None else payload.text
                count = unknown_count(name)
            return count * itemsize(payload.dtype) / WORD_BYTES
        case PayloadKind.SCALAR:
            return num(1)
        case PayloadKind.OBJECT:
            return _of_parts(payload)
    return unknown_count(payload.text)


def _of_parts(payload: Payload) -> Expr:
    if not payload.parts:
        return num(1) if payload.length is None else payload.length
    known = sum((words(part) for part in payload.parts), num(0))
    if payload.length is None:
        return known
    if len(payload.parts) == 1:
        return known * payload.length
    return known


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
