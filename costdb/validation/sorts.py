"""Runs of three sorts held against the interval between the Good and the Bad prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Protocol

from costdb.calibration.host.cores import usable_cores
from costdb.estimate import Missing
from costdb.evaluate import evaluate_price
from costdb.expr import sym
from costdb.machines import Machine
from costdb.published import SMP
from costdb.smp.sorts import KEY_BITS, Sort, price_sort
from costdb.validation.results import CannotValidateError, Row, Section, Verdict

NAME = "sorts"
TITLE = "shared memory: radix, sample and column sort inside the interval from Good to Bad"
KEYS = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
PROCESSORS = 2
RUNS = 9
MOST_RUNS = 2 * RUNS
_SEED = 20_261_121
_NOTE = (
    "Only the supersteps are timed, each from a barrier on: what a processor computes between "
    "copying in and copying out is no part of the model. The first run, which compiles, is left "
    f"out. Where another process takes a core, all wait: up to {MOST_RUNS} runs are made, and "
    f"those {RUNS} count in which that happened least often."
)


class Timed(Protocol):
    """A run: what its supersteps took, and how often a thread had to leave its core."""

    microseconds: float
    displaced: int


def validate_sorts(machine: Machine, progress: Callable[[str, float], None]) -> Section:
    """Run the sorts and return the section.

    Raises
    ------
    CannotValidateError
        There are no two cores, or the profile has no functions of supersteps.
    """
    if usable_cores() < PROCESSORS:
        raise CannotValidateError(f"sorts need {PROCESSORS} cores")
    rows: list[Row] = []
    for number, keys in enumerate(KEYS):
        progress(f"sorting {keys} keys", number / len(KEYS))
        rows += _rows(keys, machine)
    return Section(NAME, TITLE, tuple(rows), (_NOTE,))


def _rows(keys: int, machine: Machine) -> Iterator[Row]:
    medians: dict[Sort, float] = {}
    ends: dict[Sort, tuple[float, float]] = {}
    for sort in Sort:
        price = price_sort(sort, sym("n"), sym("p"), machine)
        if isinstance(price, Missing):
            raise CannotValidateError(f"{price.what}; {price.remedy}")
        found = evaluate_price(price, {"n": keys, "p": PROCESSORS})
        good, bad = found.low * 1e6, found.high * 1e6
        taken = _timed(sort, keys)
        inside = sum(good <= one <= bad for one in taken)
        medians[sort], ends[sort] = median(taken), (good, bad)
        yield Row(
            "smp",
            f"{sort} sort, {keys} keys, p = {PROCESSORS}",
            "runs inside the interval",
            "every run",
            SMP,
            f"{inside} of {len(taken)}: {median(taken) / 1000:.2f} ms"
            f" in {good / 1000:.2f} .. {bad / 1000:.2f}",
            Verdict.of(inside == len(taken)),
            {
                "good_us": good,
                "bad_us": bad,
                "median_us": medians[sort],
                "least_us": min(taken),
                "greatest_us": max(taken),
                "inside": float(inside),
                "runs": float(len(taken)),
            },
            "" if found.in_range else "some supersteps are beyond the sizes calibrated",
        )
    measured = sorted(Sort, key=lambda sort: medians[sort])
    orders = [sorted(Sort, key=lambda sort: ends[sort][end]) for end in (0, 1)]
    yield Row(
        "smp",
        f"all sorts, {keys} keys",
        "order",
        "as both predictions",
        SMP,
        f"{' < '.join(measured)}, predicted {' < '.join(orders[0])}",
        Verdict.of(orders == [measured, measured]),
    )


def _timed(sort: Sort, keys: int) -> list[float]:
    import numpy as np

    from costdb.validation.sort_kernels import run_sort

    given = np.random.default_rng(_SEED).integers(0, 2**KEY_BITS, keys)
    run_sort(sort, given, PROCESSORS)
    return calmest(run_sort(sort, given, PROCESSORS)[1] for _ in range(MOST_RUNS))


def calmest(runs: Iterable[Timed]) -> list[float]:
    """Return the microseconds of the runs that count; no more are made than are needed."""
    made: list[Timed] = []
    for run in runs:
        made.append(run)
        if sum(not one.displaced for one in made) == RUNS:
            break
    return [one.microseconds for one in sorted(made, key=lambda one: one.displaced)[:RUNS]]
