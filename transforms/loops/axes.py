"""Operations along axes of values whose axes stand in another order, or are windows.

Transpositions move outwards until nothing is left of them, so that what is written out names the
axes of the array itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from advisor.ir.values import (
    Along,
    Elementwise,
    Expand,
    Reduction,
    Scalar,
    Transpose,
    Value,
    Windows,
    operands,
)
from advisor.numpy_table import OF_MATH, PYTHON_INTEGER, ROWS, WHOLE_OF_MATH

BY_PARTS = frozenset(
    ["add", "multiply", "maximum", "minimum", "mean", "spread", "logical_or", "logical_and"]
)
"""Reductions of which that of all axes is that of one axis after another."""


def told(value: Value) -> Iterator[Value]:
    """Yield a value and all that its text is made of."""
    yield value
    for part in (value.operand,) if isinstance(value, Along) else operands(value):
        yield from told(part)


def transposed(value: Value, order: Sequence[int]) -> Value:
    """Return a value with its axes in another order, each transposition on the last one."""
    match value:
        case Transpose(operand, axes):
            return transposed(operand, [axes[axis] for axis in order])
    return value if list(order) == sorted(order) else Transpose(value, tuple(order))


def reduced(value: Reduction) -> Value:
    """Return a reduction along an axis, of the array behind a transposition."""
    match value:
        case Reduction(Transpose(operand, axes), int(axis)):
            along = axes[axis]
            rest = [one - (one > along) for number, one in enumerate(axes) if number != axis]
            return transposed(reduced(replace(value, operand=operand, axis=along)), rest)
    # one after another, the last axis first
    found: Value
    found, every = chain(value)
    for one in reversed(every or ()):
        found = replace(value, operand=found, axis=one)
    return found if every else value


def windows(value: Windows) -> Value:
    """Return windows of the array behind a transposition."""
    match value.operand:
        case Transpose(operand, axes):
            inner = replace(value, operand=operand, axis=axes[value.axis])
            return transposed(inner, (*axes, len(axes)))
    return value


def along(value: Along) -> Along:
    """Return a function along axes of the array behind a transposition."""
    match value:
        case Along(operand=Transpose(operand, order), axes=axes, kept=False):
            rest = [one for number, one in enumerate(order) if number not in axes]
            if rest == sorted(rest):
                own = tuple(sorted(order[axis] for axis in axes))
                return replace(value, operand=operand, axes=own)
    return value


def chain(value: Reduction) -> tuple[Value, tuple[int, ...] | None]:
    """Return what is reduced by one operation along one axis after another, and which axes."""
    if value.axis is None:
        return value.operand, None
    found, inner = [value.axis], value.operand
    while (
        isinstance(inner, Reduction)
        and inner.operation == value.operation in BY_PARTS
        and inner.axis is not None
        and not inner.fused
    ):
        found.append(inner.axis)
        inner = inner.operand
    axes: list[int] = []
    for axis in reversed(found):
        for known in sorted(axes):
            axis += axis >= known
        axes.append(axis)
    return inner, tuple(sorted(axes))


def kept_axis(value: Value) -> bool:
    """Return whether a value is a reduction that keeps its axis, with one element."""
    match value:
        case Expand(Reduction(_, int(along), fused=False), axis):
            return along == axis
        case Expand(Along(axes=(one,), kept=False), axis):
            return one == axis
    return False


# --- formulas -------------------------------------------------------------------------------------
# The text of a number that an iteration computes: as values, and what of Python it relies on.


_TRUTHS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
INDEX_BITS, WORD_BITS = 30, 63
_OF_NUMBERS = frozenset({"absolute", "add", "multiply", "negative", "positive", "subtract"})


def of_text(node: ast.expr, named: Callable[[ast.expr], Value]) -> Value:
    """Return what the text of a number says, given what it says of names and fractions."""
    match node:
        case ast.Call(ast.Name(operation), parts) if operation in ROWS:
            return Elementwise(operation, tuple(of_text(one, named) for one in parts))
        case ast.Call(ast.Attribute(ast.Name("math"), name), parts) if (
            name in OF_MATH and name not in WHOLE_OF_MATH
        ):
            return Elementwise(OF_MATH[name], tuple(of_text(one, named) for one in parts))
        case ast.UnaryOp(ast.USub(), ast.Constant(int())) | ast.Constant(int()):
            return Scalar(ast.unparse(node), PYTHON_INTEGER)
        case ast.UnaryOp(ast.USub(), operand):
            return Elementwise("negative", (of_text(operand, named),))
    return named(node)


def adds_truths(node: ast.AST) -> bool:
    """Return whether a formula computes with what comparisons give: in Python these are numbers."""
    match node:
        case ast.Call(ast.Name(name), parts) if name in _OF_NUMBERS:
            return any(
                isinstance(one, ast.Call) and ast.unparse(one.func) in _TRUTHS for one in parts
            )
    return False


def bits(node: ast.AST, index: str | None) -> int:
    """Return how many bits the whole numbers of a formula need, at most.

    The index is taken to be below ``2**30``; of other whole numbers nothing says how large they
    are. Without an index, as of formulas that come to no whole number, each name is like one.
    """
    match node:
        case ast.Name(name):
            return INDEX_BITS * (1 if index in (name, None) else 2)
        case ast.Constant(int(value)):
            return abs(value).bit_length()
        case ast.Call(ast.Name("multiply"), parts):
            return sum(bits(one, index) for one in parts)
        case ast.Call(ast.Name("power"), [base, ast.Constant(int(power))]):
            return bits(base, index) * power
        case ast.Call(ast.Name("left_shift" | "power"), _):
            return WORD_BITS + 1
        case ast.Call(_, parts):
            return max((bits(one, index) for one in parts), default=0)
    return max((bits(one, index) for one in ast.iter_child_nodes(node)), default=0)
