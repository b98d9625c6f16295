"""Stores to parts of arrays: assignments, increments, ``out=``, scatters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from advisor.frontend.accumulations import extreme_of
from advisor.frontend.expressions.arrays import element_place, mask_of, value_of, whole_read
from advisor.frontend.expressions.conditions import is_inert
from advisor.frontend.expressions.indices import selection
from advisor.frontend.naming.names import dotted, resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.nests import is_of_elements
from advisor.ir.statements import Scatter, Statement, Store
from advisor.ir.values import Elementwise, Read, Scalar, Value, reads
from advisor.numpy_shapes import ShapeConflict, broadcast
from advisor.source import Span


def place_of(target: cst.Subscript, scope: Scope) -> Read:
    """Return the part of an array that is assigned to."""
    name = target.value.value if isinstance(target.value, cst.Name) else ""
    if not scope.is_array(name):
        reason = "a store to something that is not known to be an array"
        raise NotUnderstood(scope.hints.get(name, reason))
    found = selection(target.slice, scope.extents_of(name), scope)
    if found.flipped or found.expanded:
        raise NotUnderstood("a store to a reversed part, or to one with a new axis")
    return scope.select(name, found.region)


def stored(place: Read, value: Value, span: Span, scope: Scope, *, in_place: bool = False) -> Store:
    """Return the store of a value, which changes what is known of the array.

    Raises
    ------
    NotUnderstood
        The value does not fit, or the array's memory has other strides under another name.
    """
    _not_strided(place.array, scope)
    target, source = scope.type_of(place).extents, scope.type_of(value).extents
    try:
        broadcast([target, source])
    except ShapeConflict as error:
        raise NotUnderstood(str(error)) from error
    if len(source) > len(target):
        raise NotUnderstood("the value has more dimensions than its place")
    held = scope.held_in(value)
    scope.changed(place.array)
    return Store(place.array, place.region, value, span, in_place, held)


def _not_strided(name: str, scope: Scope) -> None:
    if name in scope.strided:
        raise NotUnderstood(f"`{name}` shares its memory with an array of other strides")


def increment(
    target: cst.Subscript, operation: str, node: cst.BaseExpression, span: Span, scope: Scope
) -> Scatter | None:
    """Read ``array[places[i]] += value``; None where the place is known."""
    if operation != "add" or not isinstance(target.value, cst.Name):
        return None
    name = target.value.value
    if not scope.is_array(name) or name in scope.views or not scope.by_element:
        return None
    place = element_place(target.slice, scope)
    if place is None or len(scope.extents_of(name)) != 1:
        return None
    _not_strided(name, scope)
    value = value_of(node, scope)
    if not is_of_elements(value):
        raise NotUnderstood("an increment by something other than numbers and elements")
    scope.changed(name)
    return Scatter(name, place, value, operation, span, by_element=True)


def extreme(node: cst.If, span: Span, scope: Scope) -> Store | None:
    """Read ``if value < array[i]: array[i] = value``; None for any other condition."""
    found = extreme_of(node)
    if found is None or not scope.by_element:
        return None
    target, operation, chosen = found
    place, value = place_of(target, scope), value_of(chosen, scope)
    if not is_of_elements(place) or not is_of_elements(value):
        return None
    return stored(place, Elementwise(operation, (place, value)), span, scope, in_place=True)


def chosen_stores(
    condition: Value, then: Sequence[Statement], orelse: Sequence[Statement]
) -> tuple[Store, ...] | None:
    """Return stores to single elements of which a condition chooses, each to one place once.

    None where a branch does anything else, or changes what the condition looks at.
    """
    ways: list[dict[Read, Store]] = []
    for branch in (then, orelse):
        stores = [one for one in branch if isinstance(one, Store) and one.region]
        places = {Read(one.array, one.region): one for one in stores}
        if len(places) < len(branch) or not all(map(is_of_elements, places)):
            return None
        ways.append(places)
    order = [*ways[0], *(place for place in ways[1] if place not in ways[0])]
    if [place for place in order if place in ways[1]] != [*ways[1]]:
        return None
    if {place.array for place in order[:-1]} & {read.array for read in reads(condition)}:
        return None
    made = []
    for place in order:
        one, other = (way.get(place) for way in ways)
        known = one or other
        assert known is not None
        if not is_of_elements(known.value):
            return None
        values = (one.value if one else place, other.value if other else place)
        value = Elementwise("where", (condition, *values))
        made.append(replace(known, value=value, in_place=False))
    return tuple(made)


def of_call(node: cst.Call, span: Span, scope: Scope) -> Sequence[Statement]:
    """Read ``np.add(a, b, out=c)``; other calls for their effect are not understood."""
    full = resolve(node.func, scope.imports) or ""
    outs = [a for a in node.args if a.keyword is not None and a.keyword.value == "out"]
    if isinstance(node.func, cst.Name) and node.func.value == "print":
        if scope.not_builtin("print") or not all(
            is_inert(argument.value, scope) for argument in node.args
        ):
            raise NotUnderstood("a call of `print` that reads arrays or does more")
        return ()
    if full == "numpy.add.at":
        return (_scatter(node, span, scope),)
    if full.startswith("numpy.") and len(outs) == 1:
        target = outs[0].value
        rest = node.with_changes(args=[a for a in node.args if a is not outs[0]])
        if isinstance(target, cst.Name) and scope.is_array(target.value):
            place = whole_read(target.value, scope)
        elif isinstance(target, cst.Subscript):
            place = place_of(target, scope)
        else:
            raise NotUnderstood("out= of something that is not known to be an array")
        return (stored(place, value_of(rest, scope), span, scope, in_place=True),)
    called = dotted(node.func) or "this expression"
    raise NotUnderstood(f"the call of `{called}` is not understood")


def _scatter(node: cst.Call, span: Span, scope: Scope) -> Scatter:
    """Read ``np.add.at(array, places, value)`` for a vector and a vector of places."""
    if len(node.args) != 3 or any(a.keyword or a.star for a in node.args):
        raise NotUnderstood("np.add.at whose arguments cannot be read")
    array, places, value = (argument.value for argument in node.args)
    if not isinstance(array, cst.Name) or not scope.is_array(array.value):
        raise NotUnderstood("np.add.at on something that is not known to be an array")
    target = whole_read(array.value, scope)
    _not_strided(target.array, scope)
    if target.array != array.value or len(target.region) != 1:
        raise NotUnderstood("np.add.at on something other than a vector of its own")
    at, added = value_of(places, scope), value_of(value, scope)
    if isinstance(at, Scalar):
        raise NotUnderstood("np.add.at at a single place")
    if len(scope.type_of(at).extents) != 1:
        raise NotUnderstood("np.add.at at something other than a vector of places")
    return Scatter(target.array, at, added, "add", span)


# Arrays of truth values as subscripts: ``a[a > 0] = 0``.


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
