"""What a choice costs, and what it saves: ``select`` over the box sums of the examples.

Two tables. The first is the cost of a decision, for sizes that were met before and for new ones.
The second holds, for each size of image and width of box, the measured time of each variant, the
variant that ``select`` takes, and at the end the total of always taking what ``select`` does over
the total of always taking the measured best (chosen afterwards, which no program can do).

    python benchmarks/bench_select.py --machine here
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from select_box_sum import box_by_scan, box_by_shifts

from advisor import select
from advisor.selection import Selection

LIMIT = 1.05
BUDGET_US = 5.0
SIZES = (100, 150, 220, 320, 470, 680, 1000, 1400, 2000)
WIDTHS = tuple(range(1, 21))
LEAST_S = 0.002


def main() -> int:
    """Print both tables; return 1 where one of the limits is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="here")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each variant")
    parser.add_argument("--decisions-only", action="store_true")
    given = parser.parse_args()
    chooser = select(box_by_shifts, box_by_scan, machine=given.machine)
    slow = decisions(chooser)
    if given.decisions_only:
        return int(slow)
    return int(choices(chooser, given.sizes, given.widths, given.rounds) or slow)


def decisions(chooser: Selection) -> bool:
    """Time decisions; return whether the median is over the limit."""
    rng = random.Random(1)
    store = np.zeros((2000, 2000))
    shapes = [(rng.randint(100, 2000), rng.randint(100, 2000)) for _ in range(2000)]
    images = [store[:rows, :columns].copy() for rows, columns in shapes[:20]]
    chooser.decide(images[0], 3)
    known = [(images[k % 20], 1 + k % 20) for k in range(4000)]
    for image, b in known:
        chooser.decide(image, b)
    again = [_timed_us(lambda a=a, b=b: chooser.decide(a, b)) for a, b in known]
    fresh = [
        _timed_us(lambda a=image, b=b: chooser.decide(a, b))
        for image in images
        for b in range(21, 90)
    ]
    print(f"{'a decision (us)':<34}{'median':>8}{'95 %':>8}")
    for label, times in (("sizes met before", again), ("new sizes", fresh)):
        ordered = sorted(times)
        middle, late = statistics.median(ordered), ordered[int(0.95 * len(ordered))]
        print(f"  {label:<32}{middle:>8.2f}{late:>8.2f}")
    print(f"  {chooser.decide(images[0], 3).because}")
    return statistics.median(again) > BUDGET_US


def _timed_us(work: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1000


def choices(chooser: Selection, sizes: Sequence[int], widths: Sequence[int], rounds: int) -> bool:
    """Measure every variant at every size; return whether the choices cost too much in total."""
    total_chosen = total_best = 0.0
    totals = [0.0 for _ in chooser.variants]
    wrong = 0
    names = [variant.__name__ for variant in chooser.variants]
    print(f"\n{'N':>6}{'b':>4}" + "".join(f"{name + ' (us)':>22}" for name in names) + "  taken")
    for size in sizes:
        image = np.random.default_rng(size).random((size, size))
        for b in widths:
            measured = _measured_us(chooser.variants, image, b, rounds)
            decision = chooser.decide(image, b)
            chosen, best = measured[decision.variant], min(measured)
            total_chosen += chosen
            total_best += best
            totals = [total + one for total, one in zip(totals, measured, strict=True)]
            wrong += chosen > best
            mark = "" if chosen == best else f"  {chosen / best:.2f} times the best"
            cells = "".join(f"{one:>22.1f}" for one in measured)
            taken = f"{names[decision.variant]} ({decision.why})"
            print(f"{size:>6}{b:>4}{cells}  {taken}{mark}")
    ratio = total_chosen / total_best
    points = len(sizes) * len(widths)
    print(f"\nselect over always the measured best, in total: {ratio:.3f} (limit {LIMIT})")
    for name, total in zip(names, totals, strict=True):
        print(f"always {name} over the measured best:  {total / total_best:.3f}")
    print(f"another than the measured best at {wrong} of {points} points")
    print(f"counts: {dict(chooser.counts)}")
    return ratio > LIMIT


def _measured_us(
    variants: Sequence[Callable[..., object]], image: NDArray[np.float64], b: int, rounds: int
) -> list[float]:
    """Return the median time of each variant, measured in turns."""
    repeats = []
    for variant in variants:
        variant(image, b)
        once = _timed_us(lambda v=variant: v(image, b)) * 1e-6
        repeats.append(max(1, min(1000, round(LEAST_S / max(once, 1e-7)))))
    times: list[list[float]] = [[] for _ in variants]
    for turn in range(rounds):
        order = list(range(len(variants)))
        for place in order if turn % 2 else reversed(order):
            start = time.perf_counter_ns()
            for _ in range(repeats[place]):
                variants[place](image, b)
            times[place].append((time.perf_counter_ns() - start) / 1000 / repeats[place])
    return [statistics.median(many) for many in times]


if __name__ == "__main__":
    sys.exit(main())
