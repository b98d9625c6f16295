"""What loops go over."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from advisor.frontend.spmd.entries import keys
from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    External,
    Number,
    Opaque,
    Record,
    Sequence,
    Value,
)
from advisor.ir.spmd.steps import Loop, LoopKind, Step
from advisor.source import Span
from costdb.expr import Expr, ceil_div, num, sym


@dataclass(frozen=True, slots=True)
class Range:
    """``range(...)`` or numba's ``prange(...)``, until something goes over it."""

    low: Expr
    high: Expr
    step: Expr
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Iteration:
    """A loop without its body."""

    kind: LoopKind
    variable: str
    low: Expr
    high: Expr
    step: int
    trips: Expr | None
    element: Value
    why: str = ""
    by_rank: bool = False
    stride: Expr | None = None


def range_value(values: list[Value], run: Run, path: str, span: Span) -> Value:
    """Return ``range(...)`` as a value: a sequence of numbers with its bounds."""
    names = ["range"] if len(values) == 1 else ["range.low", "range.high", "range.step"]
    untold = len(values) > 1 and all(_is_untold(value) for value in values[:2])
    if untold:
        # two numbers of which nothing is known: what matters is what lies between them
        names[1] = "range.length"
    found = [run.number(value, name, span) for value, name in zip(values, names, strict=False)]
    if None in found or not 1 <= len(values) <= 3:
        return Opaque("a range whose bounds are not known")
    bounds = [expr for expr in found if expr is not None]
    low, high = (num(0), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    high = low + high if untold else high
    step = bounds[2] if len(bounds) == 3 else num(1)
    entries = (Number(low), Number(high), Number(step))
    return Sequence((External(path), *entries), is_list=False)


def _is_untold(value: Value) -> bool:
    """Return whether a number has neither a value nor a name."""
    match value:
        case Number(expr=None):
            return True
        case Opaque(expr=None, text=""):
            return True
    return False


def iteration(value: Value, target: cst.BaseExpression, run: Run, text: str) -> Iteration:
    """Return how a loop goes over a value."""
    name = target.value if isinstance(target, cst.Name) else ""
    made = _special(value, name, run, text)
    if made is not None:
        return made
    element: Value = Opaque(f"an element of `{text}`", text=name)
    trips: Expr | None = None
    match value:
        case Sequence(items=tuple() as items):
            element, trips = _any_of(items, name, run), num(len(items))
        case Sequence(element=known, length=length):
            element, trips = known or Opaque("an element of a list"), length
        case Array(view):
            element = subscript(value, Number(sym(name or "row")), run, view.span, "")
            trips = view.shape[0] if view.shape else None
        case Record(cls=None):
            several = keys(value, run)
            if several.items is not None:
                element, trips = _any_of(several.items, name, run), num(len(several.items))
        case _:
            pass
    return _over(element, trips, text)


def _over(element: Value, trips: Expr | None, text: str) -> Iteration:
    why = "" if trips is not None else f"the length of `{text}` is not known"
    end = num(0) if trips is None else trips
    return Iteration(LoopKind.ELEMENTS, "", num(0), end, 1, trips, element, why)


def _any_of(items: tuple[Value, ...], name: str, run: Run) -> Value:
    """Return what holds of each of some values."""
    if not items:
        return Opaque("an element of an empty list")
    found = items[0]
    for item in items[1:]:
        found = join(found, item, name or "element", run)
    return found


def _special(value: Value, name: str, run: Run, text: str) -> Iteration | None:
    """Return how a loop goes over a range, ``enumerate`` or ``zip``; None for anything else."""
    match value:
        case Sequence(
            items=(
                External(path="range" | "prange" as path),
                Number() as low,
                Number() as high,
                Number() as step,
            )
        ):
            return _counted(name, low, high, step, run, path == "prange")
        case Sequence(items=(External(path="enumerate"), inner, *_)):
            inside = iteration(inner, cst.Name("_"), run, text)
            pair = Sequence((Number(None), inside.element), is_list=False)
            return _over(pair, inside.trips, text)
        case Sequence(items=(External(path="zip"), *several)):
            parts = [iteration(one, cst.Name("_"), run, text) for one in several]
            together = Sequence(tuple(part.element for part in parts), is_list=False)
            trips = next((part.trips for part in parts if part.trips is not None), None)
            return _over(together, trips, text)
    return None


def _counted(
    name: str, low: Number, high: Number, step: Number, run: Run, threads: bool
) -> Iteration:
    assert low.expr is not None and high.expr is not None and step.expr is not None
    symbol = run.symbols.index(name or "index", run.statement)
    by_rank = any(run.symbols.varies(n.expr) for n in (low, high))
    stride = run.symbols.value(step.expr)
    if by_rank:
        run.symbols.vary(symbol)
    kind = LoopKind.THREADS if threads else LoopKind.COUNTED
    extent = high.expr - low.expr
    if stride == 1:
        trips, first = extent, low.expr
    elif stride is not None and stride < 0:
        trips, first = ceil_div(-extent, num(-stride)), low.expr
    else:
        trips, first = ceil_div(extent, step.expr), low.expr
    element = Number(sym(symbol), "int")
    literal = stride if stride is not None and stride != 0 else 1
    return Iteration(
        kind,
        symbol,
        first,
        high.expr,
        literal,
        trips,
        element,
        by_rank=by_rank,
        stride=step.expr if stride is None else None,
    )


def loop_over(made: Iteration, body: tuple[Step, ...], span: Span, *, timing: bool = False) -> Loop:
    """Return the step of a loop."""
    return Loop(
        made.kind,
        made.variable,
        made.low,
        made.high,
        made.step,
        made.trips,
        body,
        span,
        made.why,
        made.by_rank,
        timing,
        made.stride,
    )
