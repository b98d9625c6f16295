"""Short programs of different array calls over shared arrays, drawn by a rule.

Calls are fitted one by one, each repeated on the same memory. In a program they follow one
another: data comes from where the call before left it, and so does everything else that a
processor remembers. These programs say how much that matters, and how sure a whole is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, log, prod, sqrt
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from costdb.arrays.reuse import with_distances
from costdb.calibration.section import Action, Effort, Point, Quality, Timing
from costdb.estimate import Estimate, Missing
from costdb.evaluate import evaluate_price
from costdb.expr import Expr, num
from costdb.machines.documents import Json
from costdb.machines.machine import machine_of
from costdb.pricing import price_process
from costdb.process.terms import Leaf, Process, SeqLoop, Sequential
from costdb.work import ArrayCall, ArrayOperation, Region, Statement, Visit, Written

if TYPE_CHECKING:
    from numpy.typing import NDArray


SEQUENCE = "sequence"
_COUNTS = {Effort.QUICK: 10, Effort.FULL: 36}
_ELEMENTS = 1_500, 1_500_000
_ROWS = 2, 1_200
_STEPS = 3, 6
_ITEM = {"float64": 8, "int32": 4}
_ANY = ("sum", "add", "move", "across", "walk", "down", "along", "rolled", "grow", "sweep")
_FLOATS = (*_ANY, "root", "power", "share", "chosen", "blend")
_NAMES = "abc"
_LONGEST_SWEEP = 200
_ENOUGH_US = 300.0

Call = ArrayOperation


def sequence_points(effort: Effort) -> list[Point]:
    """Return the programs; none is fitted, so that all are held out."""
    return [_drawn(number) for number in range(_COUNTS[effort])]


def _drawn(number: int) -> Point:
    source = Random(f"{SEQUENCE} {number}")
    dtype = source.choice(("float64", "float64", "int32"))
    elements = exp(source.uniform(*map(log, _ELEMENTS)))
    rows = round(min(max(elements**0.5 * 2 ** source.uniform(-2, 2), _ROWS[0]), _ROWS[1]))
    columns = max(3, round(elements / rows))
    kinds = _FLOATS if dtype == "float64" else _ANY
    steps = source.sample(kinds, source.randint(*_STEPS))
    if rows > _LONGEST_SWEEP:
        steps = [step for step in steps if step != "sweep"]
    features = {"dtype": dtype, "rows": rows, "columns": columns, "steps": " ".join(steps)}
    return Point(SEQUENCE, {SEQUENCE: number, **features}, held_out=True)


def sequence_action(point: Point) -> Action:
    """Return one program, as often as can be timed."""
    from time import perf_counter

    run = program_of(point)
    run()
    begin = perf_counter()
    run()
    once_us = max((perf_counter() - begin) * 1e6, 1.0)
    times = max(1, int(_ENOUGH_US / once_us))

    def repeated() -> None:
        for _ in range(times):
            run()

    return Action(repeated, times, alone=True)


def program_of(point: Point) -> Callable[[], object]:
    """Return what runs a program once, on arrays of its own."""
    from costdb.calibration.array_calls.point_actions import numpy

    np = numpy()
    shape = _shape(point)
    random = np.random.default_rng(int(point.features[SEQUENCE]))
    # so small that sweeps and products neither grow nor vanish for long
    arrays = [np.asarray(random.uniform(0.1, 0.4, shape)) for _ in _NAMES]
    if point.features["dtype"] == "int32":
        arrays = [(100 * array).astype(np.int32) for array in arrays]
    steps = [_RUNS[step] for step in str(point.features["steps"]).split()]

    def run() -> None:
        for step in steps:
            step(np, *arrays)

    return run


def process_of(point: Point) -> Process:
    """Return the work of a program, its calls as lowering tells those of such statements."""
    shape = _shape(point)
    told = _Told(str(point.features["dtype"]), shape)
    steps = [_CALLS[step](told) for step in str(point.features["steps"]).split()]
    footprint = num(len(_NAMES) * told.item * prod(shape))
    return with_distances(Sequential(tuple(steps)), footprint)


def _shape(point: Point) -> tuple[int, int]:
    return int(point.features["rows"]), int(point.features["columns"])


def _sweep(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    for i in range(1, c.shape[0]):
        c[i, :] = c[i, :] - a[i, :] * c[i - 1, :]


def _sum(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = a + b


def _add(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c += a


def _move(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[1:, :] = b[:-1, :]


def _across(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[:, 1:] = a[:, :-1] + b[:, 1:]


def _walk(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = np.cumsum(a, axis=1, dtype=a.dtype)


def _down(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    b.sum(axis=0, dtype=b.dtype)


def _along(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    a.sum(axis=1, dtype=a.dtype)


def _rolled(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = np.roll(b, 2, axis=0)


def _grow(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = (a - b) + b * a


def _root(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = np.sqrt(a)


def _power(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = np.exp(b)


def _share(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = a / b


def _chosen(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = np.where(a < 1.0, a, b)


def _least(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[...] = np.where(a < b, a, b)


def _blend(np: Any, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> None:
    c[1:-1, 1:-1] = b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2]


_RUNS: Mapping[str, Callable[..., None]] = {
    "sum": _sum, "add": _add, "move": _move, "across": _across, "walk": _walk, "down": _down,
    "along": _along, "rolled": _rolled, "grow": _grow, "root": _root, "power": _power,
    "share": _share, "chosen": _chosen, "least": _least, "blend": _blend, "sweep": _sweep,
}  # fmt: skip


class _Told:
    """Calls over arrays of one shape, of which some leave out rows or columns."""

    def __init__(self, dtype: str, shape: tuple[int, int]) -> None:
        self.dtype, self.shape = dtype, shape
        self.item = _ITEM[dtype]

    def part(self, name: str, fewer_rows: int = 0, fewer_columns: int = 0) -> Visit:
        rows, columns = self.shape
        counts = num(rows - fewer_rows), num(columns - fewer_columns)
        return Visit(Region(self.item, counts, self._pitches(columns)), name)

    def row(self, name: str) -> Visit:
        columns = num(self.shape[1])
        region = Region(self.item, (columns,), (num(self.item),))
        return Visit(region, name, advance_bytes=columns * self.item)

    def own(self, like: Visit, item: int = 0) -> Visit:
        counts = like.region.counts
        item = item or self.item
        pitches = [num(item)]
        for count in counts[:0:-1]:
            pitches.insert(0, pitches[0] * count)
        return Visit(Region(item, counts, tuple(pitches)))

    def call(
        self, operation: Call, result: Visit, *operands: Visit, fresh: bool = True, **more: Any
    ) -> ArrayCall:
        elements: Expr = num(1)
        for count in result.region.counts:
            elements = elements * count
        return ArrayCall(operation, self.dtype, elements, result, operands, fresh=fresh, **more)

    def stored(self, source: Visit, target: Visit) -> ArrayCall:
        return self.call(Call.COPY, target, source, fresh=False)

    def reduced(self, name: str, axis: int) -> ArrayCall:
        whole = self.part(name)
        kept = Region(self.item, (whole.region.counts[1 - axis],), (num(self.item),))
        elements = num(prod(self.shape))
        return ArrayCall(
            Call.REDUCE, self.dtype, elements, Visit(kept), (whole,), fresh=True,
            axis_from_last=1 - axis, length=num(self.shape[axis]),
        )  # fmt: skip

    def _pitches(self, columns: int) -> tuple[Expr, Expr]:
        return num(self.item * columns), num(self.item)


def _view(written: Written, *, stored: bool = False) -> ArrayCall:
    return ArrayCall(Call.VIEW, "any", num(1), written=replace(written, stored=stored))


_SIDE, _SHIFTED = Written(slices=2, bounds=1), Written(slices=2, bounds=3)
_INSIDE, _ROW = Written(slices=2, bounds=4), Written(indices=1, slices=1)


def _leaf(*calls: ArrayCall) -> Process:
    return Leaf(Statement((), num(0), SEQUENCE, calls))


def _of_one(operation: Call, *names: str) -> Callable[[_Told], Process]:
    """Return a statement that stores the result of one operation on whole arrays."""

    def told(arrays: _Told) -> Process:
        parts = [arrays.part(name) for name in names]
        made = arrays.own(parts[0])
        more: dict[str, Any] = {}
        if operation is Call.SCAN:
            more = {"axis_from_last": 0, "length": num(arrays.shape[1])}
        call = arrays.call(operation, made, *parts, **more)
        return _leaf(call, arrays.stored(made, arrays.part("c")))

    return told


def _told_add(arrays: _Told) -> Process:
    whole = arrays.part("c")
    return _leaf(arrays.call(Call.BINARY, whole, whole, arrays.part("a"), fresh=False))


def _told_move(arrays: _Told) -> Process:
    place = _view(_SIDE, stored=True)
    return _leaf(_view(_SIDE), place, arrays.stored(arrays.part("b", 1), arrays.part("c", 1)))


def _told_across(arrays: _Told) -> Process:
    parts = [arrays.part(name, 0, 1) for name in "ab"]
    made = arrays.own(parts[0])
    added = arrays.call(Call.BINARY, made, *parts)
    stored = arrays.stored(made, arrays.part("c", 0, 1))
    place = _view(_SIDE, stored=True)
    return _leaf(_view(_SIDE), _view(_SIDE), added, place, stored)


def _told_grow(arrays: _Told) -> Process:
    one, two = arrays.part("a"), arrays.part("b")
    first, second = arrays.own(one), arrays.own(one)
    return _leaf(
        arrays.call(Call.BINARY, first, one, two),
        arrays.call(Call.BINARY, second, two, one),
        arrays.call(Call.BINARY, first, first, second, reuses=True),
        arrays.stored(first, arrays.part("c")),
    )


def _told_chosen(arrays: _Told) -> Process:
    one, two = arrays.part("a"), arrays.part("b")
    mask, made = arrays.own(one, 1), arrays.own(one)
    return _leaf(
        arrays.call(Call.COMPARE, mask, one),
        # one value throughout, which any processor foresees
        arrays.call(Call.WHERE, made, mask, one, two, foreseen=True),
        arrays.stored(made, arrays.part("c")),
    )


def _told_least(arrays: _Told) -> Process:
    one, two = arrays.part("a"), arrays.part("b")
    chosen, made = arrays.own(one, 1), arrays.own(one)
    return _leaf(
        arrays.call(Call.COMPARE, chosen, one, two),
        arrays.call(Call.WHERE, made, chosen, one, two),
        arrays.stored(made, arrays.part("c")),
    )


def _told_blend(arrays: _Told) -> Process:
    part, target = arrays.part("b", 2, 2), arrays.part("c", 2, 2)
    made = arrays.own(part)
    return _leaf(
        _view(_SHIFTED),
        _view(_SHIFTED),
        arrays.call(Call.BINARY, made, part, part),
        _view(_SHIFTED),
        arrays.call(Call.BINARY, made, made, part, reuses=True),
        _view(_INSIDE, stored=True),
        arrays.stored(made, target),
    )


def _told_sweep(arrays: _Told) -> Process:
    above = Visit(arrays.row("c").region, "c", advance_bytes=num(0))
    own = arrays.own(above)
    body = _leaf(
        _view(_ROW),
        _view(_ROW),
        _view(_ROW),
        arrays.call(Call.BINARY, own, arrays.row("a"), above),
        arrays.call(Call.BINARY, own, arrays.row("c"), own),
        _view(_ROW, stored=True),
        arrays.stored(own, arrays.row("c")),
    )
    return SeqLoop("i", num(1), num(arrays.shape[0] - 1), body)


_CALLS: Mapping[str, Callable[[_Told], Process]] = {
    "sum": _of_one(Call.BINARY, "a", "b"),
    "add": _told_add,
    "move": _told_move,
    "across": _told_across,
    "walk": _of_one(Call.SCAN, "a"),
    "down": lambda arrays: _leaf(arrays.reduced("b", 0)),
    "along": lambda arrays: _leaf(arrays.reduced("a", 1)),
    "rolled": _of_one(Call.ROLL, "b"),
    "grow": _told_grow,
    "root": _of_one(Call.ROOT, "a"),
    "power": _of_one(Call.TRANSCENDENTAL, "b"),
    "share": _of_one(Call.DIVIDE, "a", "b"),
    "chosen": _told_chosen,
    "least": _told_least,
    "blend": _told_blend,
    "sweep": _told_sweep,
}


# What programs of array calls leave unexplained beyond what their calls do.
#
# The misses of classes of calls know nothing of one another; what a whole program brings with it
# (data and code that other calls drove out of the caches) falls on all its calls alike. That is one
# factor: its middle is the median of measured over predicted time, its ends are as far from that as
# is needed so that nine in ten programs lie within it and the residuals of their classes together.

_QUANTILE = 0.95
_LEAST = 8
"""Of fewer programs nothing is said."""
_NOTE = "programs of several array calls, measured over predicted, beyond what their classes miss"
_MODEL = "calls one after another"


def fit_sequences(
    timings: Sequence[Timing], parts: Mapping[str, Json], line_bytes: int
) -> tuple[Json | None, list[Quality]]:
    """Return the factor of whole programs, and how well they are predicted without it.

    Parameters
    ----------
    timings : sequence of Timing
    parts : mapping of str to JSON
        What was fitted to single calls.
    line_bytes : int

    Returns
    -------
    JSON or None
        None where too few programs were measured.
    """
    # the process that measures decides how many threads NumPy may have, before it is imported
    import numpy as np

    from costdb.calibration.fitting import quality
    from costdb.machines.documents import measured

    document: dict[str, Json] = {
        "schema_version": 1,
        "name": "fitted",
        "title": "what was fitted to single calls",
        "library": "none",
        "sources": {"calibration": "this one"},
        "hardware": {"cache_line_bytes": measured(line_bytes, "byte")},
        **parts,
    }
    machine = machine_of(document, "calibration")
    ratios: list[float] = []
    needed: tuple[list[float], list[float]] = [], []
    pairs: list[tuple[float, float]] = []
    judged: list[tuple[Timing, Estimate]] = []
    for timing in timings:
        price = price_process(process_of(timing.point), machine)
        if timing.launches_us and not isinstance(price, Missing):
            found = evaluate_price(price, {})
            judged.append((timing, found))
            pairs.append((timing.typical_us, 1e6 * found.mid))
            ratios.append(timing.typical_us / (1e6 * found.mid))
    if len(judged) < _LEAST:
        return None, []
    middle = median(ratios)
    for timing, found in judged:
        for launch in timing.each_launch_us:
            off = launch / (1e6 * found.mid * middle) - 1
            own = 1 - found.low / found.mid, found.high / found.mid - 1
            for side, sign in enumerate((-1, 1)):
                needed[side].append(sqrt(max(0.0, max(0.0, sign * off) ** 2 - own[side] ** 2)))
    low, high = (float(np.quantile(side, _QUANTILE)) for side in needed)
    factor = measured(middle, "1", middle * (1 - min(low, 0.9)), middle * (1 + high), _NOTE)
    times, predicted = (np.array(one) for one in zip(*pairs, strict=True))
    return factor, [quality(SEQUENCE, _MODEL, times, predicted, chosen=True)]
