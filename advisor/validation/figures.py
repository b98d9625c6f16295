"""What is said of cases and samples: predicted beside measured, and beside what is published."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, groupby
from statistics import fmean, mean

from advisor.report.style import duration
from advisor.validation.experiments import (
    SECTIONS,
    CannotValidateError,
    Experiment,
    Figure,
    Outcome,
    Row,
    Samples,
    Section,
    Verdict,
    load_experiment,
    outcomes,
    percent,
)
from advisor.verify.verdict import apart, ordered
from costdb.calibration.campaign import measured_of
from costdb.calibration.section import Bystanders, Quality, find_section, this_host, usable_cores
from costdb.machines import Machine
from costdb.records import replace
from costdb.store.database import reading


def rows_of(experiment: Experiment, found: Sequence[Outcome]) -> Iterator[Row]:
    """Yield the figures of all cases, those of every size before those of all together."""
    for _, group in groupby(found, key=lambda one: id(one.case)):
        of_case = list(group)
        for figure in of_case[0].case.figures:
            source = experiment.source if figure.paper else ""
            said = _FIGURES[figure.kind](figure, of_case)
            for operation, name, here, verdict, values, remark in said:
                about = (experiment.model, operation, name, figure.paper, source)
                yield Row(*about, here, verdict, values, remark)


Said = tuple[str, str, str, Verdict, Mapping[str, float], str]
"""A row without what all of an experiment or a figure share: operation, figure, here, ..."""


def _order(figure: Figure, found: Sequence[Outcome]) -> Iterator[Said]:
    """Yield whether the ways are as fast in turn as predicted, as far as they are apart."""
    for one in found:
        names, predicted, taken = [w.name for w in one.case.ways], one.mids_s, one.taken_s
        pairs = zip(combinations(predicted, 2), combinations(taken, 2), strict=True)
        said = [known for pair in pairs if (known := ordered(*pair)) is not None]
        right = all(said)
        by_time = sorted(range(len(names)), key=lambda number: taken[number])
        first, second = by_time[:2]
        yield (
            one.case.at(one.sizes),
            "faster way" if len(names) == 2 else "order",
            f"{' < '.join(names[number] for number in by_time)}, {taken[second] / taken[first]:.2f}"
            f"x (predicted {predicted[second] / predicted[first]:.2f}x)",
            Verdict.of(right) if said else Verdict.UNJUDGED,
            {
                f"{what}_{number}_us": value * 1e6
                for what, values in (("predicted", predicted), ("measured", taken))
                for number, value in enumerate(values)
            },
            "" if right else "; ".join(map(_times, names, predicted, taken)),
        )


def _times(name: str, predicted: float, taken: float) -> str:
    return f"{name}: predicted {duration(predicted)}, measured {duration(taken)}"


def _error(figure: Figure, found: Sequence[Outcome]) -> Iterator[Said]:
    """Yield the mean error of the times of all ways at all sizes."""
    errors = {
        f"{way.name}, {one.case.at(one.sizes)}": (abs(told / taken - 1), told, taken)
        for one in found
        for way, told, taken in zip(one.case.ways, one.mids_s, one.taken_s, strict=True)
    }
    error, worst = mean(e for e, _, _ in errors.values()), max(errors, key=lambda n: errors[n])
    holds = error <= figure.at_most
    yield (
        found[0].case.operation,
        "mean error of run times",
        f"{percent(error)} over {len(errors)} runs",
        Verdict.of(holds),
        {"mean_error": error, "worst_error": errors[worst][0]},
        "" if holds else _times(f"worst: {worst}", *errors[worst][1:]),
    )


def _within(figure: Figure, found: Sequence[Outcome]) -> Iterator[Said]:
    """Yield how far what is predicted of the only way is off."""
    for one in found:
        (predicted,), (times,) = one.predicted, one.measured
        error = predicted.mid / times.seconds - 1
        inside = predicted.low <= times.seconds <= predicted.high
        held = abs(error) <= figure.at_most
        least = times.taken_s[0]
        yield (
            one.case.at(one.sizes),
            "predicted over measured",
            f"{error:+.1%}, measured {duration(times.seconds)}, "
            f"{'inside' if inside else 'outside'} {_interval(predicted.low, predicted.high)}",
            Verdict.of(held),
            {
                "error": error,
                "predicted_us": predicted.mid * 1e6,
                "low_us": predicted.low * 1e6,
                "high_us": predicted.high * 1e6,
                "measured_us": times.seconds * 1e6,
                "least_us": least * 1e6,
            },
            "" if held else f"against the least measured time {predicted.mid / least - 1:+.1%}",
        )


def _interval(low: float, high: float) -> str:
    return f"{duration(low)} to {duration(high)}"


def _inside(figure: Figure, found: Sequence[Outcome]) -> Iterator[Said]:
    """Yield how many runs of each way are inside of its interval."""
    for one in found:
        for way, told, times in zip(one.case.ways, one.predicted, one.measured, strict=True):
            inside = sum(told.low <= taken <= told.high for taken in times.taken_s)
            yield (
                f"{way.name}: {one.case.at(one.sizes)}",
                "runs inside the interval",
                f"{inside} of {len(times.taken_s)}: {duration(times.seconds)} in "
                f"{_interval(told.low, told.high)}",
                Verdict.of(inside == len(times.taken_s)),
                {
                    "low_us": told.low * 1e6,
                    "high_us": told.high * 1e6,
                    "measured_us": times.seconds * 1e6,
                    "inside": float(inside),
                    "runs": float(len(times.taken_s)),
                },
                "" if told.in_range else "beyond the sizes calibrated",
            )


def _threshold(figure: Figure, found: Sequence[Outcome]) -> Iterator[Said]:
    """Yield from which size on the second way wins, for each choice of the other sizes."""
    size = figure.over

    def others(one: Outcome) -> tuple[tuple[str, int], ...]:
        return tuple(pair for pair in one.sizes.items() if pair[0] != size)

    for fixed, group in groupby(found, key=others):
        of_one = list(group)
        operation = ", ".join([of_one[0].case.operation, *(f"{n} = {v}" for n, v in fixed)])
        last = max(one.sizes[size] for one in of_one)
        predicted = threshold({one.sizes[size]: _second_wins(one.mids_s) for one in of_one})
        measured = threshold({one.sizes[size]: _second_wins(one.taken_s) for one in of_one})
        between = range(*sorted(last + 1 if at is None else at for at in (predicted, measured)))
        judged = [one for one in of_one if apart(*one.taken_s)]
        wrong = [one for one in judged if one.sizes[size] in between]
        told, own = (f"none to {last}" if at is None else str(at) for at in (predicted, measured))
        yield (
            operation,
            f"{of_one[0].case.ways[1].name} wins from {size} on",
            f"{own}, predicted {told}",
            Verdict.of(not wrong),
            {
                f"{name}_{size}": float(at)
                for name, at in (("predicted", predicted), ("measured", measured))
                if at is not None
            },
            _loss(size, wrong) if wrong else "",
        )
        right = sum(_second_wins(one.mids_s) == _second_wins(one.taken_s) for one in judged)
        yield (
            operation,
            "decisions right",
            f"{right} of {len(judged)}, {len(of_one) - len(judged)} ties",
            Verdict.of(right == len(judged)) if judged else Verdict.UNJUDGED,
            {"right": float(right), "judged": float(len(judged))},
            "",
        )


def threshold(wins: Mapping[int, bool]) -> int | None:
    """Return the size from which on the second of two ways wins, None for never.

    Where they do not part cleanly it is the least one with the fewest exceptions on both sides.
    """

    def exceptions(limit: float) -> int:
        return sum(won != (size >= limit) for size, won in wins.items())

    best = min((*sorted(wins), math.inf), key=exceptions)
    return None if best == math.inf else int(best)


def _second_wins(pair: Sequence[float]) -> bool:
    return pair[1] < pair[0]


def _loss(size: str, wrong: Sequence[Outcome]) -> str:
    """Return what following the predictions costs at worst."""
    lost = [
        (one.taken_s[_second_wins(one.mids_s)] / min(one.taken_s) - 1, one.sizes[size])
        for one in wrong
    ]
    worst, at = max(lost)
    return f"following the prediction costs at most {worst:.0%}, at {size} = {at}"


_FIGURES = {
    "order": _order,
    "error": _error,
    "within": _within,
    "inside": _inside,
    "threshold": _threshold,
}


# Models of a calibration on the samples it stored: fitted anew, judged on points not seen before.


def rows_of_samples(
    experiment: Experiment, asked: Samples, machine: Machine, skip: Callable[[str], None]
) -> Iterator[Row]:
    """Yield the error of each operation; `skip` is told why a section has none."""
    for section in asked.sections:
        try:
            found = _qualities(machine.name, section)
        except CannotValidateError as problem:
            skip(str(problem))
            continue
        for one in found:
            error = fmean(abs(told - taken) / taken for taken, told in one.pairs)
            verdict = Verdict.of(error <= asked.at_most) if asked.at_most else Verdict.UNJUDGED
            values = {"mean_relative_error": error, "points": float(len(one.pairs))}
            about = experiment.model, one.operation, "mean error of predictions", asked.paper
            source = experiment.source if asked.paper else ""
            yield Row(*about, source, percent(error), verdict, values)


def _qualities(machine: str, section: str) -> tuple[Quality, ...]:
    with reading() as connection:
        measured = measured_of(connection, machine, section)
        timings = () if measured is None else measured.timings
    if not timings:
        raise CannotValidateError(
            f"no samples of {section} are stored for {machine}: "
            f"advise calibrate --name {machine} --only {section}"
        )
    try:
        return find_section(section).fit(timings, this_host()).qualities
    except ValueError as error:
        raise CannotValidateError(f"{section}: not fitted: {error}") from error


# Doing experiments: each becomes a section of the report, or says why it cannot be done.


_NOTICEABLE_CORES = 0.15


Progress = Callable[[str, float], None]
"""Told what is being done, and which share of the experiment is, from 0 to 1."""


def make_sections(names: Sequence[str], machine: Machine, progress: Progress) -> Iterator[Section]:
    """Yield the sections; one that cannot be made is skipped, with the reason.

    The machine is the profile of the one that this runs on.
    """
    for name in names or SECTIONS:
        others = Bystanders()
        made = _made(name, machine, progress)
        busy, notes = others.busy_cores(), made.notes
        if busy is not None and busy >= _NOTICEABLE_CORES:
            notes = (
                *notes,
                f"Other processes kept {busy:.1f} cores busy meanwhile: what was measured may be"
                " too long, validate again on a machine at rest.",
            )
        yield replace(made, notes=notes, busy_cores=busy)


def _made(name: str, machine: Machine, progress: Progress) -> Section:
    try:
        return do(name, machine, progress)
    except CannotValidateError as problem:
        return Section(name, name, skipped=str(problem))
    except ImportError as error:
        return Section(name, name, skipped=f"{error.name or error} is missing")
    except Exception as error:
        # whatever is wrong with one experiment, the others are worth having
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        return Section(name, name, skipped=f"failed: {' '.join(reason.split())}")


def do(name: str, machine: Machine, progress: Progress) -> Section:
    """Do the experiment of a name, or of a document's path.

    Raises
    ------
    CannotValidateError
        The document cannot be used, or the machine has too few cores.
    """
    experiment = load_experiment(name)
    if usable_cores() < experiment.cores:
        raise CannotValidateError(f"{experiment.name} needs {experiment.cores} cores")
    rows: list[Row] = []
    skipped: list[str] = []
    doing = partial(progress, experiment.name)
    doing(0.0)
    if experiment.samples is not None:
        rows += rows_of_samples(experiment, experiment.samples, machine, skipped.append)
    if experiment.cases:
        rows += rows_of(experiment, list(outcomes(experiment, machine, doing, skipped.append)))
    return Section(
        experiment.name, experiment.title, tuple(rows), experiment.notes, "; ".join(skipped)
    )
