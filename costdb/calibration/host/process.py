"""The process that measures: NumPy on one thread, a heap as in one that has run a while."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

# NumPy with its matrix products on one thread, as a rank among others has it.

_NAMES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def numpy_on_one_thread() -> Any:
    """Return NumPy, whose library counts its threads once, when it is loaded.

    Who set the number of threads in the environment, or loaded NumPy already, is left alone.
    """
    if "numpy" not in sys.modules:
        for name in _NAMES:
            os.environ.setdefault(name, "1")
    import numpy

    return numpy


# What the C library does with freed memory: kept for good, or as in a program of some size.
#
# It keeps of the heap's free end twice the largest array that was ever freed, and gives back more.
# A process that measures arrays of many sizes has freed the largest long ago, and so keeps what a
# program with smaller ones gives back and gets anew, page by page, each time. What is measured is
# told which of the two it means. On other C libraries nothing is set.

_TRIM, _MAPPED_FROM, _MAPPED_AT_MOST = -1, -3, -4  # the C library's names for its settings
_HEAP_BYTES = 216_000
"""What the C library keeps of a heap without large arrays."""
_HEADER_BYTES = 8192
"""What an object has around its elements, and the rest of its last page, are less."""


@cache
def keep_freed_memory() -> None:
    """Tell the C library to keep what is freed, so that no sample pays for memory itself."""
    _set(_TRIM, 2**31 - 1)
    _set(_MAPPED_AT_MOST, 0)


def keep_as_with(largest_bytes: int) -> None:
    """Tell the C library to keep what it does in a program whose largest array is so large."""
    largest = max(_HEAP_BYTES, largest_bytes) + _HEADER_BYTES
    _set(_MAPPED_FROM, largest)
    _set(_TRIM, 2 * largest)


def _set(name: int, value: int) -> None:
    import ctypes

    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(name, value)
