"""Loops raised to statements over arrays: the index of a loop becomes an axis.

One loop is raised at a time, the innermost first, so that elements become vectors, vectors become
matrices, and sums become products. Dependences decide what may be: each statement must come
through all iterations before the next one begins, and may not read what an earlier iteration of
itself wrote. Where all iterations add to the same elements, their sum over the index is added.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import partial
from keyword import iskeyword

from advisor.ir.dependence import may_be_distributed
from advisor.ir.kernel import Kernel, rebuilt, symbols
from advisor.ir.nests import NO_INDEX, chosen_in, index_name, unchosen
from advisor.ir.shapes import ShapeConflict, kind_of_or_none
from advisor.ir.statements import Loop, Store, Threads, is_total, walk
from advisor.ir.values import (
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    MatMul,
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
    reads,
)
from advisor.numpy_table import (
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    REDUCED,
    REDUCTIONS,
    ROWS,
    Kind,
    count_of,
    reduced_dtype,
    strong,
)
from costdb.expr import ONE, ZERO, Expr, free_symbols, num, substitute, sym
from costdb.expr.functions import chance
from costdb.records import IDENTIFIER, only
from transforms.kit.kernels import mapped, proofs, type_of
from transforms.loops import axes
from transforms.loops.lift import (
    Lift,
    Raised,
    needed,
    times,
    times_from_left,
    turned,
)
from transforms.loops.masked import NotRaised, guarded, quiet
from transforms.loops.searched import passed, running

# --- grouped --------------------------------------------------------------------------------------
# Reductions over the elements of a group, a group in each iteration, as those of all groups.
#
# ``out[k] = x[keys == k].sum()`` goes through all elements once for every group, where ``bincount``
# does so once. Groups may also be all between two limits, the second of which is the first of the
# next group: ``(edges[k] <= y) & (y < edges[k + 1])``. Rows of a sparse matrix, ``x[p[k]:p[k +
# 1]]``, are groups of neighbours.


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
            rows = Fill("arange", (lift.loop.high,), "int64")
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


# --- raising --------------------------------------------------------------------------------------


WORD = re.compile(IDENTIFIER)
_TRUTHS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or"}
_COMBINED = {
    **{name: name for name in ("add", "multiply", "maximum", "minimum")},
    **{"subtract": "add", **_TRUTHS},
}


def raised(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel, kept: Container[str] = ()
) -> tuple[Raised, ...]:
    """Return statements that do what all iterations of a loop do, within some outer ones.

    Parameters
    ----------
    loop : Loop
    outer : tuple of Loop
    kernel : Kernel
    kept : container of str
        Indices of loops that stay loops, around statements on arrays.

    Raises
    ------
    NotRaised
        There are none, or none are found.
    ShapeConflict
        The shapes of what they compute with are not seen to agree.
    """
    if not is_raisable(loop, kernel):
        raise NotRaised
    body = _inside(loop, outer, kernel, kept)
    if loop.variable in kept:
        return (replace(loop, body=body),)
    lift = Lift(loop, outer, kernel, proofs(kernel, outer))
    if passed(loop, kernel):
        numbers = [number.store for number in passed(loop, kernel)]
        lift.needed = frozenset(read for number in numbers for read in needed(number))
        for number in numbers:
            lift.note(number)
        found = running(replace(loop, body=body), outer, kernel, lift.value)
        if found is None:
            raise NotRaised
        body = tuple(one for one in body if one not in numbers)
        lift.known = found
    stores = [one for one in walk(body) if isinstance(one, Store)]
    parts = [part for one in stores for part in axes.told(one.value)]
    sums = [part for part in parts if isinstance(part, Reduction) and not lift.is_free(part)]
    groups = ((one, grouped(one, lift)) for one in sums)
    lift.known = {**lift.known, **{one: (made, 0) for one, made in groups if made is not None}}
    called = [part for part in parts if isinstance(part, Called)]
    if not all(map(lift.is_of_usual_type, parts)):
        raise NotRaised
    if not kernel.runs_through and any(map(lift.needs_elements, parts)):
        raise NotRaised
    stated = (text.strip("\"'") for part in called for _, text in part.stated)
    if any(not iskeyword(word) for text in stated for word in WORD.findall(text)):
        # a name may be another number each time
        raise NotRaised
    lift.needed = frozenset(read for one in stores for read in needed(one))
    added = [one for one in stores if lift.is_free(Read(one.array, one.region))]
    if added:
        if any(isinstance(one, Loop) for one in body) or not all(map(lift.is_there, stores)):
            raise NotRaised
        if added == stores:
            return tuple(_added_up(one, stores, lift) for one in stores)
    apart = summed_apart(stores)
    room = tuple(_with_room(one, lift, apart) for one in body)
    if not may_be_distributed(replace(loop, body=room)):
        raise NotRaised
    if lift.counts_down(stores):
        # what waits for nothing may go through its range from the other end
        if any(isinstance(one, Scalar) and not lift.is_free(one) for one in parts):
            raise NotRaised
        body = lift.turned_over(body)
        stores = [one for one in walk(body) if isinstance(one, Store)]
        lift.needed = frozenset(read for one in stores for read in needed(one))
    alone = [isinstance(one, Store) and lift.is_free(Read(one.array, one.region)) for one in body]
    # slices of one length must be seen to have it
    for one, adds in zip(body, alone, strict=True):
        if not adds:
            lift.statement(one, lift.note)
    return tuple(
        _added_up(one, stores, lift)
        if adds and isinstance(one, Store)
        else lift.statement(one, lift.store)
        for one, adds in zip(body, alone, strict=True)
    )


def summed_apart(stores: Sequence[Store]) -> frozenset[str]:
    """Return arrays to which several statements add, and which nothing else needs."""
    found = set()
    for array in {one.array for one in stores}:
        own = [one for one in stores if one.array == array]
        terms = [combined(one) for one in own]
        adds = all(term is not None and term[0] in ("add", "subtract") for term in terms)
        others = [term[1] for term in terms if term is not None]
        others += [one.value for one in stores if one.array != array]
        if len(own) > 1 and adds and not any(r.array == array for v in others for r in reads(v)):
            found.add(array)
    return frozenset(found)


def _with_room(one: Raised, lift: Lift, apart: Container[str]) -> Raised:
    """Return a statement that adds up as one that stores what it adds, each iteration's apart."""
    if not isinstance(one, Store):
        return one
    found = combined(one)
    if not lift.is_free(Read(one.array, one.region)):
        if one.array not in apart or found is None:
            return one
        # in whatever order: no other one needs what is there
        return replace(one, array=f"{one.array} {one.region}", value=found[1])
    if found is None:
        raise NotRaised
    sums = f"{one.array} added up"
    return replace(one, array=sums, region=(Point(sym(lift.loop.variable)),), value=found[1])


def is_raisable(loop: Loop, kernel: Kernel) -> bool:
    """Return whether nothing but its statements needs the index of a loop."""
    name = index_name(loop.variable)
    plain = not loop.stated and loop.threads is Threads.NO
    # of the elements of an array that has a name no index has one
    named = kernel.context.scalar_texts.get(loop.variable) == name or name == NO_INDEX
    # one that counts down is another number than what its loop counts
    down = any(
        one == name and loop.variable in free_symbols(value)
        for one, value in kernel.context.computed
    )
    return plain and (named or down) and name not in kernel.observed


def sequential(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> frozenset[str]:
    """Return the indices within a loop that add up, or that wait for one another."""
    found: set[str] = set()
    for one in only(Loop, loop.body):
        around = (*outer, loop)
        found |= sequential(one, around, kernel)
        stores = [inner for inner in walk(one.body) if isinstance(inner, Store)]
        adds = any(one.variable not in symbols(inner.region) for inner in stores)
        try:
            raised(one, around, kernel, found)
        except (NotRaised, ShapeConflict):
            adds = True
        found |= {one.variable} if adds else set()
    return frozenset(found)


def _inside(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel, kept: Container[str]
) -> tuple[Raised, ...]:
    """Return the body of a loop with statements in the place of the loops that do not stay."""
    body: list[Raised] = []
    for one in loop.body:
        if isinstance(one, Loop) and one.variable in kept and one.step == 1 and not one.stated:
            body.append(replace(one, body=_inside(one, (*outer, loop), kernel, kept)))
        elif isinstance(one, Loop):
            body += raised(one, (*outer, loop), kernel, kept)
        elif isinstance(one, Store):
            body.append(one)
        else:
            raise NotRaised
    return tuple(body)


# --- what all iterations add to the same elements -----------------------------------------------


def combined(store: Store) -> tuple[str, Value] | None:
    """Return how a statement combines an element, or a number, with a term."""
    own = Read(store.array, store.region)
    match store.value:
        case Elementwise(operation, (one, two)) if operation in _COMBINED:
            if two == own and operation != "subtract":
                one, two = two, one
            if one == own:
                return operation, two
        case Elementwise("where", (condition, chosen, known)) if known == own:
            inner = combined(replace(store, value=chosen))
            if inner is not None and inner[0] in ("add", "subtract"):
                # with nothing where it is not chosen
                parts = (condition, inner[1], Scalar("0", PYTHON_INTEGER))
                return inner[0], Elementwise("where", parts)
    return None


def _added_up(store: Store, stores: Sequence[Store], lift: Lift) -> Store:
    """Return the statement that combines the same elements with what all iterations do."""
    found = combined(store)
    if found is None:
        raise NotRaised
    operation, term = found
    python, counts = is_of_python(term), _counts(term)
    match term:
        case Copy(Reduction(mask, None, "add", "int64") as count, of_python=True) if (
            type_of(mask, lift.kernel).dtype == "bool"
        ):
            # what inner loops have counted
            term, counts = count, True
    kind = kind_of_or_none(strong(type_of(term, lift.kernel).dtype))
    computed = python is not False and kind is Kind.FLOATING
    alone = all(isinstance(part, Point) for part in store.region)
    types = {lift.kernel.dtype(store.array), type_of(term, lift.kernel).dtype}
    truths = operation in _TRUTHS and types == {"bool"} and not alone
    if not (counts or any(_summed(term)) or computed or truths):
        # whole numbers of Python have no end
        raise NotRaised
    extreme = operation in ("maximum", "minimum")
    if operation not in ("add", "subtract") and not truths and not (extreme and alone):
        # of no terms there is no greatest one, but with a first one
        raise NotRaised
    others = [read for one in stores if one is not store for read in reads(one.value)]
    touched = {read.array for read in others}
    touched |= {read.array for read in reads(term) if not lift.is_apart(read, store.region)}
    numbers = (p.text for one in stores for p in parts_of(one.value) if isinstance(p, Scalar))
    # a number that an iteration goes on with is what it is then
    touched |= {word for text in numbers for word in WORD.findall(text)}
    targets = [one.array for one in stores]
    if store.array in touched or targets.count(store.array) > 1:
        raise NotRaised
    if operation in ("add", "subtract") and lift.rank(term) and guarded(term, lift.kernel):
        term = quiet(term, lift.kernel)
    lift.note(store)
    own = Read(store.array, store.region)
    made = _reduced(term, _COMBINED[operation], type_of(term, lift.kernel).dtype, lift)
    if is_total(store) and python:
        made = Copy(made, strong(type_of(made, lift.kernel).dtype), of_python=True)
    value = Elementwise(operation, (own, made))
    held = tuple(lift.held(store, None))
    return replace(store, value=value, in_place=True, held=held)


def is_of_python(value: Value) -> bool | None:
    """Return whether a number is one of Python's; None where only the data, or a name, tell."""
    match value:
        case Scalar(_, dtype):
            return True if dtype in (PYTHON_INTEGER, PYTHON_FLOAT) else None
        case Copy():
            return value.of_python
        case Elementwise("where", (_, *ways)) | Elementwise(
            "minimum" | "maximum", ways, called=False
        ):
            kinds = {is_of_python(one) for one in ways if one != Scalar("0", PYTHON_INTEGER)}
            return kinds.pop() if len(kinds) == 1 else None
        case Elementwise(_, parts, called=False):
            kinds = {is_of_python(one) for one in parts}
            return False if False in kinds else None if None in kinds else True
    return False


def _counts(term: Value) -> bool:
    match term:
        case Elementwise("where", (_, Scalar("1"), Scalar("0"))):
            return True
    return False


def _summed(value: Value) -> Iterator[bool]:
    """Yield for each element in a value that it is one, but for those that are only compared."""
    if isinstance(value, Read):
        yield True
    elif not (isinstance(value, Elementwise) and ROWS[value.operation].result == "truth"):
        chosen = isinstance(value, Elementwise) and value.operation == "where"
        for part in operands(value)[int(chosen) :]:
            yield from _summed(part)


def _reduced(value: Value, operation: str, dtype: str, lift: Lift) -> Value:
    """Return what all iterations make of a value by an operation."""
    if lift.is_free(value):
        raise NotRaised
    if operation == "add":
        match value:
            case Elementwise("add" | "subtract", parts):
                sums = [_products(one, dtype, lift) for one in parts]
                if all(one is not None for one in sums):
                    return replace(value, operands=tuple(one for one in sums if one is not None))
            case Elementwise("divide", (one, by)) if lift.is_free(by):
                found = type_of(one, lift.kernel).dtype
                floating = kind_of_or_none(found) is Kind.FLOATING
                product = _products(one, found, lift) if floating else None
                if product is not None and lift.rank(one) >= lift.rank(by):
                    if not lift.kernel.runs_through:
                        # of no terms the sum would be divided all the same, by whatever it is
                        raise NotRaised
                    return replace(value, operands=(product, by))
        product = _products(value, dtype, lift)
        if product is not None:
            return product
        factors = list(_factors(value))
        fixed = [one for one in factors if lift.is_free(one)]
        moving = [one for one in factors if not lift.is_free(one)]
        if fixed and len(moving) == 1:
            return _scaled(fixed, _reduction(moving[0], operation, dtype, lift))
    return _reduction(value, operation, dtype, lift)


def _reduction(value: Value, operation: str, dtype: str, lift: Lift) -> Value:
    match value:
        case Elementwise("where", (condition, Scalar("1"), Scalar("0"))):
            value, dtype = condition, "bool"
    whole, place = lift.value(value)
    match whole:
        case Elementwise("where", (mask, terms, Scalar("0"))) if (
            operation == "add" and not lift.rank(value) and guarded(whole, lift.kernel)
        ):
            # terms that may fail where they are not chosen are computed of what is
            types = partial(type_of, kernel=lift.kernel)
            count = chance(lift.loop.span.start_line) * count_of(types(mask).extents)
            chosen = chosen_in(terms, mask, types, count)
            if chosen is None or guarded(mask, lift.kernel) or guarded(terms, lift.kernel):
                raise NotRaised
            whole = chosen
    match whole:
        case Reduction(_, _, known, _, fused=False) if known == operation:
            if not lift.rank(value):
                # along one axis alone it would have no extreme of nothing
                return replace(whole, operand=axes.chain(whole)[0], axis=None)
    found = reduced_dtype(REDUCTIONS[REDUCED[operation]].result, dtype)
    return Reduction(whole, place if lift.rank(value) else None, operation, found)


def _scaled(factors: Sequence[Value], value: Value) -> Value:
    for one in reversed(factors):
        value = Elementwise("multiply", (one, value))
    return value


def _factors(value: Value) -> Iterator[Value]:
    if isinstance(value, Elementwise) and value.operation == "multiply":
        for one in value.operands:
            yield from _factors(one)
    else:
        yield value


def _products(value: Value, dtype: str, lift: Lift) -> Value | None:
    """Return a sum of products of two factors as a product of arrays; None where it is none."""
    factors = list(_factors(value))
    moving = [one for one in factors if not lift.is_free(one)]
    if len(moving) != 2 or (moving[0] == moving[1] and not isinstance(moving[0], Read)):
        # a square is computed once
        return None
    like = Reduction(moving[0], None, "add", dtype, fused=True)
    first, second = sorted(moving, key=lift.rank)
    for one, other in ((first, second), (second, first)):
        if isinstance(one, Expand) and one.axis == 0 and lift.rank(one) == lift.rank(other):
            # the axis that broadcasting gives it
            first, second = one.operand, other
    (one, _), (other, place) = lift.value(first), lift.value(second)
    lift.refuse_wider((first, second), (one, other))
    made: Value
    match lift.rank(first), lift.rank(second):
        case 0, 0:
            ordered = lift.value(moving[0])[0], lift.value(moving[1])[0]
            made = replace(like, operand=Elementwise("multiply", ordered))
        case 0, 1:
            made = (times_from_left if place == 0 else times)(
                *((one, other) if place == 0 else (other, one)), like
            )
        case 1, 2 if isinstance(second, Expand) and second.axis == 1:
            # an outer product in each iteration
            (rows, at), (columns, there) = lift.value(second.operand), lift.value(first)
            left = rows if at == 1 else turned(rows)
            made = MatMul(left, columns if there == 0 else turned(columns))
        case _:
            return None
    return _scaled([one for one in factors if lift.is_free(one)], made)
