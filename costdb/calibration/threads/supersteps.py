"""Good and Bad supersteps with real threads: the three suites of the SMP interval model.

A superstep copies in, then copies out, with a barrier between, so that the processor that reads
most and the one that writes most need not be the same. In the Good family a processor reads and
writes consecutive elements of its own, again and again; in the Bad family every access is on
another line, far from the last one in memory beyond all caches, which another processor used last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from costdb.calibration.array_calls.fit import cache_levels
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.calibration.threads.superstep_points import GOOD, plan_of, superstep_points


@dataclass(frozen=True, slots=True)
class SuperstepSection:
    """Reads and writes of shared memory between barriers."""

    name: str = "supersteps"
    title: str = "shared memory: near and far supersteps of threads"
    needs: frozenset[Need] = frozenset((Need.NUMBA,))

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return the plans of all suites; none where there are no two cores."""
        return superstep_points(effort, processors)

    def action(self, point: Point, world: World) -> Action:
        """Return the superstep; its first run, a warm-up, compiles or loads it."""
        from costdb.calibration.threads.superstep_kernels import Far, Near

        plan = plan_of(point)
        if point.features["family"] == GOOD:
            return Action(Near(plan.reads, plan.writes))
        far = Far(plan.reads, plan.writes, cache_levels(world.host)[-1])
        return Action(far, before=far.move)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit both families for each number of processors."""
        from costdb.calibration.threads.superstep_profile import fitted_supersteps

        return fitted_supersteps(timings, host)


SECTION = SuperstepSection()
