"""Timed calls of NumPy as they are run, on memory that stays in use between visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import repeat
from math import prod
from typing import TYPE_CHECKING, Any

from costdb.calibration.array_calls.view_points import (
    FRESH,
    WALK,
    fresh_action,
    view_action,
    walk_of,
    written_at,
)
from costdb.calibration.host.calm_core import keep_freed_memory, numpy_on_one_thread
from costdb.calibration.section import Action, Point
from costdb.expr import num
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


# Timed calls of NumPy in the words of the model.

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
        factors = (
            _panel_of_point_calls(point, item, rows, columns),
            Visit(_memory(item, (columns,))),
        )
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


def _panel_of_point_calls(point: Point, item: int, rows: int, columns: int) -> Visit:
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


_ENOUGH_US = 60.0
_ELEMENTS, _RANDOM = 5_000_000, 99_991
_AWAY_SLOT, _AWAY_ELEMENTS = 4, 15_000_000
_PATTERN = 512
"""So many elements of a mask are alike, and then as many of the other kind."""
_DIVISOR = 7
_GROWING_SLOT = 3
"""What adds to itself has memory of its own: exponentials of values that grew took longer."""


def action_of(point: Point) -> Action:
    """Return what is timed at a point, on memory that stays in use between visits."""
    if FRESH in point.features:
        return fresh_action(point)
    if point.features.get("operation") == "view":
        return view_action(_buffer("float64", 0), point)
    run = _operation(point)
    if "away_bytes" in point.features:
        between = _buffer("float64", _AWAY_SLOT)[: number_of(point, "away_bytes") // 8]
        return Action(run, before=between.sum, alone=True)
    # what short calls repeat is found by doing it, as nothing is known of the machine yet
    from time import perf_counter

    run()
    begin = perf_counter()
    run()
    once_us = max((perf_counter() - begin) * 1e6, 0.05)
    times = max(1, min(2000, int(_ENOUGH_US / once_us)))
    if times == 1:
        return Action(run, alone=True)

    def repeated() -> None:
        for _ in repeat(None, times):
            run()

    return Action(repeated, times, alone=True)


def _operation(point: Point) -> Callable[[], object]:
    np = numpy()
    if WALK in point.features:
        return walk_of(point, (_buffer("float64", 0), _buffer("float64", 1)))
    features, operation = point.features, str(point.features["operation"])
    dtype = str(features["dtype"])
    if operation in ("take", "add_at", "add_at_cast"):
        places, size = number_of(point, "places"), number_of(point, "table")
        slot = 0 if operation == "take" else _GROWING_SLOT
        table, index = _buffer(dtype, slot)[:size], _places(places, size)
        if operation == "take":
            return lambda: table[index]
        one = 1 if operation == "add_at_cast" else table.dtype.type(1)
        return lambda: np.add.at(table, index, one)
    rows, columns = number_of(point, "rows"), number_of(point, "columns")
    first = _buffer(dtype, 0)
    if operation == "matmul":
        depth = number_of(point, "depth")
        left = first[: rows * depth].reshape(rows, depth)
        right = _buffer(dtype, 1)[: depth * columns].reshape(depth, columns)
        return lambda: left @ right
    if operation == "matvec":
        matrix, vector = _panel(point, first, rows, columns), _buffer(dtype, 1)[:columns]
        return lambda: matrix @ vector
    if operation == "transpose":
        source = first[: rows * columns].reshape(columns, rows)
        target = _buffer(dtype, 1)[: rows * columns].reshape(rows, columns)

        def transposed() -> None:
            target[...] = source.T

        return transposed
    if "axis" in features:
        block = _panel(point, first, rows, columns)
        alone = columns == 1 and "pitch" in features
        return _axis_operation(operation, block[:, 0] if alone else block, point)
    return _elementwise_operation(point, operation, dtype, rows, columns)


def _panel(point: Point, memory: Array, rows: int, columns: int) -> Array:
    """Return a matrix by itself, or some columns of a wider one."""
    pitch = number_of(point, "pitch") if "pitch" in point.features else columns
    return memory[: rows * pitch].reshape(rows, pitch)[:, :columns]


def _axis_operation(operation: str, array: Array, point: Point) -> Callable[[], object]:
    np, axis = numpy(), number_of(point, "axis")
    match operation:
        case "scan":
            if array.ndim == 1:
                return lambda: np.cumsum(array, dtype=array.dtype)
            return lambda: np.cumsum(array, axis=axis, dtype=array.dtype)
        case "reduce" if "called" in point.features:
            return _called(str(point.features["called"]), array, axis)
        case "reduce":
            if array.ndim == 1 or min(array.shape) == 1:
                return lambda: array.sum(dtype=array.dtype)
            return lambda: array.sum(axis=axis, dtype=array.dtype)
        case "roll":
            return lambda: np.roll(array, 2, axis=axis)
        case "pad":
            width = ((2, 0), (0, 0)) if axis == 0 else ((0, 0), (2, 0))
            return lambda: np.pad(array, width, mode="wrap")
        case "fft":
            return lambda: np.fft.fft(array, axis=axis)
        case _:
            return lambda: np.sort(array, axis=axis)


def _called(name: str, array: Array, axis: int) -> Callable[[], object]:
    np, along = numpy(), None if min(array.shape) == 1 else axis
    match name:
        case "np.sum":
            return lambda: np.sum(array, axis=along, dtype=array.dtype)
        case "mean":
            return lambda: array.mean(axis=along)
        case _:
            return lambda: np.mean(array, axis=along)


def _elementwise_operation(
    point: Point, operation: str, dtype: str, rows: int, columns: int
) -> Callable[[], object]:
    np, pitch, form = numpy(), number_of(point, "pitch"), point.features["form"]

    def block(kind: str, slot: int) -> Array:
        whole = _buffer(kind, slot)[: rows * pitch].reshape(rows, pitch)
        return whole[:, :columns] if columns > 1 else whole[:, 0]

    slot = _GROWING_SLOT if form == "in_place" else 0
    first = block("float32" if operation == "cast" else dtype, slot)
    target = block("bool" if operation == "compare" else dtype, 2)
    if operation in ("fill", "copy", "cast"):
        if form == "fresh":
            return first.copy if operation == "copy" else lambda: first.astype(dtype)

        def stored() -> None:
            target[...] = 1 if operation == "fill" else first

        return stored
    if operation == "where":
        chosen = block("pattern" if point.features.get("mask") == "pattern" else "bool", 0)
        second = block(dtype, 1)
        return lambda: np.where(chosen, first, second)
    name, count = UFUNCS[operation]
    if operation == "divide" and dtype == "int64":
        name = "floor_divide"
    function = getattr(np, name)
    operands = (first, block(dtype, 1))[:count]
    if operation == "divide_by_one":
        operands = first, first.dtype.type(_DIVISOR)
    if form == "fresh":
        return lambda: function(*operands)
    out = first if form == "in_place" else target
    return lambda: function(*operands, out=out)


def numpy() -> Any:
    """Return NumPy on one thread, in a process that keeps the memory it frees."""
    found = numpy_on_one_thread()
    keep_freed_memory()
    return found


@cache
def _buffer(dtype: str, slot: int) -> Array:
    """Return memory that was written, the same at each visit."""
    np = numpy()
    random = np.random.default_rng(slot)
    # random numbers take longer than all else that a first idea has time for: a part is repeated
    if dtype == "pattern":
        part: Array = np.arange(_RANDOM) // _PATTERN % 2 == 0
    elif dtype == "bool":
        part = random.integers(0, 2, _RANDOM).astype(bool)
    elif dtype.startswith("int"):
        part = random.integers(1, 30_000, _RANDOM).astype(dtype)
    else:
        part = random.uniform(0.5, 1.5, _RANDOM).astype(dtype)
    made: Array = np.resize(part, _AWAY_ELEMENTS if slot == _AWAY_SLOT else _ELEMENTS)
    return made


@cache
def _places(count: int, size: int) -> Array:
    made: Array = numpy().random.default_rng(count).integers(0, size, count)
    return made
