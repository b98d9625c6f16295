"""Calls of NumPy to time: which, on what memory, and which of them are held out of the fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from costdb.calibration.array_calls.view_points import fresh_points, view_points
from costdb.calibration.section import Effort, Feature, Point

_HELD_OUT = 0.25
_SIZES = (
    *(1, 8, 40, 120, 300, 1000, 3000, 10_000, 20_000, 40_000, 70_000, 130_000),
    *(250_000, 500_000, 900_000, 1_500_000, 2_500_000, 4_000_000),
)
_FEW_SIZES = (1, 40, 300, 3000, 20_000, 130_000, 500_000, 3_000_000)
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
_MORE_RUNS = (
    (50, 30),
    (100, 98),
    (120, 800),
    (250, 400),
    (398, 398),
    (600, 598),
    (500, 3000),
    (798, 798),
    (1198, 1198),
    (1400, 698),
)
"""Rows with gaps, as the inner parts of grids have them: most of what stencils take."""
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
_MORE_COLUMNS = (
    (500, 40),
    (700, 260),
    (1500, 700),
    (2200, 1200),
    (5000, 530),
    (10_000, 130),
    (16_000, 150),
    (40_000, 60),
    (90_000, 26),
    (600, 1100),
    (1800, 768),
    (4000, 1024),
    (400, 128),
    (3000, 128),
    (130, 256),
    (900, 256),
    (250, 512),
    (2500, 512),
    (300, 1024),
    (2000, 1024),
    (700, 1280),
    (1000, 1536),
    (500, 2048),
    (1500, 2048),
)
"""So many, as nine in ten of a few points is no more than their worst; the last ones crowd into
few sets of a cache."""
_COLUMNS_ALONE = (*_COLUMNS, *_MORE_COLUMNS[:12])
"""Columns that are summed by themselves."""
_PANELS = (
    (300, 2, 5),
    (1000, 3, 11),
    (1000, 2, 1001),
    (3000, 4, 67),
    (800, 8, 512),
    (1000, 2, 1024),
    (2000, 8, 1150),
    (25_000, 3, 90),
    (60_000, 4, 40),
    (130_000, 2, 18),
    (500, 8, 40),
    (1500, 12, 700),
    (5000, 6, 530),
    (16_000, 2, 150),
    (400, 8, 128),
    (900, 16, 256),
    (2500, 2, 512),
    (2000, 24, 1024),
)
"""Rows, columns and pitch of a few columns side by side, as blocked algorithms take them."""
_MATRICES = (2, 8, 20, 50, 90, 130, 200, 260, 330, 420, 500, 640, 800, 1000)
_PRODUCTS = (
    (1000, 100, 100),
    (100, 1000, 100),
    (100, 100, 1000),
    (2000, 50, 50),
    (50, 2000, 50),
    (50, 50, 2000),
    (3000, 16, 16),
    (16, 3000, 16),
    (16, 16, 3000),
    (500, 500, 16),
    (500, 16, 500),
    (16, 500, 500),
    (1000, 8, 1000),
    (1000, 1000, 8),
    (8, 1000, 1000),
    (300, 4, 4),
    (4, 4, 300),
    (20_000, 3, 3),
    (200, 30, 600),
    (600, 200, 30),
    (700, 300, 100),
    (800, 2, 1500),
    (1200, 900, 2),
    (37, 411, 75),
)
"""Rows, columns and depth of products whose factors or results are large beside their work."""
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
_FEW_PLACES = 60_000
"""What converts every value takes long, wherever the places are."""
_MORE_TABLES = (
    (3000, 300),
    (10_000, 30_000),
    (150_000, 5000),
    (30_000, 600_000),
    (120_000, 120_000),
    (300_000, 30_000),
    (250_000, 250_000),
    (500_000, 500_000),
    (500_000, 1_000_000),
    (150_000, 1_500_000),
    (300_000, 3_000_000),
    (800_000, 900_000),
)
_LITTLE = ((1, 7), (4, 9), (5, 15))
"""Results small enough for the library to keep: what tells a call from its memory."""
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
_MORE_SQUARES = (
    (40, 30),
    (150, 140),
    (250, 1000),
    (400, 390),
    (500, 520),
    (850, 830),
    (1100, 300),
    (1200, 1250),
    (300, 1600),
    (768, 768),
    (1700, 1500),
    (256, 256),
)
_MORE_CROWDED = (
    (128, 128),
    (384, 384),
    (640, 640),
    (512, 200),
    (256, 700),
    (256, 2000),
    (512, 1000),
    (1024, 200),
    (1024, 600),
    (896, 900),
    (1280, 1200),
    (1536, 1500),
    (2048, 300),
    (2048, 1000),
)
"""Rows and columns of copies that transpose, their rows at pitches that crowd the source."""
_SMALL_SQUARES = (
    (16, 16),
    (24, 60),
    (60, 24),
    (33, 120),
    (120, 50),
    (48, 48),
    (80, 75),
    (30, 200),
    (220, 30),
    (170, 64),
)
"""Of small ones, which tell what entering a walk and an element cost."""
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
_MORE_LENGTHS = (
    (10, 60),
    (400, 20),
    (60, 3000),
    (150, 150),
    (350, 420),
    (700, 650),
    (1200, 1100),
    (300, 2500),
    (1600, 300),
    (768, 512),
    (256, 256),
    (5000, 120),
)
_FEW_ROWS = ((1, 300), (1, 3000), (2, 12_000), (1, 70_000), (1, 500_000))
"""Single rows, of which a sort is most of a call, and what a transform prepares is much of it."""
_ACROSS = (
    (30, 40),
    (80, 70),
    (120, 300),
    (180, 900),
    (250, 140),
    (300, 300),
    (450, 450),
    (550, 1800),
    (600, 600),
    (800, 500),
    (1200, 230),
    (1300, 900),
    (2500, 350),
    (3500, 40),
)
"""Rows and columns of walks across lines that crowd nowhere."""
_CROWDED = (
    (50, 512),
    (100, 512),
    (600, 512),
    (1500, 512),
    (150, 256),
    (800, 256),
    (200, 1024),
    (500, 1024),
    (1600, 1024),
    (60, 2048),
    (300, 2048),
    (800, 2048),
    (1000, 128),
    (4000, 128),
)
"""Rows, and the columns at whose pitch walks across them crowd into few sets of a cache."""
_PATTERNLESS = 200_000, 500_000, 1_200_000, 3_000_000
"""Elements of choices whose masks no processor learns, however often they come again."""
_AWAY = 24_000_000, 120_000_000
"""Bytes that lie between two references to a table that a program uses for other things, too:
most of a last level, and more than it."""
_AWAY_TABLES = (
    (20_000, 20_000),
    (60_000, 100_000),
    (30_000, 300_000),
    (200_000, 200_000),
    (400_000, 100_000),
    (200_000, 700_000),
    (500_000, 1_000_000),
    (300_000, 2_000_000),
    (60_000, 3_000_000),
    (150_000, 4_500_000),
)
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "copy": ("float64", "int32", "complex128"),
    "fill": ("float64", "int32"),
    "cast": ("float64",),
    "binary": ("float64", "float32", "int32", "int64", "complex128"),
    "divide": ("float64", "int64"),
    "divide_by_one": ("int64", "int32"),
    "remainder": ("float64", "int64"),
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
    "add_at_cast": ("float64", "int32"),
    "matmul": ("float64", "float32"),
    "matvec": ("float64", "float32"),
    "fft": ("complex128",),
    "sort": ("int64", "float64"),
}
_QUICK = frozenset(
    ("copy float64", "copy int32", "fill float64", "binary float64", "binary int32", "unary int32")
    + ("divide float64", "divide int64", "compare float64", "where float64", "scan int32")
    + ("scan float64", "reduce float64", "roll float64", "transpose float64", "take float64")
    + (
        "add_at int64",
        "add_at_cast float64",
        "matmul float64",
        "matvec float64",
        "fft complex128",
        "sort int64",
        "root float64",
    )
    + ("transcendental float64", "pad float64", "cast float64", "binary complex128")
    + ("divide_by_one int64", "remainder float64")
)
_FEW_ELEMENTS = (20, 40), (1, 24), (1, 60), (8, 90)
CALLED = ("np.sum", "mean", "np.mean")
"""Reductions that go through one or two functions of Python; ``sum`` is the library's own."""
FORMS = ("fresh", "out", "in_place")


def array_points(effort: Effort) -> list[Point]:
    """Return the points: of each class, every fourth on average is kept from its fit."""
    made: list[Point] = view_points()
    made += fresh_points()
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
    full = effort is Effort.FULL
    sizes = _SIZES if full else _FEW_SIZES
    # a first idea has time for every other shape
    lengths = (*_LENGTHS, *_MORE_LENGTHS) if full else _LENGTHS[::2]
    squares = (*_SQUARES, *_MORE_SQUARES) if full else _SQUARES[::2]
    match operation:
        case "matmul":
            yield from ({"rows": n, "columns": n, "depth": n} for n in _MATRICES)
            products = _PRODUCTS if full else _PRODUCTS[::3]
            yield from ({"rows": r, "columns": c, "depth": d} for r, c, d in products)
        case "matvec":
            yield from ({"rows": r, "columns": c} for r, c in lengths)
            if full:
                yield from ({"rows": r, "columns": c, "pitch": p} for r, c, p in _PANELS)
        case "add_at_cast":
            yield from ({"places": n, "table": t} for n, t in _TABLES if n <= _FEW_PLACES)
        case "take" | "add_at":
            tables = (*_TABLES, *_MORE_TABLES) if full else _TABLES[::2]
            yield from ({"places": n, "table": t} for n, t in tables)
            for away in _AWAY if full else _AWAY[1:]:
                few = _AWAY_TABLES if full else _AWAY_TABLES[::4]
                yield from ({"places": n, "table": t, "away_bytes": away} for n, t in few)
        case "fft" | "sort" | "scan" | "reduce":
            for axis in (1, 0):
                yield from (
                    {"rows": r, "columns": c, "axis": axis}
                    for r, c in (*lengths, (1500, 1400 if width < 16 else 600))
                    if axis or (operation not in ("fft", "sort") or c > 1)
                )
            if operation in ("fft", "sort"):
                single = _FEW_ROWS if full else _FEW_ROWS[1:3]
                yield from ({"rows": r, "columns": c, "axis": 1} for r, c in single)
            if full and operation != "reduce":
                yield from ({"rows": r, "columns": c, "axis": 0} for r, c in (*_CROWDED, *_ACROSS))
            if full and operation in ("scan", "reduce"):
                yield from (
                    {"rows": r, "columns": 1, "axis": 1, "pitch": p} for r, p in _COLUMNS_ALONE
                )
            if operation in ("scan", "reduce"):
                yield from ({"rows": 1, "columns": n, "axis": 1} for n in sizes)
            if operation == "reduce":
                yield from _with_steps(dtype, effort)
        case "transpose":
            yield from (
                {"rows": r, "columns": c} for r, c in (*squares, (2000, 1900), (2048, 2048))
            )
            if full:
                more = (*_MORE_CROWDED, *_SMALL_SQUARES)
                yield from ({"rows": r, "columns": c} for r, c in more)
        case "roll" | "pad":
            for axis in (0, 1):
                shapes = (*_LITTLE, *squares)
                yield from ({"rows": r, "columns": c, "axis": axis} for r, c in shapes)
            if full:
                yield from (
                    {"rows": r, "columns": c, "axis": axis, "pitch": c + 2}
                    for axis in (0, 1)
                    for r, c in _RUNS
                )
                yield from ({"rows": r, "columns": c, "axis": 0, "pitch": p} for r, c, p in _PANELS)
        case _:
            pattern = {"mask": "pattern"} if operation == "where" else {}
            for features in _elementwise(operation, width, sizes, effort):
                yield {**features, **pattern}
            patternless = _PATTERNLESS if full else _PATTERNLESS[:2]
            for n in patternless if pattern else ():
                whole: dict[str, Feature] = {"rows": 1, "columns": n, "pitch": n, "form": "fresh"}
                yield {**whole, "mask": "none"}


def _with_steps(dtype: str, effort: Effort) -> Iterator[Mapping[str, Feature]]:
    """Yield small reductions by what a program calls: functions, and means."""
    for rows, columns in _FEW_ELEMENTS if effort is Effort.FULL else _FEW_ELEMENTS[:1]:
        for axis in (1, 0) if rows > 1 else (1,):
            for name in CALLED if dtype == "float64" else CALLED[:1]:
                yield {"rows": rows, "columns": columns, "axis": axis, "called": name}


def _elementwise(
    operation: str, width: int, sizes: tuple[int, ...], effort: Effort
) -> Iterator[Mapping[str, Feature]]:
    forms: tuple[str, ...] = FORMS if operation == "binary" else ("fresh", "out")
    if operation == "fill":
        forms = ("out",)
    if operation == "where":
        # it stores into no array that is there: a program copies its result
        forms = ("fresh",)
    for form in forms:
        for n in sizes:
            if n * width <= 40_000_000:
                yield {"rows": 1, "columns": n, "pitch": n, "form": form}
    full = effort is Effort.FULL
    for rows, run in (*_RUNS, *_MORE_RUNS) if full else _RUNS[::2]:
        if "out" in forms:
            yield {"rows": rows, "columns": run, "pitch": run + 2, "form": "out"}
        if "fresh" in forms and (full or "out" not in forms):
            yield {"rows": rows, "columns": run, "pitch": run + 2, "form": "fresh"}
    columns = _COLUMNS if full or operation in ("copy", "binary") else _COLUMNS[::3]
    for rows, pitch in (*columns, *(_MORE_COLUMNS if full else ())):
        if "out" in forms:
            yield {"rows": rows, "columns": 1, "pitch": pitch, "form": "out"}
        if "fresh" in forms and (full or columns is _COLUMNS or "out" not in forms):
            yield {"rows": rows, "columns": 1, "pitch": pitch, "form": "fresh"}
