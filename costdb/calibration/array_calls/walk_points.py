"""Walks across lines that crowd into few sets: how much of them the second level keeps.

A pitch of one page brings the lines of a walk to one place in every page, and so to few sets. How
many of them are still there when the walk comes back goes by what the cache drops for a new line,
which no system tells. Walks of more and more lines tell: the time of one line grows from what the
second level takes to what the next one does, around as many lines as the level keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from costdb.arrays.hierarchy import PAGE_BYTES, SPREADS, Hierarchy
from costdb.calibration.section import Effort, Point, Timing
from costdb.expr import evaluate, num

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
