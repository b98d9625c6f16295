"""Arguments for kernels that run or are sampled: arrays and numbers that we make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def copied(value: Any) -> Any:
    """Return an array of its own with the same elements in the same order; others as they are."""
    return value.copy("K") if is_array(value) else value


def is_array(value: Any) -> bool:
    """Return whether a value is an array, or a number of NumPy's."""
    return hasattr(value, "dtype") and hasattr(value, "copy")


def number(kind: str) -> int | float:
    """Return some number for an argument that no size names; its `kind` is ``int`` or ``float``."""
    return 7 if kind == "int" else 1.5


def array(random: Any, one: Mapping[str, Any]) -> Any:
    """Return an array, drawn uniformly.

    Parameters
    ----------
    random : numpy.random.Generator
    one : mapping
        ``shape``, ``dtype``, ``order`` (``"C"`` or ``"F"``), and ``below`` what whole numbers stay.
    """
    import numpy as np

    made = _drawn(random, tuple(one["shape"]), np.dtype(one["dtype"]), int(one["below"]))
    return np.asfortranarray(made) if one["order"] == "F" else made


def _drawn(random: Any, shape: tuple[int, ...], dtype: Any, below: int) -> Any:
    import numpy as np

    # in the type itself: a larger array that is freed changes what the C library gives back
    if dtype.kind in "iu":
        limit = min(below, int(np.iinfo(dtype).max))
        return random.integers(0, limit, shape, dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape, bool)
    made = random.random(shape, np.float32) if dtype == np.float32 else random.random(shape)
    made += made.dtype.type(0.5)
    made = made.astype(dtype, copy=False)
    if len(shape) == 2 and shape[0] == shape[1]:
        # Elimination without pivoting needs a heavy diagonal. This one is several times the
        # norm of what the entries differ by, which keeps all pivots away from 0; a larger one
        # would let exponentials underflow, which take many times as long.
        made[np.diag_indices(shape[0])] += shape[0] ** 0.5
    return made
