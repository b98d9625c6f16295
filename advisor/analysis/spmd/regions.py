"""How much a payload or a view is, and how it lies in memory."""

from __future__ import annotations

from advisor.analysis.placed.placement import pitches_bytes
from advisor.dtypes import dtype_of
from advisor.ir.spmd.memory import At, Contiguity, Index, View
from advisor.ir.spmd.payloads import Constructor, Payload, PayloadKind
from costdb.expr import Expr, num, sym
from costdb.expr.functions import name_like
from costdb.work import Region


class NoWork(Exception):
    """A step of which no model says how long it takes."""


WORD_BYTES = 8
"""What an element, or a Python number in a pickle, is taken to be where nothing says."""


def itemsize(dtype: str | None) -> int:
    """Return the bytes of an element; of one of unknown type those of a double word."""
    return WORD_BYTES if dtype is None else dtype_of(dtype).itemsize_bytes


def run_of(count: Expr, size_bytes: int) -> Region:
    """Return so many elements one after another."""
    return Region(size_bytes, (count,), (num(size_bytes),))


def unknown_count(name: str) -> Expr:
    """Return the symbol for the elements of an array of unknown size."""
    bare = name_like(name.replace(".", " ")).strip("_") or "array"
    return sym(f"{bare}.size" if bare.isidentifier() else f"_{bare}.size")


def region_of(view: View) -> Region:
    """Return where the elements of a view lie, with the strides of its array."""
    size, count, along = itemsize(view.dtype), view.count, _along(view)
    if count is None:
        return run_of(unknown_count(view.buffer.name), size)
    if view.contiguity is not Contiguity.NO or along is None:
        return run_of(count, size)
    several = [(index.count, pitch) for index, pitch in along if index.count != num(1)]
    counts, pitches = zip(*several, strict=True) if several else ((num(1),), (num(size),))
    return Region(size, counts, pitches)


def _along(view: View) -> list[tuple[Index, Expr]] | None:
    """Return each index of a view's region, and the bytes from one element to the next."""
    strides, size = view.strides(), itemsize(view.dtype)
    if strides is None or view.region is None:
        return None
    return [
        (index, stride * (size * abs(getattr(index, "step", 1))))
        for index, stride in zip(view.region, strides, strict=True)
    ]


def visited_region(view: View) -> Region:
    """Return where the elements of a view lie, with a count and a pitch for each dimension.

    As a call of an array library goes over them, whether or not they are one stretch of memory.
    """
    shape, along, size = view.shape, _along(view), itemsize(view.dtype)
    if not shape:
        return region_of(view)
    if view.flat or along is None:
        return Region(size, shape, pitches_bytes(shape, "C", size))
    pitches = tuple(pitch for index, pitch in along if not isinstance(index, At))
    return Region(size, shape, pitches[::-1] if view.transposed else pitches)


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
        return run_of(_elements(payload), size)
    return run_of(words(payload), WORD_BYTES)


def _elements(payload: Payload) -> Expr:
    if payload.count is not None:
        return payload.count
    return unknown_count(payload.text if payload.view is None else payload.view.buffer.name)


def words(payload: Payload) -> Expr:
    """Return the double words that a Python object carries."""
    match payload.kind:
        case PayloadKind.ARRAY:
            return _elements(payload) * itemsize(payload.dtype) / WORD_BYTES
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
