"""mpi4py's windows: how they are made, and what their methods move."""

from __future__ import annotations

from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.payload import partner_of, payload_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    Comm,
    Nothing,
    Number,
    Opaque,
    Request,
    Sequence,
    Value,
    Window,
)
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View
from advisor.ir.spmd.ranks import CommKind
from advisor.ir.spmd.steps import Communicate, Op
from advisor.source import Span


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
