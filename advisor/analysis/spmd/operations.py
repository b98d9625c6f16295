"""The work of communication: what the models call one operation of MPI."""

from __future__ import annotations

from advisor.analysis.spmd.regions import (
    WORD_BYTES,
    NoWork,
    itemsize,
    objects,
    payload_region,
    run_of,
    words,
)
from advisor.analysis.spmd.statements import kept_copy
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.steps import Communicate, Op
from costdb.expr import Expr, num
from costdb.lines.coefficients import bytes_of
from costdb.work import (
    PICKLED_KINDS,
    Barrier,
    Collective,
    CollectiveKind,
    Message,
    Pattern,
    PickledCollective,
    PickledMessage,
    Region,
    RemoteGroup,
    Work,
)

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

_VARYING = {
    Op.ALLGATHER: CollectiveKind.ALLGATHERV,
    Op.ALLTOALL: CollectiveKind.ALLTOALLV,
}

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
    NoWork
        No model covers it, or nothing says how much is sent.
    """
    match step.op:
        case Op.PROBE | Op.FLUSH:
            return ()
        case Op.BARRIER | Op.FENCE:
            return (Barrier(step.communicator.size, f"{step.method}"),)
        case Op.LOCK | Op.UNLOCK:
            raise NoWork(f"the time of `{step.method}` of a window is not modelled")
        case Op.GET | Op.PUT | Op.ACCUMULATE:
            return (_remote(step),)
        case Op.SENDRECV if step.method.endswith("_replace") and not step.pickled:
            return (_message(step), _set_aside(step))
        case Op.SEND | Op.RECV | Op.SENDRECV:
            return (_message(step),)
        case Op.NEIGHBOR_ALLGATHER | Op.NEIGHBOR_ALLTOALL:
            return _with_neighbours(step)
    return (_collective(step),)


def _required(payload: Payload | None, step: Communicate) -> Payload:
    if payload is None:
        # the other end says what comes; a pickled receive alone is known to be one object
        does = "receives" if step.op is Op.RECV else "sends"
        raise NoWork(f"nothing says how much `{step.method}` {does}")
    if step.pickled and payload.kind is PayloadKind.UNKNOWN:
        raise NoWork(f"`{payload.text}`, which is sent pickled, is not known: {payload.reason}")
    return payload


def _message(step: Communicate) -> Work:
    payload = _required(
        step.send or step.comes if step.pickled else step.send or step.receive, step
    )
    if step.pickled:
        return PickledMessage(_pickled_region(payload), objects(payload), step.method)
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
            raise NoWork(f"mpi4py has no `{label}` of Python objects")
        payload = _required(step.send, step)
        divided = step.op in (Op.SCATTER, Op.ALLTOALL)
        if divided and not payload.parts:
            return PickledCollective(kind, ranks, _divided(payload, ranks), num(0), label)
        each = payload.parts[0] if divided else payload
        return PickledCollective(kind, ranks, _pickled_region(each), objects(each), label)
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
        raise NoWork(f"nothing says how many neighbours `{step.method}` has")
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
