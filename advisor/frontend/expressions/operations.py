"""Operators of the source, by the functions of NumPy that they are."""

from __future__ import annotations

import libcst as cst

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
UNARY: dict[type[cst.CSTNode], str] = {
    cst.Minus: "negative",
    cst.Plus: "positive",
    cst.BitInvert: "invert",
}
OF_SYNTAX = {node.__name__: name for node, name in (OPERATORS | UNARY).items()}
"""NumPy's functions by LibCST's names of the operators."""
