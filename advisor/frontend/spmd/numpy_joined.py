"""Arrays joined of others: concatenated along an axis, or stacked along a new one."""

from __future__ import annotations

from collections.abc import Callable

from advisor.frontend.spmd.elementwise import Shape
from advisor.frontend.spmd.numpy_arguments import Arguments, numpy_number
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, Nothing, Number, Sequence, Value
from advisor.ir.spmd.memory import Origin, View
from advisor.ir.spmd.steps import Compute
from advisor.source import Span
from costdb.expr import Expr, num

_AXES: dict[str, Callable[[int], int]] = {
    "hstack": lambda rank: min(rank - 1, 1),
    "vstack": lambda rank: 0,
    "column_stack": lambda rank: 1,
    "row_stack": lambda rank: 0,
}


def joined(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return an array joined of others: ``concatenate``, ``hstack``, ``stack`` and their like."""
    parts = arguments.at(0)
    views, shapes, dtypes, times = _parts(parts)
    axis = run.integer(arguments.at(1, "axis")) if arguments.at(1, "axis") else 0
    if isinstance(arguments.at(1, "axis"), Nothing):
        axis = None
    shape: Shape | None = None
    if shapes is not None and axis is not None:
        shape = _stacked(shapes, axis, times) if name == "stack" else None
        if name != "stack":
            shape = _along(name, shapes, axis, times)
    dtype = next(iter(dtypes)) if len(dtypes) == 1 else None
    made = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=views)
    run.emit(Compute(made, views, num(0) if shape else None, "elementwise", span))
    return Array(made)


def _parts(
    parts: Value | None,
) -> tuple[tuple[View, ...], list[Shape] | None, set[str | None], Expr]:
    """Return the arrays among what is joined, all shapes, element types, and how often each."""
    items: tuple[Value, ...] = ()
    times = num(1)
    complete = isinstance(parts, Sequence)
    if isinstance(parts, Sequence) and parts.items is not None:
        items = parts.items
    elif isinstance(parts, Sequence) and parts.element is not None:
        items = (parts.element,)
        complete = parts.length is not None
        times = num(1) if parts.length is None else parts.length
    elif isinstance(parts, Array):
        complete = False
    views = tuple(item.view for item in items if isinstance(item, Array))
    shapes: list[Shape] = []
    dtypes: set[str | None] = set()
    for item in items:
        found: Shape | None = None
        match item:
            case Array(view):
                found = view.shape
                dtypes.add(view.dtype)
            case Sequence(items=tuple() as numbers) if all(isinstance(n, Number) for n in numbers):
                found = (num(len(numbers)),)
                kinds = {n.dtype for n in numbers if isinstance(n, Number)}
                dtypes |= {numpy_number(kind) for kind in kinds}
        if found is None:
            complete = False
        else:
            shapes.append(found)
    return views, shapes if complete and shapes else None, dtypes, times


def _along(name: str, shapes: list[Shape], axis: int, times: Expr) -> Shape | None:
    rank = len(shapes[0])
    if any(len(shape) != rank for shape in shapes) or not rank:
        return None
    if name in ("vstack", "row_stack") and rank == 1:
        return _stacked(shapes, 0, times)
    if name == "column_stack" and rank == 1:
        return _stacked(shapes, 1, times)
    along = _AXES[name](rank) if name in _AXES else axis
    if not -rank <= along < rank:
        return None
    along %= rank
    total = sum((shape[along] for shape in shapes), num(0)) * times
    first = shapes[0]
    return (*first[:along], total, *first[along + 1 :])


def _stacked(shapes: list[Shape], axis: int, times: Expr) -> Shape | None:
    first = shapes[0]
    rank = len(first) + 1
    if any(len(shape) != len(first) for shape in shapes) or not -rank <= axis < rank:
        return None
    place = axis % rank
    return (*first[:place], times * len(shapes), *first[place:])
