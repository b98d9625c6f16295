"""The one-sided programs of the examples as a validation runs them, and their private parts.

The private part is the same loop on one rank's own variables, timed alone: what a prediction by
the remote-access model does not cover. Only a validation's ranks run this.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from advisor.validation.programs import Prepare, Ready, Sizes


def _histogram(communicator: Any, sizes: Sizes, examples: Path) -> Ready:
    program, shared = _program(examples, "histogram")
    table, drawn = shared(communicator, sizes["count"]), _Places(communicator, sizes)
    return Ready(lambda: program(table, drawn.places), drawn.draw, table.free)


def _histogram_alone(communicator: Any, sizes: Sizes, examples: Path) -> Ready:
    import numpy as np

    rank, count = communicator.Get_rank(), sizes["count"]
    drawn = _Places(communicator, sizes)

    def run() -> None:
        cell, one = np.empty(1), np.float64(1.0)
        for location in drawn.places.tolist():
            owner, _ = divmod(location, count)
            if owner == rank:
                one + 1.0
            else:
                cell[0] += 1.0

    return Ready(run, drawn.draw)


class _Places:
    """Random places of a table, others in each repetition.

    One draw would be timed over and over, with as many places of others as chance gave it.
    """

    def __init__(self, communicator: Any, sizes: Sizes) -> None:
        import numpy as np

        self._source = np.random.default_rng(communicator.Get_rank())
        self._elements = communicator.Get_size() * sizes["count"]
        self._increments = sizes["increments"]
        self.draw()

    def draw(self) -> None:
        """Draw others; the same ones in both programs of a job."""
        self.places = self._source.integers(0, self._elements, self._increments)


def _matmul(communicator: Any, sizes: Sizes, examples: Path) -> Ready:
    import numpy as np

    program, shared = _program(examples, "matmul")
    order, rows = sizes["N"], sizes["N"] // communicator.Get_size()
    a, out = np.ones((rows, order)), np.empty((rows, order))
    columns = shared(communicator, rows * order)
    return Ready(lambda: program(a, columns, out), close=columns.free)


def _matmul_alone(communicator: Any, sizes: Sizes, examples: Path) -> Ready:
    import numpy as np

    rank, order = communicator.Get_rank(), sizes["N"]
    rows = order // communicator.Get_size()
    a, out = np.ones((rows, order)), np.empty((rows, order))

    def run() -> None:
        column = np.ones(order)
        for row in range(a.shape[0]):
            for number in range(order):
                owner, place = divmod(number, rows)
                if owner == rank:
                    column[place:]
                out[row, number] = a[row] @ column

    return Ready(run)


def _sobel(communicator: Any, sizes: Sizes, examples: Path) -> Ready:
    import numpy as np

    program, shared = _program(examples, "sobel")
    width, rows = sizes["N"], sizes["N"] // communicator.Get_size()
    image, out = shared(communicator, rows * width), np.zeros((rows, width))
    return Ready(lambda: program(image, width, out), close=image.free)


def _sobel_alone(communicator: Any, sizes: Sizes, examples: Path) -> Ready:
    import numpy as np

    rank, width = communicator.Get_rank(), sizes["N"]
    rows = width // communicator.Get_size()
    count, first, one = rows * width, rank * rows, np.float64(1.0)
    out = np.zeros((rows, width))

    def at(row: int, column: int) -> Any:
        owner, _ = divmod(row * width + column, count)
        if owner == rank:
            return one
        return one

    def run() -> None:
        for row in range(max(first, 1), min(first + rows, width - 1)):
            for column in range(1, width - 1):
                nw, n, ne = (at(row - 1, column + step) for step in (-1, 0, 1))
                w, e = at(row, column - 1), at(row, column + 1)
                sw, s, se = (at(row + 1, column + step) for step in (-1, 0, 1))
                across = ne - nw + 2 * (e - w) + se - sw
                down = sw - nw + 2 * (s - n) + se - ne
                out[row - first, column] = abs(across) + abs(down)

    return Ready(run)


def _program(examples: Path, name: str) -> tuple[Callable[..., object], Callable[..., Any]]:
    made = runpy.run_path(str(examples / "mpi" / "one_sided.py"))
    return made[name], made["Shared"]


ONE_SIDED: Mapping[str, Prepare] = {
    "one-sided histogram": _histogram,
    "one-sided histogram alone": _histogram_alone,
    "one-sided matmul": _matmul,
    "one-sided matmul alone": _matmul_alone,
    "one-sided sobel": _sobel,
    "one-sided sobel alone": _sobel_alone,
}
"""Programs by name, and their private parts; each is made on every rank."""
