"""The ``smp`` section of a profile, from timed supersteps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from costdb.calibration.array_calls.arrays import cache_levels
from costdb.calibration.fitting import repetition, residual_of
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Fitted, Quality, Timing
from costdb.calibration.threads.superstep_fit import Coefficients, FamilyFit, fit_family
from costdb.calibration.threads.superstep_points import BAD, ELEMENT_BYTES, GOOD, operation
from costdb.machines.documents import Json
from costdb.machines.stated import measured
from costdb.repetition import THREADS

_NOTE = (
    "Supersteps: numba's threads, 8-byte elements; a barrier parts reads from writes, and "
    "launching the threads is part of the start-up. Bad accesses are each on another line beyond "
    "all caches that another processor used last; no two processors are at one line at once."
)


def fitted_supersteps(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit all families and processor counts and return the section.

    Raises
    ------
    ValueError
        A family was hardly measured.
    """
    counts = sorted({int(timing.point.features["processors"]) for timing in timings})
    if not counts:
        raise ValueError("supersteps need two cores")
    # Far accesses are beyond all caches, however few they are.
    limits: dict[str, list[int]] = {
        GOOD: [size // ELEMENT_BYTES for size in cache_levels(host)],
        BAD: [],
    }
    fits: dict[tuple[str, int], FamilyFit] = {}
    qualities: list[Quality] = []
    kept: list[Timing] = []
    for family in (GOOD, BAD):
        for count in counts:
            name = operation(family, count)
            ours = [timing for timing in timings if timing.point.operation == name]
            fit = fit_family(name, ours, limits[family], good=family == GOOD)
            fits[family, count] = fit
            qualities += fit.qualities
            kept += [timing for timing in ours if timing.point.held_out]
    predicted = np.concatenate([fit.predicted_us for fit in fits.values()])
    heights = [int(timing.point.features["h"]) for timing in timings]
    good: dict[str, Json] = {
        f"p{count}": {
            piece: _coefficients(found) for piece, found in fits[GOOD, count].published.items()
        }
        for count in counts
    }
    bad: dict[str, Json] = {
        f"p{count}": _coefficients(fits[BAD, count].published[""]) for count in counts
    }
    part: dict[str, Json] = {
        "element_bytes": measured(ELEMENT_BYTES, "byte"),
        "cache_capacity_elements": measured(fits[GOOD, counts[0]].capacity, "element"),
        "residual": residual_of(kept, predicted),
        "range": {"h": [min(heights), max(heights)]},
        "good": {"HrHwM_c": good},
        "bad": {"HrHwM": bad},
        "levels": {family: _levels(fits, family, counts) for family in (GOOD, BAD)},
        "validation": {f"{family}_p{count}": _errors(fit) for (family, count), fit in fits.items()},
    }
    return Fitted({"smp": part, **repetition(THREADS, kept)}, tuple(qualities), (_NOTE,))


def _errors(fit: FamilyFit) -> Json:
    return {form.replace(" ", "_"): measured(error, "1") for form, error in fit.errors.items()}


def _levels(fits: dict[tuple[str, int], FamilyFit], family: str, counts: Sequence[int]) -> Json:
    by_count: dict[str, Json] = {
        f"p{count}": _coefficients(fits[family, count].levels) for count in counts
    }
    return {"limits": [*fits[family, counts[0]].limits], **by_count}


def _coefficients(found: Coefficients) -> dict[str, Json]:
    return {
        name: measured(value, "us" if name == "L" else "us/element")
        for name, value in found.items()
    }
