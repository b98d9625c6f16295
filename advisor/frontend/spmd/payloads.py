"""What a call of mpi4py carries and whom it names: payloads, partners, datatypes."""

from __future__ import annotations

from dataclasses import replace

from advisor.dtypes import dtype_of
from advisor.frontend.spmd.numpy_created import dtype_name
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    ANYBODY,
    IN_PLACE,
    NOBODY,
    Argument,
    Array,
    Datatype,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Range,
    Record,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import Constructor, DerivedType, Payload, PayloadKind
from advisor.ir.spmd.ranks import Partner, PartnerKind
from advisor.numpy_shapes import count_of
from advisor.source import Span
from costdb.expr import Expr, num

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
    if isinstance(value, Nothing) or value == IN_PLACE:
        return None
    if buffered:
        return _buffer(value, text, span, run)
    return _object(value, text, span, 0, run)


def _object(value: Value, text: str, span: Span, depth: int, run: Run) -> Payload:
    parts: list[tuple[str, Value]] = []
    length: Expr | None = None
    reason = ""
    match value:
        case Array() | Number():
            return _whole(value, text, span)
        case Text():
            reason = "a string"
        case Nothing():
            reason = "None"
        case Range():
            reason = "a sequence of numbers"
        case Sequence() if depth > 2:
            reason = "a deeply nested list"
        case Sequence(items=tuple() as items):
            parts, length = [(str(k), item) for k, item in enumerate(items)], num(len(items))
        case Sequence(element=element, length=length):
            parts = [] if element is None else [("...", element)]
        case Record(cls=None) if depth <= 2 and (held := run.entries(value.number)):
            parts = [(repr(key), item) for key, item in held]
            length = None if any(key is None for key, _ in held) else num(len(held))
        case Record():
            reason = "a dictionary or an instance"
        case Opaque(why=why):
            return Payload(PayloadKind.UNKNOWN, text, span, reason=why)
        case _:
            return Payload(PayloadKind.UNKNOWN, text, span, reason="its type is not followed")
    known = tuple(_object(v, f"{text}[{k}]", span, depth + 1, run) for k, v in parts[:MOST_PARTS])
    return Payload(PayloadKind.OBJECT, text, span, parts=known, length=length, reason=reason)


def _whole(value: Array | Number, text: str, span: Span) -> Payload:
    if isinstance(value, Number):
        return Payload(PayloadKind.SCALAR, text, span, None, value.dtype, num(1))
    view = value.view
    return Payload(PayloadKind.ARRAY, text, span, view, view.dtype, view.count)


def _buffer(value: Value, text: str, span: Span, run: Run) -> Payload:
    match value:
        case Array():
            return _whole(value, text, span)
        case Sequence(items=tuple() as items) if items:
            return _described(items, text, span, run)
        case Text():
            return Payload(PayloadKind.OBJECT, text, span, reason="bytes")
        case Opaque(text=name):
            # upper-case methods take buffers only, so it is an array
            view = run.given_array(name or text, span)
            return Payload(PayloadKind.ARRAY, text, span, view, None, None, reason=value.why)
    return Payload(PayloadKind.UNKNOWN, text, span, reason="a buffer that is not followed")


def _described(items: tuple[Value, ...], text: str, span: Span, run: Run) -> Payload:
    datatype = next((item for item in items if isinstance(item, Datatype)), None)
    stated_text = next((i.value for i in items[1:] if isinstance(i, Text) and i.value), None)
    view: View | None = None
    if isinstance(items[0], Array):
        view = items[0].view
    elif isinstance(items[0], Opaque):
        view = run.given_array(items[0].text or text, span)
    # of the v forms, which state counts and displacements, how much is sent differs by rank
    count = None if view is None else view.count
    dtype = None if view is None else view.dtype
    derived = None if datatype is None else datatype.derived
    if dtype is None and datatype is not None:
        dtype = datatype.basic if derived is None else derived.base
    if dtype is None and stated_text is not None:
        dtype = dtype_name(Text(stated_text))
    stated = [item.expr for item in items[1:] if isinstance(item, Number)]
    if derived is not None:
        count = derived.elements
        if count is not None and stated and stated[0] is not None:
            count = count * stated[0]
    elif stated:
        count = stated[0]
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


# MPI's datatypes: basic ones by name, and those derived from them.

_BASIC = {
    "float64": "DOUBLE REAL8 DOUBLE_PRECISION",
    "float32": "FLOAT REAL",
    "int64": "LONG LONG_LONG INT64_T",
    "int32": "INT INTEGER INT32_T",
    "int16": "SHORT INT16_T",
    "int8": "INT8_T",
    "uint64": "UNSIGNED_LONG UINT64_T",
    "uint32": "UNSIGNED UINT32_T",
    "uint8": "CHAR BYTE UINT8_T",
    "bool": "BOOL C_BOOL",
    "complex128": "C_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX16",
    "complex64": "C_FLOAT_COMPLEX COMPLEX",
}
BASIC_TYPES = {name: dtype for dtype, names in _BASIC.items() for name in names.split()}


def derive(base: Datatype, method: str, values: list[Value], run: Run, span: Span) -> Value:
    """Return a derived datatype."""
    text = run.text_of(span)
    basic = base.basic if base.derived is None else base.derived.base
    stated = [run.number(value) for value in values if isinstance(value, Number | Opaque)]
    numbers = tuple(number for number in stated if number is not None)
    constructor, elements = _CONSTRUCTORS.get(method, Constructor.OTHER), None
    match method:
        case "Commit" | "Create_resized" | "Dup":
            if method == "Create_resized" and base.derived is not None:
                return Datatype(None, replace(base.derived, text=text))
            return base
        case "Free":
            return Nothing()
        case "Get_size" | "Get_extent":
            size = None if base.basic is None else num(dtype_of(base.basic).itemsize_bytes)
            if method == "Get_extent":
                return Sequence((Number(num(0)), Number(size)), is_list=False)
            return Number(size)
        case "Create_vector" if len(numbers) == 3:
            elements = numbers[0] * numbers[1]
        case "Create_contiguous" if len(numbers) == 1:
            elements = numbers[0]
        case "Create_subarray":
            whole, part = (run.numbers(value) for value in (*values, Nothing(), Nothing())[:2])
            numbers = (*(whole or ()), *(part or ()))
            elements = None if part is None else count_of(part)
        case _:
            numbers = ()
    return Datatype(None, DerivedType(constructor, text, span, numbers, basic, elements))


_CONSTRUCTORS = {
    "Create_vector": Constructor.VECTOR,
    "Create_hvector": Constructor.VECTOR,
    "Create_contiguous": Constructor.CONTIGUOUS,
    "Create_subarray": Constructor.SUBARRAY,
    "Create_darray": Constructor.DARRAY,
    "Create_struct": Constructor.STRUCT,
}
