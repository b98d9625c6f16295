"""What a choice costs, and what it saves: ``select`` over the box sums of the examples.

Two tables. The first holds, for each size of image and width of box, the measured time of each
variant, the variant that ``select`` takes, and at the end the total of always taking what it does
over the total of always taking the measured best (chosen afterwards, which no program can do).
The second is the cost of a decision, for sizes that were met before and for new ones.

    python benchmarks/bench_select.py --machine here

Images grow from size to size. The C library gives memory back to the system by the largest array
that a process ever freed, so a variant that makes several arrays is slower in a process that never
had a larger one, which is what prices assume of a kernel. ``--after-larger`` measures the other
case: a larger array was freed before.
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
    parser.add_argument("--after-larger", action="store_true", help="free a large array first")
    parser.add_argument("--decisions-only", action="store_true")
    given = parser.parse_args()
    if given.after_larger:
        np.ones(2 * max(given.sizes) ** 2 // 3)
    chooser = select(box_by_shifts, box_by_scan, machine=given.machine)
    missed = False
    if not given.decisions_only:
        missed = choices(chooser, given.sizes, given.widths, given.rounds)
    return int(decisions(select(box_by_shifts, box_by_scan, machine=given.machine)) or missed)


def decisions(chooser: Selection) -> bool:
    """Time decisions; return whether a median is over the limit."""
    rng = random.Random(1)
    store = np.zeros(2000 * 2000)
    shapes = [(rng.randint(100, 2000), rng.randint(100, 2000)) for _ in range(200)]
    # a decision asks for shape and order, never for an element
    images = [store[: rows * columns].reshape(rows, columns) for rows, columns in shapes]
    chooser.decide(images[0], 3)
    fresh = [(image, b) for image in images for b in range(1, 21)]
    rng.shuffle(fresh)
    new = [_timed_us(lambda a=a, b=b: chooser.decide(a, b)) for a, b in fresh]
    again = [_timed_us(lambda a=a, b=b: chooser.decide(a, b)) for a, b in fresh]
    middle = len(new) // 2
    print(f"\n{'a decision (us)':<34}{'median':>8}{'90 %':>9}{'mean':>9}")
    over = False
    for label, times in (
        ("sizes met before", again),
        (f"new sizes, the first {middle}", new[:middle]),
        ("new sizes after that", new[middle:]),
    ):
        ordered = sorted(times)
        median, late = statistics.median(ordered), ordered[int(0.9 * len(ordered))]
        print(f"  {label:<32}{median:>8.2f}{late:>9.2f}{statistics.fmean(times):>9.2f}")
        over = over or median > BUDGET_US
    print(f"  {chooser.decide(images[0], 3).because}")
    return over


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
    print(f"{'N':>6}{'b':>4}" + "".join(f"{name + ' (us)':>22}" for name in names) + "  taken")
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
