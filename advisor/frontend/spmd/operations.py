"""Calls of mpi4py: methods of communicators, windows and requests, as what they send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from advisor.frontend.spmd import communicators
from advisor.frontend.spmd.communicators import derive, partner_of, payload_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    BROADCAST,
    IN_PLACE,
    RECEIVED,
    Argument,
    Arguments,
    Array,
    Comm,
    Datatype,
    External,
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
from advisor.ir.spmd.memory import (
    Allocation,
    Buffer,
    Contiguity,
    Order,
    Origin,
    Payload,
    PayloadKind,
    View,
)
from advisor.ir.spmd.program import RANKS
from advisor.ir.spmd.steps import (
    CommKind,
    Communicate,
    Communicator,
    Leave,
    Op,
    Partner,
    PartnerKind,
    Wait,
)
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num

_ONE = "sendbuf recvbuf"
_SENDRECV = "dest sendtag recvbuf source recvtag status"
_FORMS = (
    (
        Op.SEND,
        "send ssend bsend rsend send_init ssend_init bsend_init rsend_init",
        "buf dest tag",
        "obj dest tag",
    ),
    (Op.RECV, "recv recv_init", "buf source tag status", "buf source tag status"),
    (Op.PROBE, "probe mprobe improbe", "source tag status", "source tag status"),
    (Op.SENDRECV, "sendrecv", f"sendbuf {_SENDRECV}", f"sendobj {_SENDRECV}"),
    (Op.SENDRECV, "sendrecv_replace", "buf dest sendtag source recvtag", f"sendobj {_SENDRECV}"),
    (Op.BARRIER, "barrier", "", ""),
    (Op.BCAST, "bcast", "buf root", "obj root"),
    (Op.REDUCE, "reduce", f"{_ONE} op root", "sendobj op root"),
    (Op.ALLREDUCE, "allreduce", f"{_ONE} op", "sendobj op"),
    (Op.REDUCE_SCATTER, "reduce_scatter", f"{_ONE} recvcounts op", f"{_ONE} recvcounts op"),
    (Op.REDUCE_SCATTER, "reduce_scatter_block", f"{_ONE} op", f"{_ONE} op"),
    (Op.SCAN, "scan", f"{_ONE} op", "sendobj op"),
    (Op.EXSCAN, "exscan", f"{_ONE} op", "sendobj op"),
    (Op.GATHER, "gather gatherv", f"{_ONE} root", "sendobj root"),
    (Op.ALLGATHER, "allgather allgatherv", _ONE, "sendobj"),
    (Op.SCATTER, "scatter scatterv", f"{_ONE} root", "sendobj root"),
    (Op.ALLTOALL, "alltoall alltoallv alltoallw", _ONE, "sendobj"),
    (Op.NEIGHBOR_ALLGATHER, "neighbor_allgather", _ONE, "sendobj"),
    (
        Op.NEIGHBOR_ALLTOALL,
        "neighbor_alltoall neighbor_alltoallv neighbor_alltoallw",
        _ONE,
        "sendobj",
    ),
)
"""Families of methods: their parameters in mpi4py's order, and those of their lower-case twins.

These take one object, and give what the upper-case one writes to a buffer.
"""

_METHODS = {
    name: (op, buffers.split(), objects.split())
    for op, names, buffers, objects in _FORMS
    for name in names.split()
}
_MODES = {"ssend": "synchronous", "bsend": "buffered", "rsend": "ready"}


def _family(method: str) -> str | None:
    """Return the blocking method that a method's name is a form of; None for any other."""
    bare = method.lower()
    return next(
        (name for name in (bare, bare[1:] if bare[:1] == "i" else "") if name in _METHODS), None
    )


def is_method(name: str) -> bool:
    """Return whether mpi4py's communicators have a method of this name."""
    return _family(name) is not None or name in communicators.OTHER_METHODS


def communicate(
    communicator: Communicator,
    method: str,
    arguments: Arguments,
    run: Run,
    span: Span,
    around: tuple[Span, Span],
) -> Value:
    """Note one communication operation and return what its call gives.

    Parameters
    ----------
    communicator : Communicator
    method : str
    arguments : Arguments
    run : Run
    span : Span
        The call.
    around : tuple of Span
        The receiver and the name of the method.
    """
    managed = communicators.management(communicator, method, arguments, run, span)
    if managed is not None:
        return managed
    if method == "Abort":
        run.emit(Leave("abort", span))
        return Nothing()
    family = _family(method)
    if family is None or arguments.starred:
        why = "the arguments of `{}` cannot be told apart"
        if family is None:
            why = "the method `{}` of a communicator is not followed"
        run.unknown(why.format(method), span)
        return Opaque(f"the result of `.{method}` is not followed", varies=True)
    op, buffers, objects = _METHODS[family]
    pickled, persistent = method[:1].islower(), family.endswith("_init")
    blocking = family == method.lower() and not persistent
    named = arguments.named(objects if pickled else buffers)
    send, receive, in_place = _payloads(op, named, run, pickled)
    if send is None and pickled and op in (Op.SEND, Op.SENDRECV):
        send = _NOTHING  # a signal
    made = Communicate(
        op=op,
        method=method,
        communicator=communicator,
        span=span,
        statement=run.statement,
        pickled=pickled and op not in (Op.BARRIER, Op.PROBE),
        blocking=blocking,
        varying=family.endswith(("v", "w")) and op not in (Op.RECV, Op.SENDRECV),
        mode=_MODES.get(family.removesuffix("_init"), ""),
        send=send,
        receive=receive,
        in_place=in_place,
        dest=_partner(named, "dest", op in (Op.SEND, Op.SENDRECV)),
        source=_partner(named, "source", op in (Op.RECV, Op.SENDRECV, Op.PROBE)),
        tag=_tag(named, run),
        root=_root(op, named, run),
        operation=_combining(op, named),
        result=run.target or None if blocking else None,
        places={**_places(named), "receiver": around[0], "method": around[1]},
        receiver=run.text_of(around[0]),
    )
    if persistent:
        return Request(starts=made)
    if made.pickled and op in (Op.SEND, Op.SENDRECV):
        run.sent.setdefault(made)
    if made.pickled and op in (Op.RECV, Op.SENDRECV):
        made = replace(made, comes=_coming(made, "tag" in named, run))
    run.emit(made)
    sent = named.get("obj") or named.get("sendobj")
    return _result(made, run, span, None if sent is None else sent.value)


_NOTHING = Payload(PayloadKind.OBJECT, "None", Span(1, 0, 1, 0), length=num(0), reason="None")


def _coming(receive: Communicate, tagged: bool, run: Run) -> Payload | None:
    """Return what a receive is sent, if every send that it may match carries the same.

    Sends match by communicator and tag; which of them reaches which rank is not asked.
    """
    same = (s for s in run.sent if s.communicator.text == receive.communicator.text)
    any_tag = not tagged or receive.tag is None
    matching = [s.send for s in same if any_tag or s.tag is None or s.tag == receive.tag]
    run.missed = run.missed or not matching
    found = {_content(payload, run) for payload in matching}
    return matching[0] if len(found) == 1 and None not in found else None


def _content(payload: Payload | None, run: Run) -> tuple[object, ...] | None:
    """Return what decides how much a payload is; None where that is not known, or is by rank."""
    if payload is None or payload.kind is PayloadKind.UNKNOWN:
        return None
    parts = tuple(_content(part, run) for part in payload.parts)
    view = payload.view
    extents = (payload.length, payload.count, *((view and view.shape) or ()))
    sizes = [extent for extent in extents if extent is not None]
    known = {RANKS, *run.symbols.facts}
    if None in parts or any(run.symbols.varies(n) or free_symbols(n) - known for n in sizes):
        return None
    if payload.kind is PayloadKind.ARRAY and (view is None or view.shape is None):
        return None
    return payload.kind, payload.dtype, payload.reason, extents, parts


def _places(named: dict[str, Argument]) -> dict[str, Span]:
    return {name: argument.place for name, argument in named.items()}


def _payloads(
    op: Op, named: dict[str, Argument], run: Run, pickled: bool
) -> tuple[Payload | None, Payload | None, bool]:
    sending = named.get("sendobj") or named.get("sendbuf") or named.get("obj")
    receiving = named.get("recvbuf")
    if op is Op.RECV:
        receiving = named.get("buf")
    else:
        sending = sending or named.get("buf")
    in_place = any(a is not None and a.value == IN_PLACE for a in (sending, receiving))
    if pickled and op is Op.RECV:
        receiving = None
    send = None if sending is None else payload_of(sending, run, buffered=not pickled)
    receive = None if receiving is None else payload_of(receiving, run, buffered=not pickled)
    if op is Op.SENDRECV and sending is not None and receiving is None and not pickled:
        receive = send
    if pickled and op is not Op.BCAST and send is not None and _may_be_none(send):
        # of a broadcast only the root's counts
        send = Payload(PayloadKind.UNKNOWN, send.text, send.span, reason="it may be None")
    return send, receive, in_place


def _may_be_none(payload: Payload) -> bool:
    view = payload.view
    return (view is not None and view.or_none) or any(map(_may_be_none, payload.parts))


def _partner(named: dict[str, Argument], name: str, wanted: bool) -> Partner | None:
    if not wanted:
        return None
    if name not in named:
        return Partner(PartnerKind.ANY if name == "source" else PartnerKind.UNKNOWN, "")
    return partner_of(named[name])


def _tag(named: dict[str, Argument], run: Run) -> Expr | None:
    argument = named.get("tag") or named.get("sendtag")
    if argument is None:
        return num(0)
    return run.number(argument.value) if isinstance(argument.value, Number) else None


def _root(op: Op, named: dict[str, Argument], run: Run) -> Expr | None:
    if op not in (Op.BCAST, Op.REDUCE, Op.GATHER, Op.SCATTER):
        return None
    if "root" not in named:
        return num(0)
    return run.number(named["root"].value)


def _combining(op: Op, named: dict[str, Argument]) -> str | None:
    if op not in (Op.REDUCE, Op.ALLREDUCE, Op.REDUCE_SCATTER, Op.SCAN, Op.EXSCAN):
        return None
    if "op" not in named:
        return "SUM"
    value = named["op"].value
    if isinstance(value, External) and value.path.startswith("mpi4py.MPI."):
        return value.path.rpartition(".")[2]
    return None


def _result(made: Communicate, run: Run, span: Span, sent: Value | None) -> Value:
    """Return what a call gives: a request, or for the lower-case methods the received object."""
    if made.op is Op.PROBE:
        return Number(None, "bool", varies=True)
    text = run.text_of(span)
    comes = None if made.comes is None else _of_payload(made.comes, run, span, text)
    if not made.blocking:
        return Request(gives=comes)
    if not made.pickled:
        return Nothing()
    match made.op:
        case Op.RECV | Op.SENDRECV if comes is not None:
            return comes
        case Op.BCAST if isinstance(sent, Number):
            # on all ranks what it was on one
            return replace(sent, varies=False)
        case Op.BCAST if isinstance(sent, Record) or (
            isinstance(sent, Sequence) and sent.items and not run.varies(sent)
        ):
            return sent
        case Op.BCAST | Op.ALLREDUCE | Op.SCAN | Op.EXSCAN | Op.REDUCE:
            return _alike(made, run, span, text, varies=made.op in (Op.SCAN, Op.EXSCAN))
        case Op.GATHER | Op.ALLGATHER:
            element = _alike(made, run, span, text, varies=True)
            return Sequence(None, element, made.communicator.size)
        case Op.ALLTOALL if made.send is not None and made.send.parts:
            element = _of_payload(made.send.parts[0], run, span, text)
            return Sequence(None, element, made.communicator.size)
        case Op.SCATTER if made.send is not None and made.send.parts:
            return _of_payload(made.send.parts[0], run, span, text)
    return Opaque(RECEIVED, text="", varies=True)


def _alike(made: Communicate, run: Run, span: Span, text: str, *, varies: bool) -> Value:
    if made.send is None and made.op is Op.BCAST:
        return Opaque(BROADCAST, text=run.target)
    if made.send is None:
        return Opaque("what a pickled collective gives", varies=varies)
    found = _of_payload(made.send, run, span, text)
    if isinstance(found, Number):
        return replace(found, expr=None, varies=varies)
    return found


_PICKLED = {Contiguity.NO: Order.C, Contiguity.UNKNOWN: Order.UNKNOWN}


def _of_payload(payload: Payload, run: Run, span: Span, text: str) -> Value:
    """Return the object that arrives where a payload was sent: equal, in new memory."""
    if payload.kind is PayloadKind.ARRAY and payload.view is not None:
        view = payload.view
        # what is no stretch is pickled in C order
        order = _PICKLED.get(view.contiguity, view.order)
        return Array(run.fresh(text, view.dtype, view.shape, Origin.PICKLED, span, order))
    if payload.kind is PayloadKind.SCALAR:
        return Number(None, payload.dtype or "float", varies=True)
    if payload.kind is PayloadKind.OBJECT and payload.length is not None:
        element = _of_payload(payload.parts[0], run, span, text) if payload.parts else None
        return Sequence(None, element, payload.length)
    return Opaque("what a pickled message gives", varies=True)


# Requests of non-blocking operations.


def _requests(value: Value | None) -> list[Request]:
    """Return the requests that a value is or holds."""
    parts: Iterable[Value | None] = (value,)
    if isinstance(value, Sequence):
        parts = (value.element,) if value.items is None else value.items
    return [part for part in parts if isinstance(part, Request)]


def started(value: Value | None, run: Run, span: Span) -> Value:
    """Note that persistent operations begin once more."""
    if isinstance(value, Sequence) and value.items is None:
        run.unknown("how many persistent requests start is not known", span)
    for request in _requests(value):
        if request.starts is not None:
            run.emit(replace(request.starts, span=span, statement=run.statement))
    return Nothing()


def request_method(request: Request, name: str, run: Run, span: Span) -> Value:
    """Return what a method of a request gives."""
    match name:
        case "Wait" | "wait":
            run.emit(Wait(span))
            return request.gives or Opaque("what a request gives", varies=True)
        case "Test" | "test":
            return Opaque("whether a request is done", varies=True)
        case "Start":
            return started(request, run, span)
        case "Free" | "Cancel" | "free" | "cancel":
            return Nothing()
    return Opaque(f"the result of `.{name}` of a request", foreign=True)


# Windows of remote memory.

_OF_WINDOWS = {
    Op.GET: "Get Rget",
    Op.PUT: "Put Rput",
    Op.ACCUMULATE: "Accumulate Raccumulate Get_accumulate Rget_accumulate Fetch_and_op"
    " Compare_and_swap",
    Op.FENCE: "Fence",
    Op.LOCK: "Lock Lock_all Start Post",
    Op.UNLOCK: "Unlock Unlock_all Complete Wait",
    Op.FLUSH: "Flush Flush_all Flush_local Flush_local_all Sync",
}
_OPERATIONS = {name: op for op, names in _OF_WINDOWS.items() for name in names.split()}
_MOVING = frozenset({Op.GET, Op.PUT, Op.ACCUMULATE})
_PARAMETERS = {
    **{
        name: "origin target_rank target" if op in _MOVING else ""
        for name, op in _OPERATIONS.items()
    },
    "Get_accumulate": "origin result target_rank target op",
    "Rget_accumulate": "origin result target_rank target op",
    "Fetch_and_op": "origin result target_rank target_disp op",
    "Compare_and_swap": "origin compare result target_rank target_disp",
    "Lock": "rank lock_type assertion",
    **dict.fromkeys(("Unlock", "Flush", "Flush_local"), "rank"),
}
"""mpi4py's names of parameters, in its order."""


def make_window(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return the window that a function of ``MPI.Win`` makes."""
    given = (one.value.communicator for one in arguments.all if isinstance(one.value, Comm))
    made_on = next(given, None)
    if made_on is None:
        made_on = run.communicator(CommKind.WORLD, "COMM_WORLD", Span(1, 0, 1, 0))
    return Window(run.target or run.text_of(span), made_on)


def window_method(window: Window, name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a method of a window gives, and note what it moves."""
    op = _OPERATIONS.get(name)
    if op is None:
        return _window_memory(window, name, run, span)
    named = arguments.named(_PARAMETERS[name].split())
    payload = received = None
    if "origin" in named and op in _MOVING:
        payload = payload_of(named["origin"], run, buffered=True)
    if "result" in named:
        received = payload_of(named["result"], run, buffered=True)
    blocking = not name.startswith("R")
    made = Communicate(
        op,
        name,
        window.communicator,
        span,
        run.statement,
        blocking=blocking,
        send=payload if op is not Op.GET else None,
        receive=payload if op is Op.GET else received,
        dest=partner_of(named.get("target_rank") or named.get("rank")),
        places=_places(named),
        receiver=window.name,
        window=window.name,
    )
    run.emit(made)
    return Nothing() if blocking else Request()


def _window_memory(window: Window, name: str, run: Run, span: Span) -> Value:
    if name in ("tomemory", "Shared_query"):
        text = run.text_of(span)
        allocation = Allocation(Origin.SHARED, text, span)
        buffer = Buffer(window.name, span.start_line, None, None, Order.UNKNOWN, allocation)
        shared = Array(View(buffer, None, text, span))
        return shared if name == "tomemory" else Sequence((shared, Number(None)), is_list=False)
    if name in ("Free", "Attach", "Detach", "Set_attr"):
        return Nothing()
    return Opaque(f"the result of `.{name}` of a window", foreign=True)


# Functions of the module, and methods called by their class.

_CLASSES = frozenset(
    ["Comm", "Intracomm", "Intercomm", "Topocomm", "Cartcomm", "Graphcomm", "Distgraphcomm"]
)
"""Of communicators."""


def construct(path: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function of mpi4py gives."""
    first = arguments.at(0)
    name = path.removeprefix(f"{communicators.MPI}.").replace("Prequest.", "Request.")
    match name:
        case "Wtime" | "Wtick":
            run.clocks += 1
            return Number(None, "float", varies=True)
        case "Compute_dims":
            return communicators.computed_dims(arguments, run, span)
        case "Get_processor_name" | "Get_library_version" | "Get_vendor":
            return Text(None)
        case "Init" | "Finalize" | "Is_initialized" | "Is_finalized" | "Init_thread":
            return Nothing()
        case "Request.Waitall" | "Request.Wait" | "Request.waitall" | "Request.wait":
            run.emit(Wait(span))
            return Nothing()
        case "Request.Startall" | "Request.Start":
            return started(first, run, span)
        case "Request.Waitany" | "Request.waitany" | "Request.Testall" | "Request.testall":
            run.emit(Wait(span))
            return Number(None, varies=True)
        case "Intracomm" | "Comm" | "Cartcomm":
            return first or Opaque(f"MPI.{name}")
    cls, _, method = name.partition(".")
    if cls in _CLASSES and method and isinstance(first, Comm):
        given = arguments.behind(1)
        managed = communicators.management(first.communicator, method, given, run, span)
        if managed is None:
            # an edit of it would have to be another one than of a method
            run.unknown(f"`{method}` is called by the class of its communicator", span)
        return managed or Opaque(f"the result of `.{method}` is not followed", varies=True)
    if cls == "Win":
        return make_window(arguments, run, span)
    if cls == "Datatype":
        base = first if isinstance(first, Datatype) else Datatype(None)
        return derive(base, method, arguments.values()[1:], run, span)
    return Opaque(f"the result of MPI.{name} is not followed", foreign=True)
