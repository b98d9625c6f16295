"""Requests of non-blocking operations."""

from __future__ import annotations

from dataclasses import replace

from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.symbols import RECEIVED
from advisor.frontend.spmd.values import Nothing, Opaque, Request, Sequence, Value
from advisor.ir.spmd.steps import Wait
from advisor.source import Span


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
