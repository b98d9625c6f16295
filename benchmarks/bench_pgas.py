"""Measured against predicted times of one-sided programs, as a table.

Run it with ``mpiexec -n 2 python benchmarks/bench_pgas.py MACHINE``, on the machine whose profile
MACHINE names (``here`` after a calibration, or a path). A prediction is the sum of the program's
groups of remote references, priced by the profile, and of its private computation, which is
measured alone: the same loops on one rank's own variables. The error is that of the median; where
the least of the measured times is far below it, the machine was busy with something else.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from mpi4py import MPI

from costdb.estimate import Missing
from costdb.evaluate import evaluate_price
from costdb.expr import num
from costdb.machines import load_machine
from costdb.pgas.model import price_groups
from costdb.work import Pattern, RemoteGroup

PROGRAMS = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "mpi" / "one_sided.py"))
REPETITIONS = 15
GOAL_PERCENT = 15

Case = tuple[str, Callable[[], object], Callable[[], object], list[RemoteGroup]]

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
T = num(size)


def slowest_us(run: Callable[[], object]) -> tuple[float, float]:
    """Return the median and the least over repetitions of the slowest rank's time."""
    taken = []
    for repetition in range(REPETITIONS + 3):
        comm.Barrier()
        begin = time.perf_counter_ns()
        run()
        spent = comm.allreduce((time.perf_counter_ns() - begin) / 1000, MPI.MAX)
        if repetition >= 3:
            taken.append(spent)
    return median(taken), min(taken)


def histograms() -> Iterator[Case]:
    """Yield increments of random elements: one in `size` is the rank's own."""
    for count, increments in ((1000, 1000), (20_000, 4000), (100_000, 10_000)):
        table = PROGRAMS["Shared"](comm, count)
        places = np.random.default_rng(rank).integers(0, size * count, increments)

        def private(places: Any = places, count: int = count) -> None:
            cell, one = np.empty(1), np.float64(1.0)
            for location in places.tolist():
                owner, _ = divmod(location, count)
                if owner == rank:
                    one + 1.0
                else:
                    cell[0] += 1.0

        groups = [
            RemoteGroup(num(increments), T, Pattern.BASELINE, store, mixed=True)
            for store in (False, True)
        ]
        name = f"histogram, {increments} of {size * count}"
        yield name, lambda t=table, p=places: PROGRAMS["histogram"](t, p), private, groups
        table.free()


def products() -> Iterator[Case]:
    """Yield products: columns of others are fetched again for every row; own ones are private."""
    for order in (40, 80, 160):
        rows = order // size
        a, out = np.ones((rows, order)), np.empty((rows, order))
        columns = PROGRAMS["Shared"](comm, rows * order)

        def private(a: Any = a, out: Any = out, rows: int = rows, order: int = order) -> None:
            column = np.ones(order)
            for row in range(a.shape[0]):
                for number in range(order):
                    owner, place = divmod(number, rows)
                    if owner == rank:
                        column[place:]
                    out[row, number] = a[row] @ column

        fetched = rows * (order - rows)
        groups = [
            RemoteGroup(num(fetched * order), T, Pattern.VECTOR, calls=num(fetched)),
        ]
        name = f"matrix product, {order} x {order}"
        yield name, lambda a=a, b=columns, c=out: PROGRAMS["matmul"](a, b, c), private, groups
        columns.free()


def edges() -> Iterator[Case]:
    """Yield Sobel's detector: eight neighbours of each pixel, three remote at a block's rim."""
    for width in (20, 60, 120):
        rows = width // size
        image = PROGRAMS["Shared"](comm, rows * width)
        out = np.zeros((rows, width))

        def private(out: Any = out, rows: int = rows, width: int = width) -> None:
            count, first, one = rows * width, rank * rows, np.float64(1.0)

            def at(row: int, column: int) -> float:
                owner, _ = divmod(row * width + column, count)
                if owner == rank:
                    return one
                return one

            for row in range(max(first, 1), min(first + rows, width - 1)):
                for column in range(1, width - 1):
                    nw, n, ne = (at(row - 1, column + step) for step in (-1, 0, 1))
                    w, e = at(row, column - 1), at(row, column + 1)
                    sw, s, se = (at(row + 1, column + step) for step in (-1, 0, 1))
                    across = ne - nw + 2 * (e - w) + se - sw
                    down = sw - nw + 2 * (s - n) + se - ne
                    out[row - first, column] = abs(across) + abs(down)

        # an inner block has neighbours on both sides and no rim; with two ranks there is none
        sides, computed = (1, rows - 1) if size == 2 else (2, rows)
        remote = 3 * (width - 2) * sides if size > 1 else 0
        groups = [
            RemoteGroup(num(8 * computed * (width - 2) - remote), T, Pattern.LOCAL),
            RemoteGroup(num(remote), T, Pattern.BASELINE),
        ]
        name = f"Sobel, {width} x {width}"
        yield name, lambda i=image, w=width, o=out: PROGRAMS["sobel"](i, w, o), private, groups
        image.free()


def main() -> int:
    """Print the table; return 1 if any prediction misses by more than the goal."""
    if len(sys.argv) != 2:
        sys.exit("usage: mpiexec -n 2 python benchmarks/bench_pgas.py MACHINE")
    machine = load_machine(sys.argv[1])
    missed = 0
    if rank == 0:
        print(
            f"{'program':34}{'measured':>12}{'least':>12}{'predicted':>12}{'private':>9}{'error':>8}"
        )
    for cases in (histograms, products, edges):
        for name, run, private, groups in cases():
            (measured_us, least_us), (private_us, _) = slowest_us(run), slowest_us(private)
            price = price_groups(groups, machine)
            if isinstance(price, Missing):
                sys.exit(price.what)
            predicted_us = evaluate_price(price, {}).mid * 1e6 + private_us
            error = 100 * (predicted_us / measured_us - 1)
            missed += abs(error) > GOAL_PERCENT
            if rank == 0:
                print(
                    f"{name:34}{measured_us:9.0f} us{least_us:9.0f} us{predicted_us:9.0f} us"
                    f"{private_us / predicted_us:9.0%}{error:+7.1f}%"
                )
    if rank == 0:
        print(f"{missed} of the predictions miss by more than {GOAL_PERCENT} %")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
