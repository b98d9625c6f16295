"""Calls of NumPy to time: which, on what memory, and what they are in the words of the model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import repeat
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

from costdb.arrays.amounts import HUGE_BYTES
from costdb.calibration.section import Action, Effort, Feature, Point
from costdb.expr import num
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_ENOUGH_US = 60.0
_HELD_OUT = 0.25
_SIZES = (1, 40, 300, 1000, 3000, 10_000, 40_000, 130_000, 500_000, 1_500_000, 4_000_000)
_FEW_SIZES = (1, 300, 3000, 40_000, 500_000, 4_000_000)
_RUNS = (
    (400, 6),
    (400, 48),
    (60, 300),
    (700, 900),
    (30, 2000),
    (200, 250),
    (1000, 998),
    (1900, 1998),
    (300, 1500),
    (2000, 100),
)
_COLUMNS = (
    (300, 5),
    (1000, 11),
    (1000, 1001),
    (3000, 67),
    (800, 512),
    (1000, 1024),
    (2000, 1150),
    (25_000, 90),
    (60_000, 40),
    (130_000, 18),
)
_MATRICES = (2, 8, 20, 50, 90, 130, 200, 260, 330, 420, 500, 640, 800, 1000)
_TABLES = (
    (1, 100),
    (300, 1000),
    (5000, 3000),
    (40_000, 500),
    (60_000, 40_000),
    (400_000, 60_000),
    (50_000, 10_000),
    (20_000, 150_000),
    (100_000, 200_000),
    (400_000, 400_000),
    (200_000, 1_000_000),
    (400_000, 2_000_000),
    (1_000_000, 100_000),
    (100_000, 4_000_000),
)
_SQUARES = (
    (12, 40),
    (100, 90),
    (300, 256),
    (700, 640),
    (1000, 1000),
    (1024, 1024),
    (64, 64),
    (200, 190),
    (512, 512),
    (128, 2000),
    (1500, 1300),
    (2000, 500),
    (1000, 512),
)
_LENGTHS = (
    (1, 16),
    (3, 400),
    (50, 100),
    (30, 1000),
    (100, 1024),
    (300, 512),
    (20, 20_000),
    (900, 900),
    (200, 200),
    (2000, 64),
    (64, 2000),
    (1000, 1000),
    (1023, 1025),
    (2048, 256),
    (500, 1500),
    (1024, 1024),
    (40, 700),
    (2000, 990),
)

_UFUNCS: Mapping[str, tuple[str, int]] = {
    "binary": ("add", 2),
    "divide": ("divide", 2),
    "compare": ("less", 2),
    "unary": ("absolute", 1),
    "root": ("sqrt", 1),
    "transcendental": ("exp", 1),
}
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "copy": ("float64", "int32", "complex128"),
    "fill": ("float64", "int32"),
    "cast": ("float64",),
    "binary": ("float64", "float32", "int32", "int64", "complex128"),
    "divide": ("float64", "int64"),
    "compare": ("float64", "int64"),
    "unary": ("float64", "int32"),
    "root": ("float64",),
    "transcendental": ("float64",),
    "where": ("float64",),
    "scan": ("float64", "int32", "int64"),
    "reduce": ("float64", "int32", "int64"),
    "roll": ("float64", "int32"),
    "pad": ("float64", "int32"),
    "transpose": ("float64", "int32"),
    "take": ("float64",),
    "add_at": ("int64", "float64"),
    "matmul": ("float64", "float32"),
    "fft": ("complex128",),
    "sort": ("int64", "float64"),
}
_QUICK = frozenset(
    ("copy float64", "copy int32", "fill float64", "binary float64", "binary int32", "unary int32")
    + ("divide float64", "divide int64", "compare float64", "where float64", "scan int32")
    + ("scan float64", "reduce float64", "roll float64", "transpose float64", "take float64")
    + ("add_at int64", "matmul float64", "fft complex128", "sort int64", "root float64")
    + ("transcendental float64", "pad float64", "cast float64", "binary complex128")
)
FORMS = ("fresh", "out", "in_place")
FRESH_SIZES = {"small": (490_000, 5), "huge": (1_500_000, 2), "beyond": (5_000_000, 1)}
"""Elements of 8 bytes and how many arrays, by what the system gives their memory in."""
_TRIM, _MAPPED_AT_MOST = -1, -4  # the C library's names for its settings


def array_points(effort: Effort) -> list[Point]:
    """Return the points: of each class, every fourth on average is kept from its fit."""
    made: list[Point] = [Point("view", {"operation": "view", "dtype": "any"})]
    made += [
        Point(f"fresh memory {kind}", {"fresh": kind, "given": given})
        for kind in FRESH_SIZES
        for given in ("anew", "kept")
    ]
    for operation, dtypes in _DTYPES.items():
        for dtype in dtypes:
            if effort is Effort.QUICK and f"{operation} {dtype}" not in _QUICK:
                continue
            chosen = Random(f"{operation} {dtype}")
            for shape in _shapes(operation, dtype, effort):
                features = {"operation": operation, "dtype": dtype, **shape}
                made.append(Point(f"{operation} {dtype}", features, chosen.random() < _HELD_OUT))
    return made


def _shapes(operation: str, dtype: str, effort: Effort) -> Iterator[Mapping[str, Feature]]:
    width = {"float32": 4, "int32": 4, "complex128": 16}.get(dtype, 8)
    sizes = _SIZES if effort is Effort.FULL else _FEW_SIZES
    match operation:
        case "matmul":
            yield from (
                {"rows": n, "columns": n, "depth": n}
                for n in (2, 8, 20, 50, 90, 130, 200, 260, 330, 420, 500, 640, 800, 1000)
            )
        case "take" | "add_at":
            yield from ({"places": n, "table": t} for n, t in _TABLES)
        case "fft" | "sort" | "scan" | "reduce":
            for axis in (1, 0):
                yield from (
                    {"rows": r, "columns": c, "axis": axis}
                    for r, c in (*_LENGTHS, (1500, 1400 if width < 16 else 600))
                    if axis or (operation not in ("fft", "sort") or c > 1)
                )
            if operation in ("scan", "reduce"):
                yield from ({"rows": 1, "columns": n, "axis": 1} for n in sizes)
        case "transpose":
            yield from (
                {"rows": r, "columns": c} for r, c in (*_SQUARES, (2000, 1900), (2048, 2048))
            )
        case "roll" | "pad":
            for axis in (0, 1):
                yield from ({"rows": r, "columns": c, "axis": axis} for r, c in _SQUARES)
        case _:
            yield from _elementwise(operation, width, sizes, effort)


def _elementwise(
    operation: str, width: int, sizes: tuple[int, ...], effort: Effort
) -> Iterator[Mapping[str, Feature]]:
    forms: tuple[str, ...] = FORMS if operation == "binary" else ("fresh", "out")
    if operation == "fill":
        forms = ("out",)
    for form in forms:
        for n in sizes:
            if n * width <= 40_000_000:
                yield {"rows": 1, "columns": n, "pitch": n, "form": form}
    for rows, run in _RUNS:
        yield {"rows": rows, "columns": run, "pitch": run + 2, "form": "out"}
        if effort is Effort.FULL:
            yield {"rows": rows, "columns": run, "pitch": run + 2, "form": "fresh"}
    if effort is Effort.FULL or operation in ("copy", "binary"):
        for rows, pitch in _COLUMNS:
            yield {"rows": rows, "columns": 1, "pitch": pitch, "form": "out"}
            yield {"rows": rows, "columns": 1, "pitch": pitch, "form": "fresh"}


def call_of(point: Point) -> ArrayCall:
    """Return what a point does, in the words of the model."""
    features = point.features
    operation, dtype = ArrayOperation(str(features["operation"])), str(features["dtype"])
    if operation is ArrayOperation.VIEW:
        return ArrayCall(operation, dtype, num(1))
    item = _item(dtype)
    if operation in (ArrayOperation.TAKE, ArrayOperation.ADD_AT):
        places, table = _number(point, "places"), _number(point, "table")
        held, index = Visit(_memory(item, (table,))), Visit(_memory(8, (places,)))
        scatters = operation is ArrayOperation.ADD_AT
        made = held if scatters else Visit(_memory(item, (places,)))
        operands = (index,) if scatters else (held, index)
        return ArrayCall(
            operation, dtype, num(places), made, operands, fresh=not scatters, length=num(table)
        )
    rows, columns = _number(point, "rows"), _number(point, "columns")
    if operation is ArrayOperation.MATMUL:
        depth = _number(point, "depth")
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
    if "axis" in features:
        return _along_axis(operation, dtype, item, shape, _number(point, "axis"))
    if operation is ArrayOperation.TRANSPOSE:
        there = Visit(_memory(item, shape))
        back = Visit(Region(item, _counts(shape), (num(item), num(item * rows))))
        return ArrayCall(operation, dtype, num(rows * columns), there, (back,))
    return _elementwise_call(point, operation, dtype, shape)


def _elementwise_call(
    point: Point, operation: ArrayOperation, dtype: str, shape: tuple[int, ...]
) -> ArrayCall:
    item, pitch, form = _item(dtype), _number(point, "pitch"), point.features["form"]
    wide = item * pitch
    count = {"fill": 0, "copy": 1, "cast": 1, "where": 3}.get(
        operation.value, _UFUNCS.get(operation.value, ("", 1))[1]
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
    return ArrayCall(operation, dtype, num(prod(shape)), result, operands, fresh=form == "fresh")


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


def _item(dtype: str) -> int:
    return {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "complex128": 16}[dtype]


def _number(point: Point, name: str) -> int:
    return int(point.features[name])


def _counts(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(num(extent) for extent in shape)


def _memory(item: int, shape: tuple[int, ...]) -> Region:
    pitches, step = [], item
    for extent in reversed(shape):
        pitches.append(num(step))
        step *= extent
    return Region(item, _counts(shape), tuple(reversed(pitches)))


def action_of(point: Point) -> Action:
    """Return what is timed at a point, on memory that stays in use between visits."""
    if "fresh" in point.features:
        return _fresh_memory(*FRESH_SIZES[str(point.features["fresh"])], point.features["given"])
    run = _operation(point)
    # what short calls repeat is found by doing it, as nothing is known of the machine yet
    from time import perf_counter

    run()
    begin = perf_counter()
    run()
    once_us = max((perf_counter() - begin) * 1e6, 0.05)
    times = max(1, min(2000, int(_ENOUGH_US / once_us)))
    if times == 1:
        return Action(run)

    def repeated() -> None:
        for _ in repeat(None, times):
            run()

    return Action(repeated, times)


def _operation(point: Point) -> Callable[[], object]:
    np = numpy()
    features, operation = point.features, str(point.features["operation"])
    dtype = str(features["dtype"])
    if operation == "view":
        base = _buffer("float64", 0)[:10_000].reshape(100, 100)
        return lambda: base[1:-1, 2:]
    if operation in ("take", "add_at"):
        places, size = _number(point, "places"), _number(point, "table")
        table, index = _buffer(dtype, 0)[:size], _places(places, size)
        if operation == "take":
            return lambda: table[index]
        return lambda: np.add.at(table, index, 1)
    rows, columns = _number(point, "rows"), _number(point, "columns")
    first = _buffer(dtype, 0)
    if operation == "matmul":
        depth = _number(point, "depth")
        left = first[: rows * depth].reshape(rows, depth)
        right = _buffer(dtype, 1)[: depth * columns].reshape(depth, columns)
        return lambda: left @ right
    if operation == "transpose":
        source = first[: rows * columns].reshape(columns, rows)
        target = _buffer(dtype, 1)[: rows * columns].reshape(rows, columns)

        def transposed() -> None:
            target[...] = source.T

        return transposed
    if "axis" in features:
        return _axis_operation(operation, first[: rows * columns].reshape(rows, columns), point)
    return _elementwise_operation(point, operation, dtype, rows, columns)


def _axis_operation(operation: str, array: Array, point: Point) -> Callable[[], object]:
    np, axis = numpy(), _number(point, "axis")
    match operation:
        case "scan":
            return lambda: np.cumsum(array, axis=axis, dtype=array.dtype)
        case "reduce":
            if min(array.shape) == 1:
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


def _elementwise_operation(
    point: Point, operation: str, dtype: str, rows: int, columns: int
) -> Callable[[], object]:
    np, pitch, form = numpy(), _number(point, "pitch"), point.features["form"]

    def block(kind: str, slot: int) -> Array:
        whole = _buffer(kind, slot)[: rows * pitch].reshape(rows, pitch)
        return whole[:, :columns] if columns > 1 else whole[:, 0]

    # what adds to itself has memory of its own, where values may grow
    first = block("float32" if operation == "cast" else dtype, 3 if form == "in_place" else 0)
    target = block("bool" if operation == "compare" else dtype, 2)
    if operation in ("fill", "copy", "cast"):
        if form == "fresh":
            return first.copy if operation == "copy" else lambda: first.astype(dtype)

        def stored() -> None:
            target[...] = 1 if operation == "fill" else first

        return stored
    if operation == "where":
        chosen, second = block("bool", 0), block(dtype, 1)
        if form == "fresh":
            return lambda: np.where(chosen, first, second)

        def put() -> None:
            target[...] = np.where(chosen, first, second)

        return put
    name, count = _UFUNCS[operation]
    if operation == "divide" and dtype == "int64":
        name = "floor_divide"
    function = getattr(np, name)
    operands = (first, block(dtype, 1))[:count]
    if form == "fresh":
        return lambda: function(*operands)
    out = first if form == "in_place" else target
    return lambda: function(*operands, out=out)


def numpy() -> Any:
    """Return NumPy, its matrix products on one thread, as a rank among others has it."""
    if "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
    import numpy

    _keep_freed_memory()
    return numpy


@cache
def _keep_freed_memory() -> None:
    """Tell the C library to keep what is freed, so that no sample pays for memory itself."""
    _set_allocator(_TRIM, 2**31 - 1)
    _set_allocator(_MAPPED_AT_MOST, 0)


def _set_allocator(name: int, value: int) -> None:
    import ctypes

    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(name, value)


def _fresh_memory(elements: int, count: int, given: Feature) -> Action:
    """Return the filling of arrays whose memory the system gives anew, or that are there."""
    np = numpy()
    if given == "kept":
        there = [np.zeros(elements) for _ in range(count)]

        def fill() -> None:
            for array in there:
                array.fill(1.0)

        return Action(fill)

    import mmap

    size = elements * 8

    def map_and_fill() -> None:
        # as the C library gets memory that it does not have, and NumPy asks for huge pages
        for _ in range(count):
            with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
                if size >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
                    pages.madvise(mmap.MADV_HUGEPAGE)
                array = np.frombuffer(pages)
                array.fill(1.0)
                del array

    return Action(map_and_fill)


@cache
def _buffer(dtype: str, slot: int) -> Array:
    """Return memory that was written, the same at each visit."""
    np = numpy()
    count = 5_000_000 if dtype != "complex128" else 2_600_000
    random = np.random.default_rng(slot)
    if dtype == "bool":
        made: Array = random.integers(0, 2, count).astype(bool)
    elif dtype.startswith("int"):
        made = random.integers(1, 30_000, count).astype(dtype)
    else:
        made = random.uniform(0.5, 1.5, count).astype(dtype)
    return made


@cache
def _places(count: int, size: int) -> Array:
    made: Array = numpy().random.default_rng(count).integers(0, size, count)
    return made
