"""Element types of what NumPy's functions give; None where versions differ or nothing is known."""

from __future__ import annotations

from advisor.dtypes import Kind, UnknownDtype, dtype_of

_TRUTHS = frozenset(
    [
        "isnan",
        "isinf",
        "isfinite",
        "logical_not",
        "logical_and",
        "logical_or",
        "logical_xor",
        "equal",
        "not_equal",
        "less",
        "greater",
        "less_equal",
        "greater_equal",
        "any",
        "all",
    ]
)
_KEPT = frozenset(["negative", "square", "conj", "conjugate", "sign", "reciprocal"])
_PARTS = frozenset(["abs", "absolute", "real", "imag", "angle"])
_BY_VERSION = frozenset({"floor", "ceil", "trunc"})
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


def floating(dtype: str | None) -> str | None:
    """Return the type of roots, exponentials and the like: wide enough for whole numbers."""
    found = None if dtype is None else _kind(dtype)
    if found is None:
        return None
    kind, width = found
    if kind not in (Kind.BOOLEAN, Kind.INTEGER):
        return dtype
    return {1: None, 2: "float32"}.get(width, "float64")  # of one byte: half precision


def of_elements(name: str, dtype: str | None) -> str | None:
    """Return the type of a universal function of one array, or of two joined to one type."""
    found = None if dtype is None else _kind(dtype)
    if name in _TRUTHS:
        return "bool"
    if found is None or dtype is None:
        return None
    whole = found[0] in (Kind.BOOLEAN, Kind.INTEGER)
    if name in _PARTS:
        return floating(dtype) if name == "angle" and whole else _REAL_OF.get(dtype, dtype)
    if name in _BY_VERSION:
        return None if whole else dtype
    return dtype if name in _KEPT else floating(dtype)


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
