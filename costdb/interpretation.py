"""What an interpreter does by itself: the steps of statements on single elements.

A step is a kind of thing that the interpreter does, each with a time of its own. Elements are
numbers of the array library, which is not what a language's own numbers are: the two take
different times to add, and a library's function that is called for one number takes longer than
any operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from costdb.expr import Expr


class Step(StrEnum):
    """Kinds of steps besides fetching and storing elements and arithmetic on two of them."""

    ENTRY = "entry"
    """A loop is entered: its range is made, and gone through for the first time."""
    NUMBER_ARITH = "number_arith"
    """An operator on an element and a number of the language."""
    PYTHON_ARITH = "python_arith"
    """An operator on two numbers of the language, as in subscripts."""
    MIXED_ARITH = "mixed_arith"
    """An operator on two elements of different types."""
    COMPARE = "compare"
    """A comparison, and what its answer decides."""
    UNARY = "unary"
    """A sign, or an absolute value."""
    EXTREME = "extreme"
    """A call of the language's `min` or `max` of two numbers."""
    CONVERT = "convert"
    """A call of a type, as of `float`, for one number."""
    MATH = "math"
    """A call of a function of the language's mathematical library."""
    FUNCTION = "function"
    """A call of the array library for one number."""
    BINARY_FUNCTION = "binary_function"
    """A call of the array library for two numbers."""
    SUBSCRIPT = "subscript"
    """What a subscript takes longer that is itself an element."""
    CAST_STORE = "cast_store"
    """What it takes longer to store an element in an array of another type."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """Iterations of a loop that an interpreter runs statement by statement.

    Attributes
    ----------
    iterations : Expr
    loads, stores, operations : int
        Elements loaded and stored, and arithmetic operations on two elements, in each.
    vector_loads, vector_stores : int
        Further elements, of arrays of one dimension: a single subscript takes less.
    others : tuple of (Step, int)
        Steps of other kinds, and how many of each, in each.
    loop : bool
        Whether an iteration of a loop begins with each.
    """

    iterations: Expr
    label: str = "interpreted iterations"
    loads: int = 0
    stores: int = 0
    operations: int = 0
    vector_loads: int = 0
    vector_stores: int = 0
    others: tuple[tuple[Step, int], ...] = ()
    loop: bool = True
