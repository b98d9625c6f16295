"""What NumPy's functions are given, and what a front end must be able to say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import libcst as cst

from advisor.frontend.trees import NotUnderstood
from advisor.ir.shapes import ArrayType, ShapeConflict
from advisor.ir.values import Value
from advisor.numpy_table import Shape
from costdb.expr import Expr
from costdb.records import dataclass

A = TypeVar("A")


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


class Door(Protocol[A]):
    """A front end: how it reads arguments, and what it makes of operations on arrays.

    Values are forms, whose leaves are what the front end itself gives. What it cannot read or make
    it refuses by raising `NotUnderstood`.
    """

    def value(self, argument: A) -> Value:
        """Return the array or number that an argument is."""

    def array(self, argument: A, name: str) -> Value:
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

    def is_none(self, argument: A) -> bool:
        """Return whether an argument is None."""

    def written(self, argument: A) -> str:
        """Return an argument as it is written, to tell it from others."""

    def constant(self, argument: A) -> tuple[str, str]:
        """Return a number as a text, and its element type in an array."""

    def misfit(self, conflict: ShapeConflict) -> NotUnderstood:
        """Return the problem that operands do not fit."""

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape of a value."""

    def made(self, form: Value) -> Value:
        """Return what an operation makes, once what it needs of its operands holds."""

    def copy(self, operand: Value, dtype: str, order: str, *, always: bool) -> Value:
        """Return an array of a type (``""``: its own), in an order (`C`, `F`, or `K`: as it lies).

        Unless `always`, what is so already is not copied.
        """

    def fill(
        self, value: str, shape: Shape | None, dtype: str, order: str, like: Value | None = None
    ) -> Value:
        """Return a new array of one constant; ``""`` leaves it undefined."""

    def vector(self, extent: Expr | None, dtype: str) -> Value:
        """Return a new vector of numbers that follow one another."""

    def between(self, operand: Value, axis: int, before: int, behind: int) -> Value:
        """Return an array without its first and last indices of an axis, so many of them."""

    def flat(self, operand: Value) -> Value:
        """Return an array as a vector."""

    def joined(self, name: str, parts: A, axis: int) -> Value:
        """Return arrays joined into one."""


# Operators of the source, by the functions of NumPy that they are.

OF_SYNTAX = {
    "Add": "add",
    "Subtract": "subtract",
    "Multiply": "multiply",
    "Divide": "divide",
    "FloorDivide": "floor_divide",
    "Modulo": "remainder",
    "Power": "power",
    "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or",
    "BitXor": "bitwise_xor",
    "LeftShift": "left_shift",
    "RightShift": "right_shift",
    "LessThan": "less",
    "LessThanEqual": "less_equal",
    "GreaterThan": "greater",
    "GreaterThanEqual": "greater_equal",
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Minus": "negative",
    "Plus": "positive",
    "BitInvert": "invert",
}
"""NumPy's functions by LibCST's names of the operators."""


def function_of(operator: cst.CSTNode) -> str | None:
    """Return NumPy's function for an operator, also of an augmented assignment; None for others."""
    return OF_SYNTAX.get(type(operator).__name__.removesuffix("Assign"))
