"""The SMP study's three suites, on the samples that a calibration stored.

As printed: Good is fitted to suite 1 and Bad to suite 2, by relative least squares, and each is
judged on the other two by its mean relative error. The function that predictions use, which may
tell cache levels apart, is judged the same way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from costdb.calibration.section import Timing
from costdb.calibration.threads.superstep_points import BAD, GOOD
from costdb.estimate import Missing
from costdb.expr import Expr, evaluate, num, sym
from costdb.lines.regression import FitError
from costdb.machines import Machine, load_machine
from costdb.published import SMP, SMP_GREATEST_ERROR
from costdb.smp.fit import (
    Measured,
    fit_bad,
    fit_good,
    mean_relative_error,
    predict_bad,
    predict_good,
)
from costdb.smp.functions import Family, superstep_interval
from costdb.smp.suites import Suite
from costdb.validation.results import Row, Section, Verdict, percent
from costdb.validation.stored import stored_timings

NAME = "smp"
TITLE = "shared memory: functions fitted to one suite, judged on the two others"
_MODEL = "smp"
_FITTED = {GOOD: Suite.EXACT, BAD: Suite.SAME_MAXIMA}
_ELEMENT = ("smp", "element_bytes")
_FORMS = {GOOD: "HrHwM_c", BAD: "HrHwM"}
_NOTES = (
    "The printed functions are fitted anew to the medians of this machine's suites; the function "
    "of the profile is the one that predictions use. An error is the mean of |predicted - "
    "measured| / measured.",
)


def validate_supersteps(connection: sqlite3.Connection, machine: Machine) -> Section:
    """Return the section.

    Raises
    ------
    CannotValidateError
        No calibration measured supersteps.
    """
    timings = stored_timings(connection, machine.name, "supersteps").timings
    groups: dict[tuple[str, int], list[Timing]] = {}
    for timing in timings:
        given = timing.point.features
        groups.setdefault((str(given["family"]), int(given["processors"])), []).append(timing)
    rows = [
        row
        for (family, processors), group in sorted(groups.items(), key=lambda one: one[0][::-1])
        for row in _rows(family, processors, group, machine)
    ]
    return Section(NAME, TITLE, tuple(rows), _NOTES)


def _rows(
    family: str, processors: int, timings: Sequence[Timing], machine: Machine
) -> Iterator[Row]:
    suites = {
        suite: [_measured(t) for t in timings if t.point.features["suite"] == suite]
        for suite in Suite
    }
    fitted = _FITTED[family]
    for suite in Suite:
        if suite is fitted or not suites[suite]:
            continue
        operation = f"{family}, p = {processors}: suite {int(suite)}"
        printed = _printed(family, processors, suite)
        figure = f"error of {_FORMS[family].replace('_', '-')} fitted to suite {int(fitted)}"
        for piece, error, why in _as_printed(family, suites[fitted], suites[suite], machine):
            theirs = printed.get(piece)
            yield Row(
                _MODEL,
                operation if not piece else f"{operation}, {piece}",
                figure,
                "" if theirs is None else percent(theirs),
                SMP,
                why if error is None else percent(error),
                Verdict.UNJUDGED if error is None else Verdict.of(error <= SMP_GREATEST_ERROR),
                {} if error is None else {"mean_relative_error": error},
            )
        error = _of_profile(family, suites[suite], processors, machine)
        if error is not None:
            yield Row(
                _MODEL,
                operation,
                "error of the profile's function",
                f"at most {percent(SMP_GREATEST_ERROR)}",
                SMP,
                percent(error),
                Verdict.of(error <= SMP_GREATEST_ERROR),
                {"mean_relative_error": error},
            )


def _measured(timing: Timing) -> Measured:
    given = timing.point.features
    hr, hw, total = (int(given[name]) for name in ("hr", "hw", "accesses"))
    return Measured(hr, hw, total, timing.typical_us)


def _as_printed(
    family: str, given: Sequence[Measured], tested: Sequence[Measured], machine: Machine
) -> Iterator[tuple[str, float | None, str]]:
    """Yield the error of the printed function by piece, or why it has none."""
    limit = _own_cache(machine)
    try:
        if family == BAD:
            found = predict_bad(fit_bad(given), tested)
            yield "", mean_relative_error(tested, found), ""
            return
        good = fit_good(given, limit)
    except FitError as error:
        yield "", None, f"not fitted: {error}"
        return
    for piece, fitted, inside in (
        ("R0", good.r0, [one for one in tested if _height(one) <= limit]),
        ("R1", good.r1, [one for one in tested if _height(one) > limit]),
    ):
        if inside and fitted is not None:
            yield piece, mean_relative_error(inside, predict_good(good, inside)), ""


def _own_cache(machine: Machine) -> int:
    """Return the elements that fit a processor's own cache, which is where the study has R1 begin.

    The study's 2**19 integers are the second-level cache of its machine. The profile may part its
    own function elsewhere.
    """
    cache, element = machine.quantity("hardware", "l2_bytes"), machine.quantity(*_ELEMENT)
    if cache is None or element is None:
        stated = machine.quantity("smp", "cache_capacity_elements")
        return int(stated.value) if stated is not None else 0
    return int(cache.value / element.value)


def _height(one: Measured) -> int:
    return max(one.hr, one.hw)


def _printed(family: str, processors: int, suite: Suite) -> Mapping[str, float]:
    """Return the errors of the study by piece, at its number of processors that is nearest."""
    study = load_machine("powerchallenge")
    name = f"{family}_fit_suite{int(_FITTED[family])}_on_suite{int(suite)}"
    place = ("smp", "validation", name, _FORMS[family])
    table = study.section(*place)
    pieces = [piece for piece in ("R0", "R1") if piece in table] or [""]
    found: dict[str, float] = {}
    for piece in pieces:
        at = (*place, piece) if piece else place
        counts = [int(key[1:]) for key in study.section(*at)]
        if counts:
            nearest = min(counts, key=lambda count: abs(count - processors))
            quantity = study.quantity(*at, f"p{nearest}")
            if quantity is not None:
                found[piece] = quantity.value
    return found


def _of_profile(
    family: str, tested: Sequence[Measured], processors: int, machine: Machine
) -> float | None:
    interval = superstep_interval(
        Family.HRHWM, sym("hr"), sym("hw"), sym("M"), num(processors), machine
    )
    if isinstance(interval, Missing):
        return None
    formula: Expr = interval.good if family == GOOD else interval.bad
    known = {name: quantity.value for name, quantity in interval.coefficients.items()}
    found = [
        float(evaluate(formula, {**known, "hr": one.hr, "hw": one.hw, "M": one.total}))
        for one in tested
    ]
    return mean_relative_error(tested, np.array(found))
