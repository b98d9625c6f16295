"""Arguments of a call as facts, without importing NumPy."""

from __future__ import annotations

from typing import Any

from advisor.observed import Layout, SeenArray, SeenNumber


def seen_argument(name: str, value: Any) -> SeenArray | SeenNumber | None:
    """Return what an argument is: an array, a number, or None for anything else.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        An array is what has a shape, strides and flags as NumPy's arrays do.
    """
    if type(value) is int:
        return SeenNumber(name, "int64", value)
    if type(value) is float:
        return SeenNumber(name, "float64")
    dtype = getattr(value, "dtype", None)
    shape = getattr(value, "shape", None)
    if dtype is None or not isinstance(shape, tuple):
        return None
    if not shape:
        return _scalar(name, value, str(dtype))
    strides, flags = getattr(value, "strides", None), getattr(value, "flags", None)
    if not isinstance(strides, tuple) or flags is None:
        return None
    return SeenArray(name, str(dtype), len(shape), layout_of(flags), shape, strides)


def layout_of(flags: Any) -> Layout:
    """Return the layout that an array's flags tell."""
    if flags.c_contiguous:
        return "C"
    return "F" if flags.f_contiguous else "A"


def _scalar(name: str, value: Any, dtype: str) -> SeenNumber | None:
    if getattr(value, "flags", None) is not None and hasattr(value, "__setitem__"):
        return None  # an array without dimensions
    whole = dtype.startswith(("int", "uint"))
    return SeenNumber(name, dtype, int(value) if whole else None)
