"""Arrays of truth values as subscripts: ``a[a > 0] = 0``."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.expressions.arrays import mask_of, value_of, whole_read
from advisor.frontend.naming.scope import Scope
from advisor.frontend.statements.stores import place_of
from advisor.frontend.syntax.problems import NotUnderstood
from advisor.ir.values import Elementwise, Read, Value


def assigned_place(target: cst.Subscript, scope: Scope) -> tuple[Read, Value | None]:
    """Return the part of an array that is assigned to, and the mask that chooses from it.

    Raises
    ------
    NotUnderstood
        For a subscript that is neither a region nor a mask of the whole array.
    """
    try:
        return place_of(target, scope), None
    except NotUnderstood as refused:
        mask = mask_of(target, scope)
        if mask is None or not isinstance(target.value, cst.Name):
            raise refused
        return whole_read(target.value.value, scope), mask


def chosen(mask: Value, place: Read, node: cst.BaseExpression, scope: Scope) -> Value:
    """Return what an array holds after some of its elements were given one value.

    Raises
    ------
    NotUnderstood
        Where each is given a value of its own, so that it matters how many there are.
    """
    value = value_of(node, scope)
    if scope.type_of(value).extents:
        raise NotUnderstood("as many values as a mask chooses: only the data know how many")
    return Elementwise("where", (mask, value, place))
