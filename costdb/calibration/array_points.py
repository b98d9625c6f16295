"""Calls of NumPy to time, and on which memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from costdb.calibration.section import Effort, Feature, Point

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
    "where": ("float64",),
    "scan": ("float64", "int64"),
    "reduce": ("float64", "int64"),
    "roll": ("float64",),
    "pad": ("float64",),
    "transpose": ("float64", "int32"),
    "take": ("float64",),
    "add_at": ("int64", "float64"),
    "add_at_cast": ("float64",),
    "matmul": ("float64", "float32"),
    "matvec": ("float64",),
    "fft": ("complex128",),
    "sort": ("int64", "float64"),
}
_FIRST_IDEA = frozenset({"binary", "divide"})
"""Classes of which a first idea has two element types; of others it has one."""
FUNCTIONS = "power", "arctan2", "hypot"
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
    "function": ("power", 2),
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
            made += [Point(name, given | shape) for shape in list(_shapes(operation))[::every]]
    return made


def _shapes(operation: str) -> Iterator[dict[str, Feature]]:
    """Yield on which memory an operation is timed, so that neighbours differ in size only."""
    if operation == "matmul":
        for rows, columns, depth in _PRODUCTS:
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


def fault_points() -> list[Point]:
    """Return a copy into memory that the system gives each time anew, and into the same again."""
    return [Point("large result", {"memory": memory}) for memory in ("anew", "kept")]


def number_of(point: Point, name: str) -> int:
    """Return a whole number among the features of a point."""
    return int(point.features[name])
