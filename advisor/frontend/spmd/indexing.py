"""Subscripts of arrays and sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import At, Index, Origin, Part, View, Whole
from advisor.ir.spmd.steps import Compute, Copy
from advisor.source import Span
from costdb.expr import Expr, num, substitute, to_text
from costdb.expr.nodes import Num

WHOLE_SLICE = Sequence((External("slice"), Nothing(), Nothing(), Nothing()), is_list=False)


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
    if is_slice(index):
        if owner.items is None:
            return Sequence(None, owner.element, None, owner.is_list)
        return _sliced(owner, index, run)
    position = run.integer(index)
    if owner.items is not None and position is not None:
        if -len(owner.items) <= position < len(owner.items):
            return owner.items[position]
        return Opaque("an index outside of a list")
    if owner.items:
        found: Value = owner.items[0]
        for item in owner.items[1:]:
            found = join(found, item, "element", run)
        return found
    if isinstance(owner.element, Number) and owner.index is not None and isinstance(index, Number):
        name, first = owner.index
        if index.expr is not None and owner.element.expr is not None:
            there = substitute(owner.element.expr, {name: first + index.expr})
            return replace(owner.element, expr=there)
    return owner.element or Opaque("an element of a list")


def is_slice(value: Value) -> bool:
    """Return whether a subscript's value is a slice, alone or as a tuple's only part."""
    if isinstance(value, Sequence) and value.items:
        head = value.items[0]
        if isinstance(head, External) and head.path == "slice":
            return True
        return len(value.items) == 1 and is_slice(head)
    return False


def _sliced(owner: Sequence, index: Value, run: Run) -> Value:
    assert isinstance(index, Sequence) and index.items is not None and owner.items is not None
    if len(index.items) == 1 and isinstance(index.items[0], Sequence):
        return _sliced(owner, index.items[0], run)
    bounds: list[int | None] = []
    for part in index.items[1:]:
        if isinstance(part, Nothing):
            bounds.append(None)
        else:
            value = run.integer(part)
            if value is None:
                return Sequence(None, owner.element, None, owner.is_list)
            bounds.append(value)
    if len(bounds) == 3 and bounds[2] == 0:
        return Opaque("a slice in steps of 0")
    return Sequence(owner.items[slice(*bounds)], is_list=owner.is_list)


def _of_array(view: View, index: Value, run: Run, span: Span, text: str) -> Value:
    parts = _parts(index)
    if any(isinstance(part, Array | Sequence) and not is_slice(part) for part in parts):
        return _picked(view, parts, run, span, text)
    found = part_of_view(view, index, run, span, text)
    if found is None:
        return _lost(view, run, span, text, number=not is_slice(parts[0]))
    if found.shape == () and not found.flat:
        run.emit(Compute(None, (found,), num(0), "element", span))
        return Number(None, view.dtype or "float", varies=True)
    return Array(found)


def _parts(index: Value) -> list[Value]:
    if (
        isinstance(index, Sequence)
        and index.items is not None
        and not _is_one_slice(index)
        and not index.is_list
    ):
        return list(index.items)
    return [index]


def part_of_view(view: View, index: Value, run: Run, span: Span, text: str) -> View | None:
    """Return the part of an array that a basic subscript selects; None where it cannot be said."""
    parts = _parts(index)
    if any(isinstance(part, Array | Sequence) and not is_slice(part) for part in parts):
        return None
    if view.region is None or view.flat:
        return None
    region = view.region[::-1] if view.transposed else view.region
    found = _composed(region, parts, run, span)
    if found is None:
        return None
    made, shown = found
    if view.transposed:
        made = made[::-1]
    # a dimension of one index changes shapes, not memory
    named = text or view.text
    seen_otherwise = shown is not None
    return View(
        view.buffer, tuple(made), named, span, view.transposed, flat=seen_otherwise, shown=shown
    )


def _is_one_slice(index: Sequence) -> bool:
    items = index.items or ()
    return bool(items) and isinstance(items[0], External) and items[0].path == "slice"


def _composed(
    region: tuple[Index, ...], parts: list[Value], run: Run, span: Span
) -> tuple[list[Index], tuple[Expr, ...] | None] | None:
    """Return the region, and the shape where new axes make it another than the region's."""
    parts = list(parts)
    new_axes = sum(1 for part in parts if _is_new_axis(part))
    free = sum(1 for index in region if not isinstance(index, At))
    dots = [k for k, part in enumerate(parts) if _is_ellipsis(part)]
    if len(dots) == 1:
        missing = free - (len(parts) - new_axes - 1)
        parts[dots[0] : dots[0] + 1] = [WHOLE_SLICE] * max(missing, 0)
    if len(parts) - new_axes > free or len(dots) > 1:
        return None
    parts += [WHOLE_SLICE] * (free - (len(parts) - new_axes))
    given = iter(part for part in parts if not _is_new_axis(part))
    made: list[Index] = []
    chosen: list[Index] = []
    for dimension, outer in enumerate(region):
        if isinstance(outer, At):
            made.append(outer)
            continue
        part = next(given)
        numbers = _Numbers(run, span, dimension)
        along = _slice_of if is_slice(part) else _point_of
        inner = along(part, outer, numbers)
        if inner is None:
            return None
        made.append(inner)
        chosen.append(inner)
    if not new_axes:
        return made, None
    extents: list[Expr] = []
    rest = iter(chosen)
    for part in parts:
        index = None if _is_new_axis(part) else next(rest)
        if not isinstance(index, At):
            extents.append(num(1) if index is None else index.count)
    return made, tuple(extents)


def _is_new_axis(part: Value) -> bool:
    return isinstance(part, Nothing) or (
        isinstance(part, External) and part.path == "numpy.newaxis"
    )


def _is_ellipsis(part: Value) -> bool:
    return isinstance(part, External) and part.path == "builtins.Ellipsis"


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a subscript along one dimension; one that nothing tells is of this place."""

    run: Run
    span: Span
    dimension: int

    def number(self, value: Value, name: str) -> Expr | None:
        """Return a number, symbolic where need be; None for anything else."""
        if not isinstance(value, Number | Opaque):
            return None
        own = f"{name}.{self.dimension}" if self.dimension else name
        return self.run.number(value, own, self.span)


def _point_of(part: Value, outer: Index, numbers: _Numbers) -> Index | None:
    at = numbers.number(part, "index")
    if at is None:
        return None
    if isinstance(at, Num) and at.value < 0:
        at = outer.count + at
    if isinstance(outer, Part):
        at = outer.low + at * outer.step
    return At(at)


def _slice_of(part: Value, outer: Index, numbers: _Numbers) -> Index | None:
    assert isinstance(part, Sequence) and part.items is not None
    if len(part.items) == 1:
        return _slice_of(part.items[0], outer, numbers)
    low, high, step = part.items[1:]
    stride = 1 if isinstance(step, Nothing) else numbers.run.integer(step)
    if stride is None or stride == 0:
        # x[rank::size]: strided by something that is not known
        stride = 2 if stride is None else 1
        if isinstance(outer, Whole):
            begin = numbers.number(low, "low") if not isinstance(low, Nothing) else num(0)
            expr = numbers.number(step, "step")
            if begin is None or expr is None:
                return None
            return Part(begin, begin + (outer.high - begin) / expr * stride, stride)
        return None
    extent = outer.count
    if isinstance(low, Nothing) and isinstance(high, Nothing) and stride == 1:
        return outer
    begin = _bound(low, num(0), extent, numbers, "low")
    end = _bound(high, extent, extent, numbers, "high")
    if begin is None or end is None:
        return None
    if stride < 0:
        whole = isinstance(outer, Whole) and isinstance(low, Nothing) and isinstance(high, Nothing)
        return Part(num(0), extent, stride) if whole else None
    if isinstance(outer, Part):
        if outer.step != 1:
            return None
        return Part(outer.low + begin, outer.low + end, stride)
    if stride == 1 and begin == num(0) and end == extent:
        return outer
    return Part(begin, end, stride)


def _bound(value: Value, default: Expr, extent: Expr, numbers: _Numbers, name: str) -> Expr | None:
    if isinstance(value, Nothing):
        return default
    found = numbers.number(value, name)
    if found is None:
        return None
    if _is_negative(found):
        return extent + found
    return found


def _is_negative(expr: Expr) -> bool:
    """Return whether an expression is a negative number, or the negative of a symbol."""
    if isinstance(expr, Num):
        return expr.value < 0
    return to_text(expr).startswith("-") and "+" not in to_text(expr)


def _picked(view: View, parts: list[Value], run: Run, span: Span, text: str) -> Value:
    """Return the copy that indexing by an array or a list makes."""
    shape = None
    if any(isinstance(part, Array) and part.view.dtype == "bool" for part in parts):
        run.unknown("how many elements a mask chooses is not known", span)
    if len(parts) == 1 and view.shape is not None:
        chosen = parts[0]
        count: tuple[Expr, ...] | None = None
        if isinstance(chosen, Array) and chosen.view.dtype != "bool":
            count = chosen.view.shape
        elif isinstance(chosen, Sequence):
            found = chosen.length if chosen.items is None else num(len(chosen.items))
            count = None if found is None else (found,)
        if count is not None:
            shape = (*count, *view.shape[1:])
    made = run.fresh(text, view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def _lost(view: View, run: Run, span: Span, text: str, *, number: bool) -> Value:
    """Return a part of an array of which nothing but the element type is known."""
    if number:
        run.emit(Compute(None, (view,), num(0), "element", span))
        return Opaque(f"an element of `{view.buffer.name}`, or a part of it", varies=True)
    return Array(View(view.buffer, None, text or view.text, span))
