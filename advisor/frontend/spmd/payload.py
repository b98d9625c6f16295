"""Arguments of communication: what they carry and whom they name."""

from __future__ import annotations

from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.indexing import is_slice
from advisor.frontend.spmd.joining import contents
from advisor.frontend.spmd.numpy_arguments import dtype_name
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    ANYBODY,
    NOBODY,
    Array,
    Datatype,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.source import Span
from costdb.expr import num

MOST_PARTS = 8
"""Items of a list that are looked at one by one."""


def payload_of(argument: Argument, run: Run, *, buffered: bool) -> Payload | None:
    """Return what an argument carries; None for ``None`` and ``MPI.IN_PLACE``.

    Parameters
    ----------
    argument : Argument
    run : Run
    buffered : bool
        An upper-case method, which takes arrays and descriptions of them only.
    """
    value, text, span = argument.value, argument.text, argument.span
    if isinstance(value, Nothing) or value == External("mpi4py.MPI.IN_PLACE"):
        return None
    if buffered:
        return _buffer(value, text, span, run)
    return _object(value, text, span, 0, run)


def _object(value: Value, text: str, span: Span, depth: int, run: Run) -> Payload:
    match value:
        case Array(view):
            return Payload(PayloadKind.ARRAY, text, span, view, view.dtype, view.count)
        case Number():
            return Payload(PayloadKind.SCALAR, text, span, None, value.dtype, num(1))
        case Text():
            return Payload(PayloadKind.OBJECT, text, span, reason="a string")
        case Nothing():
            return Payload(PayloadKind.OBJECT, text, span, reason="None")
        case Sequence(items=(External(path="range"), *_)) | Sequence(items=(External(), *_)):
            return Payload(PayloadKind.OBJECT, text, span, reason="a sequence of numbers")
        case Sequence():
            return _listed(value, text, span, depth, run)
        case Record(cls=None) if depth <= 2 and (held := contents(value, run)):
            parts = tuple(
                _object(item, f"{text}[{key!r}]", span, depth + 1, run)
                for key, item in held[:MOST_PARTS]
            )
            length = None if any(key is None for key, _ in held) else num(len(held))
            return Payload(PayloadKind.OBJECT, text, span, parts=parts, length=length)
        case Record():
            return Payload(PayloadKind.OBJECT, text, span, reason="a dictionary or an instance")
        case Opaque(why=why):
            return Payload(PayloadKind.UNKNOWN, text, span, reason=why)
    return Payload(PayloadKind.UNKNOWN, text, span, reason="its type is not followed")


def _listed(value: Sequence, text: str, span: Span, depth: int, run: Run) -> Payload:
    if depth > 2:
        return Payload(PayloadKind.OBJECT, text, span, reason="a deeply nested list")
    if value.items is not None:
        parts = tuple(
            _object(item, f"{text}[{k}]", span, depth + 1, run)
            for k, item in enumerate(value.items[:MOST_PARTS])
        )
        return Payload(PayloadKind.OBJECT, text, span, parts=parts, length=num(len(value.items)))
    parts = (
        ()
        if value.element is None
        else (_object(value.element, f"{text}[...]", span, depth + 1, run),)
    )
    return Payload(PayloadKind.OBJECT, text, span, parts=parts, length=value.length)


def _buffer(value: Value, text: str, span: Span, run: Run) -> Payload:
    match value:
        case Array(view):
            return Payload(PayloadKind.ARRAY, text, span, view, view.dtype, view.count)
        case Sequence(items=tuple() as items) if items and not is_slice(value):
            return _described(items, text, span, run)
        case Text():
            return Payload(PayloadKind.OBJECT, text, span, reason="bytes")
        case Opaque(text=name):
            # upper-case methods take buffers only, so it is an array
            view = run.given_array(name or text, span, None, None)
            return Payload(PayloadKind.ARRAY, text, span, view, None, None, reason=value.why)
    return Payload(PayloadKind.UNKNOWN, text, span, reason="a buffer that is not followed")


def _described(items: tuple[Value, ...], text: str, span: Span, run: Run) -> Payload:
    datatype = next((item for item in items if isinstance(item, Datatype)), None)
    stated_text = next((i.value for i in items[1:] if isinstance(i, Text) and i.value), None)
    view: View | None = None
    if isinstance(items[0], Array):
        view = items[0].view
    elif isinstance(items[0], Opaque):
        view = run.given_array(items[0].text or text, span, None, None)
    count = None if view is None else view.count
    counts = [i for i in items[1:] if isinstance(i, Number)]
    if counts:
        count = counts[0].expr
    elif any(isinstance(i, Array | Sequence | Opaque) for i in items[1:]):
        # counts and displacements of the v forms: how much is sent differs by rank
        count = None if view is None else view.count
    derived = None if datatype is None else datatype.derived
    dtype = None if view is None else view.dtype
    if dtype is None and datatype is not None:
        dtype = datatype.basic if derived is None else derived.base
    if dtype is None and stated_text is not None:
        dtype = dtype_name(Text(stated_text))
    if derived is not None:
        each = derived.elements
        if each is None:
            count = None
        else:
            count = each if not counts or counts[0].expr is None else each * counts[0].expr
    return Payload(PayloadKind.ARRAY, text, span, view, dtype, count, True, derived)


def partner_of(argument: Argument | None) -> Partner | None:
    """Return whom an argument names."""
    if argument is None:
        return None
    value, text, span = argument.value, argument.text, argument.span
    if value == NOBODY:
        return Partner(PartnerKind.NOBODY, text, span=span)
    if value == ANYBODY:
        return Partner(PartnerKind.ANY, text, span=span)
    match value:
        case NeighbourRank(axis, displacement):
            return Partner(PartnerKind.NEIGHBOUR, text, None, axis, displacement, True, span)
        case Number(expr=expr, nobody=nobody) if expr is not None:
            return Partner(PartnerKind.RANK, text, expr, may_be_nobody=nobody, span=span)
        case Opaque(expr=expr) if expr is not None:
            return Partner(PartnerKind.RANK, text, expr, span=span)
    return Partner(PartnerKind.UNKNOWN, text, span=span)
