"""Loops that look for the least or the greatest of some terms, and note where it is.

``if d < best: best = d; place = j`` finds the first of equal ones, as ``argmin`` does. What such a
loop leaves behind are two numbers, and the loop around it may be raised with these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from advisor.ir.kernel import Kernel, Legality, rebuilt
from advisor.ir.nests import index_name
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Loop, ScalarBind, Store, is_total, values_of, walk, written
from advisor.ir.values import Elementwise, Read, Reduction, Scalar, Scan, Value, parts_of, reads
from advisor.numpy_table import PYTHON_INTEGER, REDUCTIONS, Kind, promote, reduced_dtype
from costdb.expr import ZERO, substitute, to_text
from costdb.records import replace
from transforms.kit.kernels import proofs, safe, type_of, unsafe
from transforms.loops.lift import Lift, needed
from transforms.loops.masked import NotRaised

# --- running --------------------------------------------------------------------------------------
# Numbers that iterations pass on to each other, as scans: running sums, products and extremes.
#
# ``cur = max(cur, x[i]); m[i] = cur`` stores what the number holds on the way, and that is
# ``np.fmax.accumulate(x)``. What it holds before the loop is combined with all of them, where it
# makes a difference.


_NEUTRAL = {"add": ("0", "0.0", "0."), "multiply": ("1", "1.0", "1.")}
_SKIPPING = {"maximum": "fmax", "minimum": "fmin"}
_NAMES = {"add": "sum", "multiply": "prod"}


@dataclass(frozen=True, slots=True)
class Passed:
    """A number that iterations pass on: how each combines it, and with what.

    Attributes
    ----------
    store : Store
    operation : str
    term : Value
    start : Value
        What it holds before the first one.
    begins : bool
        Whether the first term is the start, or the start changes nothing.
    """

    store: Store
    operation: str
    term: Value
    start: Value
    begins: bool


def passed(loop: Loop, kernel: Kernel) -> tuple[Passed, ...]:
    """Return the numbers that iterations of a loop pass on and use, in order."""
    found: list[Passed] = []
    for store in loop.body:
        if not isinstance(store, Store) or not is_total(store):
            continue
        own = Read(store.array, ())
        others = (one for one in loop.body if one is not store)
        if not any(own in reads(value) for one in walk(tuple(others)) for value in values_of(one)):
            continue
        match store.value:
            case Elementwise(operation, (one, two)) if own in (one, two):
                term = two if one == own else one
                dtype = type_of(own, kernel).dtype
                start = dict(loop.starts).get(store.array, Scalar(store.array, dtype))
                if start == Scalar(store.array, dtype):
                    start = bound_before(store.array, loop, kernel) or start
                # a NaN that is compared is passed over, but for one that was there first
                floating = kind_of_or_none(type_of(store.value, kernel).dtype) is Kind.FLOATING
                if store.compared == "first" and floating:
                    operation = _SKIPPING.get(operation, operation)
                first = rebuilt(term, lambda expr: substitute(expr, {loop.variable: loop.low}))
                neutral = isinstance(start, Scalar) and start.text in _NEUTRAL.get(operation, ())
                same = first == start and operation not in _NEUTRAL
                found.append(Passed(store, operation, term, start, neutral or same))
    return tuple(found)


def bound_before(name: str, loop: Loop, kernel: Kernel) -> Value | None:
    """Return the element that a number was bound to before a loop; None where it may differ."""
    found: Value | None = None
    for one in kernel.body:
        if one.span == loop.span:
            return found
        if isinstance(one, ScalarBind) and one.name == name:
            found = one.value if isinstance(one.value, Read) and not one.combined else None
        elif found is not None and written(one) & {name, *(r.array for r in reads(found))}:
            found = None
    return None


def running(
    loop: Loop,
    outer: tuple[Loop, ...],
    kernel: Kernel,
    lifted: Callable[[Value], tuple[Value, int | None]],
) -> Mapping[Value, tuple[Value, int | None]] | None:
    """Return what the numbers that a loop passes on are for all iterations.

    None where some of them are no scans.
    """
    known: dict[Value, tuple[Value, int | None]] = {}
    changed = {one.array for one in walk(loop.body) if isinstance(one, Store)}
    for one in passed(loop, kernel):
        own, dtype = Read(one.store.array, ()), type_of(one.term, kernel).dtype
        before = loop.body[: loop.body.index(one.store)]
        named = [part for other in before for value in values_of(other) for part in reads(value)]
        needed = {part.array for value in (one.term, one.start) for part in reads(value)}
        unknown = isinstance(one.start, Scalar) and one.start.text == one.store.array
        if own in named or needed & changed or one.operation == "subtract":
            return None
        if (outer and unknown) or sum(
            s.array == own.array for s in walk(loop.body) if isinstance(s, Store)
        ) > 1:
            return None
        if one.operation in _NAMES:
            usual = reduced_dtype(REDUCTIONS[_NAMES[one.operation]].result, dtype)
            if usual != dtype or promote(dtype, type_of(own, kernel).dtype) != dtype:
                return None
        inner, place = lifted(one.term)
        if place is None:
            return None
        value: Value = Scan(inner, place, one.operation, dtype)
        if not one.begins:
            value = Elementwise(one.operation, (value, one.start), called=True)
        known[own] = value, place
    return known


def legality(one: Passed, kernel: Kernel) -> Legality:
    """Return whether a scan holds what the number did."""
    kind = kind_of_or_none(type_of(one.store.value, kernel).dtype)
    if kind is Kind.INTEGER:
        return safe("a scan of whole numbers holds what the loop computed on the way")
    words = "results are equal, but for the signs of zeros"
    if one.operation in _NEUTRAL and not one.begins:
        words = "the start is added to sums of the terms, so results agree only to rounding"
    elif one.store.compared == "last":
        words = f"{words}, where no element is NaN"
    elif one.store.compared == "first":
        words = f"{words}, if `{one.store.array}` is not NaN when the loop begins"
    return unsafe(words)


# --- searched -------------------------------------------------------------------------------------


_PLACES = {"minimum": "argmin", "maximum": "argmax"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a loop finds: the place, the term there, and on what condition.

    Attributes
    ----------
    place, best : Store
        That give the two numbers their values.
    condition : str
    """

    place: Store
    best: Store
    condition: str


def is_search(loop: Loop) -> bool:
    """Return whether a loop does nothing but look for an extreme and its place."""
    match loop.body:
        case (
            Store(
                place,
                (),
                Elementwise(
                    "where", (Elementwise(_, (term, Read(best, ()))), Scalar(at), Read(known, ()))
                ),
            ),
            Store(found, (), Elementwise(operation, (Read(own, ()), other))),
        ):
            names = place == known and best == found == own
            return (
                names and term == other and operation in _PLACES and at == index_name(loop.variable)
            )
    return False


def searched(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> Found:
    """Return what a search finds, of which `is_search` holds.

    Raises
    ------
    NotRaised, ShapeConflict
        The terms of all iterations have no form.
    """
    place, best = loop.body
    assert isinstance(place, Store) and isinstance(best, Store)
    assert isinstance(best.value, Elementwise)
    operation, (_, term) = best.value.operation, best.value.operands
    if loop.step != 1 or type_of(term, kernel).dtype not in ("float64", "float32", "int64"):
        raise NotRaised
    starts = dict(loop.starts)
    start, at = starts.get(best.array), starts.get(place.array)
    if isinstance(start, Scalar) and start.text == best.array:
        start = bound_before(best.array, loop, kernel) or start
    word = "less" if operation == "minimum" else "greater"
    condition = f"if no term is NaN, and one is {word} than what `{best.array}` starts with"
    for first in (loop.low - 1, loop.low):
        begun = rebuilt(term, partial(substitute, replacements={loop.variable: first}))
        if begun == start and isinstance(at, Scalar) and at.text == to_text(first):
            # the loop goes on from the first term
            loop, condition = replace(loop, low=first), "if no term is NaN"
            break
    given = replace(kernel, runs_through=True)
    lift = Lift(loop, outer, given, proofs(given, outer))
    lift.needed = frozenset(needed(replace(best, value=term)))
    lift.note(replace(best, value=term))
    if lift.is_free(term) or any(
        isinstance(part, Scalar) and lift.word.search(part.text) for part in parts_of(term)
    ):
        raise NotRaised
    terms, axis = lift.value(term)
    if axis is None or lift.rank(term):
        raise NotRaised
    index: Value = Reduction(terms, None, _PLACES[operation], "int64")
    if loop.low != ZERO:
        index = Elementwise("add", (index, Scalar(to_text(loop.low), PYTHON_INTEGER)))
    extreme = Reduction(terms, None, operation, type_of(term, kernel).dtype)
    return Found(
        replace(place, value=index, in_place=False, held=()),
        replace(best, value=extreme, in_place=False, held=(), compared=""),
        condition,
    )
