"""Operations an element: their names in the source, and how many operands they take."""

from __future__ import annotations

import libcst as cst

_UNARY = frozenset(
    {
        *("negative", "positive", "absolute", "sign", "square", "sqrt", "cbrt", "conjugate"),
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
        *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
        *("floor", "ceil", "rint", "trunc", "isnan", "isfinite", "isinf"),
        *("logical_not", "invert"),
    }
)
_BINARY = frozenset(
    {
        "add",
        "subtract",
        "multiply",
        "divide",
        "minimum",
        "maximum",
        "power",
        "floor_divide",
        "remainder",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "left_shift",
        "right_shift",
        *("logical_and", "logical_or", "logical_xor", "hypot", "arctan2", "fmax", "fmin"),
    }
)
ELEMENTWISE = {
    **{name: name for name in (*_UNARY, *_BINARY, "where")},
    "true_divide": "divide",
    "abs": "absolute",
    "mod": "remainder",
    "conj": "conjugate",
    "fabs": "absolute",
    "bitwise_not": "invert",
    "pow": "power",
}
"""What NumPy's functions are called in the intermediate form."""

OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.FloorDivide: "floor_divide",
    cst.Modulo: "remainder",
    cst.Power: "power",
    cst.BitAnd: "bitwise_and",
    cst.BitOr: "bitwise_or",
    cst.BitXor: "bitwise_xor",
    cst.LeftShift: "left_shift",
    cst.RightShift: "right_shift",
    cst.LessThan: "less",
    cst.LessThanEqual: "less_equal",
    cst.GreaterThan: "greater",
    cst.GreaterThanEqual: "greater_equal",
    cst.Equal: "equal",
    cst.NotEqual: "not_equal",
}
AUGMENTED: dict[type[cst.CSTNode], str] = {
    cst.AddAssign: "add",
    cst.SubtractAssign: "subtract",
    cst.MultiplyAssign: "multiply",
    cst.DivideAssign: "divide",
    cst.FloorDivideAssign: "floor_divide",
    cst.ModuloAssign: "remainder",
    cst.PowerAssign: "power",
    cst.BitAndAssign: "bitwise_and",
    cst.BitOrAssign: "bitwise_or",
    cst.BitXorAssign: "bitwise_xor",
}


def operands_of(operation: str) -> int:
    """Return how many operands an operation takes."""
    if operation in _UNARY:
        return 1
    return 2 if operation in _BINARY else 3
