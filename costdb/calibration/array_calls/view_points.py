"""Views that are timed: an interpreter takes longer for every index and slice in a subscript."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, repeat
from statistics import median
from typing import TYPE_CHECKING, Any

from costdb.arrays.amounts import FAR, HUGE, HUGE_BYTES, SMALL
from costdb.arrays.hierarchy import BEYOND, PAGE_BYTES, SPREADS, Hierarchy
from costdb.calibration.host.calm_core import keep_freed_memory, numpy_on_one_thread
from costdb.calibration.section import Action, Effort, Point, Timing
from costdb.expr import evaluate, num
from costdb.machines.documents import Json
from costdb.work import Written

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
    from numpy.typing import NDArray


_SUBSCRIPT = "subscript"
_REPEATED = 200
_WRITTEN: Mapping[str, Written] = {
    "T": Written(),
    "i": Written(indices=1),
    "a:": Written(slices=1, bounds=1),
    "a:-b": Written(slices=1, bounds=2),
    "i, :": Written(indices=1, slices=1),
    ":, i": Written(indices=1, slices=1),
    "i, a:-b": Written(indices=1, slices=1, bounds=2),
    "a:-b, c:": Written(slices=2, bounds=3),
    "a:-b, c:-d": Written(slices=2, bounds=4),
    "i, i, a:-b": Written(indices=2, slices=1, bounds=2),
    "i, a:, a:-b": Written(indices=1, slices=2, bounds=3),
    "a:-b, a:-b, a:-b": Written(slices=3, bounds=6),
    "i = itself": Written(indices=1, kept=True),
    "a:-b = itself": Written(slices=1, bounds=2, kept=True),
    "i, a: = itself": Written(indices=1, slices=1, bounds=1, kept=True),
}


def view_points() -> list[Point]:
    """Return subscripts that tell indices, slices and their number apart."""
    return [
        Point("view", {"operation": "view", "dtype": "any", _SUBSCRIPT: name}) for name in _WRITTEN
    ]


def written_at(point: Point) -> Written:
    """Return the subscript of a point in the words of the model.

    Points of calibrations from before there were several have two slices.
    """
    return _WRITTEN[str(point.features.get(_SUBSCRIPT, "a:-b, c:"))]


def view_action(memory: Array, point: Point) -> Action:
    """Return the repetition of one view.

    Each is written out in a loop of its own, as calling a function takes half as long as a view.
    """
    matrix, block = memory[:10_000].reshape(100, 100), memory[:9261].reshape(21, 21, 21)
    vector, i = memory[:100], 7
    row, some, part = matrix[i], vector[1:-1], matrix[i, 1:]

    def turned() -> None:
        for _ in repeat(None, _REPEATED):
            matrix.T  # noqa: B018  # making it is what is timed

    def row_of() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i]

    def tail() -> None:
        for _ in repeat(None, _REPEATED):
            vector[1:]

    def inner() -> None:
        for _ in repeat(None, _REPEATED):
            vector[1:-1]

    def whole_row() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i, :]

    def column() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[:, i]

    def inner_of_row() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i, 1:-1]

    def lower_right() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[1:-1, 2:]

    def inside() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[1:-1, 2:-2]

    def line() -> None:
        for _ in repeat(None, _REPEATED):
            block[i, i, 1:-1]

    def panel() -> None:
        for _ in repeat(None, _REPEATED):
            block[i, 1:, 1:-1]

    def inner_block() -> None:
        for _ in repeat(None, _REPEATED):
            block[1:-1, 1:-1, 1:-1]

    def row_kept() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i] = row

    def some_kept() -> None:
        for _ in repeat(None, _REPEATED):
            vector[1:-1] = some

    def part_kept() -> None:
        for _ in repeat(None, _REPEATED):
            matrix[i, 1:] = part

    views: Mapping[str, Callable[[], None]] = {
        "T": turned,
        "i": row_of,
        "a:": tail,
        "a:-b": inner,
        "i, :": whole_row,
        ":, i": column,
        "i, a:-b": inner_of_row,
        "a:-b, c:": lower_right,
        "a:-b, c:-d": inside,
        "i, i, a:-b": line,
        "i, a:, a:-b": panel,
        "a:-b, a:-b, a:-b": inner_block,
        "i = itself": row_kept,
        "a:-b = itself": some_kept,
        "i, a: = itself": part_kept,
    }
    return Action(views[str(point.features[_SUBSCRIPT])], _REPEATED, alone=True)


# Walks across lines that crowd into few sets: how much of them the second level keeps.
#
# A pitch of one page brings the lines of a walk to one place in every page, and so to few sets. How
# many of them are still there when the walk comes back goes by what the cache drops for a new line,
# which no system tells. Walks of more and more lines tell: the time of one line grows from what the
# second level takes to what the next one does, around as many lines as the level keeps.

WALK = "walk_lines"
WALKS = 32
"""So many columns, each a walk: the first of eight finds its lines not yet loaded."""
_LINES = (
    (40, 50, 64, 80, 100, 120, 140, 160, 190, 220, 260, 300, 340, 380, 420, 460, 512, 560, 610)
    + (660, 720, 780, 850, 920, 1000, 1100, 1200, 1350, 1500)
)  # fmt: skip
_KEPT = tuple(round(0.8 + 0.05 * step, 2) for step in range(16))
"""Up to where lines spread over twice as many sets instead."""
_NEAR, _FAR = 0.4, 2.5
"""Walks of so many times the lines that a level is found to keep tell how much that is."""
_LEAST_TOLD, _LEAST_GROWTH = 6, 1.0
"""Of so many walks; and lines from beyond take so much longer than those that are there."""


def walk_points(effort: Effort) -> list[Point]:
    """Return walks of more and more lines at the pitch of a page; a first idea has no time."""
    if effort is Effort.QUICK:
        return []
    return [Point("walk", {WALK: lines}) for lines in _LINES]


def walk_of(point: Point, buffers: tuple[NDArray[Any], NDArray[Any]]) -> Callable[[], object]:
    """Return walks side by side, as copies that transpose take them."""
    lines = int(point.features[WALK])
    source, target = buffers
    pitch = PAGE_BYTES // source.itemsize
    columns = source[: lines * pitch].reshape(lines, pitch)[:, :WALKS].T
    copied = target[: lines * WALKS].reshape(WALKS, lines)

    def walked() -> None:
        copied[...] = columns

    return walked


def kept_of(timings: Sequence[Timing], memory: Hierarchy) -> float | None:
    """Return of how many times its size the second level keeps half of lines that crowd.

    None where the walks do not tell: where they are too few, or lines from beyond take hardly
    longer, or what is found is at an end of what there is to find.
    """
    lines, each_us = [], []
    for timing in timings:
        if WALK in timing.point.features and timing.launches_us:
            lines.append(int(timing.point.features[WALK]))
            each_us.append(timing.typical_us / lines[-1])
    found = [
        (missed, kept)
        for spread, kept in product(SPREADS, _KEPT)
        if (missed := _missed(lines, each_us, replace(memory, spread=spread, kept=kept)))
        is not None
    ]
    best = min(found, default=None)
    return None if best is None or best[1] in (_KEPT[0], _KEPT[-1]) else best[1]


def _missed(lines: Sequence[int], each_us: Sequence[float], memory: Hierarchy) -> float | None:
    """Return by how much of it two times of a line miss the times of walks, in their mean."""
    import numpy as np
    from scipy.optimize import nnls

    crowding = memory.crowding(num(PAGE_BYTES))
    half = memory.kept * memory.levels[1] / memory.line_bytes / float(evaluate(crowding[1], {}))
    told = [number for number, count in enumerate(lines) if _NEAR < count / half < _FAR]
    if len(told) < _LEAST_TOLD:
        return None
    lost = [
        float(evaluate(memory.lost(num(lines[one] * memory.line_bytes), crowding)[1], {}))
        for one in told
    ]
    times = np.array([each_us[one] for one in told])
    shares = np.array([[1.0, share] for share in lost])
    (there, more), _ = nnls(shares / times[:, None], np.ones(len(told)))
    if there <= 0 or more < _LEAST_GROWTH * there:
        return None
    return float(np.abs(shares @ (there, more) / times - 1).mean())


# Memory that the system gives anew, beside memory that stays: points, actions and the fit.
#
# Arrays are copied into, as most arrays that programs make are computed from others: what the
# system does for each page comes between the loads. The system takes the page that was given back
# last, so that what it clears is near where little is given back at once, and far where much is.

FRESH = "fresh"
_ITEM_BYTES = 8
_QUANTILES = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class Given:
    """Arrays that get memory: how many elements and arrays, and whether all go back at once."""

    elements: int
    count: int
    at_once: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays."""
        return self.elements * self.count * _ITEM_BYTES


SIZES: Mapping[str, Given] = {
    SMALL: Given(490_000, 5),
    SMALL + FAR: Given(490_000, 4, at_once=True),
    HUGE: Given(1_500_000, 2),
    HUGE + FAR: Given(1_500_000, 5, at_once=True),
    BEYOND: Given(5_000_000, 1),
}
"""By what the system gives their memory in, and how far it is: what :mod:`costdb.arrays.heap` calls
near and far."""


def fresh_points() -> list[Point]:
    """Return the points: each kind anew and kept."""
    return [
        Point(f"fresh memory {kind}", {FRESH: kind, "given": given, "by": "copy"})
        for kind in SIZES
        for given in ("anew", "kept")
    ]


def fresh_action(point: Point) -> Action:
    """Return what copies into arrays whose memory the system gives anew, or that are there."""
    np = numpy_on_one_thread()
    keep_freed_memory()
    given = SIZES[str(point.features[FRESH])]
    source = np.ones(given.elements)
    if point.features["given"] == "kept":
        there = [np.zeros(given.elements) for _ in range(given.count)]

        def copy() -> None:
            for array in there:
                array[:] = source

        return Action(copy, alone=True)
    return Action(_mapped(given, source), alone=True)


def _mapped(given: Given, source: NDArray[Any]) -> Callable[[], None]:
    import mmap

    import numpy as np

    size = given.elements * _ITEM_BYTES

    def copy() -> None:
        # as the C library gets memory that it does not have, and NumPy asks for huge pages
        held = []
        for _ in range(given.count):
            pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if size >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
                pages.madvise(mmap.MADV_HUGEPAGE)
            np.frombuffer(pages)[:] = source
            held.append(pages)
            if not given.at_once:
                held.pop().close()
        for pages in held:
            pages.close()

    return copy


def fresh_lines(timings: Sequence[Timing], line_bytes: int) -> dict[str, Json]:
    """Return what a line takes on top where the system gives its memory, by kind of memory."""
    # the process that measures decides how many threads NumPy may have, before it is imported
    import numpy as np

    from costdb.machines.documents import measured

    by_kind: dict[str, dict[str, Timing]] = {}
    for timing in timings:
        kind = timing.point.features.get(FRESH)
        if kind is not None and timing.launches_us:
            by_kind.setdefault(str(kind), {})[str(timing.point.features["given"])] = timing
    found: dict[str, Json] = {}
    for kind, both in by_kind.items():
        if len(both) == 2:
            lines = SIZES[kind].size_bytes / line_bytes
            # of few samples one that the host itself had no memory for would be most of a mean
            kept = median(both["kept"].samples_us)
            anew = both["anew"].samples_us
            low, high = (max(0.0, float(np.quantile(anew, q)) - kept) / lines for q in _QUANTILES)
            middle = max(0.0, median(anew) - kept) / lines
            found[kind] = measured(middle, "us/line", min(low, middle), max(high, middle))
    return found
