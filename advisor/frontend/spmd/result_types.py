"""Element types of what NumPy's functions give; None where versions differ or nothing is known."""

from __future__ import annotations

from advisor.dtypes import Kind, UnknownDtype, dtype_of

_TRUTHS = frozenset(["any", "all"])
_MEANS = frozenset(["mean", "std", "var", "median", "average", "nanmean"])
_SUMS = frozenset(["sum", "prod", "nansum", "cumsum", "cumprod"])
_PLACES = frozenset(["argmax", "argmin", "count_nonzero", "argsort"])
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


def _kind(dtype: str) -> tuple[Kind, int] | None:
    try:
        found = dtype_of(dtype)
    except UnknownDtype:
        return None
    return found.kind, found.itemsize_bytes


def of_reduction(name: str, dtype: str | None) -> str | None:
    """Return the type of a reduction or a scan that states none."""
    if name in _PLACES:
        return "int64"
    if name in _TRUTHS:
        return "bool"
    found = None if dtype is None else _kind(dtype)
    if found is None or dtype is None:
        return None
    kind = found[0]
    if name in ("std", "var"):
        dtype = _REAL_OF.get(dtype, dtype)
    if name in _MEANS:
        return "float64" if kind in (Kind.BOOLEAN, Kind.INTEGER) else dtype
    if name in _SUMS and kind in (Kind.BOOLEAN, Kind.INTEGER):
        return "uint64" if dtype.startswith("uint") else "int64"
    return dtype


def of_transform(dtype: str | None, *, real: bool) -> str | None:
    """Return the type of a Fourier transform; of single precision that is left to versions."""
    if dtype not in ("float64", "complex128", "int64", "int32"):
        return None
    return "float64" if real else "complex128"
