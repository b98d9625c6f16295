"""What loops and comprehensions go over, and what these make of all rounds."""

from __future__ import annotations

from collections.abc import Sequence as Many

import libcst as cst

from advisor.frontend.spmd.joining import MOST_ENTRIES, items_of, join_all, key_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.subscripts import part_of, subscript
from advisor.frontend.spmd.values import (
    Array,
    Number,
    Opaque,
    Range,
    Record,
    Sequence,
    Value,
    Zipped,
)
from advisor.ir.spmd.steps import Loop, LoopKind
from advisor.source import Span
from costdb.expr import Expr, ceil_div, num, sym
from costdb.records import replace


def range_value(values: list[Value], run: Run, span: Span, *, threads: bool = False) -> Value:
    """Return ``range(...)`` with its bounds."""
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
    step = bounds[2] if len(bounds) == 3 else num(1)
    return Range(low, low + high if untold else high, step, threads)


def _is_untold(value: Value) -> bool:
    """Return whether a number has neither a value nor a name."""
    match value:
        case Number(expr=None) | Opaque(expr=None, text=""):
            return True
    return False


# Loops.


def iteration(value: Value, name: str, run: Run, text: str) -> tuple[Loop, Value]:
    """Return a loop over a value, without its body, and what one of its iterations is given.

    Its target is a name, or ``""`` for several.
    """
    element: Value | None = None
    trips: Expr | None = None
    match value:
        case Range():
            return _counted(value, name, run)
        case Zipped(over, numbered):
            parts = [iteration(one, "_", run, text) for one in over]
            elements = (*[Number(None)] * numbered, *(given for _, given in parts))
            element = Sequence(elements, is_list=False)
            trips = next((loop.trips for loop, _ in parts if loop.trips is not None), None)
        case Sequence(items=None):
            element, trips = value.element or Opaque("an element of a list"), value.length
        case Array(view):
            element = subscript(value, Number(sym(name or "row")), run, view.span, "")
            trips = view.shape[0] if view.shape else None
        case Sequence() | Record():
            items = items_of(value, run)
            if items is not None:
                element = join_all(items, name or "element", run)
                element, trips = element or Opaque("an element of an empty list"), num(len(items))
    element = element or Opaque(f"an element of `{text}`", text=name)
    why = "" if trips is not None else f"the length of `{text}` is not known"
    end = num(0) if trips is None else trips
    return Loop(LoopKind.ELEMENTS, "", num(0), end, 1, trips, (), run.statement, why), element


def _counted(value: Range, name: str, run: Run) -> tuple[Loop, Value]:
    low, high, step = value.low, value.high, value.step
    symbol = run.symbols.index(name or "index", run.statement)
    by_rank = run.symbols.varies(low) or run.symbols.varies(high)
    if by_rank:
        run.symbols.vary(symbol)
    stride = run.symbols.value(step)
    if stride == 1:
        trips = high - low
    elif stride is not None and stride < 0:
        trips = ceil_div(low - high, num(-stride))
    else:
        trips = ceil_div(high - low, step)
    kind = LoopKind.THREADS if value.threads else LoopKind.COUNTED
    made = Loop(kind, symbol, low, high, stride or 1, trips, (), run.statement, "", by_rank)
    return replace(made, stride=step if stride is None else None), Number(sym(symbol))


# Dictionaries, and what comprehensions make of all rounds of their loops.


def dictionary(node: cst.Dict, run: Run) -> Value:
    """Return a new dictionary."""
    record = run.record()
    for element in node.elements:
        if isinstance(element, cst.DictElement):
            _keep_entry(record, element.key, element.value, run)
    return record


def _keep_entry(
    record: Record, key: cst.BaseExpression, node: cst.BaseExpression, run: Run
) -> None:
    """Keep an entry, and call what is made for it as what is assigned to with the key."""
    found = key_of(run.evaluate(key, run), run)
    with run.named(f"{run.target}[{found!r}]" if run.target and found is not None else ""):
        run.keep(record.number, found, run.evaluate(node, run))


def dictionary_of_rounds(node: cst.DictComp, run: Run) -> Value:
    """Return the dictionary of a comprehension: by its keys where they are few and known."""
    record = run.record()
    with run.scope():
        over = run.evaluate(node.for_in.iter, run)
        plain = node.for_in.inner_for_in is None and not node.for_in.ifs
        items = items_of(over, run) if plain else None
        if items is not None and len(items) <= MOST_ENTRIES:
            for item in items:
                _assign(node.for_in.target, item, run)
                _keep_entry(record, node.key, node.value, run)
        else:
            run.keep(record.number, None, _rounds([node.for_in], node.value, run)[0])
    return record


def comprehension(node: cst.ListComp | cst.GeneratorExp | cst.SetComp, run: Run) -> Value:
    """Return the list that a comprehension makes, or the entries that a generator gives."""
    loops, index = [node.for_in], None
    while loops[-1].inner_for_in is not None:
        loops.append(loops[-1].inner_for_in)
    with run.scope():
        element, length = _rounds(loops, node.elt, run)
        if len(loops) == 1 and not node.for_in.ifs and isinstance(element, Number):
            made, _ = _over(node.for_in, run)
            if made.kind is LoopKind.COUNTED and made.step == 1 and made.stride is None:
                index = made.variable, made.low
    return Sequence(None, element, length, index=index)


def _over(loop: cst.CompFor, run: Run) -> tuple[Loop, Value]:
    return iteration(run.evaluate(loop.iter, run), name_of(loop.target), run, run.text(loop.iter))


def name_of(target: cst.BaseExpression) -> str:
    """Return the name that a target is, ``""`` for any other."""
    return target.value if isinstance(target, cst.Name) else ""


def _rounds(
    loops: Many[cst.CompFor], elt: cst.BaseExpression, run: Run
) -> tuple[Value, Expr | None]:
    made, given = _over(loops[0], run)
    run.frame.depth += 1
    with run.block() as body:
        _assign(loops[0].target, given, run)
        for condition in loops[0].ifs:
            run.evaluate(condition.test, run)
        if len(loops) > 1:
            element, inner = _rounds(loops[1:], elt, run)
        else:
            element, inner = run.evaluate(elt, run), num(1)
        steps = tuple(body)
    run.frame.depth -= 1
    if steps:
        run.emit(replace(made, body=steps, span=run.span(loops[0])))
    filtered = any(loop.ifs for loop in loops)
    length = None if filtered or made.trips is None or inner is None else made.trips * inner
    return element, length


def _assign(target: cst.BaseExpression, value: Value, run: Run) -> None:
    """Let a target without side effects (a name, a tuple of names) denote a value."""
    if isinstance(target, cst.Name):
        run.bind(target.value, value)
    elif isinstance(target, cst.Tuple | cst.List):
        for position, element in enumerate(target.elements):
            _assign(element.value, part_of(value, position, len(target.elements), run), run)
