"""Sections of which little was measured in their time: a sound fit of it, or none that says why."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.calibration.section import Effort, Timing, find_section
from tests.costdb.hosts import EPYC

NAMES = ("messages", "collectives", "pickled", "remote", "supersteps")
LARGEST = 1e9


def numbers(document: object) -> Iterator[float]:
    """Yield the values of all quantities in a part of a profile."""
    if isinstance(document, dict):
        if isinstance(document.get("value"), int | float):
            yield float(document["value"])
        for each in document.values():
            yield from numbers(each)
    elif isinstance(document, list):
        for each in document:
            yield from numbers(each)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_few_points_say_is_sound_or_not_said(name: str, data: st.DataObject) -> None:
    section = find_section(name)
    points = section.points(Effort.QUICK, 2, EPYC)
    chosen = data.draw(st.lists(st.sampled_from(points), min_size=1, max_size=40, unique_by=id))
    draw = data.draw(st.randoms(use_true_random=False))
    timings = [Timing(p, (((draw.uniform(1, 500),) * 3,), ((5.0, 6.0),))) for p in chosen]
    try:
        fitted = section.fit(timings, EPYC)
    except (ValueError, LookupError):
        # a calibration leaves the section out, says so, and keeps the others
        return
    found = list(numbers(fitted.parts))
    assert found
    assert all(math.isfinite(value) and abs(value) < LARGEST for value in found)
    for quality in fitted.qualities:
        assert math.isfinite(quality.r2) and math.isfinite(quality.median_error)
