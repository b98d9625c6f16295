"""Timed calls of NumPy in the words of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from costdb.calibration.array_calls.view_points import written_at
from costdb.calibration.section import Point
from costdb.expr import num
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

UFUNCS: Mapping[str, tuple[str, int]] = {
    "binary": ("add", 2),
    "divide": ("divide", 2),
    "divide_by_one": ("floor_divide", 1),
    "remainder": ("remainder", 2),
    "compare": ("less", 2),
    "unary": ("absolute", 1),
    "root": ("sqrt", 1),
    "transcendental": ("exp", 1),
}

_LINE_BYTES = 64

_STEPS = {"sum": 0, "np.sum": 1, "mean": 1, "np.mean": 2}
"""Functions of Python around a reduction, by what is called."""


def call_of(point: Point) -> ArrayCall:
    """Return what a point does, in the words of the model."""
    features = point.features
    operation, dtype = ArrayOperation(str(features["operation"])), str(features["dtype"])
    if operation is ArrayOperation.VIEW:
        return ArrayCall(operation, dtype, num(1), written=written_at(point))
    item = _item(dtype)
    if operation in (ArrayOperation.TAKE, ArrayOperation.ADD_AT, ArrayOperation.ADD_AT_CAST):
        places, table = number_of(point, "places"), number_of(point, "table")
        away = None
        if "away_bytes" in features:
            touched = 16 * places + min(item * table, _LINE_BYTES * places)
            away = num(number_of(point, "away_bytes") + touched)
        held = Visit(_memory(item, (table,)), "table", away)
        index = Visit(_memory(8, (places,)), "places", away)
        scatters = operation is not ArrayOperation.TAKE
        made = held if scatters else Visit(_memory(item, (places,)), "", away)
        operands = (index,) if scatters else (held, index)
        return ArrayCall(
            operation, dtype, num(places), made, operands, fresh=not scatters, length=num(table)
        )
    rows, columns = number_of(point, "rows"), number_of(point, "columns")
    if operation is ArrayOperation.MATMUL:
        depth = number_of(point, "depth")
        return ArrayCall(
            operation,
            dtype,
            num(rows * columns),
            Visit(_memory(item, (rows, columns))),
            (Visit(_memory(item, (rows, depth))), Visit(_memory(item, (depth, columns)))),
            fresh=True,
            length=num(depth),
        )
    shape = (rows, columns)
    if operation is ArrayOperation.MATVEC:
        factors = _panel(point, item, rows, columns), Visit(_memory(item, (columns,)))
        product = Visit(_memory(item, (rows,)))
        count = num(rows * columns)
        return ArrayCall(operation, dtype, count, product, factors, fresh=True, length=num(columns))
    if "axis" in features:
        if "pitch" in features:
            return _of_a_part(operation, dtype, shape, number_of(point, "pitch"))
        call = _along_axis(operation, dtype, item, shape, number_of(point, "axis"))
        return replace(call, steps=_STEPS[str(features.get("called", "sum"))])
    if operation is ArrayOperation.TRANSPOSE:
        there = Visit(_memory(item, shape))
        back = Visit(Region(item, _counts(shape), (num(item), num(item * rows))))
        return ArrayCall(operation, dtype, num(rows * columns), there, (back,))
    return _elementwise_call(point, operation, dtype, shape)


def _elementwise_call(
    point: Point, operation: ArrayOperation, dtype: str, shape: tuple[int, ...]
) -> ArrayCall:
    item, pitch, form = _item(dtype), number_of(point, "pitch"), point.features["form"]
    wide = item * pitch
    count = {"fill": 0, "copy": 1, "cast": 1, "where": 3}.get(
        operation.value, UFUNCS.get(operation.value, ("", 1))[1]
    )
    items = [item] * count
    if operation is ArrayOperation.CAST:
        items = [4]
    if operation is ArrayOperation.WHERE:
        items[0] = 1
    operands = tuple(
        Visit(Region(size, _counts(shape), (num(size * pitch), num(size))), f"operand{number}")
        for number, size in enumerate(items)
    )
    stored = 1 if operation is ArrayOperation.COMPARE else item
    if form == "fresh":
        result = Visit(_memory(stored, shape))
    elif form == "in_place":
        result = operands[0]
    else:
        wide = stored * pitch
        result = Visit(Region(stored, _counts(shape), (num(wide), num(stored))), "result")
    foreseen = {"pattern": True, "none": False}.get(str(point.features.get("mask")))
    return ArrayCall(
        operation, dtype, num(prod(shape)), result, operands, fresh=form == "fresh",
        foreseen=foreseen,
    )  # fmt: skip


def _along_axis(
    operation: ArrayOperation, dtype: str, item: int, shape: tuple[int, int], axis: int
) -> ArrayCall:
    kept: tuple[int, ...] = (shape[1 - axis],) if operation is ArrayOperation.REDUCE else shape
    result = None
    if operation is not ArrayOperation.REDUCE or min(shape) > 1:
        result = Visit(_memory(item, kept))
    axes = operation not in (ArrayOperation.ROLL, ArrayOperation.PAD)
    return ArrayCall(
        operation,
        dtype,
        num(prod(shape)),
        result,
        (Visit(_memory(item, shape), "operand"),),
        fresh=result is not None,
        axis_from_last=1 - axis if axes else None,
        length=num(shape[axis]) if axes else None,
    )


def _of_a_part(
    operation: ArrayOperation, dtype: str, shape: tuple[int, int], pitch: int
) -> ArrayCall:
    """Return a call on some columns of a larger array, or on a single one by itself."""
    item, (rows, columns) = _item(dtype), shape
    alone = columns == 1
    kept = (rows,) if alone else shape
    pitches = (num(item * pitch),) if alone else (num(item * pitch), num(item))
    result = None if operation is ArrayOperation.REDUCE else Visit(_memory(item, kept))
    return ArrayCall(
        operation,
        dtype,
        num(prod(shape)),
        result,
        (Visit(Region(item, _counts(kept), pitches), "operand"),),
        fresh=result is not None,
        axis_from_last=0 if alone else None,
        length=num(rows) if alone else None,
    )


def _panel(point: Point, item: int, rows: int, columns: int) -> Visit:
    """Return a matrix by itself, or some columns of a wider one."""
    pitch = number_of(point, "pitch") if "pitch" in point.features else columns
    return Visit(Region(item, _counts((rows, columns)), (num(item * pitch), num(item))))


def _item(dtype: str) -> int:
    return {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "complex128": 16}[dtype]


def number_of(point: Point, name: str) -> int:
    """Return a whole number among the features of a point."""
    return int(point.features[name])


def _counts(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(num(extent) for extent in shape)


def _memory(item: int, shape: tuple[int, ...]) -> Region:
    pitches, step = [], item
    for extent in reversed(shape):
        pitches.append(num(step))
        step *= extent
    return Region(item, _counts(shape), tuple(reversed(pitches)))
