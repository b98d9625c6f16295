"""NumPy's functions as data: operands, loops, element types of results, classes of cost.

Both readers ask here. A function without a row is not understood. The tests ask NumPy itself
whether each row and each promotion is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from typing import Final, Literal

from advisor.dtypes import Kind, dtype_of
from costdb.work import ArrayOperation

PYTHON_INTEGER = "integer literal"
PYTHON_FLOAT = "float literal"
PYTHON_COMPLEX = "complex literal"
UNKNOWN_DTYPE = "unknown"
_LITERALS: Final = (PYTHON_INTEGER, PYTHON_FLOAT, PYTHON_COMPLEX)
_STRONG: Final = dict(zip(_LITERALS, ("int64", "float64", "complex128"), strict=True))

_PROMOTED: Final = """
b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16
b1 b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16
i1 i1 i1 i2 i2 i4 i4 i8 i8 f8 f2 f4 f8 c8 c16
u1 u1 i2 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16
i2 i2 i2 i2 i2 i4 i4 i8 i8 f8 f4 f4 f8 c8 c16
u2 u2 i4 u2 i4 u2 i4 u4 i8 u8 f4 f4 f8 c8 c16
i4 i4 i4 i4 i4 i4 i4 i8 i8 f8 f8 f8 f8 c16 c16
u4 u4 i8 u4 i8 u4 i8 u4 i8 u8 f8 f8 f8 c16 c16
i8 i8 i8 i8 i8 i8 i8 i8 i8 f8 f8 f8 f8 c16 c16
u8 u8 f8 u8 f8 u8 f8 u8 f8 u8 f8 f8 f8 c16 c16
f2 f2 f2 f2 f4 f4 f8 f8 f8 f8 f2 f4 f8 c8 c16
f4 f4 f4 f4 f4 f4 f8 f8 f8 f8 f4 f4 f8 c8 c16
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16
c8 c8 c8 c8 c8 c8 c16 c16 c16 c16 c8 c8 c16 c8 c16
c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""
"""A row for each type: what it and each of the types of the first line are promoted to."""


def _matrix() -> dict[tuple[str, str], str]:
    head, *rows = (line.split() for line in _PROMOTED.strip().splitlines())
    names = {code: dtype_of(code).name for code in head}
    return {
        (names[one], names[other]): names[found]
        for one, *results in rows
        for other, found in zip(head, results, strict=True)
    }


_MATRIX: Final = _matrix()

_LOOPS: Final = {
    "?": ("bool",),
    "i": ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    "f": ("float16", "float32", "float64"),
    "c": ("complex64", "complex128"),
}
Result = Literal["same", "truth", "real"]


@dataclass(frozen=True, slots=True)
class Row:
    """A function that NumPy applies element by element.

    Attributes
    ----------
    operands : int
    cost : ArrayOperation
        Class of its cost.
    loops : str
        Kinds of types that it has loops for: ``?`` booleans, ``i``, ``f``, ``c``.
    result : {"same", "truth", "real"}
        Its type: that of the loop, a boolean, or that of the parts of a complex number.
    """

    operands: int
    cost: ArrayOperation
    loops: str
    result: Result = "same"


def _rows(row: Row, names: str) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


_OF = ArrayOperation
ROWS: Final = {
    **_rows(Row(1, _OF.UNARY, "ifc"), "negative positive sign square reciprocal conjugate"),
    **_rows(Row(1, _OF.UNARY, "?ifc", "real"), "absolute"),
    **_rows(Row(1, _OF.UNARY, "f"), "fabs floor ceil trunc"),
    **_rows(Row(1, _OF.UNARY, "fc"), "rint"),
    **_rows(Row(1, _OF.UNARY, "?ifc", "truth"), "isnan isfinite isinf logical_not"),
    **_rows(Row(1, _OF.UNARY, "?i"), "invert"),
    **_rows(Row(1, _OF.ROOT, "fc"), "sqrt"),
    **_rows(Row(1, _OF.FUNCTION, "f"), "cbrt"),
    # those that take about as long as `exp` does, by NumPy's own vector code, and the others
    **_rows(Row(1, _OF.TRANSCENDENTAL, "fc"), "exp exp2 log log2 sin cos tanh cosh"),
    **_rows(Row(1, _OF.TRANSCENDENTAL, "fc"), "arcsin arccos arctan"),
    **_rows(Row(1, _OF.FUNCTION, "fc"), "expm1 log10 log1p tan sinh"),
    **_rows(Row(1, _OF.FUNCTION, "fc", "real"), "angle"),
    **_rows(Row(2, _OF.BINARY, "?ifc"), "add multiply minimum maximum fmax fmin"),
    **_rows(Row(2, _OF.BINARY, "ifc"), "subtract"),
    **_rows(Row(2, _OF.BINARY, "?i"), "bitwise_and bitwise_or bitwise_xor"),
    **_rows(Row(2, _OF.BINARY, "i"), "left_shift right_shift"),
    **_rows(Row(2, _OF.BINARY, "?ifc", "truth"), "logical_and logical_or logical_xor"),
    **_rows(Row(2, _OF.DIVIDE, "fc"), "divide"),
    **_rows(Row(2, _OF.REMAINDER, "if"), "floor_divide remainder fmod"),
    **_rows(Row(2, _OF.FUNCTION, "ifc"), "power"),
    **_rows(Row(2, _OF.FUNCTION, "f"), "arctan2"),
    **_rows(Row(2, _OF.FUNCTION, "f"), "hypot"),
    **_rows(Row(2, _OF.COMPARE, "?ifc", "truth"), "equal not_equal less less_equal"),
    **_rows(Row(2, _OF.COMPARE, "?ifc", "truth"), "greater greater_equal"),
    **_rows(Row(3, _OF.WHERE, "?ifc"), "where"),
}
ELEMENTWISE: Final = {name: name for name in ROWS} | {
    "true_divide": "divide",
    "abs": "absolute",
    "mod": "remainder",
    "conj": "conjugate",
    "bitwise_not": "invert",
    "pow": "power",
}
"""What NumPy's functions are called in the intermediate forms."""

_BY_RELEASE = frozenset({"floor", "ceil", "trunc"})
_NO_BOOLEANS = frozenset({"negative", "positive", "sign", "subtract", "angle"})


def promote(left: str, right: str) -> str:
    """Return the element type of an operation on two; ``"unknown"`` where one is."""
    if left == right:
        return left
    if UNKNOWN_DTYPE in (left, right):
        return UNKNOWN_DTYPE
    if left in _LITERALS and right in _LITERALS:
        return max(left, right, key=_LITERALS.index)
    for one, other in ((left, right), (right, left)):
        if one in _LITERALS:
            return _with_literal(other, one)
    return _MATRIX[left, right]


def _with_literal(dtype: str, literal: str) -> str:
    """Return the type of an operation on an array and a number of Python, which is weak."""
    kinds = list(Kind)
    needs = kinds.index(dtype_of(_STRONG[literal]).kind)
    if kinds.index(dtype_of(dtype).kind) >= needs:
        return dtype
    wide = dtype_of(dtype).kind is not Kind.FLOATING
    return _STRONG[literal] if wide else promote(dtype, "complex64")


def strong(dtype: str) -> str:
    """Return the type of NumPy's number that is made of a Python one; others stay."""
    return _STRONG.get(dtype, dtype)


@cache
def result_dtype(name: str, operands: tuple[str, ...]) -> str | None:
    """Return the element type that an elementwise function gives.

    Parameters
    ----------
    name : str
        One of the names that `ELEMENTWISE` gives.
    operands : tuple of str
        Their types; of ``where`` without its condition.

    Returns
    -------
    str or None
        None where NumPy has no loop for them, or its releases differ.
    """
    row, joined = ROWS[name], reduce(promote, operands)
    if joined == UNKNOWN_DTYPE:
        return "bool" if row.result == "truth" else UNKNOWN_DTYPE
    literal = joined in _LITERALS and name != "where"
    # NumPy's number takes the kind of the loop; Python's operators on its own numbers keep theirs
    firm = [promote(joined, one) if one in _LITERALS else one for one in operands]
    types = [strong(one) for one in firm]
    whole = all(dtype_of(one).kind in (Kind.BOOLEAN, Kind.INTEGER) for one in types)
    if (whole and name in _BY_RELEASE) or (name in _NO_BOOLEANS and {*types} == {"bool"}):
        return None
    if name == "divide" and whole:
        return PYTHON_FLOAT if literal else "float64"
    loops = (loop for kind in row.loops for loop in _LOOPS[kind])
    found = next((one for one in loops if all(promote(t, one) == one for t in types)), None)
    if found is None:
        return None
    if row.result == "truth":
        return "bool"
    if literal and found == strong(joined) and row.cost not in _LIBRARY_ONLY:
        return joined
    return _part(found) if row.result == "real" else found


_LIBRARY_ONLY = frozenset(
    {ArrayOperation.ROOT, ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION}
)


def _part(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
