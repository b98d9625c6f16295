"""The one-sided programs of the examples as a validation times them, and their private parts.

The private part is the same loop on one rank's own variables, timed alone: what a prediction by
the remote-access model does not cover.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np


def histogram(comm, sizes):
    program, shared = _program("histogram")
    table, drawn = shared(comm, sizes["count"]), _Places(comm, sizes)
    return SimpleNamespace(
        run=lambda: program(table, drawn.places), reset=drawn.draw, close=table.free
    )


def histogram_alone(comm, sizes):
    rank, count = comm.Get_rank(), sizes["count"]
    drawn = _Places(comm, sizes)

    def run():
        cell, one = np.empty(1), np.float64(1.0)
        for location in drawn.places.tolist():
            owner, _ = divmod(location, count)
            if owner == rank:
                one + 1.0
            else:
                cell[0] += 1.0

    return SimpleNamespace(run=run, reset=drawn.draw)


class _Places:
    """Random places of a table, others in each repetition.

    One draw would be timed over and over, with as many places of others as chance gave it.
    """

    def __init__(self, comm, sizes):
        self._source = np.random.default_rng(comm.Get_rank())
        self._elements = comm.Get_size() * sizes["count"]
        self._increments = sizes["increments"]
        self.draw()

    def draw(self):
        """Draw others; the same ones in both programs of a job."""
        self.places = self._source.integers(0, self._elements, self._increments)


def matmul(comm, sizes):
    program, shared = _program("matmul")
    order, rows = sizes["N"], sizes["N"] // comm.Get_size()
    a, out = np.ones((rows, order)), np.empty((rows, order))
    columns = shared(comm, rows * order)
    return SimpleNamespace(run=lambda: program(a, columns, out), close=columns.free)


def matmul_alone(comm, sizes):
    rank, order = comm.Get_rank(), sizes["N"]
    rows = order // comm.Get_size()
    a, out = np.ones((rows, order)), np.empty((rows, order))

    def run():
        column = np.ones(order)
        for row in range(a.shape[0]):
            for number in range(order):
                owner, place = divmod(number, rows)
                if owner == rank:
                    column[place:]
                out[row, number] = a[row] @ column

    return SimpleNamespace(run=run)


def sobel(comm, sizes):
    program, shared = _program("sobel")
    width, rows = sizes["N"], sizes["N"] // comm.Get_size()
    image, out = shared(comm, rows * width), np.zeros((rows, width))
    return SimpleNamespace(run=lambda: program(image, width, out), close=image.free)


def sobel_alone(comm, sizes):
    rank, width = comm.Get_rank(), sizes["N"]
    rows = width // comm.Get_size()
    count, first, one = rows * width, rank * rows, np.float64(1.0)
    out = np.zeros((rows, width))

    def at(row, column):
        owner, _ = divmod(row * width + column, count)
        if owner == rank:
            return one
        return one

    def run():
        for row in range(max(first, 1), min(first + rows, width - 1)):
            for column in range(1, width - 1):
                nw, n, ne = (at(row - 1, column + step) for step in (-1, 0, 1))
                w, e = at(row, column - 1), at(row, column + 1)
                sw, s, se = (at(row + 1, column + step) for step in (-1, 0, 1))
                across = ne - nw + 2 * (e - w) + se - sw
                down = sw - nw + 2 * (s - n) + se - ne
                out[row - first, column] = abs(across) + abs(down)

    return SimpleNamespace(run=run)


def _program(name):
    made = runpy.run_path(str(Path(__file__).parents[1] / "mpi" / "one_sided.py"))
    return made[name], made["Shared"]
