"""Timed calls of NumPy as they are run, on memory that stays in use between visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from costdb.calibration.array_calls.points import UFUNCS, number_of
from costdb.calibration.host.process import keep_freed_memory, numpy_on_one_thread
from costdb.calibration.section import Action, Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_ENOUGH_US = 60.0
_ELEMENTS, _RANDOM = 4_500_000, 99_991
_PATTERN = 512
"""So many elements of a mask are alike, and then as many of the other kind."""
_DIVISOR = 7
_GROWING_SLOT = 3
"""What adds to itself has memory of its own: exponentials of values that grew took longer."""
LARGE_BYTES = 40_000_000
"""A result whose memory the C library does not keep."""


def action_of(point: Point) -> Action:
    """Return what is timed at a point."""
    if "memory" in point.features:
        return Action(_large(str(point.features["memory"])), alone=True)
    run = _operation(point)
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


def _large(memory: str) -> Callable[[], None]:
    import mmap

    np = numpy()
    source = _buffer("float64", 0)
    source = np.resize(source, LARGE_BYTES // 8)
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


def _operation(point: Point) -> Callable[[], object]:
    np, features = numpy(), point.features
    operation, dtype = str(features["operation"]), str(features["dtype"])
    if operation == "view":
        return _view(str(features["view"]))
    if operation in ("take", "add_at", "add_at_cast"):
        places, size = number_of(point, "places"), number_of(point, "table")
        slot = 0 if operation == "take" else _GROWING_SLOT
        table, index = _buffer(dtype, slot)[:size], _places(places, size)
        if operation == "take":
            return lambda: table[index]
        one = 1 if operation == "add_at_cast" else table.dtype.type(1)
        return lambda: np.add.at(table, index, one)
    rows, columns = number_of(point, "rows"), number_of(point, "columns")
    first, second = _buffer(dtype, 0), _buffer(dtype, 1)
    if operation == "matmul":
        depth = number_of(point, "depth")
        left = first[: rows * depth].reshape(rows, depth)
        right = second[: depth * columns].reshape(depth, columns)
        return lambda: left @ right
    if operation == "matvec":
        matrix, vector = first[: rows * columns].reshape(rows, columns), second[:columns]
        return lambda: matrix @ vector
    if operation == "transpose":
        source = first[: rows * columns].reshape(columns, rows)
        target = second[: rows * columns].reshape(rows, columns)

        def transposed() -> None:
            target[...] = source.T

        return transposed
    if "axis" in features:
        pitch = number_of(point, "pitch") if "pitch" in features else columns
        block = first[: rows * pitch].reshape(rows, pitch)[:, :columns]
        array = block[:, 0] if pitch != columns else block[0] if rows == 1 else block
        return _along_axis(operation, array, number_of(point, "axis") if array.ndim > 1 else 0)
    return _elementwise(point, operation, dtype, rows, columns)


def _view(name: str) -> Callable[[], object]:
    matrix, vector, i = _buffer("float64", 0)[:10_000].reshape(100, 100), _buffer("float64", 1), 7
    views: Mapping[str, Callable[[], object]] = {
        "row": lambda: matrix[i],
        "part": lambda: vector[1:-1],
        "column": lambda: matrix[:, i],
        "inside": lambda: matrix[1:-1, 2:-2],
    }
    return views[name]


def _along_axis(operation: str, array: Array, axis: int) -> Callable[[], object]:
    np = numpy()
    match operation:
        case "scan":
            return lambda: np.cumsum(array, axis=axis, dtype=array.dtype)
        case "reduce":
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


def _elementwise(
    point: Point, operation: str, dtype: str, rows: int, columns: int
) -> Callable[[], object]:
    np, pitch, form = numpy(), number_of(point, "pitch"), point.features["form"]

    def block(kind: str, slot: int) -> Array:
        whole = _buffer(kind, slot)[: rows * pitch].reshape(rows, pitch)
        return whole[:, :columns] if columns > 1 else whole[:, 0]

    first = block("float32" if operation == "cast" else dtype, 0)
    target = block("bool" if operation == "compare" else dtype, 2)
    if operation in ("fill", "copy", "cast"):
        if form == "fresh":
            return first.copy if operation == "copy" else lambda: first.astype(dtype)

        def stored() -> None:
            target[...] = 1 if operation == "fill" else first

        return stored
    second = block(dtype, 1)
    if operation == "where":
        chosen = block("pattern" if point.features["mask"] == "pattern" else "bool", 0)
        return lambda: np.where(chosen, first, second)
    name, count = UFUNCS[operation]
    if operation == "divide" and dtype == "int64":
        name = "floor_divide"
    function = getattr(np, str(point.features.get("function", name)))
    operands = (first, second)[:count]
    if operation == "divide_by_one":
        operands = first, first.dtype.type(_DIVISOR)
    if form == "fresh":
        return lambda: function(*operands)
    return lambda: function(*operands, out=target)


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
    made: Array = np.resize(part, _ELEMENTS)
    return made


@cache
def _places(count: int, size: int) -> Array:
    made: Array = numpy().random.default_rng(count).integers(0, size, count)
    return made
