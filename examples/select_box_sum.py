"""Sum of every ``b`` x ``b`` box of an image: the variant is chosen at each call.

Shifts cost more the wider the box is, prefix sums cost the same however wide it is. Where the one
overtakes the other depends on the machine and on the sizes, so the program leaves it to the prices:
``select`` takes the variant that is predicted to be fastest for the arguments of the call.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from advisor import select


def box_by_shifts(image: NDArray[np.float64], b: int) -> NDArray[np.float64]:
    """Return the box sums: every term of a window is one shift of the image.

    Parameters
    ----------
    image : array of float64, shape (rows, columns)
    b : int
        Side of the box, at least 1 and less than either extent.
    """
    column = image.copy()
    for k in range(1, b):
        column[k:, :] += image[:-k, :]
    total = column.copy()
    for k in range(1, b):
        total[:, k:] += column[:, :-k]
    return total


def box_by_scan(image: NDArray[np.float64], b: int) -> NDArray[np.float64]:
    """Return the box sums: every window is the difference of two prefix sums.

    Parameters
    ----------
    image : array of float64, shape (rows, columns)
    b : int
        Side of the box, at least 1 and less than either extent.
    """
    prefix = np.cumsum(image, axis=0)
    column = prefix.copy()
    column[b:, :] -= prefix[:-b, :]
    along = np.cumsum(column, axis=1)
    total = along.copy()
    total[:, b:] -= along[:, :-b]
    return total


def main(machine: str) -> None:
    """Sum boxes of several widths, and say which variant was taken."""
    box_sum = select(box_by_shifts, box_by_scan, machine=machine)
    picture = np.arange(300.0 * 200).reshape(300, 200)
    for b in (2, 20):
        assert np.array_equal(box_sum(picture, b), box_by_shifts(picture, b))
        print(box_sum.explain())


if __name__ == "__main__":
    main(*sys.argv[1:] or ("here",))
