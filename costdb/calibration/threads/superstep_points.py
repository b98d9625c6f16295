"""The supersteps to time: which plans, of which family, with how many threads."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from costdb.calibration.section import Effort, Point
from costdb.smp.suites import Kind, Plan, Suite, heights, make_plan

GOOD, BAD = "good", "bad"
ELEMENT_BYTES = 8
LINE_BYTES = 64

_FITTED_SUITE = {GOOD: Suite.EXACT, BAD: Suite.SAME_MAXIMA}
_HEIGHTS = {Effort.FULL: heights(12), Effort.QUICK: heights(6, high=600_000)}


def superstep_points(effort: Effort, processors: int) -> Sequence[Point]:
    """Return the plans of all suites; none where there are no two cores."""
    return [
        _point(family, suite, kind, h, x, threads)
        for threads in sorted({2, processors})
        if 2 <= threads <= processors
        for family in (GOOD, BAD)
        for suite in Suite
        for kind in Kind
        for h in _HEIGHTS[effort]
        for x in sorted({1, threads // 2, threads - 1})
    ]


def plan_of(point: Point) -> Plan:
    """Return the plan of a point."""
    given = point.features
    h, x, processors = (int(given[name]) for name in ("h", "x", "processors"))
    return _plan(Suite(int(given["suite"])), Kind(str(given["kind"])), h, x, processors)


def operation(family: str, processors: int) -> str:
    """Return the name of a family's supersteps: ``superstep.good.p2``."""
    return f"superstep.{family}.p{processors}"


def _point(family: str, suite: Suite, kind: Kind, h: int, x: int, processors: int) -> Point:
    plan = _plan(suite, kind, h, x, processors)
    features: Mapping[str, int | str] = {
        "family": family,
        "suite": int(suite),
        "kind": kind.value,
        "h": h,
        "x": x,
        "processors": processors,
        "hr": plan.hr,
        "hw": plan.hw,
        "accesses": plan.total,
        "dtype": "i8",
    }
    return Point(operation(family, processors), features, suite is not _FITTED_SUITE[family])


def _plan(suite: Suite, kind: Kind, h: int, x: int, processors: int) -> Plan:
    # The same everywhere: rank, launch and resumed run must time the same plan.
    source = random.Random(f"{int(suite)} {kind.value} {h} {x} {processors}")
    return make_plan(suite, kind, h, x, processors, source)
