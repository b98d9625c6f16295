"""Subscripts of arrays and sequences, and what loops and comprehensions go over."""

from __future__ import annotations

from collections.abc import Sequence as Many

import libcst as cst

from advisor.frontend.spmd.joining import MOST_ENTRIES, items_of, join_all, key_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    WHOLE_SLICE,
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Range,
    Record,
    Sequence,
    Slice,
    Text,
    Value,
    Zipped,
)
from advisor.ir.spmd.memory import At, Index, Origin, Part, View, Whole
from advisor.ir.spmd.steps import Compute, Copy, Loop, LoopKind, Step
from advisor.source import Span
from costdb.expr import Expr, ExprError, ceil_div, num, substitute, sym, to_text
from costdb.expr.nodes import Num
from costdb.records import dataclass, replace


def subscript(owner: Value, index: Value, run: Run, span: Span, text: str) -> Value:
    """Return what ``owner[index]`` denotes."""
    match owner:
        case Array(view):
            return _of_array(view, index, run, span, text)
        case Sequence():
            return _of_sequence(owner, index, run)
        case Text():
            return Text(None)
        case Opaque():
            at = run.integer(index)
            known = f"{owner.text}[{'...' if at is None else at}]" if owner.text else ""
            why = f"an element of `{owner.text}`" if owner.text else owner.why
            return Opaque(why, text=known, foreign=owner.foreign, varies=owner.varies)
    if isinstance(owner, External) and owner.path.startswith("numpy."):
        run.unknown(f"the time of `{owner.path}[...]` is not known", span)
    return Opaque("a subscript of something that is not followed")


def _of_sequence(owner: Sequence, index: Value, run: Run) -> Value:
    if isinstance(index, Slice):
        return _sliced(owner, index, run)
    position = run.integer(index)
    if owner.items is not None and position is not None:
        if -len(owner.items) <= position < len(owner.items):
            return owner.items[position]
        return Opaque("an index outside of a list")
    if owner.items:
        return join_all(owner.items, "element", run) or Nothing()
    if isinstance(owner.element, Number) and owner.index is not None and isinstance(index, Number):
        name, first = owner.index
        if index.expr is not None and owner.element.expr is not None:
            there = substitute(owner.element.expr, {name: first + index.expr})
            return replace(owner.element, expr=there)
    return owner.element or Opaque("an element of a list")


def _sliced(owner: Sequence, index: Slice, run: Run) -> Value:
    parts = (index.low, index.high, index.step)
    bounds = [run.integer(part) for part in parts]
    known = all(b is not None or p == Nothing() for p, b in zip(parts, bounds, strict=True))
    if owner.items is None or not known or bounds[2] == 0:
        return Sequence(None, owner.element, None, owner.is_list)
    return Sequence(owner.items[slice(*bounds)], is_list=owner.is_list)


def _of_array(view: View, index: Value, run: Run, span: Span, text: str) -> Value:
    parts = parts_of(index)
    if any(isinstance(part, _PICKS) for part in parts):
        return _picked(view, parts, run, span, text)
    found = part_of_view(view, index, run, span, text)
    if found is None and isinstance(parts[0], Slice):
        # nothing but the element type is known
        return Array(View(view.buffer, None, text or view.text, span))
    if found is None:
        run.emit(Compute(None, (view,), num(0), "element", span))
        return Opaque(f"an element of `{view.buffer.name}`, or a part of it", varies=True)
    if found.shape == () and not found.flat:
        run.emit(Compute(None, (found,), num(0), "element", span))
        return Number(None, view.dtype or "float", varies=True)
    return Array(found)


_PICKS = Array | Sequence | Range
"""What chooses elements one by one."""


def parts_of(index: Value) -> tuple[Value, ...]:
    """Return the parts of a subscript, one for each dimension that it speaks of."""
    if isinstance(index, Sequence) and index.items is not None and not index.is_list:
        return index.items
    return (index,)


def part_of_view(view: View, index: Value, run: Run, span: Span, text: str) -> View | None:
    """Return the part of an array that a basic subscript selects; None where it cannot be said."""
    parts = parts_of(index)
    if any(isinstance(part, _PICKS) for part in parts) or view.region is None or view.flat:
        return None
    region = view.region[::-1] if view.transposed else view.region
    found = _composed(region, parts, run, span)
    if found is None:
        return None
    made, shown = found
    # a dimension of one index changes shapes, not memory
    return View(
        view.buffer,
        tuple(made[::-1] if view.transposed else made),
        text or view.text,
        span,
        view.transposed,
        flat=shown is not None,
        shown=shown,
    )


def _composed(
    region: tuple[Index, ...], given: tuple[Value, ...], run: Run, span: Span
) -> tuple[list[Index], tuple[Expr, ...] | None] | None:
    """Return the region, and the shape where new axes make it another than the region's."""
    parts = [None if _is_new_axis(part) else part for part in given]
    free = sum(1 for index in region if not isinstance(index, At))
    missing = free - sum(1 for part in parts if part not in (None, _ELLIPSIS))
    if missing < 0 or parts.count(_ELLIPSIS) > 1:
        return None
    at = parts.index(_ELLIPSIS) if _ELLIPSIS in parts else len(parts)
    parts[at : at + 1] = [WHOLE_SLICE] * missing
    chosen = iter([part for part in parts if part is not None])
    made: list[Index] = []
    for dimension, outer in enumerate(region):
        inner: Index | None = outer
        if not isinstance(outer, At):
            inner = _along(next(chosen), outer, _Numbers(run, span, dimension))
        if inner is None:
            return None
        made.append(inner)
    if None not in parts:
        return made, None
    rest = iter([new for new, old in zip(made, region, strict=True) if not isinstance(old, At)])
    along = [Whole(num(1)) if part is None else next(rest) for part in parts]
    return made, tuple(index.count for index in along if not isinstance(index, At))


_ELLIPSIS = External("builtins.Ellipsis")


def _is_new_axis(part: Value) -> bool:
    return part in (Nothing(), External("numpy.newaxis"))


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a subscript along one dimension; one that nothing tells is of this place."""

    run: Run
    span: Span
    dimension: int

    def number(self, value: Value, name: str) -> Expr | None:
        """Return a number, symbolic where need be; None for anything else."""
        own = f"{name}.{self.dimension}" if self.dimension else name
        return self.run.number(value, own, self.span)

    def bound(self, value: Value, default: Expr, extent: Expr, name: str) -> Expr | None:
        """Return an end of a slice; negative ones count from the end."""
        if isinstance(value, Nothing):
            return default
        found = self.number(value, name)
        return extent + found if found is not None and _is_negative(found) else found


def _along(part: Value, outer: Index, numbers: _Numbers) -> Index | None:
    """Return what a part of a subscript selects along a dimension."""
    if isinstance(part, Slice):
        return _slice_of(part, outer, numbers)
    return _point_of(part, outer, numbers)


def _point_of(part: Value, outer: Index, numbers: _Numbers) -> Index | None:
    at = numbers.number(part, "index")
    if at is None:
        return None
    if isinstance(at, Num) and at.value < 0:
        at = outer.count + at
    if isinstance(outer, Part):
        at = outer.low + at * outer.step
    return At(at)


def _slice_of(part: Slice, outer: Index, numbers: _Numbers) -> Index | None:
    low, high, step = part.low, part.high, part.step
    all_of_it = isinstance(low, Nothing) and isinstance(high, Nothing)
    stride = 1 if isinstance(step, Nothing) else numbers.run.integer(step)
    if stride is None:
        # x[rank::size]: strided by something that is not known
        if not isinstance(outer, Whole):
            return None
        begin = num(0) if isinstance(low, Nothing) else numbers.number(low, "low")
        expr = numbers.number(step, "step")
        if begin is None or expr is None:
            return None
        return Part(begin, begin + (outer.high - begin) / expr * 2, 2)
    if stride == 0:
        raise ExprError("a slice in steps of 0")
    if all_of_it and stride == 1:
        return outer
    begin = numbers.bound(low, num(0), outer.count, "low")
    end = numbers.bound(high, outer.count, outer.count, "high")
    if begin is None or end is None:
        return None
    if stride < 0:
        return Part(num(0), outer.count, stride) if all_of_it and isinstance(outer, Whole) else None
    if isinstance(outer, Part):
        if outer.step != 1:
            return None
        return Part(outer.low + begin, outer.low + end, stride)
    if stride == 1 and begin == num(0) and end == outer.count:
        return outer
    return Part(begin, end, stride)


def _is_negative(expr: Expr) -> bool:
    """Return whether an expression is a negative number, or the negative of a symbol."""
    if isinstance(expr, Num):
        return expr.value < 0
    return to_text(expr).startswith("-") and "+" not in to_text(expr)


def _picked(view: View, parts: tuple[Value, ...], run: Run, span: Span, text: str) -> Value:
    """Return the copy that indexing by an array or a list makes."""
    shape = None
    if any(isinstance(part, Array) and part.view.dtype == "bool" for part in parts):
        run.unknown("how many elements a mask chooses is not known", span)
    elif len(parts) == 1 and view.shape is not None:
        count: tuple[Expr, ...] | None = None
        match parts[0]:
            case Array(chosen):
                count = chosen.shape
            case Sequence(items=tuple() as items):
                count = (num(len(items)),)
            case Sequence(length=Expr() as length):
                count = (length,)
        shape = None if count is None else (*count, *view.shape[1:])
    made = run.fresh(text, view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


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
    parts = parts_of(index)
    shown = any(isinstance(p, Slice) or (isinstance(p, Sequence) and not p.is_list) for p in parts)
    if not isinstance(owner, Opaque) or owner.foreign or not shown:
        return owner
    text = owner.text or run.text(node)
    made = Array(run.given_array(text, run.span(node), len(parts)))
    run.rebind(node, made)
    return made


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

    def loop(self, body: tuple[Step, ...], span: Span, *, timing: bool = False) -> Loop:
        """Return the step of the loop."""
        return Loop(
            self.kind, self.variable, self.low, self.high, self.step, self.trips, body, span,
            self.why, self.by_rank, timing, self.stride,
        )  # fmt: skip


def iteration(value: Value, name: str, run: Run, text: str) -> Iteration:
    """Return how a loop goes over a value; its target is a name, or ``""`` for several."""
    element: Value | None = None
    trips: Expr | None = None
    match value:
        case Range():
            return _counted(value, name, run)
        case Zipped(over, numbered):
            parts = [iteration(one, "_", run, text) for one in over]
            elements = (*[Number(None)] * numbered, *(part.element for part in parts))
            element = Sequence(elements, is_list=False)
            trips = next((part.trips for part in parts if part.trips is not None), None)
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
    return Iteration(LoopKind.ELEMENTS, "", num(0), end, 1, trips, element, why)


def _counted(value: Range, name: str, run: Run) -> Iteration:
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
    return Iteration(
        kind,
        symbol,
        low,
        high,
        stride or 1,
        trips,
        Number(sym(symbol)),
        by_rank=by_rank,
        stride=step if stride is None else None,
    )


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
    saved = dict(run.frame.names)
    record = run.record()
    over = run.evaluate(node.for_in.iter, run)
    plain = node.for_in.inner_for_in is None and not node.for_in.ifs
    items = items_of(over, run) if plain else None
    if items is not None and len(items) <= MOST_ENTRIES:
        for item in items:
            _assign(node.for_in.target, item, run)
            _keep_entry(record, node.key, node.value, run)
    else:
        run.keep(record.number, None, _rounds([node.for_in], node.value, run)[0])
    run.frame.names = saved
    return record


def comprehension(node: cst.ListComp | cst.GeneratorExp | cst.SetComp, run: Run) -> Value:
    """Return the list that a comprehension makes, or the entries that a generator gives."""
    saved = dict(run.frame.names)
    loops = [node.for_in]
    while loops[-1].inner_for_in is not None:
        loops.append(loops[-1].inner_for_in)
    element, length = _rounds(loops, node.elt, run)
    index = None
    if len(loops) == 1 and not node.for_in.ifs and isinstance(element, Number):
        made = _over(node.for_in, run)
        if made.kind is LoopKind.COUNTED and made.step == 1 and made.stride is None:
            index = made.variable, made.low
    run.frame.names = saved
    return Sequence(None, element, length, index=index)


def _over(loop: cst.CompFor, run: Run) -> Iteration:
    return iteration(run.evaluate(loop.iter, run), name_of(loop.target), run, run.text(loop.iter))


def name_of(target: cst.BaseExpression) -> str:
    """Return the name that a target is, ``""`` for any other."""
    return target.value if isinstance(target, cst.Name) else ""


def _rounds(
    loops: Many[cst.CompFor], elt: cst.BaseExpression, run: Run
) -> tuple[Value, Expr | None]:
    made = _over(loops[0], run)
    run.frame.depth += 1
    with run.block() as body:
        _assign(loops[0].target, made.element, run)
        for condition in loops[0].ifs:
            run.evaluate(condition.test, run)
        if len(loops) > 1:
            element, inner = _rounds(loops[1:], elt, run)
        else:
            element, inner = run.evaluate(elt, run), num(1)
        steps = tuple(body)
    run.frame.depth -= 1
    if steps:
        run.emit(made.loop(steps, run.span(loops[0])))
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
