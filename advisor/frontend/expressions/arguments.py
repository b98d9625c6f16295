"""What NumPy's functions are given, and what a front end must be able to say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import libcst as cst

from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.shapes import ArrayType
from advisor.numpy_shapes import Shape
from costdb.expr import Expr
from costdb.records import dataclass

A = TypeVar("A")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Given(Generic[A]):
    """An argument of a call, by place or by keyword."""

    value: A
    keyword: str | None = None
    star: bool = False


def matched(
    arguments: Sequence[Given[A]], parameters: tuple[str, ...], name: str
) -> Mapping[str, A]:
    """Return the arguments of a call by the names of its parameters.

    Raises
    ------
    NotUnderstood
        For an argument of any other parameter: it may mean something that is not modelled.
    """
    found: dict[str, A] = {}
    for position, argument in enumerate(arguments):
        if argument.star:
            raise NotUnderstood("starred arguments")
        if argument.keyword is None and position >= len(parameters):
            raise NotUnderstood(f"argument {position + 1} of `{name}` is not understood")
        parameter = parameters[position] if argument.keyword is None else argument.keyword
        if parameter not in parameters or parameter in found:
            raise NotUnderstood(f"`{parameter}=` of `{name}` is not understood")
        found[parameter] = argument.value
    return found


class Door(Protocol[A, V]):
    """A front end: how it reads arguments, and what it makes of operations on arrays.

    What it cannot read or make it refuses by raising `NotUnderstood`.
    """

    def value(self, argument: A) -> V:
        """Return the array or number that an argument is."""

    def array(self, argument: A, name: str) -> V:
        """Return the array that an argument is."""

    def integer(self, argument: A) -> int | None:
        """Return a whole number that is known; None for anything else."""

    def size(self, argument: A, name: str) -> Expr:
        """Return a whole number that may be symbolic."""

    def shape(self, argument: A) -> Shape | None:
        """Return a shape; None for that of an array that is made all the same."""

    def items(self, argument: A) -> Sequence[A] | None:
        """Return what a tuple or list that is written out consists of; None for others."""

    def dtype(self, argument: A) -> str:
        """Return the element type that an argument states."""

    def text(self, argument: A) -> str | None:
        """Return a text that is known; None for anything else."""

    def truth(self, argument: A) -> bool | None:
        """Return a truth value that is known; None for anything else."""

    def is_none(self, argument: A) -> bool:
        """Return whether an argument is None."""

    def constant(self, argument: A) -> tuple[str, str]:
        """Return a number as a text, and its element type in an array."""

    def type_of(self, value: V) -> ArrayType:
        """Return element type and shape of a value."""

    def elementwise(self, operation: str, operands: tuple[V, ...]) -> V:
        """Return the result of an operation element by element."""

    def reduction(self, operand: V, axis: int | None, operation: str, dtype: str) -> V:
        """Return a reduction along an axis, or along all."""

    def scan(self, operand: V, axis: int, operation: str, dtype: str) -> V:
        """Return an inclusive prefix operation."""

    def product(self, left: V, right: V) -> V:
        """Return the product of vectors or matrices."""

    def summed_products(self, left: V, right: V) -> V:
        """Return the sum of the products of all elements of two arrays of one shape."""

    def copy(self, operand: V, dtype: str) -> V:
        """Return a copy of an array in C order."""

    def same(self, operand: V, dtype: str, order: str) -> V:
        """Return an array itself where it has a type and lies in an order, a copy otherwise."""

    def fill(
        self, value: str, shape: Shape | None, dtype: str, order: str, like: V | None = None
    ) -> V:
        """Return a new array of one constant; ``""`` leaves it undefined."""

    def vector(self, extent: Expr | None, dtype: str) -> V:
        """Return a new vector of numbers that follow one another."""

    def expand(self, operand: V, axis: int) -> V:
        """Return an array with a dimension of length 1 put in."""

    def transpose(self, operand: V, axes: tuple[int, ...]) -> V:
        """Return an array with its dimensions in another order."""

    def flip(self, operand: V, axis: int) -> V:
        """Return an array with one axis reversed."""

    def between(self, operand: V, axis: int, before: int, behind: int) -> V:
        """Return an array without its first and last indices of an axis, so many of them."""

    def flat(self, operand: V) -> V:
        """Return an array as a vector."""

    def roll(self, operand: V, axis: int, amount: Expr) -> V:
        """Return an array shifted periodically."""

    def pad(self, operand: V, axis: int, before: Expr, after: Expr) -> V:
        """Return an array extended by wrapped copies of its other end."""

    def sort(self, operand: V, axis: int) -> V:
        """Return an array with the elements along an axis in order."""

    def fourier(self, name: str, operand: V, axis: int, dtype: str) -> V:
        """Return discrete Fourier transforms along an axis."""

    def gather(self, operand: V, places: V) -> V:
        """Return the elements of a vector at places that only the data know."""

    def tally(self, places: V, weights: V | None, extent: Expr, dtype: str) -> V:
        """Return how often whole numbers occur."""

    def joined(self, name: str, parts: A, axis: int) -> V:
        """Return arrays joined into one."""

    def unpriced(self, name: str, operands: tuple[V, ...], shape: Shape, dtype: str) -> V:
        """Return what a function gives whose time is not known."""


# Operators of the source, by the functions of NumPy that they are.

OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.FloorDivide: "floor_divide",
    cst.Modulo: "remainder",
    cst.Power: "power",
    cst.BitAnd: "bitwise_and",
    cst.BitOr: "bitwise_or",
    cst.BitXor: "bitwise_xor",
    cst.LeftShift: "left_shift",
    cst.RightShift: "right_shift",
    cst.LessThan: "less",
    cst.LessThanEqual: "less_equal",
    cst.GreaterThan: "greater",
    cst.GreaterThanEqual: "greater_equal",
    cst.Equal: "equal",
    cst.NotEqual: "not_equal",
}
AUGMENTED: dict[type[cst.CSTNode], str] = {
    getattr(cst, f"{node.__name__}Assign"): name
    for node, name in OPERATORS.items()
    if hasattr(cst, f"{node.__name__}Assign")
}
UNARY: dict[type[cst.CSTNode], str] = {
    cst.Minus: "negative",
    cst.Plus: "positive",
    cst.BitInvert: "invert",
}
OF_SYNTAX = {node.__name__: name for node, name in (OPERATORS | UNARY).items()}
"""NumPy's functions by LibCST's names of the operators."""
