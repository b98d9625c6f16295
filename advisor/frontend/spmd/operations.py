"""Calls of communicators' methods, as communication operations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.frontend.spmd import communicators
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.symbols import BROADCAST, RECEIVED
from advisor.frontend.spmd.values import (
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Request,
    Sequence,
    Value,
)
from advisor.frontend.spmd.windows import partner_of, payload_of
from advisor.ir.spmd.memory import Order, Origin
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.ranks import Communicator, Partner, PartnerKind
from advisor.ir.spmd.steps import Communicate, Leave, Op
from advisor.source import Span
from costdb.expr import Expr, num


@dataclass(frozen=True, slots=True)
class _Form:
    """The parameters of a family of methods, in mpi4py's order and by its names."""

    op: Op
    parameters: tuple[str, ...]


_SEND = _Form(Op.SEND, ("buf", "dest", "tag"))
_RECV = _Form(Op.RECV, ("buf", "source", "tag", "status"))
_ONE = ("sendbuf", "recvbuf")
_PROBE = _Form(Op.PROBE, ("source", "tag", "status"))

_FORMS: dict[str, _Form] = {
    "send": _SEND,
    "ssend": _SEND,
    "bsend": _SEND,
    "rsend": _SEND,
    "send_init": _SEND,
    "ssend_init": _SEND,
    "bsend_init": _SEND,
    "rsend_init": _SEND,
    "recv": _RECV,
    "recv_init": _RECV,
    "probe": _PROBE,
    "mprobe": _PROBE,
    "improbe": _PROBE,
    "sendrecv": _Form(
        Op.SENDRECV, ("sendbuf", "dest", "sendtag", "recvbuf", "source", "recvtag", "status")
    ),
    "sendrecv_replace": _Form(Op.SENDRECV, ("buf", "dest", "sendtag", "source", "recvtag")),
    "barrier": _Form(Op.BARRIER, ()),
    "bcast": _Form(Op.BCAST, ("buf", "root")),
    "reduce": _Form(Op.REDUCE, (*_ONE, "op", "root")),
    "allreduce": _Form(Op.ALLREDUCE, (*_ONE, "op")),
    "reduce_scatter": _Form(Op.REDUCE_SCATTER, (*_ONE, "recvcounts", "op")),
    "reduce_scatter_block": _Form(Op.REDUCE_SCATTER, (*_ONE, "op")),
    "scan": _Form(Op.SCAN, (*_ONE, "op")),
    "exscan": _Form(Op.EXSCAN, (*_ONE, "op")),
    "gather": _Form(Op.GATHER, (*_ONE, "root")),
    "gatherv": _Form(Op.GATHER, (*_ONE, "root")),
    "allgather": _Form(Op.ALLGATHER, _ONE),
    "allgatherv": _Form(Op.ALLGATHER, _ONE),
    "scatter": _Form(Op.SCATTER, (*_ONE, "root")),
    "scatterv": _Form(Op.SCATTER, (*_ONE, "root")),
    "alltoall": _Form(Op.ALLTOALL, _ONE),
    "alltoallv": _Form(Op.ALLTOALL, _ONE),
    "alltoallw": _Form(Op.ALLTOALL, _ONE),
    "neighbor_allgather": _Form(Op.NEIGHBOR_ALLGATHER, _ONE),
    "neighbor_alltoall": _Form(Op.NEIGHBOR_ALLTOALL, _ONE),
    "neighbor_alltoallv": _Form(Op.NEIGHBOR_ALLTOALL, _ONE),
    "neighbor_alltoallw": _Form(Op.NEIGHBOR_ALLTOALL, _ONE),
}

# lower-case methods take one object, and give what their upper-case twin writes to a buffer
_PICKLED: dict[Op, tuple[str, ...]] = {
    Op.SEND: ("obj", "dest", "tag"),
    Op.RECV: ("buf", "source", "tag", "status"),
    Op.SENDRECV: ("sendobj", "dest", "sendtag", "recvbuf", "source", "recvtag", "status"),
    Op.PROBE: ("source", "tag", "status"),
    Op.BARRIER: (),
    Op.BCAST: ("obj", "root"),
    Op.REDUCE: ("sendobj", "op", "root"),
    Op.ALLREDUCE: ("sendobj", "op"),
    Op.SCAN: ("sendobj", "op"),
    Op.EXSCAN: ("sendobj", "op"),
    Op.GATHER: ("sendobj", "root"),
    Op.ALLGATHER: ("sendobj",),
    Op.SCATTER: ("sendobj", "root"),
    Op.ALLTOALL: ("sendobj",),
    Op.NEIGHBOR_ALLGATHER: ("sendobj",),
    Op.NEIGHBOR_ALLTOALL: ("sendobj",),
}

_MODES = {"s": "synchronous", "b": "buffered", "r": "ready"}


def form_of(method: str) -> tuple[_Form, bool, bool] | None:
    """Return what a method's name stands for: its form, whether pickled, whether blocking."""
    pickled = method[:1].islower()
    bare = method.lower()
    if bare in _FORMS:
        return _FORMS[bare], pickled, not bare.endswith("_init")
    if bare.startswith("i") and bare[1:] in _FORMS:
        return _FORMS[bare[1:]], pickled, False
    return None


def is_method(name: str) -> bool:
    """Return whether mpi4py's communicators have a method of this name."""
    return form_of(name) is not None or name in communicators.OTHER_METHODS


def communicate(
    communicator: Communicator,
    method: str,
    given: list[Argument],
    run: Run,
    span: Span,
    around: tuple[Span, Span],
) -> Value:
    """Note one communication operation and return what its call gives.

    Parameters
    ----------
    communicator : Communicator
    method : str
    given : list of Argument
    run : Run
    span : Span
        The call.
    around : tuple of Span
        The receiver and the name of the method.
    """
    run.frame.communicators.setdefault(communicator)
    managed = communicators.management(communicator, method, given, run, span)
    if managed is not None:
        return managed
    if method == "Abort":
        run.emit(Leave("abort", span))
        return Nothing()
    found = form_of(method)
    if found is None:
        run.unknown(f"the method `{method}` of a communicator is not followed", span)
        return Opaque(f"the result of `.{method}` is not followed", varies=True)
    form, pickled, blocking = found
    if any(a.star for a in given):
        run.unknown(f"the arguments of `{method}` cannot be told apart", span)
        return Opaque(f"the result of `.{method}` is not followed", varies=True)
    parameters = _PICKLED.get(form.op, form.parameters) if pickled else form.parameters
    named = _named(given, parameters)
    made = _operation(form, method, communicator, named, run, span, around, pickled, blocking)
    if method.endswith("_init"):
        return Request(made.request or run.text_of(span), starts=made)
    run.emit(made)
    sent = named.get("obj") or named.get("sendobj")
    return _result(made, run, span, None if sent is None else sent.value)


def _named(given: list[Argument], parameters: tuple[str, ...]) -> dict[str, Argument]:
    found: dict[str, Argument] = {}
    position = 0
    for argument in given:
        if argument.keyword is not None:
            # `sendobj` of send is called `obj`, some write the other
            found[argument.keyword] = argument
        elif position < len(parameters):
            found[parameters[position]] = argument
            position += 1
    return found


def _operation(
    form: _Form,
    method: str,
    communicator: Communicator,
    named: dict[str, Argument],
    run: Run,
    span: Span,
    around: tuple[Span, Span],
    pickled: bool,
    blocking: bool,
) -> Communicate:
    op = form.op
    send, receive, in_place = _payloads(op, named, run, pickled)
    places = {name: argument.place for name, argument in named.items()}
    bare = method.lower()
    mode = ""
    if op is Op.SEND:
        stem = bare.removesuffix("_init")
        stem = stem[1:] if stem.startswith("i") else stem
        mode = _MODES.get(stem[0], "") if stem != "send" else ""
    request = None if blocking else (run.targets[0] if run.targets else run.text_of(span))
    return Communicate(
        op=op,
        method=method,
        communicator=communicator,
        span=span,
        statement=run.statement,
        pickled=pickled and op not in (Op.BARRIER, Op.PROBE),
        blocking=blocking,
        varying=bare.endswith(("v", "w")) and op not in (Op.RECV, Op.SENDRECV),
        mode=mode,
        send=send,
        receive=receive,
        in_place=in_place,
        dest=_partner(named, "dest", op in (Op.SEND, Op.SENDRECV)),
        source=_partner(named, "source", op in (Op.RECV, Op.SENDRECV, Op.PROBE)),
        tag=_tag(named, run),
        root=_root(op, named, run),
        operation=_combining(op, named),
        request=request,
        result=run.targets[0] if run.targets and blocking else None,
        places={**places, "receiver": around[0], "method": around[1]},
        receiver=run.text_of(around[0]),
    )


def _payloads(
    op: Op, named: dict[str, Argument], run: Run, pickled: bool
) -> tuple[Payload | None, Payload | None, bool]:
    sending = named.get("sendobj") or named.get("sendbuf") or named.get("obj")
    receiving = named.get("recvbuf")
    both = named.get("buf")
    if both is not None:
        if op is Op.RECV:
            receiving = both
        else:
            sending = sending or both
    in_place = any(
        a is not None and a.value == External("mpi4py.MPI.IN_PLACE") for a in (sending, receiving)
    )
    if pickled and op is Op.RECV:
        receiving = None
    send = None if sending is None else payload_of(sending, run, buffered=not pickled)
    receive = None if receiving is None else payload_of(receiving, run, buffered=not pickled)
    if op is Op.SENDRECV and sending is not None and receiving is None and not pickled:
        receive = send
    return send, receive, in_place


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
    value = named["root"].value
    return run.number(value) if isinstance(value, Number | Opaque) else None


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
    if not made.blocking:
        return Request(made.request or run.text_of(span))
    if not made.pickled:
        return Nothing()
    text = run.text_of(span)
    match made.op:
        case Op.BCAST if isinstance(sent, Number):
            # on all ranks what it was on one
            return replace(sent, varies=False)
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
        return Opaque(BROADCAST, text=run.targets[0] if run.targets else "")
    if made.send is None:
        return Opaque("what a pickled collective gives", varies=varies)
    found = _of_payload(made.send, run, span, text)
    if isinstance(found, Number):
        return replace(found, expr=None, varies=varies)
    return found


def _of_payload(payload: Payload, run: Run, span: Span, text: str) -> Value:
    """Return the object that arrives where a payload was sent: equal, in new memory."""
    if payload.kind is PayloadKind.ARRAY and payload.view is not None:
        view = payload.view
        made = run.fresh(text, view.dtype, view.shape, Origin.PICKLED, span, Order.C)
        return Array(made)
    if payload.kind is PayloadKind.SCALAR:
        return Number(None, payload.dtype or "float", varies=True)
    if payload.kind is PayloadKind.OBJECT and payload.length is not None:
        element = _of_payload(payload.parts[0], run, span, text) if payload.parts else None
        return Sequence(None, element, payload.length)
    return Opaque("what a pickled message gives", varies=True)
