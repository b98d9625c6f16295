"""Loops that look for the least or the greatest of some terms, and note where it is.

``if d < best: best = d; place = j`` finds the first of equal ones, as ``argmin`` does. What such a
loop leaves behind are two numbers, and the loop around it may be raised with these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from advisor.ir.concrete import rebuilt
from advisor.ir.kernel import Kernel
from advisor.ir.nests import index_name
from advisor.ir.statements import Loop, Store
from advisor.ir.values import Elementwise, Read, Reduction, Scalar, Value, parts_of
from advisor.numpy_table import PYTHON_INTEGER
from costdb.expr import ZERO, substitute, to_text
from costdb.records import replace
from transforms.kit.kernels import proofs, type_of
from transforms.loops.lift import Lift, needed
from transforms.loops.masked import NotRaised
from transforms.loops.running import bound_before

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
