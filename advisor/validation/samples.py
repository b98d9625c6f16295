"""The models of a calibration on the samples it stored, beside others of the same samples.

Every model is fitted anew and judged on points that its fit has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean

from advisor.validation.experiments import Experiment, Samples
from advisor.validation.results import CannotValidateError, Row, Verdict, percent
from costdb.calibration.hardware import this_host
from costdb.calibration.profile import timings_of
from costdb.calibration.section import Quality, find_section
from costdb.machines import Machine
from costdb.store.database import reading
from costdb.store.place import store_path
from costdb.store.records import newest_run_of

_SAME = 0.01
"""Errors at a point that are no further apart say nothing of two models."""
_SURE = 1.64
"""Standard deviations of fair draws that one in ten leaves, to both sides together."""


def rows_of_samples(
    experiment: Experiment, asked: Samples, machine: Machine, skip: Callable[[str], None]
) -> Iterator[Row]:
    """Yield the figures of each operation; `skip` is told why a section has none."""
    for section in asked.sections:
        try:
            found = _qualities(machine.name, section)
        except CannotValidateError as problem:
            skip(str(problem))
            continue
        for operation in dict.fromkeys(one.operation for one in found):
            ours = [one for one in found if one.operation == operation]
            yield from (_errors if asked.at_most else _paired)(experiment, asked, ours)


def _qualities(machine: str, section: str) -> tuple[Quality, ...]:
    with reading(store_path()) as connection:
        run = newest_run_of(connection, machine, section)
        timings = () if run is None else timings_of(connection, run, section)
    if not timings:
        raise CannotValidateError(
            f"no samples of {section} are stored for {machine}: "
            f"advise calibrate --name {machine} --only {section}"
        )
    try:
        return find_section(section).fit(timings, this_host()).qualities
    except ValueError as error:
        raise CannotValidateError(f"{section}: not fitted: {error}") from error


def _errors(experiment: Experiment, asked: Samples, ours: list[Quality]) -> Iterator[Row]:
    for one in ours:
        if one.chosen or one.model in asked.models:
            error = fmean(abs(told - taken) / taken for taken, told in one.pairs)
            yield Row(
                experiment.model,
                one.operation,
                f"error of {one.model}{', which predictions use' if one.chosen else ''}",
                asked.paper,
                experiment.source,
                percent(error),
                Verdict.of(error <= asked.at_most),
                {"mean_relative_error": error, "points": float(one.points)},
            )


def _paired(experiment: Experiment, asked: Samples, ours: list[Quality]) -> Iterator[Row]:
    """Yield how the model that predictions use compares with the standard one, point by point."""
    chosen = next((one for one in ours if one.chosen), None)
    standard = next((one for one in ours if one.model in asked.models), None)
    if chosen is None or standard is None:
        return
    better = worse = 0
    for (taken, told), (_, other) in zip(chosen.pairs, standard.pairs, strict=True):
        if abs(told - other) > _SAME * max(told, other):
            better += abs(told - taken) < abs(other - taken)
            worse += abs(told - taken) >= abs(other - taken)
    # models alike at a point are as likely to be the better one there: a sign test
    sure = abs(better - worse) > _SURE * math.sqrt(better + worse)
    yield Row(
        experiment.model,
        ours[0].operation,
        f"R2, {standard.model} | {chosen.model}",
        asked.paper,
        experiment.source,
        f"{standard.r2:.3g} | {chosen.r2:.3g}, median error {percent(standard.median_error)} | "
        f"{percent(chosen.median_error)}, closer at {better}, further at {worse} of "
        f"{chosen.points} points",
        Verdict.of(better > worse) if sure else Verdict.UNJUDGED,
        {
            "r2": chosen.r2,
            "r2_standard": standard.r2,
            "median_error": chosen.median_error,
            "median_error_standard": standard.median_error,
            "closer": float(better),
            "further": float(worse),
            "points": float(chosen.points),
        },
    )
