"""NumPy with its matrix products on one thread, as a rank among others has it."""

from __future__ import annotations

import os
import sys
from typing import Any

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
