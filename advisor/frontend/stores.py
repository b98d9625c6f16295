"""Conditions, and stores to parts of arrays: assignments, increments, ``out=``, scatters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, pairwise

import libcst as cst

from advisor.frontend.accumulations import extreme_of
from advisor.frontend.arrays import (
    as_mask,
    mask_within,
    masked_part,
    places_in,
    value_of,
    whole_read,
)
from advisor.frontend.bindings import dotted, resolve
from advisor.frontend.effects import is_inert
from advisor.frontend.indices import Known, bound_to_number, calculated, known, selection
from advisor.frontend.lists import appended, put
from advisor.frontend.scope import Scope
from advisor.frontend.trees import NotUnderstood
from advisor.ir.dependence import known_non_negative
from advisor.ir.nests import is_of_elements, unchosen
from advisor.ir.statements import CONDITION, SET, ScalarBind, Scatter, Stated, Statement, Store
from advisor.ir.values import Elementwise, Read, Scalar, Value, reads
from advisor.numpy_table import ShapeConflict, broadcast
from advisor.source import Span
from costdb.expr import Expr, equal, num

# Conditions: what evaluating them needs and does, and how they come out.


def evaluated(test: cst.BaseExpression, scope: Scope, span: Span) -> Sequence[Statement]:
    """Return what it takes to evaluate a condition.

    Raises
    ------
    NotUnderstood
        Where it may do more than read.
    """
    if is_inert(test, scope):
        return ()
    value = value_of(test, scope)
    if isinstance(value, Scalar):
        return ()
    if scope.type_of(value).extents:
        raise NotUnderstood("the truth of a whole array")
    return (ScalarBind(CONDITION, value, span),)


def mask_of(test: cst.BaseExpression, scope: Scope) -> Value:
    """Return where a condition on elements holds, as booleans: a number holds where it is not 0.

    Raises
    ------
    NotUnderstood
        For anything outside the understood language.
    """
    return as_mask(value_of(test, scope), scope)


def truth(test: cst.BaseExpression, scope: Scope) -> Expr | None:
    """Return 1 where a condition on whole numbers is true and 0 elsewhere; None for any other.

    Sizes and loop indices are whole numbers that are known as expressions, so a condition on them
    is no matter of probability.
    """
    match test:
        case cst.Comparison():
            nodes = test.left, *(part.comparator for part in test.comparisons)
            sides = [known(node, scope) for node in nodes]
            parts = zip(test.comparisons, pairwise(sides), strict=True)
            found = [_relation(part.operator, *both, scope) for part, both in parts]
            return reduce(lambda one, other: calculated("And", one, other), found)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            return calculated(type(operator).__name__, truth(left, scope), truth(right, scope))
        case cst.UnaryOperation(operator=cst.Not() as operator, expression=inner):
            return calculated(type(operator).__name__, truth(inner, scope))
        case cst.Call(func=cst.Name(value="isinstance"), args=[cst.Arg(one), cst.Arg(kind)]):
            plain = resolve(kind, scope.imports) == "numpy.ndarray"
            if plain and isinstance(one, cst.Name) and not scope.not_builtin("isinstance"):
                number = one.value in scope.numbers or one.value in scope.scalars
                return num(1) if scope.is_array(one.value) else num(0) if number else None
    return None


_ORDERS = {"LessThan": 1, "LessThanEqual": 0, "GreaterThan": 1, "GreaterThanEqual": 0}
"""By how much one side is at least the greater, where they hold of whole numbers."""


def _relation(operator: cst.BaseCompOp, left: Known, right: Known, scope: Scope) -> Expr | None:
    name = type(operator).__name__
    if name in ("Equal", "NotEqual"):
        same = _same(left, right)
        return same if name == "Equal" else calculated("Not", same)
    if name not in _ORDERS or not isinstance(left, Expr) or not isinstance(right, Expr):
        return None
    more, apart = (right - left if name.startswith("Less") else left - right), _ORDERS[name]
    # known for all sizes of at least 1, so that no price needs to ask
    for gap, holds in ((more - apart, 1), (apart - 1 - more, 0)):
        if known_non_negative(gap, scope.minima):
            return num(holds)
    return calculated(name, left, right)


def _same(left: Known, right: Known) -> Expr | None:
    """Return whether two whole numbers are equal, or two written-out tuples of them."""
    if isinstance(left, Expr) and isinstance(right, Expr):
        return equal(left, right)
    if not isinstance(left, tuple) or not isinstance(right, tuple):
        return None
    parts = (_same(one, other) for one, other in zip(left, right, strict=False))
    same: Expr | None = num(len(left) == len(right))
    return reduce(lambda one, other: calculated("And", one, other), parts, same)


# What the names of a loop over written-out values denote in one of its iterations.


def bind_item(name: str, item: Known, scope: Scope) -> None:
    """Let a name denote what is written: a number or text, a tuple, an array or part of one.

    Raises
    ------
    NotUnderstood
        For anything that is computed, which would have been before the first iteration.
    """
    if scope.has_array(name):
        raise NotUnderstood(f"`{name}` is an array elsewhere and goes through a loop's values here")
    scope.forget(name)
    scope.written_out.pop(name, None)
    if isinstance(item, tuple | cst.SimpleString):
        scope.written_out[name] = item
        return
    if bound_to_number(name, item, scope):
        return
    value = value_of(item, scope)
    if isinstance(value, Scalar):
        scope.bind_number(name, value.dtype)
    elif isinstance(value, Read) and scope.type_of(value).extents:
        scope.bind_view(name, value)
    else:
        raise NotUnderstood("a loop over values that are computed")


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
        The value does not fit, or the memory of a distributed array has another name.
    """
    _change_others(place.array, span, scope)
    target, source = scope.type_of(place).extents, scope.type_of(value).extents
    try:
        broadcast([target, source])
    except ShapeConflict as error:
        raise scope.misfit(error) from error
    if len(source) > len(target):
        raise NotUnderstood("the value has more dimensions than its place")
    held = scope.held_in(value)
    scope.changed(place.array)
    return Store(place.array, place.region, value, span, in_place, held)


def _change_others(name: str, span: Span, scope: Scope) -> None:
    """Note that arrays change whose memory an array has with other strides."""
    if name in scope.strided:
        given = [scope.declared[one] for one in scope.strided if one in scope.declared]
        # two that are given may have any part in common
        if len(given) > 1 or any(array.spec.mesh.axes for array in scope.declared.values()):
            raise NotUnderstood(f"`{name}` shares its memory with an array of other strides")
        # which elements of them, nobody follows
        for one in scope.strided:
            scope.changed(one)
        scope.pending.append(Stated(num(0), frozenset(scope.strided), span))


def scattered(
    target: cst.Subscript, operation: str, node: cst.BaseExpression, span: Span, scope: Scope
) -> Scatter | None:
    """Read ``array[places[i]] += value``, and what stores; None where a place is known.

    Stores may be of all iterations at once: ``array[places] = values``.
    """
    if operation not in ("add", SET) or not isinstance(target.value, cst.Name):
        return None
    name = target.value.value
    if not scope.is_array(name) or name in scope.views:
        return None
    extents = scope.extents_of(name)
    found = places_in(target.slice, extents, scope)
    if found is None or len(found[0]) != len(extents) or len(target.slice) != len(extents):
        return None
    places = [place for _, place in found[0]]
    single = not any(scope.type_of(place).extents for place in places)
    if single and (not scope.by_element or not all(map(is_of_elements, places))):
        return None
    if not single and operation != SET:
        # of places that come again only one would count
        return None
    _change_others(name, span, scope)
    value = value_of(node, scope)
    if single and not is_of_elements(value):
        raise NotUnderstood("an increment by something other than numbers and elements")
    held = tuple(one for part in (*places, value) for one in scope.held_in(part)) if single else ()
    scope.changed(name)
    return Scatter(name, places[0], value, operation, span, single, tuple(places[1:]), held)


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
        stores = [one for one in branch if isinstance(one, Store)]
        places = {Read(one.array, one.region): one for one in stores}
        if len(places) < len(branch) or not all(map(is_of_elements, places)):
            return None
        ways.append(places)
    looked_at = {read.array for read in reads(condition)}
    order = [*ways[0], *(place for place in ways[1] if place not in ways[0])]
    # what the condition looks at changes last
    order.sort(key=lambda place: place.array in looked_at)
    if {place.array for place in order[:-1]} & looked_at:
        return None
    if not all(_may_be_in_order(way, order) for way in ways):
        return None
    made = []
    for place in order:
        one, other = (way.get(place) for way in ways)
        known = one or other
        assert known is not None
        if not place.region or not is_of_elements(known.value):
            return None
        values = (one.value if one else place, other.value if other else place)
        value = Elementwise("where", (condition, *values))
        made.append(replace(known, value=value, in_place=False))
    return tuple(made)


def _may_be_in_order(stores: Mapping[Read, Store], order: Sequence[Read]) -> bool:
    """Return whether stores leave the same in another order."""
    return not any(
        order.index(one) > order.index(then)
        and (
            one.array == then.array
            or one.array in {read.array for read in reads(stores[then].value)}
            or then.array in {read.array for read in reads(stores[one].value)}
        )
        for one, then in combinations(stores, 2)
    )


def of_call(node: cst.Call, span: Span, scope: Scope) -> Sequence[Statement]:
    """Read ``np.add(a, b, out=c)``; other calls for their effect are not understood."""
    full = resolve(node.func, scope.imports) or ""
    added = appended(node)
    if added is not None and (added[0] in scope.lists or added[0] in scope.rows):
        return put(*added, span, scope)
    outs = [a for a in node.args if a.keyword is not None and a.keyword.value == "out"]
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
    if scope.expanded(node) is not None:
        return ()
    called = dotted(node.func) or "this expression"
    raise NotUnderstood(f"the call of `{called}` is not understood")


def _scatter(node: cst.Call, span: Span, scope: Scope) -> Scatter:
    """Read ``np.add.at(array, places, value)`` for a vector and a vector of places."""
    if len(node.args) != 3 or any(a.keyword or a.star for a in node.args):
        raise NotUnderstood("np.add.at whose arguments cannot be read")
    array, where, value = (argument.value for argument in node.args)
    if not isinstance(array, cst.Name) or not scope.is_array(array.value):
        raise NotUnderstood("np.add.at on something that is not known to be an array")
    target = whole_read(array.value, scope)
    _change_others(target.array, span, scope)
    nodes = [one.value for one in where.elements] if isinstance(where, cst.Tuple) else [where]
    if target.array != array.value or len(target.region) != len(nodes):
        raise NotUnderstood("np.add.at on something other than an array of its own")
    places, added = [value_of(one, scope) for one in nodes], value_of(value, scope)
    if any(isinstance(one, Scalar) for one in places):
        raise NotUnderstood("np.add.at at a single place")
    if any(len(scope.type_of(one).extents) != 1 for one in places):
        raise NotUnderstood("np.add.at at something other than a vector of places")
    scope.changed(target.array)
    return Scatter(target.array, places[0], added, "add", span, others=tuple(places[1:]))


# Arrays of truth values as subscripts: ``a[a > 0] = 0``.


def assigned_place(target: cst.Subscript, scope: Scope) -> tuple[Read, Value | None]:
    """Return the part of an array that is assigned to, and the mask that chooses from it.

    Raises
    ------
    NotUnderstood
        For a subscript that is neither a region nor a mask of one.
    """
    try:
        return place_of(target, scope), None
    except NotUnderstood:
        found = masked_part(target, scope)
        if isinstance(target.value, cst.Subscript):
            place = place_of(target.value, scope)
            mask = mask_within(target, place, scope)
            found = None if mask is None else (place, mask)
        if found is None or len({len(scope.type_of(one).extents) for one in found}) > 1:
            # rows that a mask chooses are no choice between elements
            raise
        return found


def chosen(mask: Value, place: Read, node: cst.BaseExpression, scope: Scope) -> Value:
    """Return what an array holds after elements that a mask chooses were given values.

    Raises
    ------
    NotUnderstood
        As :func:`chosen_value`.
    """
    made = Elementwise("where", (mask, chosen_value(mask, node, scope), place))
    scope.type_of(made)
    return made


def chosen_value(mask: Value, node: cst.BaseExpression, scope: Scope) -> Value:
    """Return a value for all elements, of which a statement needs those that a mask chooses.

    Raises
    ------
    NotUnderstood
        Where the mask does not choose it of arrays of its shape.
    """
    value: Value | None = value_of(node, scope)
    if value is not None and scope.type_of(value).extents:
        value = unchosen(value, mask)
    if value is None:
        raise NotUnderstood("as many values as a mask chooses: only the data know how many")
    return value
