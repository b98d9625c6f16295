"""What a subscript denotes: a part, an element, chosen elements, an entry of a list."""

from __future__ import annotations

from collections.abc import Sequence as Many

import libcst as cst

import advisor.ir.values as forms
from advisor.frontend.indices import Entry, Sizes, selected
from advisor.frontend.spmd.door import ProgramDoor
from advisor.frontend.spmd.joining import MOST_ENTRIES, condition_of, items_of, join_all, key_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Arguments,
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
from advisor.frontend.trees import NotUnderstood, nodes_in
from advisor.ir.spmd.memory import View, extent_of, inside
from advisor.ir.spmd.steps import Branch, Compute, Interpret, Loop, LoopKind, Step
from advisor.ir.values import Point, Subscript
from advisor.numpy_table import Shape, count_of
from advisor.source import Span
from costdb.expr import Expr, ceil_div, num, substitute, sym
from costdb.expr.functions import chance
from costdb.records import only, replace


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
    if found is None and any(isinstance(part, Slice | Nothing | External) for part in parts):
        # nothing but the element type is known
        return Array(View(view.buffer, None, text or view.text, span))
    if found is None:
        run.emit(Compute(None, (view,), None, span, "element"))
        return Opaque(f"an element of `{view.buffer.name}`, or a part of it", varies=True)
    if found.shape == () and not found.flat:
        run.emit(Compute(None, (found,), None, span, "element"))
        if any(isinstance(part, Opaque) and part.expr is None for part in parts):
            # which may be an array of places
            return Opaque(f"an element of `{view.buffer.name}`, or some", varies=True)
        return Number(None, view.dtype or "float", varies=True)
    return Array(found)


def _picked(view: View, parts: tuple[Value, ...], run: Run, span: Span, text: str) -> Value:
    """Return the copy that indexing by an array or a list makes."""
    door = ProgramDoor(run, span)
    operand, (mask, places) = door.value(Array(view)), _chooses(parts, door)
    try:
        if mask is not None:
            # how many it chooses, nothing tells: on no two ranks it has to be as many
            count = chance(span.start_line) * count_of(door.type_of(mask).extents)
            return door.computed(forms.Chosen(operand, mask, count), None, view)
        if places:
            return door.computed(forms.Gather(operand, places[0], places[1:]), None, view)
    except NotUnderstood:
        pass
    return door.copied(view, shape=None)


def put(view: View, index: Value, value: Value, run: Run, span: Span) -> bool:
    """Note that a value is stored at places, or where a mask holds; return whether it is so."""
    door = ProgramDoor(run, span)
    operand, stored = door.value(Array(view)), door.value(value)
    mask, places = _chooses(parts_of(index), door)
    try:
        if mask is not None:
            door.computed(forms.Elementwise("where", (mask, stored, operand)), view)
        elif places:
            door.computed(stored, view, places=places)
    except NotUnderstood:
        return False
    return mask is not None or bool(places)


def _chooses(
    parts: tuple[Value, ...], door: ProgramDoor
) -> tuple[forms.Value | None, tuple[forms.Value, ...]]:
    """Return the mask or the places that a subscript consists of, where it is nothing else."""
    arrays = [
        door.listed(part, Arguments()) if isinstance(part, Sequence | Range) else part
        for part in parts
    ]
    found = [door.value(one) for one in arrays if isinstance(one, Array) and one.view.shape]
    if len(found) < len(parts):
        return None, ()
    if any(door.view(one).dtype == "bool" for one in found):
        return (found[0] if len(found) == 1 else None), ()
    return None, tuple(found)


# Basic subscripts: the part of an array's memory that one selects.


_PICKS = Array | Sequence | Range
"""What chooses elements one by one."""


def parts_of(index: Value) -> tuple[Value, ...]:
    """Return the parts of a subscript, one for each dimension that it speaks of."""
    if isinstance(index, Sequence) and index.items is not None and not index.is_list:
        return index.items
    return (index,)


def part_of_view(view: View, index: Value, run: Run, span: Span, text: str) -> View | None:
    """Return the part of an array that a basic subscript selects; None where it cannot be said."""
    shape, region = view.shape, view.region
    if shape is None or region is None or view.flat:
        return None
    if view.transposed:
        region = region[::-1]
    try:
        entries = [_entry(part, k, shape, run, span) for k, part in enumerate(parts_of(index))]
        found = selected(entries, shape, Sizes(value=run.symbols.value))
    except NotUnderstood:
        return None
    kept = iter(range(len(shape)))
    chosen, made = iter(found.region), list[Subscript]()
    for outer in region:
        if isinstance(outer, Point):
            made.append(outer)
            continue
        part = next(chosen)
        turned = not isinstance(part, Point) and next(kept) in found.flipped
        inner = inside(outer, part, backwards=turned)
        if inner is None:
            return None
        made.append(inner)
    shown = None
    if found.expanded:
        # a dimension of one index changes shapes, not memory
        along = [extent_of(index) for index in made if not isinstance(index, Point)]
        for axis in found.expanded:
            along.insert(axis, num(1))
        shown = tuple(along)
    return View(
        view.buffer,
        tuple(made[::-1] if view.transposed else made),
        text or view.text,
        span,
        view.transposed,
        flat=shown is not None,
        shown=shown,
    )


def _entry(part: Value, place: int, shape: Shape, run: Run, span: Span) -> Entry:
    """Return an entry of a subscript; a number that nothing tells is of this place."""

    def number(value: Value, name: str) -> Expr:
        found = run.number(value, f"{name}.{place}" if place else name, span)
        if found is None:
            raise NotUnderstood("an index that is no number")
        return found

    match part:
        case Nothing() | External("numpy.newaxis"):
            return None
        case External("builtins.Ellipsis"):
            return ...
        case Slice(low, high, step):
            bounds = [
                None if isinstance(bound, Nothing) else number(bound, name)
                for bound, name in ((low, "low"), (high, "high"))
            ]
            stride = 1 if isinstance(step, Nothing) else run.integer(step)
            if stride is None and place < len(shape):
                # x[rank::size]: as many as there are, in steps of something that is not known
                first = num(0) if bounds[0] is None else bounds[0]
                count = (shape[place] - first) / number(step, "step")
                return first, first + count * 2, 2
            return bounds[0], bounds[1], stride
    return number(part, "index")


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


# --- iterations -----------------------------------------------------------------------------------
# What loops and comprehensions go over, and what these make of all rounds.


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
    for element in only(cst.DictElement, node.elements):
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
        # what makes a number of all it gives is a loop by itself
        alone = run.span(node) if node in run.loops else None
        element, length = _rounds(loops, node.elt, run, alone)
        if len(loops) == 1 and not node.for_in.ifs and isinstance(element, Number):
            made, _ = _over(node.for_in, run)
            if made.kind is LoopKind.COUNTED and made.step == 1 and made.stride is None:
                index = made.variable, made.low
    return Sequence(None, element, length, index=index)


_STEPS = (cst.BinaryOperation, cst.BooleanOperation, cst.ComparisonTarget, cst.Call, cst.AugAssign)


def interpreted(body: cst.CSTNode, span: Span, besides: int = 0) -> tuple[Step, ...]:
    """Return the work of an iteration that touches no array and sends nothing.

    Operators, comparisons and calls count alike, as one operation of the interpreter each.
    """
    count = besides + sum(isinstance(one, _STEPS) for one in nodes_in(body))
    return (Interpret(num(count), span),) if count else ()


def _over(loop: cst.CompFor, run: Run) -> tuple[Loop, Value]:
    return iteration(run.evaluate(loop.iter, run), name_of(loop.target), run, run.text(loop.iter))


def name_of(target: cst.BaseExpression) -> str:
    """Return the name that a target is, ``""`` for any other."""
    return target.value if isinstance(target, cst.Name) else ""


def _rounds(
    loops: Many[cst.CompFor], elt: cst.BaseExpression, run: Run, alone: Span | None = None
) -> tuple[Value, Expr | None]:
    made, given = _over(loops[0], run)
    run.frame.depth += 1
    with run.block() as body:
        _assign(loops[0].target, given, run)
        tests = [condition_of(one.test, range(0), run) for one in loops[0].ifs]
        with run.block() as kept:
            if len(loops) > 1:
                element, inner = _rounds(loops[1:], elt, run, alone)
            else:
                element, inner = run.evaluate(elt, run), num(1)
                if alone is not None and not kept:
                    kept += interpreted(elt, alone, 1)
        steps = tuple(kept)
        for test in reversed(tests if steps else []):
            steps = (Branch(test, steps, (), test.span),)
        steps = (*body, *steps)
    run.frame.depth -= 1
    if steps:
        run.emit(replace(made, body=steps, span=alone or run.span(loops[0])))
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
