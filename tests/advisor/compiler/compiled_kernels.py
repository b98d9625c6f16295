"""Functions that the tests of the compiler pass compile: plain Python, compiled by each test."""

from __future__ import annotations

import numpy as np
from numba import prange


def scale(a, out):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = 2.0 * a[i, j]


def in_parallel(a, out, factor=3):
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = factor * a[i, j]
    return (a + out).sum()


def closure(factor):
    def times(a, out):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = factor * a[i, j]

    return times


def calls_another(inner):
    def outer(a, out):
        inner(a, out)
        return out[0, 0]

    return outer


def prefix(a, out):
    total = 0
    for i in range(len(a)):
        total += a[i]
        out[i] = total
    return np.sqrt(float(total))
