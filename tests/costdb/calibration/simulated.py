"""Calibrations of machines that are formulas: timings of points, profiles of what is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from costdb.calibration.section import Effort, Host, Point, Section, Timing
from costdb.documents import check_profile
from costdb.machines import Json, Machine, machine_of
from tests.costdb.hosts import EPYC
from tests.costdb.made_up import HEADING, quantity


def timings(
    section: Section,
    exact_us: Callable[[Point], float],
    noise: float = 0.0,
    *,
    seed: int = 3,
    effort: Effort = Effort.FULL,
    host: Host = EPYC,
) -> list[Timing]:
    """Return three launches of each point, with two ranks or cores."""
    draw = np.random.default_rng(seed)
    made = []
    for point in section.points(effort, 2, host):
        launches = exact_us(point) * np.exp(noise * draw.standard_normal((3, 9)))
        made.append(Timing(point, tuple((tuple(launch),) for launch in launches.tolist())))
    return made


def profile_of(parts: Mapping[str, Json]) -> Machine:
    """Return the machine of a profile with these parts, which keeps to the schema."""
    line = {"cache_line_bytes": quantity(64, "byte")}
    stated: dict[str, Json] = {**HEADING, "hardware": line, **parts}
    assert check_profile(stated, "here.json") == []
    return machine_of(stated, "here.json")
