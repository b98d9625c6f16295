"""Operations along axes of values whose axes stand in another order, or are windows.

Transpositions move outwards until nothing is left of them, so that what is written out names the
axes of the array itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.ir.values import Along, Expand, Reduction, Transpose, Value, Windows, operands

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
