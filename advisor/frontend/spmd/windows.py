"""What a call sends, by mpi4py's datatypes; its requests and windows."""

from __future__ import annotations

from dataclasses import replace

from advisor.dtypes import dtype_of
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.indexing import is_slice
from advisor.frontend.spmd.joining import contents
from advisor.frontend.spmd.numpy_created import dtype_name
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.symbols import RECEIVED
from advisor.frontend.spmd.values import (
    ANYBODY,
    NOBODY,
    Array,
    Comm,
    Datatype,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Record,
    Request,
    Sequence,
    Text,
    Value,
    Window,
)
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View
from advisor.ir.spmd.payloads import Constructor, DerivedType, Payload, PayloadKind
from advisor.ir.spmd.ranks import CommKind, Partner, PartnerKind
from advisor.ir.spmd.steps import Communicate, Op, Wait
from advisor.source import Span
from costdb.expr import Expr, num

# Arguments of communication: what they carry and whom they name.

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


# MPI's datatypes: basic ones by name, and those derived from them.

BASIC_TYPES = {
    "DOUBLE": "float64",
    "FLOAT": "float32",
    "REAL": "float32",
    "REAL8": "float64",
    "DOUBLE_PRECISION": "float64",
    "INT": "int32",
    "INTEGER": "int32",
    "LONG": "int64",
    "LONG_LONG": "int64",
    "INT64_T": "int64",
    "INT32_T": "int32",
    "INT16_T": "int16",
    "INT8_T": "int8",
    "UINT64_T": "uint64",
    "UINT32_T": "uint32",
    "UINT8_T": "uint8",
    "SHORT": "int16",
    "UNSIGNED": "uint32",
    "UNSIGNED_LONG": "uint64",
    "CHAR": "uint8",
    "BYTE": "uint8",
    "BOOL": "bool",
    "C_BOOL": "bool",
    "C_DOUBLE_COMPLEX": "complex128",
    "DOUBLE_COMPLEX": "complex128",
    "COMPLEX16": "complex128",
    "C_FLOAT_COMPLEX": "complex64",
    "COMPLEX": "complex64",
}


def derive(base: Datatype, method: str, values: list[Value], run: Run, span: Span) -> Value:
    """Return a derived datatype."""
    text = run.text_of(span)
    basic = base.basic if base.derived is None else base.derived.base
    numbers = tuple(
        found
        for found in (run.number(v) for v in values if isinstance(v, Number | Opaque))
        if found is not None
    )
    match method:
        case "Create_vector" | "Create_hvector" if len(numbers) == 3:
            if method == "Create_hvector":
                return Datatype(None, DerivedType(Constructor.VECTOR, text, span, (), basic))
            elements = numbers[0] * numbers[1]
            return Datatype(
                None, DerivedType(Constructor.VECTOR, text, span, numbers, basic, elements)
            )
        case "Create_contiguous" if len(numbers) == 1:
            return Datatype(
                None,
                DerivedType(Constructor.CONTIGUOUS, text, span, numbers, basic, numbers[0]),
            )
        case "Create_subarray":
            sizes = run.numbers(values[1]) if len(values) > 1 else None
            count: Expr | None = None
            if sizes is not None:
                count = num(1)
                for extent in sizes:
                    count = count * extent
            whole = run.numbers(values[0]) if values else None
            numbers = (*(whole or ()), *(sizes or ()))
            return Datatype(
                None, DerivedType(Constructor.SUBARRAY, text, span, numbers, basic, count)
            )
        case "Create_darray":
            return Datatype(None, DerivedType(Constructor.DARRAY, text, span, (), basic))
        case "Create_struct":
            return Datatype(None, DerivedType(Constructor.STRUCT, text, span))
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
    return Datatype(None, DerivedType(Constructor.OTHER, text, span, (), basic))


# Requests of non-blocking operations.


def waited(values: list[Value], run: Run, span: Span) -> Value:
    """Note that requests are waited for; return what that gives."""
    names: list[str] = []
    for value in values[:1]:
        if isinstance(value, Request):
            names.append(value.text)
        elif isinstance(value, Sequence):
            parts = value.items if value.items is not None else (value.element,)
            names += [part.text for part in parts if isinstance(part, Request)]
    run.emit(Wait(tuple(names), span))
    if values and isinstance(values[0], Request) and values[0].pickled is not None:
        return Opaque(RECEIVED, varies=True)
    return Nothing()


def started(values: list[Value], run: Run, span: Span) -> Value:
    """Note that persistent operations begin once more."""
    for value in values[:1]:
        parts: tuple[Value | None, ...] = (value,)
        if isinstance(value, Sequence):
            parts = value.items if value.items is not None else (value.element,)
            if value.items is None:
                run.unknown("how many persistent requests start is not known", span)
        for part in parts:
            if isinstance(part, Request) and part.starts is not None:
                run.emit(replace(part.starts, span=span, statement=run.statement))
    return Nothing()


def request_method(request: Request, name: str, run: Run, span: Span) -> Value:
    """Return what a method of a request gives."""
    if name in ("Wait", "wait"):
        run.emit(Wait((request.text,), span))
        return Opaque("what a request gives", varies=True)
    if name in ("Test", "test"):
        return Opaque("whether a request is done", varies=True)
    if name == "Start":
        return started([request], run, span)
    if name in ("Free", "Cancel", "free", "cancel"):
        return Nothing()
    return Opaque(f"the result of `.{name}` of a request", foreign=True)


def make_window(method: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return the window that a function of ``MPI.Win`` makes."""
    values = [a.value for a in given]
    if method == "Create_dynamic":
        values = [value for value in values if isinstance(value, Comm)]
    comms = [v.communicator for v in values if isinstance(v, Comm)]
    memory = next((v.view for v in values if isinstance(v, Array)), None)
    world = run.communicator(CommKind.WORLD, "COMM_WORLD", Span(1, 0, 1, 0))
    made_on = comms[0] if comms else world
    name = run.targets[0] if run.targets else run.text_of(span)
    return Window(name, made_on, memory)


_OPERATIONS = {
    "Get": Op.GET,
    "Rget": Op.GET,
    "Put": Op.PUT,
    "Rput": Op.PUT,
    "Accumulate": Op.ACCUMULATE,
    "Raccumulate": Op.ACCUMULATE,
    "Get_accumulate": Op.ACCUMULATE,
    "Rget_accumulate": Op.ACCUMULATE,
    "Fetch_and_op": Op.ACCUMULATE,
    "Compare_and_swap": Op.ACCUMULATE,
    "Fence": Op.FENCE,
    "Lock": Op.LOCK,
    "Lock_all": Op.LOCK,
    "Start": Op.LOCK,
    "Post": Op.LOCK,
    "Unlock": Op.UNLOCK,
    "Unlock_all": Op.UNLOCK,
    "Complete": Op.UNLOCK,
    "Wait": Op.UNLOCK,
    "Flush": Op.FLUSH,
    "Flush_all": Op.FLUSH,
    "Flush_local": Op.FLUSH,
    "Flush_local_all": Op.FLUSH,
    "Sync": Op.FLUSH,
}

_MOVING = frozenset({Op.GET, Op.PUT, Op.ACCUMULATE})

_SENT = ("origin", "target_rank", "target")
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Get_accumulate": ("origin", "result", "target_rank", "target", "op"),
    "Rget_accumulate": ("origin", "result", "target_rank", "target", "op"),
    "Fetch_and_op": ("origin", "result", "target_rank", "target_disp", "op"),
    "Compare_and_swap": ("origin", "compare", "result", "target_rank", "target_disp"),
    "Lock": ("rank", "lock_type", "assertion"),
    "Unlock": ("rank",),
    "Flush": ("rank",),
    "Flush_local": ("rank",),
}
"""mpi4py's names of parameters, in its order, where they are not those of ``Put``."""


def window_method(window: Window, name: str, given: list[Argument], run: Run, span: Span) -> Value:
    """Return what a method of a window gives, and note what it moves."""
    op = _OPERATIONS.get(name)
    if op is None:
        return _window_memory(window, name, run, span)
    parameters = _PARAMETERS.get(name, _SENT if op in _MOVING else ())
    named = dict(zip(parameters, [a for a in given if not a.star and not a.keyword], strict=False))
    named |= {a.keyword: a for a in given if a.keyword is not None}
    payload = received = None
    if "origin" in named and op in _MOVING:
        payload = payload_of(named["origin"], run, buffered=True)
    if "result" in named:
        received = payload_of(named["result"], run, buffered=True)
    partner = named.get("target_rank") or named.get("rank")
    request = run.targets[0] if run.targets else run.text_of(span)
    blocking = not name.startswith("R")
    run.emit(
        Communicate(
            op,
            name,
            window.communicator,
            span,
            run.statement,
            blocking=blocking,
            send=payload if op is not Op.GET else None,
            receive=payload if op is Op.GET else received,
            dest=partner_of(partner),
            request=None if blocking else request,
            places={keyword: argument.place for keyword, argument in named.items()},
            receiver=window.name,
            window=window.name,
        )
    )
    return Nothing() if blocking else Request(request)


def _window_memory(window: Window, name: str, run: Run, span: Span) -> Value:
    if name in ("tomemory", "Shared_query"):
        allocation = Allocation(Origin.SHARED, run.text_of(span), span)
        buffer = Buffer(window.name, span.start_line, None, None, Order.UNKNOWN, allocation)
        shared = Array(View(buffer, None, run.text_of(span), span))
        if name == "tomemory":
            return shared
        return Sequence((shared, Number(None)), is_list=False)
    if name in ("Free", "Attach", "Detach", "Set_attr"):
        return Nothing()
    return Opaque(f"the result of `.{name}` of a window", foreign=True)
