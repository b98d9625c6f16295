"""Memory of one rank: views that overlap, steps that read and write, arrays of a variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from advisor.ir.dependence import bounds_of
from advisor.ir.shapes import whole
from advisor.ir.spmd.memory import (
    OWN,
    Allocation,
    Buffer,
    Contiguity,
    Order,
    Origin,
    Payload,
    PayloadKind,
    View,
    contiguity,
    extent_of,
)
from advisor.ir.spmd.program import RANKS, Program
from advisor.ir.spmd.steps import (
    Allocate,
    Branch,
    Communicate,
    Communicator,
    Compute,
    Copy,
    Interpret,
    Loop,
    LoopKind,
    Op,
    Step,
    Visit,
    Wait,
)
from advisor.ir.values import Point, Range, Strided, Subscript
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num, substitute, sym
from costdb.expr.nodes import FloorDiv, Num
from costdb.expr.polynomials import Facts, expand
from transforms.kit.ranks import own_block

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


FLOATS = frozenset({"float32", "float64", "complex64", "complex128"})


SENDABLE = INTEGERS | FLOATS
"""Element types that mpi4py maps to those of MPI by itself, on every platform."""


# --- arrays of a variant, and pieces of arrays


def new_array(text: str, dtype: str | None, shape: tuple[Expr, ...], span: Span) -> View:
    """Return all of an array that a variant makes."""
    memory = Buffer(text, -1, dtype, shape, Order.C, Allocation(Origin.NEW, text, span))
    return View(memory, whole(shape), text, span)


def payload_of(view: View, span: Span) -> Payload:
    """Return what a message carries that takes a view as it is."""
    return Payload(PayloadKind.ARRAY, view.text, span, view, view.dtype, view.count)


def plain_array(payload: Payload | None) -> View | None:
    """Return the view of a payload of an array as it stands, its type, region and size known."""
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return None
    view = payload.view
    if payload.described or payload.datatype is not None or view.transposed or view.flat:
        return None
    if view.region is None or payload.dtype is None or payload.count is None:
        return None
    return view


def is_counted(loop: Loop) -> bool:
    """Return whether a loop goes over all whole numbers of a range, one by one."""
    return loop.kind is LoopKind.COUNTED and loop.step == 1 and loop.stride is None


def symbols_of(view: View) -> frozenset[str]:
    """Return the symbols in what says which part of an array a view is."""
    return frozenset().union(*(_symbols(index) for index in view.region or ()))


def _symbols(index: Subscript) -> frozenset[str]:
    low, high = bounds_of(index)
    return free_symbols(low) | free_symbols(high)


def swept(view: View, variable: str, low: Expr, high: Expr) -> View | None:
    """Return what a view goes through as a symbol runs from `low` to `high`, the end left out.

    None where that is not piece after piece of one dimension.
    """
    found: list[Subscript] = []
    moved = 0
    for part in view.region or ():
        if variable not in _symbols(part):
            found.append(part)
            continue
        moved += 1
        length = extent_of(part)
        offset = expand(bounds_of(part)[0] - length * sym(variable))
        if isinstance(part, Strided) or variable in free_symbols(length) | free_symbols(offset):
            return None
        found.append(Range(expand(length * low + offset), expand(length * high + offset)))
    return replace(view, region=tuple(found)) if moved == 1 else None


def by_rank(view: View, variable: str, partner: Expr, size: Expr) -> View | None:
    """Return the pieces of all ranks together, if they lie in one stretch in the order of ranks.

    Parameters
    ----------
    view : View
        The piece of one rank.
    variable : str
        The index that it is told by.
    partner : Expr
        That rank, over the index: it, and a constant.
    size : Expr
    """
    offset = partner - sym(variable)
    every = swept(view, variable, -offset, size - offset)
    if every is None or not every.region or not is_whole_behind(every):
        return None
    begins, _ = bounds_of(every.region[0])
    return every if begins == num(0) and is_stretch(every) else None


def is_stretch(view: View) -> bool:
    """Return whether a view is surely one stretch of memory, so that it can be sent as it is."""
    return contiguity(view) is Contiguity.YES


def carried(
    step: Communicate,
    view: View,
    staging: View | None = None,
    *,
    copied: bool = False,
    stays: bool = False,
) -> Iterator[Step]:
    """Yield what it takes to send a face, and to put what comes to a face like it.

    Parameters
    ----------
    step : Communicate
    view : View
        The face, where it belongs.
    staging : View or None
        The buffer that it is copied to, where there is one already.
    copied, stays : bool
        Whether it is copied though it is one stretch of memory, and whether it goes nowhere.
    """
    across, sent = not is_stretch(view), view
    if across or copied or stays:
        sent = staging or new_array("face", view.dtype, view.shape or (), step.span)
        yield Copy(sent, view, step.span, allocates=staging is None)
    if not stays:
        yield replace(step, op=Op.SEND, send=payload_of(sent, step.span), receive=None)
    if across and not stays:
        yield Copy(view, sent, step.span)


def array_payload(payload: Payload | None) -> View | None:
    """Return the view of a payload that is surely an array of known type and shape.

    None, too, where a new array might not have the order in which it would be sent: strided
    views of one dimension and C-ordered ones are fine, once they are copied to one stretch.
    """
    if payload is None or payload.kind is not PayloadKind.ARRAY or payload.view is None:
        return None
    view = payload.view
    if payload.dtype not in SENDABLE or view.shape is None or payload.count is None:
        return None
    if view.contiguity is Contiguity.UNKNOWN or payload.parts:
        return None
    return view if len(view.shape) == 1 or view.order is Order.C else None


# --- who reads and writes it


def disjoint(one: View, other: View, sizes: Mapping[str, Expr] | None = None) -> bool:
    """Return whether two views surely share no element.

    Views of different arrays of one program do only if neither is made from the other, which is
    what `may_share` is asked before.

    Parameters
    ----------
    one, other : View
    sizes : mapping of str to Expr, optional
        What symbols surely are.
    """
    if one.region is None or other.region is None or len(one.region) != len(other.region):
        return False
    if may_share(one, other) and not same_memory(one, other):
        return False  # their indices count in different shapes
    pairs = zip(one.region, other.region, strict=True)
    return any(_apart(a, b, sizes or {}) for a, b in pairs)


def written_sizes(program: Program) -> dict[str, Expr]:
    """Return the sizes that are numbers in the source, which hold in every run of it."""
    return {
        name: num(fact.value)
        for name, fact in program.sizes.items()
        if isinstance(fact.value, int) and name != RANKS and fact.origin.startswith("line ")
    }


def _apart(one: Subscript, other: Subscript, sizes: Mapping[str, Expr]) -> bool:
    low, high = bounds_of(one)
    low_2, high_2 = bounds_of(other)
    return _not_above(high, low_2, sizes) or _not_above(high_2, low, sizes)


def _not_above(one: Expr, other: Expr, sizes: Mapping[str, Expr]) -> bool:
    difference = substitute(other - one, sizes)
    return isinstance(difference, Num) and difference.value >= 0


def same_memory(one: View, other: View) -> bool:
    """Return whether two views are of the same array."""
    return one.buffer == other.buffer


def may_share(one: View, other: View) -> bool:
    """Return whether two views may be of one array's memory, be it under different shapes."""
    if one.buffer.memory == other.buffer.memory:
        return True
    either = one.buffer.memory.allocation.either or other.buffer.memory.allocation.either
    return bool(either) and not one.buffer.memories.isdisjoint(other.buffer.memories)


def written(step: Step) -> tuple[View, ...] | None:
    """Return the views that a simple step writes; None for one that may write anything."""
    match step:
        case Copy(target=target, allocates=allocates):
            return () if allocates else (target,)
        case Compute(target=target):
            return () if target is None else (target,)
        case Communicate(receive=receive):
            return received(receive)
        case Allocate() | Wait() | Interpret():
            return ()
    return None


def may_be_written(step: Step, view: View) -> bool:
    """Return whether a step writes to an array's memory, makes it, or may do so."""
    targets: tuple[View, ...] | None
    match step:
        case Loop() | Branch():
            return False  # of their steps each is asked for itself
        case Allocate(buffer=buffer):
            return not buffer.memories.isdisjoint(view.buffer.memories)
        case Copy(target=target):
            targets = (target,)
        case _:
            targets = written(step)
    return targets is None or any(may_share(one, view) for one in targets)


def received(payload: Payload | None) -> tuple[View, ...] | None:
    """Return what a payload lets be written; None where that is not known."""
    if payload is None:
        return ()
    return None if payload.view is None else (payload.view,)


def own_memory(view: View) -> bool:
    """Return whether an array is new memory, so that other arrays are not in it."""
    return view.buffer.allocation.origin in OWN


def apart(one: View, other: View, sizes: Mapping[str, Expr]) -> bool:
    """Return whether two views surely share no element, be they of one array or of two."""
    if may_share(one, other):
        return disjoint(one, other, sizes)
    return own_memory(one) and own_memory(other)


def reads_of(step: Step) -> tuple[View, ...]:
    """Return the views that a step reads."""
    match step:
        case Compute(reads=reads):
            return reads
        case Copy(source=source):
            return (source,)
        case Communicate(send=send) if send is not None and send.view is not None:
            return (send.view,)
    return ()


def block_of(index: Subscript, visit: Visit, communicator: Communicator) -> Expr | None:
    """Return the length of the own rank's block, if an index goes over that and nothing else.

    Blocks lie one after the other in the order of ranks, all of one length.
    """
    match index:
        case Range(low, high):
            return own_block(low, high, communicator.rank)
        case Point(place) if place == communicator.rank:
            return num(1)
        case Point(place):
            for loop in visit.loops:
                if (
                    loop.variable
                    and place == sym(loop.variable)
                    and loop.step == 1
                    and loop.stride is None
                ):
                    return own_block(loop.low, loop.high, communicator.rank)
    return None


def blocks_fit(length: Expr, ranks: Expr, extent: Expr) -> bool:
    """Return whether blocks of all ranks certainly lie within an array, so that none is cut."""
    known = Facts(positive=free_symbols(length) | free_symbols(ranks) | free_symbols(extent))
    match length:
        case FloorDiv(dividend=whole, divisor=divisor) if divisor == ranks:
            return known.proves_at_least(extent, whole)
    return known.proves_at_least(extent, length * ranks)


def fits(payload: Payload | None) -> bool:
    """Return whether slices surely end within their array, so that none is cut."""
    view = plain_array(payload)
    if view is None or view.region is None or view.buffer.extents is None:
        return False
    pairs = zip(view.region, view.buffer.extents, strict=True)
    return all(isinstance(i, Point) or blocks_fit(bounds_of(i)[1], num(1), end) for i, end in pairs)


def is_whole_behind(view: View) -> bool:
    """Return whether a view takes all of every dimension but the first."""
    extents = view.buffer.extents or ()
    return bool(view.region) and (view.region or ())[1:] == whole(extents)[1:]
