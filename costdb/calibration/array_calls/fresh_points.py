"""Memory that the system gives anew, beside memory that stays: points, actions and the fit.

Arrays are copied into, as most arrays that programs make are computed from others: what the system
does for each page comes between the loads. The system takes the page that was given back last, so
that what it clears is near where little is given back at once, and far where much is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from costdb.arrays.amounts import FAR, HUGE, HUGE_BYTES, SMALL
from costdb.arrays.hierarchy import BEYOND
from costdb.calibration.host.one_thread import keep_freed_memory, numpy_on_one_thread
from costdb.calibration.section import Action, Point, Timing
from costdb.machines.documents import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
