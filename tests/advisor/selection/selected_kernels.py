"""Variants that the tests of ``select`` choose from."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row="P")
Image = Annotated[NDArray[np.float64], Dist("N", "M", Block("row"), None, on=mesh)]


def by_rows(a, out):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = 2.0 * a[i, j]


def by_columns(a, out):
    n, m = a.shape
    for j in range(m):
        for i in range(n):
            out[i, j] = 2.0 * a[i, j]


def few_passes(image, b):
    return image * (b + 1)


def many_passes(image, b):
    total = image.copy()
    for _ in range(b):
        total = total + image
    return total


def box_by_shifts(image, b):
    column = image.copy()
    for k in range(1, b):
        column[k:, :] += image[:-k, :]
    return column


def box_by_scan(image, b):
    prefix = np.cumsum(image, axis=0)
    column = prefix.copy()
    column[b:, :] -= prefix[:-b, :]
    return column


def not_understood(image, b):
    return sorted(image.tolist())[b]


@kernel
def shifts(image: Image, b: int):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
    return total


@kernel
def scans(image: Image, b: int):
    prefix = np.cumsum(image, axis=0)
    total = prefix.copy()
    total[b:, :] -= prefix[:-b, :]
    return total


def ranks_shift(part, size, b, world):
    return "shifts", world.allgather(part.shape)


def ranks_scan(part, size, b, world):
    return "scans", world.allgather(part.shape)
