"""NumPy's functions as data: operands, loops, element types, classes of cost; its shapes.

Both readers ask here. A function without a row is not understood. The tests ask NumPy itself
whether each row and each promotion is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cache, reduce
from typing import Final, Literal

from advisor.numpy_functions import FUNCTIONS
from costdb.expr import Expr, floor_div, num, to_text
from costdb.expr.nodes import multiply
from costdb.records import dataclass
from costdb.work import ArrayOperation

ARRAY_MODULES = frozenset({"numpy", "jax.numpy", "cupy", "dask.array", "cupynumeric"})
"""Modules that follow NumPy's interface; their functions are read as NumPy's."""


def as_numpy(full: str) -> str:
    """Return a dotted name with ``numpy`` in the place of every module of `ARRAY_MODULES`."""
    for module in ARRAY_MODULES:
        if full == module or full.startswith(f"{module}."):
            return "numpy" + full.removeprefix(module)
    return full


# --- dtypes ---------------------------------------------------------------------------------------
# Element types by NumPy's names, without NumPy.


class Kind(StrEnum):
    """What arithmetic an element type has: on integers and booleans it is exact."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOATING = "floating"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class DType:
    """An element type.

    Attributes
    ----------
    name : str
        NumPy's full name, such as ``"int32"``.
    kind : Kind
    itemsize_bytes : int
    signed : bool
        False for booleans and unsigned integers.
    """

    name: str
    kind: Kind
    itemsize_bytes: int
    signed: bool = True

    @property
    def code(self) -> str:
        """NumPy's short code, such as ``"i4"``."""
        letter = {
            Kind.BOOLEAN: "b",
            Kind.INTEGER: "i" if self.signed else "u",
            Kind.FLOATING: "f",
            Kind.COMPLEX: "c",
        }[self.kind]
        return f"{letter}{self.itemsize_bytes}"


class UnknownDtype(ValueError):
    """A name that is no element type of fixed size known here."""


_TYPES: Final = (
    DType("bool", Kind.BOOLEAN, 1, signed=False),
    *(DType(f"int{8 * size}", Kind.INTEGER, size) for size in (1, 2, 4, 8)),
    *(DType(f"uint{8 * size}", Kind.INTEGER, size, signed=False) for size in (1, 2, 4, 8)),
    *(DType(f"float{8 * size}", Kind.FLOATING, size) for size in (2, 4, 8)),
    *(DType(f"complex{8 * size}", Kind.COMPLEX, size) for size in (8, 16)),
)

# Character codes, C names and Python's own types, with the widths of 64-bit Unix (LP64).
_SYNONYMS: Final = {
    "bool": ("?", "bool_"),
    "int8": ("b", "byte"),
    "int16": ("h", "short"),
    "int32": ("i", "intc"),
    "int64": ("l", "q", "p", "int", "int_", "intp", "long", "longlong"),
    "uint8": ("B", "ubyte"),
    "uint16": ("H", "ushort"),
    "uint32": ("I", "uintc"),
    "uint64": ("L", "Q", "P", "uint", "uintp", "ulong", "ulonglong"),
    "float16": ("e", "half"),
    "float32": ("f", "single"),
    "float64": ("d", "float", "double", "float_"),
    "complex64": ("F", "csingle"),
    "complex128": ("D", "complex", "cdouble", "complex_"),
}


_BY_NAME: Final = {
    name: dtype for dtype in _TYPES for name in (dtype.name, dtype.code, *_SYNONYMS[dtype.name])
}

_LONGEST_CODE: Final = 3
"""Characters of codes such as ``"c16"``, which are no names in NumPy's module."""


def dtype_of(name: str) -> DType:
    """Return the element type that NumPy knows by a name or code.

    Parameters
    ----------
    name : str
        For example ``"i4"``, ``"int32"``, ``"<f8"``, ``"double"`` or ``"d"``. A mark of byte
        order is allowed and does not matter. ``int`` and the C names have the widths of
        64-bit Unix.

    Raises
    ------
    UnknownDtype
        One line that quotes the name.
    """
    bare = name[1:] if name[:1] in {"<", ">", "=", "|"} else name
    dtype = _BY_NAME.get(bare)
    if dtype is None:
        raise UnknownDtype(f"unknown element type {name!r}; expected one such as i4 or float64")
    return dtype


def is_dtype(name: str) -> bool:
    """Return whether a name is that of an element type, among those of NumPy's module."""
    return len(name) > _LONGEST_CODE and name in _BY_NAME


def itemsize_of(name: str) -> int:
    """Return the bytes of one element of a type named as for :func:`dtype_of`."""
    return dtype_of(name).itemsize_bytes


def kind_of(name: str) -> Kind:
    """Return the kind of a type named as for :func:`dtype_of`."""
    return dtype_of(name).kind


# --- numpy table ----------------------------------------------------------------------------------


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
    **_rows(Row(1, _OF.UNARY, "f"), "radians degrees deg2rad rad2deg"),
    **_rows(Row(1, _OF.UNARY, "f", "truth"), "signbit"),
    **_rows(Row(1, _OF.UNARY, "fc"), "rint"),
    **_rows(Row(1, _OF.UNARY, "?ifc", "truth"), "isnan isfinite isinf logical_not"),
    **_rows(Row(1, _OF.UNARY, "?i"), "invert"),
    **_rows(Row(1, _OF.ROOT, "fc"), "sqrt"),
    **_rows(Row(1, _OF.FUNCTION, "f"), "cbrt"),
    # those that take about as long as `exp` does, by NumPy's own vector code, and the others
    **_rows(Row(1, _OF.TRANSCENDENTAL, "fc"), "exp exp2 log log2 tanh cosh"),
    **_rows(Row(1, _OF.TRANSCENDENTAL, "fc"), "arcsin arccos arctan"),
    # of the C library, one number after the other
    **_rows(Row(1, _OF.CIRCULAR, "fc"), "sin cos"),
    **_rows(Row(1, _OF.FUNCTION, "fc"), "expm1 log10 log1p tan sinh arcsinh arccosh arctanh"),
    **_rows(Row(1, _OF.FUNCTION, "fc", "real"), "angle"),
    **_rows(Row(2, _OF.BINARY, "?ifc"), "add multiply minimum maximum fmax fmin"),
    **_rows(Row(2, _OF.BINARY, "ifc"), "subtract"),
    **_rows(Row(2, _OF.BINARY, "?i"), "bitwise_and bitwise_or bitwise_xor"),
    **_rows(Row(2, _OF.BINARY, "i"), "left_shift right_shift"),
    **_rows(Row(2, _OF.BINARY, "?ifc", "truth"), "logical_and logical_or logical_xor"),
    **_rows(Row(2, _OF.DIVIDE, "fc"), "divide"),
    **_rows(Row(2, _OF.REMAINDER, "if"), "floor_divide remainder fmod"),
    **_rows(Row(2, _OF.POWER, "ifc"), "power"),
    **_rows(Row(2, _OF.FUNCTION, "f"), "arctan2"),
    **_rows(Row(2, _OF.FUNCTION, "f"), "hypot logaddexp logaddexp2 heaviside"),
    **_rows(Row(2, _OF.BINARY, "f"), "copysign"),
    **_rows(Row(2, _OF.REMAINDER, "i"), "gcd lcm"),
    **_rows(Row(2, _OF.COMPARE, "?ifc", "truth"), "equal not_equal less less_equal"),
    **_rows(Row(2, _OF.COMPARE, "?ifc", "truth"), "greater greater_equal"),
    **_rows(Row(3, _OF.WHERE, "?ifc"), "where"),
    **_rows(Row(3, _OF.BINARY, "ifc"), "clip"),
}
ELEMENTWISE: Final = {name: name for name in ROWS if name != "clip"} | {
    "true_divide": "divide",
    "abs": "absolute",
    "mod": "remainder",
    "conj": "conjugate",
    "bitwise_not": "invert",
    "pow": "power",
}
"""What NumPy's functions are called in the intermediate forms."""
SIGNS: Final = {
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//"},
    **{"remainder": "%", "power": "**", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"},
    **{"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<="},
    **{"greater": ">", "greater_equal": ">="},
}
"""Python's operators, by the functions of two operands that they are."""

_BY_RELEASE = frozenset({"floor", "ceil", "trunc"})
_NO_BOOLEANS = frozenset(["negative", "positive", "sign", "subtract", "angle", "gcd", "lcm"])


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
    {
        ArrayOperation.ROOT,
        ArrayOperation.TRANSCENDENTAL,
        ArrayOperation.FUNCTION,
        ArrayOperation.CIRCULAR,
        ArrayOperation.POWER,
    }
)


def _part(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


Accumulated = Literal["same", "sum", "mean", "spread", "truth", "place"]


@dataclass(frozen=True, slots=True)
class Reducing:
    """A function that combines the elements along an axis.

    Attributes
    ----------
    operation : str
        NumPy's function of two elements, else its own name: what is written out from the
        intermediate form has to come to the same.
    result : {"same", "sum", "mean", "spread", "truth", "place"}
        Its type: that of the elements; no integer narrower than the platform's; no integer at
        all; nor a complex number; a boolean; or an index.
    """

    operation: str
    result: Accumulated


POWERS: Final = {"2": "square", "1": "positive", "-1": "reciprocal", "0.5": "sqrt"}
"""What NumPy computes powers by that have a function of their own."""

REDUCTIONS: Final = {
    "sum": Reducing("add", "sum"),
    "prod": Reducing("multiply", "sum"),
    "max": Reducing("maximum", "same"),
    "min": Reducing("minimum", "same"),
    "mean": Reducing("mean", "mean"),
    "any": Reducing("logical_or", "truth"),
    "all": Reducing("logical_and", "truth"),
    "argmax": Reducing("argmax", "place"),
    "argmin": Reducing("argmin", "place"),
    "count_nonzero": Reducing("count_nonzero", "place"),
    "ptp": Reducing("subtract", "same"),
    "var": Reducing("var", "spread"),
    "std": Reducing("std", "spread"),
    "linalg.norm": Reducing("norm", "spread"),
    # they pass over the elements more often than once, which no model covers
    "nansum": Reducing("unpriced", "sum"),
    "nanprod": Reducing("unpriced", "sum"),
    "nanmax": Reducing("unpriced", "same"),
    "nanmin": Reducing("unpriced", "same"),
    "nanmean": Reducing("unpriced", "mean"),
    "median": Reducing("unpriced", "mean"),
    "percentile": Reducing("unpriced", "mean"),
    "quantile": Reducing("unpriced", "mean"),
}
IN_PYTHON: Final = {
    **{"mean": 1, "var": 2, "std": 3, "median": 8, "percentile": 23, "quantile": 23},
    **{"nanmedian": 11, "nanpercentile": 27, "nanquantile": 27, "nanmean": 5, "cov": 10},
    **{"cross": 13, "kron": 9, "insert": 5, "unique": 4, "hanning": 3, "hamming": 3},
    **{"clip": 2, "round": 2, "delete": 2, "partition": 1},
    **dict.fromkeys(("nansum", "nanprod", "nanmax", "nanmin", "vstack", "stack"), 2),
    **dict.fromkeys(("argsort", "searchsorted", "repeat", "append", "trace", "diag", "hstack"), 1),
}
"""What functions do in Python besides their loops: how often as much as one that only reduces."""
SCANS: Final = {
    **{"cumsum": REDUCTIONS["sum"], "cumprod": REDUCTIONS["prod"]},
    **{
        f"{name}.accumulate": Reducing(name, "same")
        for name in ("maximum", "minimum", "fmax", "fmin")
    },
}
REDUCED: Final = {
    REDUCTIONS[name].operation: name
    for name in ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")
}
SCANNED: Final = {SCANS[name].operation: name for name in ("cumsum", "cumprod")}
"""What operations of the intermediate forms are written as; of the first, arrays have methods."""


@dataclass(frozen=True, slots=True)
class Copying:
    """A function that gives the elements that it is given.

    Attributes
    ----------
    always : bool
        Whether in memory of their own also where they are laid out as wanted.
    order : str
        In which order, where none is stated; ``""`` for the one of the operand.
    """

    always: bool
    order: str = ""


COPIES: Final = {
    **dict.fromkeys(("copy", "array", "astype"), Copying(True)),
    "asarray": Copying(False),
    "ascontiguousarray": Copying(False, "C"),
    "asfortranarray": Copying(False, "F"),
}
SAME_AS: Final = {
    **{"amax": "max", "amin": "min", "average": "mean", "around": "round"},
    **{"concat": "concatenate", "permute_dims": "transpose", "asanyarray": "asarray"},
    **{"row_stack": "vstack", "identity": "eye", "trapz": "trapezoid", "ndarray": "empty"},
}
"""Other names of functions, as far as their first argument goes."""

PARAMETERS: Final = {
    name: tuple(parameters.split())
    for names, parameters in (
        ("sum prod mean nansum nanprod nanmean", "a axis dtype out keepdims"),
        ("any all argmax argmin ptp nanmax nanmin", "a axis out keepdims"),
        ("max min", "a axis out keepdims initial"),
        ("count_nonzero", "a axis keepdims"),
        ("median", "a axis out overwrite_input keepdims"),
        ("percentile quantile", "a q axis out overwrite_input method keepdims"),
        ("var std", "a axis dtype out ddof keepdims"),
        ("linalg.norm", "x ord axis keepdims"),
        ("cumsum cumprod", "a axis dtype out"),
        ("maximum.accumulate minimum.accumulate", "array axis"),
        ("fmax.accumulate fmin.accumulate", "array axis"),
        ("clip", "a a_min a_max out"),
        ("round", "a decimals out"),
        ("diff", "a n axis"),
        ("sort", "a axis kind"),
        ("lib.stride_tricks.sliding_window_view", "x window_shape axis"),
        ("matmul inner vdot outer", "a b"),
        ("dot", "a b out"),
        ("take", "a indices"),
        ("bincount", "x weights minlength"),
        ("roll", "a shift axis"),
        ("pad", "array pad_width mode"),
        ("flip", "m axis"),
        ("transpose", "a axes"),
        ("swapaxes", "a axis1 axis2"),
        ("moveaxis", "a source destination"),
        ("rollaxis", "a axis start"),
        ("fft.fft fft.ifft fft.rfft fft.irfft", "a n axis"),
        ("fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2", "a s axes"),
        ("fft.fftn fft.ifftn fft.rfftn fft.irfftn", "a s axes"),
        ("zeros ones empty", "shape dtype order"),
        ("full", "shape fill_value dtype order"),
        ("zeros_like ones_like", "a dtype order"),
        ("empty_like", "prototype dtype order"),
        ("full_like", "a fill_value dtype order"),
        ("eye", "N M k dtype order"),
        ("arange", "start stop step dtype"),
        ("linspace", "start stop num endpoint retstep dtype"),
        ("concatenate", "arrays axis out dtype"),
        ("hstack vstack column_stack", "tup"),
        ("stack", "arrays axis out"),
        ("copy", "a order"),
        ("array", "object dtype copy order"),
        ("asarray ascontiguousarray asfortranarray", "a dtype order"),
    )
    for name in names.split()
} | {name: row.parameters for name, row in FUNCTIONS.items()}
"""The parameters that are understood, in NumPy's order; a method has no first one."""


def reduced_dtype(rule: Accumulated, dtype: str) -> str:
    """Return the element type of a reduction or a scan that states none."""
    if rule in ("truth", "place"):
        return "bool" if rule == "truth" else "int64"
    if dtype == UNKNOWN_DTYPE:
        return dtype
    found = dtype_of(strong(dtype))
    whole = found.kind in (Kind.BOOLEAN, Kind.INTEGER)
    if rule in ("mean", "spread"):
        return "float64" if whole else _part(dtype) if rule == "spread" else dtype
    if rule == "sum" and whole:
        return "int64" if found.kind is Kind.BOOLEAN or found.signed else "uint64"
    return dtype


# Shapes that NumPy's functions give, as rules over symbolic extents.
#
# None stands for a shape that is not known, or that NumPy refuses.


Shape = tuple[Expr, ...]
ONE = num(1)


class ShapeConflict(ValueError):
    """Operands whose shapes do not fit one another, as far as symbols tell.

    Attributes
    ----------
    extents : tuple of Expr
        Two that are not known to agree; none where it is about something else.
    """

    def __init__(self, reason: str, *extents: Expr) -> None:
        super().__init__(reason)
        self.extents = extents


def count_of(shape: Shape) -> Expr:
    """Return the number of elements of a shape."""
    return multiply(shape)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the common shape of operands.

    Raises
    ------
    ShapeConflict
        Where extents are not known to agree.
    """
    rank = max(map(len, shapes), default=0)
    found: list[Expr] = []
    for axis in range(-rank, 0):
        longer = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != ONE]
        if any(extent != longer[0] for extent in longer):
            one, other = longer[0], next(e for e in longer if e != longer[0])
            raise ShapeConflict(
                f"extents {to_text(one)} and {to_text(other)} are not known to agree", one, other
            )
        found.append(longer[0] if longer else ONE)
    return tuple(found)


def reduced(shape: Shape, axis: int | None) -> Shape:
    """Return the shape of a reduction along an axis, or along all."""
    return () if axis is None else (*shape[:axis], *shape[axis + 1 :])


def expanded(shape: Shape, axis: int, extent: Expr = ONE) -> Shape:
    """Return a shape with a dimension put in."""
    return (*shape[:axis], extent, *shape[axis:])


def resized(shape: Shape, axis: int, extent: Expr) -> Shape:
    """Return a shape with another extent of one dimension."""
    return (*shape[:axis], extent, *shape[axis + 1 :])


def concatenated(shapes: Sequence[Shape], axis: int, times: Expr = ONE) -> Shape | None:
    """Return the shape of arrays one behind the other along an axis, all of them so many times."""
    first = shapes[0]
    if any(len(shape) != len(first) for shape in shapes) or not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    return resized(first, axis, sum((shape[axis] for shape in shapes), num(0)) * times)


def stacked(shapes: Sequence[Shape], axis: int, times: Expr = ONE) -> Shape | None:
    """Return the shape of arrays beside one another along a new axis, all of them so many times."""
    first, rank = shapes[0], len(shapes[0]) + 1
    if any(len(shape) != len(first) for shape in shapes) or not -rank <= axis < rank:
        return None
    return expanded(first, axis % rank, times * len(shapes))


def joined(name: str, shapes: Sequence[Shape], axis: int, times: Expr = ONE) -> Shape | None:
    """Return the shape that ``concatenate``, ``hstack``, ``stack`` and their like give."""
    rank = len(shapes[0])
    match name:
        case "stack":
            return stacked(shapes, axis, times)
        case "vstack" | "row_stack" | "column_stack" if rank == 1:
            return stacked(shapes, int(name == "column_stack"), times)
        case "hstack" | "column_stack":
            axis = min(rank - 1, 1)
        case "vstack" | "row_stack":
            axis = 0
    return concatenated(shapes, axis, times)


def transformed(name: str, shape: Shape, axis: int) -> Shape:
    """Return the shape of a Fourier transform: one of real numbers keeps half of an axis."""
    if "rfft" not in name:
        return shape
    extent = shape[axis]
    half = 2 * (extent - 1) if name.startswith("irfft") else floor_div(extent, num(2)) + 1
    return resized(shape, axis, half)


def moved(name: str, source: int, target: int, rank: int) -> tuple[int, ...]:
    """Return the axes in the order that ``swapaxes``, ``moveaxis`` or ``rollaxis`` gives them."""
    places = list(range(rank))
    if name == "swapaxes":
        places[source], places[target] = places[target], places[source]
        return tuple(places)
    places.remove(source)
    # rollaxis states before which axis, counted while the moved one is still there
    before = target - 1 if name == "rollaxis" and source < target else target
    places.insert(before, source)
    return tuple(places)


# Functions of ``math``.

_ALIKE = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "hypot", "fmod"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "degrees", "radians"),
    *("fabs", "floor", "ceil", "trunc", "copysign", "isnan", "isinf", "isfinite"),
)
_ARCS = ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")
OF_MATH: Final = (
    {name: name for name in _ALIKE}
    | {f"a{name}": f"arc{name}" for name in _ARCS}
    | {"pow": "power"}
)
"""What NumPy calls a function of `math`; `remainder` means something else there."""

OF_CMATH: Final = frozenset(("exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"))
"""Functions of `cmath` that give what NumPy's of the same name give of complex numbers."""

WHOLE_OF_MATH: Final = frozenset(
    {"floor", "ceil", "trunc", "gcd", "lcm", "isqrt", "comb", "perm", "factorial"}
)
"""Those that give whole numbers."""
