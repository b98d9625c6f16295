"""What expressions of a model may stand for beside numbers: servers and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeAlias, TypeVar

from costdb.expr import Expr, ExprError, num
from costdb.expr.grammar import ExprBuilder
from costdb.expr.grammar import Place as TokenPlace
from costdb.process.occupancy import largest_element
from costdb.process.shapes import ONE, constant_of
from costdb.process.syntax import Place, Word
from costdb.process.terms import Resource
from costdb.process.vectors import Entry, Vector

Quantity: TypeAlias = Expr | Vector | Resource
"""A value of an expression."""

BUILT_IN = frozenset({"max", "min", "ceil", "floor", "log2", "gcd", "if", "sum", "unitvec"})
"""Functions of expressions."""

RESERVED = BUILT_IN | {
    *("numeric", "resource", "process", "parameter"),
    *("delay", "use", "seq", "par", "else"),
}
"""Words that no equation may define."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Builder(ExprBuilder):
    """Applies the operators of the expression language; errors say the file as well."""

    def __init__(self, file: str) -> None:
        self.file = file

    def place(self, word: TokenPlace) -> Place:
        """Return where `word` stands."""
        return Place(self.file, word.line or 1, word.column or 1)

    def located(
        self, token: TokenPlace, build: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Return ``build(...)``, with the place of `token` added to an error from it."""
        try:
            return build(*args, **kwargs)
        except ExprError as error:
            raise self.place(token).error(str(error)) from None

    def built_in(self, word: Word, args: Sequence[Quantity]) -> Quantity:
        """Return the built-in function called `word`, applied."""
        numbers = tuple(arg for arg in args if isinstance(arg, Expr))
        if len(numbers) == len(args):
            if word.value != "unitvec":
                return self.located(word, self.call_named, word.value, numbers)
            if len(args) != 1:
                raise self.place(word).error(arity(word.value, 1, len(args)))
            return Vector((Entry("", numbers[0], ONE),))
        if len(args) == 1 and isinstance(args[0], Vector):
            if word.value == "max":
                return self.located(word, largest_element, args[0])
            if word.value == "sum":
                return self.located(word, args[0].total)
        kinds = " and ".join(dict.fromkeys(map(described, args)))
        raise self.place(word).error(f"{word.value} does not take {kinds}")

    def vector(self, items: Sequence[Expr], word: Word) -> Vector:
        """Return the vector of `items`, from index 0."""
        return Vector(
            tuple(Entry("", num(k), self.amount(item, word)) for k, item in enumerate(items))
        )

    def vectors(
        self, first: Quantity, operators: Sequence[Word], rest: Sequence[Quantity]
    ) -> Vector:
        """Return a chain of operators, applied from the left to numbers and vectors."""
        result = first
        for operator, operand in zip(operators, rest, strict=True):
            match operator.value, result, operand:
                case "+", Vector(), Vector():
                    result = result + operand
                case "*", Expr(), Expr():
                    result = result * operand
                case "/", Expr(), Expr():
                    result = self.located(operator, lambda a, b: a / b, result, operand)
                case "*", Vector(), Expr():
                    result = result.scaled(self.amount(operand, operator))
                case "*", Expr(), Vector():
                    result = operand.scaled(self.amount(result, operator))
                case "/", Vector(), Expr():
                    factor = self.located(operator, lambda b: ONE / b, operand)
                    result = result.scaled(self.amount(factor, operator))
                case _:
                    raise self.place(operator).error(
                        f"{operator.value!r} does not join {described(result)} and "
                        f"{described(operand)}"
                    )
        if not isinstance(result, Vector):
            raise self.place(operators[-1]).error("a vector is needed here")
        return result

    def amount(self, amount: Expr, word: Word) -> Expr:
        """Return `amount`, or refuse a constant that is negative."""
        known = constant_of(amount)
        if known is not None and known < 0:
            raise self.place(word).error("a vector holds amounts, which are not negative")
        return amount


def server(array: str, args: Sequence[Quantity], place: Place) -> Resource:
    """Return the server of `array` that `args`, an index and a multiplicity, name."""
    if not 1 <= len(args) <= 2:
        raise place.error(f"{array!r} takes an index and, if not 1, a multiplicity")
    numbers = [arg for arg in args if isinstance(arg, Expr)]
    if len(numbers) < len(args):
        raise place.error(f"the index and the multiplicity of {array!r} must be numbers")
    multiplicity = numbers[1] if len(numbers) == 2 else ONE
    known = constant_of(multiplicity)
    if known is not None and known <= 0:
        raise place.error(f"a resource of multiplicity {known} serves nobody")
    return Resource(numbers[0], multiplicity, array)


def arity(name: str, wanted: int, given: int) -> str:
    """Return what is wrong with calling `name` with `given` arguments."""
    arguments = "1 argument" if wanted == 1 else f"{wanted or 'no'} arguments"
    return f"{name!r} takes {arguments}, not {given}"


def described(value: object) -> str:
    """Return what `value` is, for messages."""
    if isinstance(value, Expr):
        return "a number"
    if isinstance(value, Vector):
        return "a vector"
    return "a resource" if isinstance(value, Resource) else "a process"
