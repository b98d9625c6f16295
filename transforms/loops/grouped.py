"""Reductions over the elements of a group, a group in each iteration, as those of all groups.

``out[k] = x[keys == k].sum()`` goes through all elements once for every group, where ``bincount``
does so once. Groups may also be all between two limits, the second of which is the first of the
next group: ``(edges[k] <= y) & (y < edges[k + 1])``. Rows of a sparse matrix, ``x[p[k]:p[k + 1]]``,
are groups of neighbours.
"""

from __future__ import annotations

import re
from dataclasses import replace

from advisor.dtypes import Kind
from advisor.ir.concrete import rebuilt, symbols
from advisor.ir.masks import unchosen
from advisor.ir.nests import index_name
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.values import (
    Called,
    Chosen,
    Elementwise,
    Fill,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Tally,
    Value,
    operands,
    parts_of,
)
from costdb.expr import ONE, ZERO, Expr, num, substitute, sym
from transforms.kit.kernels import mapped, type_of
from transforms.loops.lift import COUNTED, Lift
from transforms.loops.masked import NotRaised

_TURNED = {"greater": "less", "greater_equal": "less_equal"}


def grouped(value: Reduction, lift: Lift) -> Value | None:
    """Return reductions of all groups; None where an iteration reduces no group of its own.

    Raises
    ------
    NotRaised
        It does, and the groups have no form.
    """
    mask = next((p.mask for p in parts_of(value.operand) if isinstance(p, Chosen)), None)
    weights = None if mask is None else unchosen(value.operand, mask)
    whole_sum = value.axis is None or not lift.rank(value)
    if mask is None and value.operation in ("add", "count_nonzero"):
        mask = value.operand
    elif value.dtype != "float64" or weights is None or value.operation not in ("add", "mean"):
        return None
    if mask is None or not whole_sum:
        return None
    found = type_of(mask, lift.kernel)
    groups = _groups(mask, lift) if (found.dtype, len(found.extents)) == ("bool", 1) else None
    if groups is None:
        return None
    loop, (places, first, more) = lift.loop, groups
    own = found if weights is None else type_of(weights, lift.kernel)
    same = weights is None or (own.dtype == "float64" and own.extents in ((), found.extents))
    same = same and (weights is None or lift.is_free(weights))
    if not same or loop.low != ZERO or loop.step != 1 or not lift.kernel.runs_through:
        raise NotRaised

    def tallied(weights: Value | None) -> Value:
        dtype = "int64" if weights is None else "float64"
        tally = Tally(places, weights, loop.high + more, dtype)
        if isinstance(places, Called) and places.function == "repeat":
            return tally
        return Part(tally, (Range(num(first), num(first) + loop.high),))

    if value.operation != "mean":
        return tallied(weights)
    return Elementwise("divide", (tallied(weights), tallied(None)))


def _groups(mask: Value, lift: Lift) -> tuple[Value, int, int] | None:
    """Return the group of each element, which one is the first, and how many more there are."""
    match mask:
        case Elementwise("equal", (Read() as keys, Scalar(text)) | (Scalar(text), Read() as keys)):
            dtype = type_of(keys, lift.kernel).dtype
            # bincount takes no uint64
            whole = kind_of_or_none(dtype) is Kind.INTEGER and dtype != "uint64"
            if whole and lift.is_free(keys) and text == index_name(lift.loop.variable):
                return keys, 0, 0
        case Called("between", (low, high), extents) if type_of(low, lift.kernel).dtype != "uint64":
            # repeat takes no uint64 either
            ends = (lift.value(high)[0], lift.value(low)[0])
            rows = Fill(COUNTED, (lift.loop.high,), "int64")
            lengths = Elementwise("subtract", ends)
            return Called("repeat", (rows, lengths), extents, "int64"), 0, 0
        case Elementwise("logical_and" | "bitwise_and", (one, other)):
            sides = dict(filter(None, (_ordered(one), _ordered(other))))
            match sides.get("less_equal"), sides.get("less"):
                case (low, Read() as of), (known, high) if of == known and lift.is_free(of):
                    if _next(low, lift) == high and lift.rank(low) == 0:
                        edges = _all_of(low, lift)
                        extents = type_of(of, lift.kernel).extents
                        right = (("side", '"right"'),)
                        # 0 for what is below all limits
                        places = Called("searchsorted", (edges, of), extents, "int64", right)
                        return places, 1, 2
    return None


def _ordered(test: Value) -> tuple[str, tuple[Value, Value]] | None:
    match test:
        case Elementwise("less" | "less_equal" as operation, (one, other)):
            return operation, (one, other)
        case Elementwise("greater" | "greater_equal" as operation, (one, other)):
            return _TURNED[operation], (other, one)
    return None


def _next(value: Value, lift: Lift) -> Value:
    """Return what a value is in the next iteration."""
    variable, name = lift.loop.variable, index_name(lift.loop.variable)

    def after(expr: Expr) -> Expr:
        return substitute(expr, {variable: sym(variable) + 1})

    def counted(part: object) -> object:
        if isinstance(part, Scalar):
            return replace(part, text=re.sub(rf"\b{name}\b", f"add({name}, 1)", part.text))
        return part

    return mapped(rebuilt(value, after), counted)


def _all_of(low: Value, lift: Lift) -> Value:
    """Return the limits of all groups, the last one's upper one too."""
    if lift.is_free(low) or any(lift.loop.variable in symbols(one) for one in operands(low)):
        raise NotRaised
    longer = replace(lift.loop, high=lift.loop.high + ONE)
    edges, _ = Lift(longer, lift.outer, lift.kernel, lift.proofs).value(low)
    match edges:
        case Read(region=(Range() | Point(),)) | Elementwise():
            return edges
    raise NotRaised
