"""Arrays that loops grow: ``x = np.append(x, piece)``, and what that copies each time.

Python has no array that grows. Each iteration makes a longer one and copies all of what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import libcst as cst

from advisor.frontend.arrays import value_of
from advisor.frontend.bindings import counted_names, resolve
from advisor.frontend.scope import Growing, Scope
from advisor.frontend.trees import NotKnown, NotUnderstood, nodes_in
from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Bind, Store
from advisor.ir.values import Called, Fill, Range, Read
from advisor.numpy_table import UNKNOWN_DTYPE, count_of, promote, strong
from advisor.source import Span
from costdb.expr import Expr, num, substitute, sym

GROWN = "<grown {}>"
"""The name of what a loop grows: one stretch of memory, however many axes the array has."""

_JOINING = frozenset({"numpy.concatenate", "numpy.vstack", "numpy.hstack"})


def growing_in(loop: cst.CSTNode, scope: Scope) -> dict[str, Growing]:
    """Return the arrays that a loop does nothing with but let them grow."""
    found: dict[str, Growing] = {}
    for name in grown_in(loop, scope.imports):
        if name not in scope.growing:
            first = ArrayType("float64", (num(0),))
            with suppress(NotKnown):
                first = scope.array_type(name) if scope.has_array(name) else first
            found[name] = Growing(len(scope.running), first)
    return found


def grown_in(loop: cst.CSTNode, imports: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of arrays that a loop does nothing with but let them grow, in one place."""
    uses = counted_names(loop)
    for node in nodes_in(loop):
        match node:
            case cst.Assign([cst.AssignTarget(cst.Name(value=name))], value) if uses[name] == 2:
                if piece_of(name, value, imports) is not None:
                    yield name


def piece_of(
    name: str, node: cst.BaseExpression, imports: Mapping[str, str]
) -> cst.BaseExpression | None:
    """Return what an expression puts behind an array of a name; None where it does anything else.

    Parameters
    ----------
    name : str
    node : BaseExpression
        ``np.append(name, piece)``, ``np.vstack([name, piece])`` and their like.
    imports : mapping of str to str
    """
    match node:
        case cst.Call(func, [cst.Arg(first, None, star=""), *rest]):
            called = (resolve(func, imports) or "").removeprefix("numpy.")
        case _:
            return None
    match called, first, rest:
        case "append", cst.Name(value=grown), [cst.Arg(piece, None, star=""), *options]:
            pass
        case (
            "concatenate" | "vstack" | "hstack",
            cst.List([cst.Element(cst.Name(value=grown)), cst.Element(piece)])
            | cst.Tuple([cst.Element(cst.Name(value=grown)), cst.Element(piece)]),
            options,
        ):
            pass
        case _:
            return None
    stated = [one for one in options if one.keyword is None or one.keyword.value == "axis"]
    most = called in ("append", "concatenate")
    return piece if len(stated) == len(options) <= most and grown == name else None


def joined(name: str, piece: cst.BaseExpression, span: Span, scope: Scope) -> tuple[Store, ...]:
    """Return what puts a piece behind all that former iterations put there.

    Raises
    ------
    NotUnderstood
        Nothing says how many iterations there are, or how long the piece is.
    """
    match piece:
        case cst.List([cst.Element(one)]) | cst.Tuple([cst.Element(one)]):
            value = value_of(one, scope)
        case _:
            value = value_of(piece, scope)
    found = scope.type_of(value)
    growing = scope.growing[name]
    length, dtype = scope.odds * count_of(found.extents), strong(found.dtype)
    if dtype == UNKNOWN_DTYPE:
        raise NotUnderstood("an array to which nobody knows what is joined")
    start, dtype = count_of(growing.first.extents), promote(dtype, strong(growing.first.dtype))
    # how often it has grown, before this iteration and in all, and the length of a piece on average
    position: Expr = num(0)
    places: Expr = num(1)
    mean = mean_of_all = length
    for loop in scope.running[growing.around :]:
        if loop is None or loop[3] != 1:
            raise NotUnderstood("an array that grows in a loop of which nobody knows how long")
        variable, low, high, _ = loop
        position = position * (high - low) + sym(variable) - low
        places = places * (high - low)
        mean = _mean(mean, variable, low, sym(variable) - 1)
        mean_of_all = _mean(mean_of_all, variable, low, high - 1)
    there, end = start + position * mean, start + places * mean_of_all
    grown = GROWN.format(name)
    scope.locals[grown] = ArrayType(dtype, (end,))
    before = Read(grown, (Range(num(0), there),))
    made = Called("concatenate", (before, value), (there + length,), dtype, ())
    scope.forget(name)
    return (Store(grown, (Range(num(0), there + length),), made, span),)


def _mean(length: Expr, variable: str, first: Expr, last: Expr) -> Expr:
    """Return the mean over iterations of a length that changes evenly from one to the next."""
    return (substitute(length, {variable: first}) + substitute(length, {variable: last})) / 2


def ahead(name: str, span: Span, scope: Scope) -> Iterator[Bind]:
    """Yield what makes room for an array that a loop has grown."""
    made = scope.locals.get(GROWN.format(name))
    if made is not None:
        yield Bind(GROWN.format(name), Fill("", made.extents, made.dtype), span)
