"""What loops and comprehensions go over, and what unpacking shows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from contextlib import contextmanager
from dataclasses import dataclass

import libcst as cst

from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.joining import MOST_ENTRIES, items_of, join, key_of, keys
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

# What unpacking and subscripts show of values.


def part_of(value: Value, position: int, parts: int, run: Run) -> Value:
    """Return one of the values that an unpacking assignment takes from another."""
    match value:
        case Sequence(items=items) if items is not None and len(items) == parts:
            return items[position]
        case Sequence(items=None) if value.element is not None:
            return value.element
        case Array():
            return subscript(value, Number(num(position)), run, run.statement, "")
        case Opaque():
            return Opaque(value.why, varies=value.varies)
    return Opaque("part of something that is not followed")


def promoted(owner: Value, index: Value, node: cst.BaseExpression, run: Run) -> Value:
    """Return an unknown object as an array where a subscript shows that it is one."""
    if not isinstance(owner, Opaque) or owner.foreign:
        return owner
    rank = _slices_in(index)
    if not rank:
        return owner
    text = owner.text or run.text(node)
    made = Array(run.given_array(text, run.span(node), rank, None))
    run.rebind(node, made)
    return made


def _slices_in(index: Value) -> int:
    """Return how many dimensions a subscript shows, 0 where it need not be one of an array."""
    if isinstance(index, Sequence) and index.items is not None:
        if any(isinstance(i, External) and i.path == "slice" for i in index.items):
            return len(index.items)
        if any(isinstance(i, Sequence) and i.is_list is False for i in index.items):
            return len(index.items)
    return 0


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


# Dictionaries, and what comprehensions make of all rounds of their loops.

Evaluate = Callable[[cst.BaseExpression, Run], Value]
"""Follows an expression."""


def dictionary(node: cst.Dict, run: Run, evaluate: Evaluate) -> Value:
    """Return a new dictionary."""
    record = run.record()
    for element in node.elements:
        if isinstance(element, cst.DictElement):
            key = key_of(evaluate(element.key, run), run)
            with _named_entry(key, run):
                value = evaluate(element.value, run)
            run.kept[record.number, key] = value
    return record


@contextmanager
def _named_entry(key: object, run: Run) -> Iterator[None]:
    """Let what is made now be called as an entry of the dictionary that is being made."""
    saved = run.targets
    run.targets = tuple(f"{name}[{key!r}]" for name in saved[:1] if key is not None)
    yield
    run.targets = saved


def dictionary_of_rounds(node: cst.DictComp, run: Run, evaluate: Evaluate) -> Value:
    """Return the dictionary of a comprehension: by its keys where they are few and known."""
    saved = dict(run.frame.names)
    record = run.record()
    over = evaluate(node.for_in.iter, run)
    plain = node.for_in.inner_for_in is None and not node.for_in.ifs
    items = items_of(over, run) if plain else None
    if items is not None and len(items) <= MOST_ENTRIES:
        for item in items:
            _assign(node.for_in.target, item, run, evaluate)
            key = key_of(evaluate(node.key, run), run)
            with _named_entry(key, run):
                run.kept[record.number, key] = evaluate(node.value, run)
    else:
        element, _ = _rounds([node.for_in], node.value, run, evaluate)
        run.kept[record.number, None] = element
    run.frame.names = saved
    return record


def comprehension(
    node: cst.ListComp | cst.GeneratorExp | cst.SetComp, run: Run, evaluate: Evaluate
) -> Value:
    """Return the list that a comprehension makes, or the entries that a generator gives."""
    saved = dict(run.frame.names)
    loops = [node.for_in]
    while loops[-1].inner_for_in is not None:
        loops.append(loops[-1].inner_for_in)
    element, length = _rounds(loops, node.elt, run, evaluate)
    index = None
    if len(loops) == 1 and not node.for_in.ifs and isinstance(element, Number):
        index = _index_of(node.for_in, run, evaluate)
    run.frame.names = saved
    return Sequence(None, element, length, index=index)


def _index_of(loop: cst.CompFor, run: Run, evaluate: Evaluate) -> tuple[str, Expr] | None:
    """Return the symbol that counts the entries of a comprehension, and where it begins."""
    made = iteration(evaluate(loop.iter, run), loop.target, run, run.text(loop.iter))
    counted = made.kind is LoopKind.COUNTED and made.step == 1 and made.stride is None
    return (made.variable, made.low) if counted else None


def _rounds(
    loops: Many[cst.CompFor], elt: cst.BaseExpression, run: Run, evaluate: Evaluate
) -> tuple[Value, Expr | None]:
    made = iteration(evaluate(loops[0].iter, run), loops[0].target, run, run.text(loops[0].iter))
    run.frame.depth += 1
    with run.block() as body:
        _assign(loops[0].target, made.element, run, evaluate)
        for condition in loops[0].ifs:
            evaluate(condition.test, run)
        if len(loops) > 1:
            element, inner = _rounds(loops[1:], elt, run, evaluate)
        else:
            element, inner = evaluate(elt, run), num(1)
        steps = tuple(body)
    run.frame.depth -= 1
    if steps:
        run.emit(loop_over(made, steps, run.span(loops[0])))
    filtered = any(loop.ifs for loop in loops)
    length = None if filtered or made.trips is None or inner is None else made.trips * inner
    return element, length


def _assign(target: cst.BaseExpression, value: Value, run: Run, evaluate: Evaluate) -> None:
    """Let a target without side effects (a name, a tuple of names) denote a value."""
    if isinstance(target, cst.Name):
        run.bind(target.value, value)
    elif isinstance(target, cst.Tuple | cst.List):
        for position, element in enumerate(target.elements):
            part = part_of(value, position, len(target.elements), run)
            _assign(element.value, part, run, evaluate)
    elif isinstance(target, cst.Attribute):
        owner = evaluate(target.value, run)
        if isinstance(owner, Record):
            run.kept[owner.number, target.attr.value] = value
