"""What a mask chooses, in and out of expressions: ``a[mask] / b[mask]`` is ``(a / b)[mask]``."""

from __future__ import annotations

from collections.abc import Callable

from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Store
from advisor.ir.values import (
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Gather,
    Read,
    Scalar,
    Transpose,
    Value,
)
from costdb.expr import Expr
from costdb.records import replace


def masked(store: Store) -> tuple[Value, Value] | None:
    """Return the mask of ``array[mask] = value``, and the value for all elements.

    None for a store that is under no mask.
    """
    match store.value:
        case Elementwise("where", (mask, value, own)) if store.in_place:
            return (mask, value) if own == Read(store.array, store.region) else None
    return None


def chosen_in(
    value: Value, mask: Value, type_of: Callable[[Value], ArrayType], count: Expr
) -> Value | None:
    """Return a value with what a mask chooses in the place of arrays; None where it has no form.

    Parameters
    ----------
    value : Value
    mask : Value
    type_of : callable
        Gives element type and shape of a value.
    count : Expr
        Stands for how many are chosen.
    """
    extents = type_of(value).extents
    match value:
        case _ if not extents:
            return value
        case Read() | Transpose() | Expand() | Flip() | Fill():
            same = extents == type_of(mask).extents
            return Chosen(value, mask, count) if same else None
        case Copy(operand, dtype):
            inner = chosen_in(operand, mask, type_of, count)
            return None if inner is None else Copy(inner, dtype)
        case Gather(operand):
            if type_of(operand).extents[len(value.all_places) :]:
                return None
            found = [chosen_in(one, mask, type_of, count) for one in value.all_places]
            places = tuple(one for one in found if one is not None)
            return Gather(operand, places[0], places[1:]) if len(places) == len(found) else None
        case Elementwise(_, parts):
            made = [chosen_in(part, mask, type_of, count) for part in parts]
            known = tuple(part for part in made if part is not None)
            return replace(value, operands=known) if len(known) == len(parts) else None
    return None


def unchosen(value: Value, mask: Value) -> Value | None:
    """Return what a value is for all elements, of which it has those that a mask chooses.

    None where it is not computed element by element from such.
    """
    match value:
        case Scalar():
            return value
        case Chosen(operand, other, _) if other == mask:
            return operand
        case Copy(operand, dtype):
            inner = unchosen(operand, mask)
            return None if inner is None else Copy(inner, dtype)
        case Gather(operand):
            found = [unchosen(one, mask) for one in value.all_places]
            places = tuple(one for one in found if one is not None)
            return Gather(operand, places[0], places[1:]) if len(places) == len(found) else None
        case Elementwise(_, parts):
            made = [unchosen(part, mask) for part in parts]
            known = tuple(part for part in made if part is not None)
            return replace(value, operands=known) if len(known) == len(parts) else None
    return None
