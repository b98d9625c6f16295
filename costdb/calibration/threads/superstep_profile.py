"""The ``smp`` section of a profile, from timed supersteps."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from costdb.calibration.array_calls.fit import cache_levels
from costdb.calibration.fitting import (
    Columns,
    Mask,
    Vector,
    fit_above,
    held_out,
    part,
    predict,
    quality,
    repetition,
    residual_of,
    typical_us,
)
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import Fitted, Quality, Timing
from costdb.calibration.threads.superstep_points import BAD, ELEMENT_BYTES, GOOD, operation
from costdb.machines.documents import Json, measured
from costdb.repetition import THREADS

# Fits of the Good and the Bad family of supersteps, in the published forms and by cache level.
#
# Good is fitted to suite 1 and Bad to suite 2; what is published of a form is its error on the
# two other suites. No coefficient is negative, so that a prediction never falls with the accesses.
#
# Predictions use a form that is continuous: the published ``HrHwM``, or one of two by cache level.
# One of these leaves ``M`` out: with two processors, one of them busy, suite 1 makes ``M = 2 h`` in
# every plan, so that a fit to it cannot tell the accesses of all from those of the busiest, and the
# other suites pay for what it guesses. The published Good form with a step at the cache's capacity
# is fitted and judged beside them.

Coefficients = Mapping[str, float]

PUBLISHED = ("H", "HrHw", "HM", "HrHwM")
PLAIN = "HrHwM"
BY_LEVEL = "HrHwM by cache level"
BUSIEST_BY_LEVEL = "HrHw by cache level"
CACHED = "HrHwM-c"

_LEAST_SAMPLES = 6


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """What came of one family with one number of processors.

    Attributes
    ----------
    published : mapping of str to coefficients
        By piece: ``R0`` and ``R1`` for Good, one piece without a name for Bad.
    levels : mapping of str to float
        Coefficients of the chosen form by cache level.
    limits : tuple of int
        Accesses of one processor up to which each level but the last reaches.
    capacity : int
        Where R0 ends.
    errors : mapping of str to float
        Mean relative errors on the suites that were kept from the fit, by form.
    predicted_us : array, shape (n,)
        Of the chosen form, for the points that were kept from the fit.
    qualities : tuple of Quality
    """

    published: Mapping[str, Coefficients]
    levels: Coefficients
    limits: tuple[int, ...]
    capacity: int
    errors: Mapping[str, float]
    predicted_us: Vector
    qualities: tuple[Quality, ...]


def counts(timings: Sequence[Timing]) -> Columns:
    """Return most reads, most writes, their maximum and all accesses of each superstep."""
    hr, hw, total = (
        np.array([float(timing.point.features[name]) for timing in timings])
        for name in ("hr", "hw", "accesses")
    )
    return {"L": np.ones(len(timings)), "ghr": hr, "ghw": hw, "gh": np.maximum(hr, hw), "gM": total}


def level_columns(given: Columns, limits: Sequence[int]) -> Columns:
    """Return the columns of the form by cache level: accesses that fall into each level."""
    columns: dict[str, Vector] = {"L": given["L"], "gM": given["gM"]}
    edges = (0.0, *map(float, limits), np.inf)
    for key in ("ghr", "ghw"):
        for number, (low, high) in enumerate(itertools.pairwise(edges)):
            columns[f"{key}{number}"] = np.clip(given[key] - low, 0.0, high - low)
    return columns


def fit_family(
    operation: str, timings: Sequence[Timing], limits: Sequence[int], *, good: bool
) -> FamilyFit:
    """Fit one family.

    Parameters
    ----------
    operation : str
        For the qualities.
    limits : sequence of int
        Accesses of one processor that each cache level holds, ascending.

    Raises
    ------
    ValueError
        Too few points were measured.
    """
    given, times, kept = counts(timings), typical_us(timings), held_out(timings)
    if (~kept).sum() < _LEAST_SAMPLES or kept.sum() < _LEAST_SAMPLES:
        raise ValueError(f"{operation}: too few supersteps were measured")
    heights = [int(timing.point.features["h"]) for timing in timings]
    used = [limit for limit in limits if min(heights) < limit < max(heights)]
    # of two sides one may stay within a cache that the larger one leaves
    least = min(given["ghr"].min(), given["ghw"].min())
    reached = [limit for limit in limits if least < limit < max(heights)]
    capacity = used[-1] if used else int(given["gh"].max())
    forms: dict[str, Vector] = {}
    for form in PUBLISHED:
        columns = _published_columns(given, form)
        found = fit_above(part(columns, ~kept), times[~kept])
        forms[form] = predict(columns, found)
    published: dict[str, Coefficients] = {"": found}
    if good:
        capacity, published, forms[CACHED] = _cached(given, times, kept, used or [capacity])
    by_level = level_columns(given, reached)
    fits: dict[str, Coefficients] = {PLAIN: _at_all_levels(found, by_level)}
    for form, columns in ((BY_LEVEL, by_level), (BUSIEST_BY_LEVEL, _without(by_level, "gM"))):
        fits[form] = fit_above(part(columns, ~kept), times[~kept])
        forms[form] = predict(columns, fits[form])
    errors = {form: _mean_error(times[kept], values[kept]) for form, values in forms.items()}
    chosen = min(fits, key=lambda form: errors[form])
    return FamilyFit(
        published,
        fits[chosen],
        tuple(reached),
        capacity,
        {form: errors[form] for form in forms if form in fits or form == CACHED},
        forms[chosen][kept],
        tuple(
            quality(operation, form, times[kept], values[kept], chosen=form == chosen)
            for form, values in forms.items()
        ),
    )


def _at_all_levels(found: Coefficients, columns: Columns) -> Coefficients:
    """Return a form without levels as one that has the same coefficients at each."""
    return {
        name: found[name] if name in found else found[name.rstrip("0123456789")] for name in columns
    }


def _without(columns: Columns, left_out: str) -> Columns:
    return {name: column for name, column in columns.items() if name != left_out}


def _published_columns(given: Columns, form: str) -> Columns:
    names = {
        "H": ("gh",),
        "HrHw": ("ghr", "ghw"),
        "HM": ("gh", "gM"),
        "HrHwM": ("ghr", "ghw", "gM"),
    }
    return {name: given[name] for name in ("L", *names[form])}


def _cached(
    given: Columns, times: Vector, kept: Mask, limits: Sequence[int]
) -> tuple[int, dict[str, Coefficients], Vector]:
    """Fit R0 and R1 for the capacity that leaves the least error on the suite fitted."""
    fits = [_with_capacity(given, times, kept, limit) for limit in limits]
    errors = [_mean_error(times[~kept], values[~kept]) for _, values in fits]
    best = errors.index(min(errors))
    return limits[best], *fits[best]


def _with_capacity(
    given: Columns, times: Vector, kept: Mask, capacity: int
) -> tuple[dict[str, Coefficients], Vector]:
    columns = {
        "L": given["L"],
        **{
            name: column
            for key in ("ghr", "ghw")
            for name, column in (
                (f"{key}c", np.minimum(given[key], capacity)),
                (f"{key}m", np.maximum(given[key] - capacity, 0.0)),
            )
        },
        "gM": given["gM"],
    }
    beyond = given["gh"] > capacity
    pieces: dict[str, Coefficients] = {}
    predicted = np.zeros_like(times)
    for name, inside in (("R0", ~beyond), ("R1", beyond)):
        fitted = inside & ~kept
        if fitted.sum() < _LEAST_SAMPLES:
            # A piece that was hardly measured is like the whole; the range says how far it goes.
            fitted = ~kept
        pieces[name] = fit_above(part(columns, fitted), times[fitted])
        predicted[inside] = predict(columns, pieces[name])[inside]
    return pieces, predicted


def _mean_error(times: Vector, predicted: Vector) -> float:
    return float(np.mean(np.abs(predicted - times) / times))


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
