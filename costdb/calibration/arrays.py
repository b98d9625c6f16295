"""Array operations: calls of NumPy as they are run, and what the array model makes of them.

What is run and what it is in the words of the model are said once: of the arrays that a call is
given, their shapes and strides.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from costdb.arrays.amounts import FAULT, PAGE_BYTES
from costdb.calibration.fitting import caches, caches_document, ends_of, fit_classes, repetition
from costdb.calibration.loops import INTERPRETED, fit_steps, interpreted_action, interpreted_points
from costdb.calibration.section import (
    Action,
    Effort,
    Feature,
    Fitted,
    Host,
    Point,
    Section,
    Timing,
    World,
    keep_freed_memory,
    repeated,
)
from costdb.expr import num
from costdb.machines import Json, measured
from costdb.pricing import ALONE
from costdb.work import IN_BLAS, ArrayCall, ArrayOperation, Region, Visit

Array: TypeAlias = NDArray[Any]
Memory: TypeAlias = Callable[[str, int], Array]
Timed: TypeAlias = tuple[Callable[[], object], ArrayCall]

# Which calls of NumPy, and on which memory.

_SIZES = 8, 300, 3000, 20_000, 100_000, 500_000, 1_500_000, 4_000_000
_RUNS = (400, 6), (60, 300), (200, 250), (700, 900), (1900, 1998)
"""Rows with gaps between them, as the inner parts of grids have them."""
_COLUMNS = (
    (300, 5), (3000, 67), (800, 512), (1000, 1001), (1000, 1024), (2000, 1150), (25_000, 90),
    (130_000, 18),
)  # fmt: skip
"""Elements of a column, and of a row that it is a column of."""
_BLOCKS = (
    (3, 400), (50, 100), (30, 1000), (300, 512), (20, 20_000), (900, 900), (2000, 64), (64, 2000),
    (500, 1500), (2048, 256), (997, 1009), (1500, 1400),
)  # fmt: skip
_ROWS = (1, 1000), (1, 16_384), (1, 20_011), (1, 400_000), (1, 421_937), (1, 1_048_576)
"""Single rows, some as long as a prime number."""
_SQUARES = (
    (3, 7), (12, 40), (64, 64), (100, 90), (300, 256), (512, 512), (700, 640), (1024, 1024),
    (128, 2000), (2000, 500), (2000, 1900),
)  # fmt: skip
_PRODUCTS = (
    (4, 4, 4), (20, 20, 20), (60, 60, 60), (130, 130, 130), (260, 260, 260), (500, 500, 500),
    (800, 800, 800), (1000, 100, 100), (50, 50, 2000), (2000, 50, 50), (16, 3000, 16),
    (1000, 8, 1000), (300, 4, 4), (200, 30, 600),
)  # fmt: skip
"""Rows, columns and depth."""
_FEW_PRODUCTS = 200_000_000
"""Without BLAS more of them take a third of a second each time."""
_TABLES = (
    (1, 100), (300, 1000), (5000, 3000), (40_000, 500), (60_000, 40_000), (100_000, 200_000),
    (400_000, 400_000), (200_000, 1_000_000), (400_000, 2_000_000), (100_000, 4_000_000),
)  # fmt: skip
"""References to places, and the length of the table."""
_FEW_PLACES = 60_000
"""What converts every value takes long, wherever the places are."""
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "copy": ("float64", "int32", "complex128"),
    "fill": ("float64",),
    "cast": ("float64",),
    "binary": ("float64", "float32", "int64", "complex128"),
    "divide": ("float64", "int64"),
    "divide_by_one": ("int64",),
    "remainder": ("float64", "int64"),
    "compare": ("float64", "int64"),
    "unary": ("float64", "int32"),
    "root": ("float64",),
    "transcendental": ("float64",),
    "function": ("float64",),
    "circular": ("float64",),
    "power": ("float64",),
    "where": ("float64",),
    "scan": ("float64", "int64"),
    "reduce": ("float64", "int64"),
    "roll": ("float64",),
    "pad": ("float64",),
    "transpose": ("float64", "int32"),
    "take": ("float64",),
    "add_at": ("int64", "float64"),
    "add_at_cast": ("float64",),
    "matmul": ("float64", "int64", "float32", "int32"),
    "matvec": ("float64",),
    "fft": ("complex128",),
    "sort": ("int64", "float64"),
}
_FIRST_IDEA = frozenset({"binary", "divide", "matmul"})
"""Classes of which a first idea has two element types; of others it has one."""
FUNCTIONS = "arctan2", "hypot"
MASKS = "pattern", "drawn"
"""Choices by masks that any processor foresees, and by masks that none does: the data decide."""
UFUNCS: Mapping[str, tuple[str, int]] = {
    "binary": ("add", 2),
    "divide": ("divide", 2),
    "divide_by_one": ("floor_divide", 1),
    "remainder": ("remainder", 2),
    "compare": ("less", 2),
    "unary": ("absolute", 1),
    "root": ("sqrt", 1),
    "transcendental": ("exp", 1),
    "function": ("hypot", 2),
    "circular": ("sin", 1),
    "power": ("power", 2),
}
VIEWS = "row", "part", "column", "inside"
PLACES = frozenset({"take", "add_at", "add_at_cast"})
ALONG = frozenset({"fft", "sort", "scan", "reduce", "roll", "pad"})


def array_points(effort: Effort) -> list[Point]:
    """Return the points of all classes and element types; a first idea has every other one."""
    made = [Point("view", {"operation": "view", "dtype": "any", "view": one}) for one in VIEWS]
    every = 1 if effort is Effort.FULL else 2
    for operation, dtypes in _DTYPES.items():
        first = dtypes if effort is Effort.FULL else dtypes[: 2 - (operation not in _FIRST_IDEA)]
        for dtype in first:
            name = f"{operation} {dtype}"
            given = {"operation": operation, "dtype": dtype}
            shapes = list(_shapes(operation, dtype))[::every]
            made += [Point(name, given | shape) for shape in shapes]
    return made


def _shapes(operation: str, dtype: str) -> Iterator[dict[str, Feature]]:
    """Yield on which memory an operation is timed, so that neighbours differ in size only."""
    if operation == "matmul":
        for rows, columns, depth in _PRODUCTS:
            if dtype in IN_BLAS or rows * columns * depth <= _FEW_PRODUCTS:
                yield {"rows": rows, "columns": columns, "depth": depth}
    elif operation == "matvec":
        for rows, columns in _BLOCKS:
            yield {"rows": rows, "columns": columns}
    elif operation in PLACES:
        for places, table in _TABLES:
            if operation != "add_at_cast" or places <= _FEW_PLACES:
                yield {"places": places, "table": table}
    elif operation in ALONG:
        for axis in (1, 0):
            for rows, columns in _SQUARES if operation in ("roll", "pad") else _BLOCKS:
                yield {"rows": rows, "columns": columns, "axis": axis}
        if operation in ("fft", "sort"):
            for rows, columns in _ROWS:
                yield {"rows": rows, "columns": columns, "axis": 1}
        if operation in ("scan", "reduce"):
            for elements in _SIZES:
                yield {"rows": 1, "columns": elements, "axis": 1}
            for rows, pitch in _COLUMNS:
                yield {"rows": rows, "columns": 1, "axis": 1, "pitch": pitch}
    elif operation == "transpose":
        for rows, columns in _SQUARES:
            yield {"rows": rows, "columns": columns}
    else:
        yield from _elementwise_shapes(operation)


def _elementwise_shapes(operation: str) -> Iterator[dict[str, Feature]]:
    forms = {"fill": ("out",), "where": ("fresh",)}.get(operation, ("fresh", "out"))
    shapes = [
        *((1, n, n) for n in _SIZES),
        *((rows, run, run + 2) for rows, run in _RUNS),
        *((rows, 1, pitch) for rows, pitch in _COLUMNS),
    ]
    for number, (rows, columns, pitch) in enumerate(shapes):
        made: dict[str, Feature] = {"rows": rows, "columns": columns, "pitch": pitch}
        made["form"] = forms[number // 2 % len(forms)]
        if operation == "function":
            made["function"] = FUNCTIONS[number // 2 % len(FUNCTIONS)]
        if operation == "where":
            made["mask"] = MASKS[number // 2 % len(MASKS)]
        yield made


def number_of(point: Point, name: str) -> int:
    """Return a whole number among the features of a point."""
    return int(point.features[name])


# The calls themselves.

_ENOUGH_US = 60.0
_ELEMENTS, _RANDOM = 4_500_000, 99_991
_PATTERN = 512
"""So many elements of a mask are alike, and then as many of the other kind."""
_DIVISOR = 7
_GROWING_SLOT = 3
"""What adds to itself has memory of its own: exponentials of values that grew took longer."""
LARGE_BYTES = 40_000_000
"""A result whose memory the C library does not keep."""


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return the calls to time, and the loops that an interpreter goes through."""
    # a copy into memory that the system gives each time anew, and into the same again
    faults = [Point("large result", {"memory": memory}) for memory in ("anew", "kept")]
    return [*interpreted_points(), *faults, *array_points(effort)]


def _action(point: Point, world: World) -> Action:
    """Return what is timed at a point."""
    if INTERPRETED in point.features:
        return interpreted_action(point)
    keep_freed_memory()
    if "memory" in point.features:
        return Action(_large(str(point.features["memory"])), alone=True)
    run, _ = timed(point, _buffer)
    # what short calls repeat is found by doing it, as nothing is known of the machine yet
    run()
    begin = perf_counter()
    run()
    once_us = max((perf_counter() - begin) * 1e6, 0.05)
    return repeated(run, max(1, min(2000, int(_ENOUGH_US / once_us))), alone=True)


def _large(memory: str) -> Callable[[], None]:
    source = np.resize(_buffer("float64", 0), LARGE_BYTES // 8)
    there = np.zeros_like(source)

    def kept() -> None:
        there[:] = source

    def anew() -> None:
        # as the C library gets memory that it does not have, and NumPy asks for huge pages
        pages = mmap.mmap(-1, LARGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(pages)[:] = source
        pages.close()

    return kept if memory == "kept" else anew


def call_of(point: Point) -> ArrayCall:
    """Return what a point does, in the words of the model; no memory is needed for that."""
    return timed(point, _shape_only)[1]


def timed(point: Point, memory: Memory) -> Timed:
    """Return what is done at a point, and what that is in the words of the model.

    Parameters
    ----------
    point : Point
    memory : callable
        Gives flat arrays by element type and number.
    """
    operation, dtype = str(point.features["operation"]), str(point.features["dtype"])
    if operation == "view":
        views = _views(memory("float64", 0)[:10_000].reshape(100, 100), memory("float64", 1))
        return views[str(point.features["view"])], ArrayCall(ArrayOperation.VIEW, dtype, num(1))
    if operation in PLACES:
        return _scattered(point, operation, dtype, memory)
    if operation in ALONG:
        return _along_axis(point, operation, dtype, memory)
    if operation in ("matmul", "matvec", "transpose"):
        return _of_matrices(point, operation, dtype, memory)
    return _elementwise(point, operation, dtype, memory)


def _views(matrix: Array, vector: Array) -> Mapping[str, Callable[[], object]]:
    return {
        "row": lambda: matrix[7],
        "part": lambda: vector[1:-1],
        "column": lambda: matrix[:, 7],
        "inside": lambda: matrix[1:-1, 2:-2],
    }


def _scattered(point: Point, operation: str, dtype: str, memory: Memory) -> Timed:
    places, size = number_of(point, "places"), number_of(point, "table")
    takes = operation == "take"
    table = memory(dtype, 0 if takes else _GROWING_SLOT)[:size]
    index = memory(f"places {size}", places)[:places]
    one = 1 if operation == "add_at_cast" else table.dtype.type(1)
    held, at = _visit(table, "table"), _visit(index, "at")
    call = ArrayCall(
        ArrayOperation(operation),
        dtype,
        num(places),
        _fresh((places,), table.itemsize) if takes else held,
        (held, at) if takes else (at,),
        fresh=takes,
        length=num(size),
    )
    return (lambda: table[index]) if takes else (lambda: np.add.at(table, index, one)), call


def _of_matrices(point: Point, operation: str, dtype: str, memory: Memory) -> Timed:
    rows, columns = number_of(point, "rows"), number_of(point, "columns")
    first, second = memory(dtype, 0), memory(dtype, 1)
    kind, elements, item = ArrayOperation(operation), num(rows * columns), first.itemsize
    if operation == "transpose":
        source = first[: rows * columns].reshape(columns, rows).T
        target = second[: rows * columns].reshape(rows, columns)
        call = ArrayCall(kind, dtype, elements, _visit(target), (_visit(source),))

        def transposed() -> None:
            target[...] = source

        return transposed, call
    if operation == "matmul":
        depth = number_of(point, "depth")
        left = first[: rows * depth].reshape(rows, depth)
        right = second[: depth * columns].reshape(depth, columns)
        made, length = _fresh((rows, columns), item), depth
    else:
        left, right = first[: rows * columns].reshape(rows, columns), second[:columns]
        made, length = _fresh((rows,), item), columns
    operands = _visit(left), _visit(right)
    call = ArrayCall(kind, dtype, elements, made, operands, True, None, num(length))
    return lambda: left @ right, call


def _along_axis(point: Point, operation: str, dtype: str, memory: Memory) -> Timed:
    rows, columns = number_of(point, "rows"), number_of(point, "columns")
    pitch = int(point.features.get("pitch", columns))
    block = memory(dtype, 0)[: rows * pitch].reshape(rows, pitch)[:, :columns]
    array = block[:, 0] if pitch != columns else block[0] if rows == 1 else block
    axis = number_of(point, "axis") if array.ndim > 1 else 0
    width = ((2, 0), (0, 0)) if axis == 0 else ((0, 0), (2, 0))
    runs: Mapping[str, Callable[[], object]] = {
        "scan": lambda: np.cumsum(array, axis=axis, dtype=array.dtype),
        "reduce": lambda: array.sum(axis=axis, dtype=array.dtype),
        "roll": lambda: np.roll(array, 2, axis=axis),
        "pad": lambda: np.pad(array, width, mode="wrap"),
        "fft": lambda: np.fft.fft(array, axis=axis),
        "sort": lambda: np.sort(array, axis=axis),
    }
    made: Visit | None = _fresh(array.shape, array.itemsize)
    if operation == "reduce":
        left = array.shape[:axis] + array.shape[axis + 1 :]
        made = _fresh(left, array.itemsize) if left else None
    along = operation not in ("roll", "pad")
    call = ArrayCall(
        ArrayOperation(operation),
        dtype,
        num(array.size),
        made,
        (_visit(array, "operand"),),
        fresh=made is not None,
        axis_from_last=array.ndim - 1 - axis if along else None,
        length=num(array.shape[axis]) if along else None,
    )
    return runs[operation], call


def _elementwise(point: Point, operation: str, dtype: str, memory: Memory) -> Timed:
    rows, columns, pitch = (number_of(point, name) for name in ("rows", "columns", "pitch"))
    fresh = point.features["form"] == "fresh"

    def block(kind: str, slot: int) -> Array:
        whole = memory(kind, slot)[: rows * pitch].reshape(rows, pitch)
        return whole[:, :columns] if columns > 1 else whole[:, 0]

    first, second = block("float32" if operation == "cast" else dtype, 0), block(dtype, 1)
    target = block("bool" if operation == "compare" else dtype, 2)
    name, count = UFUNCS.get(operation, ("", 1))
    operands: tuple[Array, ...] = (first, second)[:count]
    if operation in ("fill", "copy", "cast"):
        operands = () if operation == "fill" else (first,)

        def stored() -> None:
            target[...] = 1 if operation == "fill" else first

        copied = first.copy if operation == "copy" else lambda: first.astype(dtype)
        run: Callable[[], object] = copied if fresh else stored
    elif operation == "where":
        chosen = block("pattern" if point.features["mask"] == "pattern" else "bool", 0)
        operands = chosen, first, second

        def run() -> object:
            return np.where(chosen, first, second)
    else:
        if operation == "divide" and dtype == "int64":
            name = "floor_divide"
        function = getattr(np, str(point.features.get("function", name)))
        given: tuple[Any, ...] = operands
        if operation == "divide_by_one":
            given = first, first.dtype.type(_DIVISOR)
        more = {} if fresh else {"out": target}

        def run() -> object:
            return function(*given, **more)

    call = ArrayCall(
        ArrayOperation(operation),
        dtype,
        num(rows * columns),
        _fresh(first.shape, target.itemsize) if fresh else _visit(target, "result"),
        tuple(_visit(one, f"operand{number}") for number, one in enumerate(operands)),
        fresh,
    )
    return run, call


def _visit(array: Array, name: str = "") -> Visit:
    """Return an array as the model sees it."""
    return Visit(_region(array.itemsize, array.shape, array.strides), name)


def _fresh(shape: tuple[int, ...], item: int) -> Visit:
    """Return a result that the library makes."""
    pitches = tuple(item * prod(shape[place + 1 :]) for place in range(len(shape)))
    return Visit(_region(item, shape, pitches))


def _region(item: int, shape: tuple[int, ...], pitches: tuple[int, ...]) -> Region:
    return Region(item, tuple(map(num, shape)), tuple(map(num, pitches)))


@cache
def _buffer(dtype: str, slot: int) -> Array:
    """Return memory that was written, the same at each visit; of places, `slot` many."""
    kind, _, size = dtype.partition(" ")
    random = np.random.default_rng(slot)
    if size:
        places: Array = random.integers(0, int(size), slot)
        return places
    # random numbers take longer than all else that a first idea has time for: a part is repeated
    if kind == "pattern":
        part: Array = np.arange(_RANDOM) // _PATTERN % 2 == 0
    elif kind == "bool":
        part = random.integers(0, 2, _RANDOM).astype(bool)
    elif kind.startswith("int"):
        part = random.integers(1, 30_000, _RANDOM).astype(kind)
    else:
        part = random.uniform(0.5, 1.5, _RANDOM).astype(kind)
    made: Array = np.resize(part, _ELEMENTS)
    return made


@cache
def _shape_only(dtype: str, slot: int) -> Array:
    """Return what has the shape of such memory, and none behind it: nobody may touch it."""
    kind = {"pattern": "bool", "places": "int64"}.get(dtype.partition(" ")[0], dtype)
    one = np.empty(1, kind)
    return np.lib.stride_tricks.as_strided(one, (_ELEMENTS,), one.strides)


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit every class by itself."""
    memory = caches(host)
    loops = [timing for timing in timings if INTERPRETED in timing.point.features]
    large = [timing for timing in timings if "memory" in timing.point.features]
    calls = [timing for timing in timings if "operation" in timing.point.features]
    made = [(call_of(timing.point), timing) for timing in calls]
    rates, qualities = fit_classes(made, memory)
    elements = [
        int(t.point.features.get("rows", 1)) * int(t.point.features.get("columns", 1))
        for t in calls
    ]
    arrays: dict[str, Json] = {
        **caches_document(memory),
        "rates": rates,
        **_fault({str(t.point.features["memory"]): t for t in large if t.launches_us}),
        "range": {"elements": [1, max(elements, default=1)]},
    }
    parts: dict[str, Json] = {"arrays": arrays}
    python = fit_steps(loops)
    if python:
        parts["python"] = python
    parts |= repetition(ALONE, [*calls, *loops])
    note = "Array operations: steady state of a process that has run a while, one BLAS thread."
    return Fitted(parts, tuple(qualities), (note,))


def _fault(by_memory: dict[str, Timing]) -> dict[str, Json]:
    """Return what a page takes that the system gives anew, where both ways were timed."""
    if len(by_memory) < 2:
        return {}
    pages, kept_us = LARGE_BYTES / PAGE_BYTES, by_memory["kept"].typical_us
    low, middle, high = (max(0.0, us - kept_us) / pages for us in ends_of(by_memory["anew"]))
    return {FAULT: measured(middle, "us/page", low, high)}


SECTION = Section(
    "arrays",
    "array operations by class, element type, strides and working set",
    frozenset(),
    _points,
    _action,
    _fitted,
)
