"""Array operations: calls of NumPy as they are run, and what the array model makes of them.

What is run and what it is in the words of the model are said once: of the arrays that a call is
given, their shapes and strides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from costdb.arrays.amounts import FAULT, PAGE_BYTES
from costdb.calibration.array_fit import caches, caches_document, ends_of, fit_classes
from costdb.calibration.array_points import (
    ALONG,
    PLACES,
    UFUNCS,
    array_points,
    fault_points,
    number_of,
)
from costdb.calibration.hardware import Host, keep_freed_memory, numpy_on_one_thread
from costdb.calibration.loops import INTERPRETED, fit_steps, interpreted_action, interpreted_points
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Point,
    Section,
    Timing,
    World,
    repeated,
)
from costdb.expr import num
from costdb.machines.documents import Json, measured
from costdb.repetition import ALONE
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Memory: TypeAlias = Callable[[str, int], Array]
    Timed: TypeAlias = tuple[Callable[[], object], ArrayCall]

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
    return [*interpreted_points(), *fault_points(), *array_points(effort)]


def _action(point: Point, world: World) -> Action:
    """Return what is timed at a point."""
    if INTERPRETED in point.features:
        return interpreted_action(point)
    np = numpy_on_one_thread()
    keep_freed_memory()
    if "memory" in point.features:
        return Action(_large(np, str(point.features["memory"])), alone=True)
    run, _ = timed(point, _buffer)
    # what short calls repeat is found by doing it, as nothing is known of the machine yet
    run()
    begin = perf_counter()
    run()
    once_us = max((perf_counter() - begin) * 1e6, 0.05)
    return repeated(run, max(1, min(2000, int(_ENOUGH_US / once_us))), alone=True)


def _large(np: Any, memory: str) -> Callable[[], None]:
    import mmap

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
    import numpy as np

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
    import numpy as np

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
    import numpy as np

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
    np = numpy_on_one_thread()
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
    import numpy as np

    kind = {"pattern": "bool", "places": "int64"}.get(dtype.partition(" ")[0], dtype)
    one = np.empty(1, kind)
    return np.lib.stride_tricks.as_strided(one, (_ELEMENTS,), one.strides)


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit every class by itself."""
    # the process that measures decides how many threads NumPy may have, before it is imported
    from costdb.calibration.fitting import repetition

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
