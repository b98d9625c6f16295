"""Loops that differ in their numbers only: what they have in common, and their numbers.

Formulas of one kernel at other sizes, and those of many of its variants, have the same form.
Compiling a form once, with its numbers as arguments, takes a tenth of compiling each formula.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from costdb.expr.exact import Rational
from costdb.expr.functions import Reduction
from costdb.expr.nodes import Add, Expr, Mul, Num, Pow, Sym

PLAIN_EXPONENT = 12
"""Exponents up to here are spelled out in code."""

_SPECIAL = 1
"""Numbers up to here, and their negatives, are part of a form: code leaves them out."""


@dataclass(frozen=True, slots=True)
class Form:
    """What reductions over one range have in common with others.

    Attributes
    ----------
    key : hashable
        Reductions with equal keys have the same code but for their numbers.
    numbers : tuple of int
        Magnitudes, each once, in an order that the key fixes.
    """

    key: Hashable
    numbers: tuple[int, ...]


def form_of(parts: Sequence[Reduction], names: Sequence[str]) -> Form | None:
    """Return the form of reductions over one index; None where code may depend on their numbers.

    Parameters
    ----------
    parts : sequence of Reduction
        Their bounds are not looked at.
    names : sequence of str
        The symbols of their bodies in the order of the function's arguments.
    """
    index = parts[0].index
    if index in names or any(part.index != index for part in parts):
        return None
    reader = _Reader(index, names)
    try:
        places = tuple((type(part), reader.place(part.body)) for part in parts)
    except _OfItsOwn:
        return None
    return Form((places, tuple(reader.nodes)), tuple(reader.numbers))


class _OfItsOwn(Exception):
    """A formula whose code may depend on its numbers."""


class _Reader:
    """Numbers the different nodes of formulas, inner ones first, and their different numbers."""

    def __init__(self, index: str, names: Sequence[str]) -> None:
        self.symbols = {name: place for place, name in enumerate((index, *names))}
        self.places: dict[Expr, int] = {}
        self.nodes: list[Hashable] = []
        self.numbers: dict[int, int] = {}

    def place(self, expr: Expr) -> int:
        """Return the number of a node; equal ones have the same."""
        known = self.places.get(expr)
        if known is None:
            made = self.node(expr)
            known = self.places[expr] = len(self.nodes)
            self.nodes.append(made)
        return known

    def node(self, expr: Expr) -> Hashable:
        if isinstance(expr, Num):
            return self.number(expr.value)
        if isinstance(expr, Sym):
            return self.symbols.get(expr.name, expr.name)
        if isinstance(expr, Reduction):
            raise _OfItsOwn
        if isinstance(expr, Pow):
            # small exponents are spelled out, and a negative one is a division
            exponent = expr.exponent.value if isinstance(expr.exponent, Num) else None
            if not (isinstance(exponent, int) and -PLAIN_EXPONENT <= exponent <= PLAIN_EXPONENT):
                raise _OfItsOwn
            return Pow, self.place(expr.base), exponent
        inner = tuple([self.place(child) for child in expr.children])
        if isinstance(expr, Add):
            return Add, inner, self.number(expr.constant)
        if isinstance(expr, Mul):
            return Mul, inner, self.number(expr.coefficient)
        return type(expr), inner

    def number(self, value: Rational) -> Hashable:
        """Return what a form says of a number: its sign, and which of the numbers it is."""
        if not isinstance(value, int):
            # sums of fractions are brought to one denominator
            raise _OfItsOwn
        size = -value if value < 0 else value
        if size <= _SPECIAL:
            return Num, value
        return value < 0, self.numbers.setdefault(size, len(self.numbers))
