"""Substituting equations into each other until one process is left.

Every application of an equation is a fresh copy of its body: formals mean their arguments, and
the variable of a loop is renamed where it would capture a symbol of the surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from costdb.choosing import PlacedError
from costdb.expr import ONE, ZERO, Expr, num, sym
from costdb.expr.functions import fresh_name
from costdb.expr.nodes import Rational
from costdb.expr.parse import (
    APART,
    EXPRESSION_RULES,
    ExprBuilder,
    check_text,
    number_text,
    syntax_error,
)
from costdb.process.servers import Entry, Loop, Vector, largest_element
from costdb.records import bounded, dataclass, replace
from costdb.work import (
    NOTHING,
    Branch,
    Delay,
    Parallel,
    ParLoop,
    Process,
    Resource,
    SeqLoop,
    Sequential,
    Use,
    constant_of,
)

# --- syntax ---------------------------------------------------------------------------------------
# Process models as text: from the source of a file to its equations.
#
# The expressions in it are those of :mod:`costdb.expr`, with vectors added. A percent sign starts a
# comment, so a remainder is spelled ``mod``. Text is read by a grammar and in no other way.


if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node: TypeAlias = Tree[Token]
    from lark import Token

MAX_BYTES = 400_000
"""Bytes of one file with its comments."""

MAX_DEPTH = 100
"""Levels of nesting of one equation, whether by brackets or by loops and signs."""

_WORDS = (
    "numeric", "resource", "process", "parameter", "delay", "use", "seq", "par", "if", "else",
)  # fmt: skip
_GRAMMAR = (
    r"""
start: equation*
equation: (NUMERIC | RESOURCE) PARAMETER? NAME formals? ("=" expression)?
    | PROCESS PARAMETER? NAME formals? ("=" parallel)?
formals: "(" NAME ("," NAME)* ")"
?parallel: sequence | sequence ("||" sequence)+ -> parallel
?sequence: part | part (";" part)+ -> sequence
?part: DELAY "(" expression ")" -> delay
    | USE "(" expression "," expression ")" -> use
    | (SEQ | PAR) "(" NAME "=" expression "," expression ")" part -> loop
    | IF "(" expression ")" part (ELSE part)? -> branch
    | NAME ("(" expression ("," expression)* ")")? -> invoke
    | "{" parallel "}"
    | "{" "}" -> nothing
"""
    + "\n".join(f"{word.upper()}.3: /{word}{APART}/" for word in _WORDS)
    + "\n"
    + EXPRESSION_RULES
    + r"""
%extend atom: "[" expression ("," expression)* "]" -> vector
    | NAME "[" expression "]" -> element
%ignore /[ \t\r\n]+/
"""
)
_COMMENT = re.compile(r"%[^\n]*")


class ModelError(PlacedError):
    """A model that cannot be read; one line, ``file:line:column: message``."""


class Kind(StrEnum):
    """What an equation defines."""

    NUMERIC = "numeric"
    RESOURCE = "resource"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, counted from 1."""

    file: str
    line: int = 1
    column: int = 1

    def error(self, message: str) -> ModelError:
        """Return `message` as an error at this place."""
        return ModelError(f"{self.file}:{self.line}:{self.column}: {message}")


def place_of(word: Token, file: str) -> Place:
    """Return where a token of a file stands."""
    return Place(file, word.line or 1, word.column or 1)


def words_of(node: Node) -> list[Token]:
    """Return the words and operators among the children of a rule's application."""
    return [child for child in node.children if isinstance(child, str)]


def parts_of(node: Node) -> list[Node]:
    """Return the applications of other rules among the children."""
    return [child for child in node.children if not isinstance(child, str)]


def first_word(node: Node) -> Token:
    """Return the word that comes first in the text."""
    child = node.children[0]
    return child if isinstance(child, str) else first_word(child)


@dataclass(frozen=True, slots=True)
class Equation:
    """``kind [parameter] name(formals) = body``; a parameter may have no body."""

    kind: Kind
    name: str
    formals: tuple[str, ...]
    is_parameter: bool
    body: Node | None
    place: Place


def read_equations(path: Path) -> tuple[Equation, ...]:
    """Return the equations of the file at `path`, in order.

    Raises
    ------
    ModelError
        When the file cannot be read or its text is not in the language.
    """
    file = str(path)
    data = bounded(path, MAX_BYTES, lambda why: Place(file).error(f"cannot be read: {why}"))
    if len(data) > MAX_BYTES:
        raise Place(file).error(f"is longer than {MAX_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Place(file, line).error("is not UTF-8 text") from None
    text = _COMMENT.sub("", text)

    def at(message: str, line: int, column: int) -> ModelError:
        return Place(file, line, column).error(message)

    check_text(text, at)
    from lark.exceptions import UnexpectedInput

    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise syntax_error(error, text, "the model", at) from None
    return tuple(_equation(one, file) for one in parts_of(tree))


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", maybe_placeholders=False)


def _equation(tree: Node, file: str) -> Equation:
    words, parts = words_of(tree), parts_of(tree)
    kind, name = Kind(words[0].value), words[-1].value
    place = place_of(words[-1], file)
    formals: tuple[str, ...] = ()
    if parts and parts[0].data == "formals":
        formals = tuple(map(str, parts.pop(0).children))
        if len(set(formals)) < len(formals):
            raise place.error(f"two formals of {name!r} have the same name")
    is_parameter = words[1].type == "PARAMETER"
    if not parts and not is_parameter:
        raise place.error(f"{name!r} is neither defined nor a parameter")
    # level by level: recursion is what the check is to protect
    level = parts
    for _ in range(MAX_DEPTH):
        level = [inner for node in level for inner in parts_of(node)]
    if level:
        raise place.error(f"the equation nests more than {MAX_DEPTH} levels deep")
    return Equation(kind, name, formals, is_parameter, parts[0] if parts else None, place)


# --- substitution ---------------------------------------------------------------------------------


# What expressions of a model may stand for beside numbers: servers and vectors.

Quantity: TypeAlias = Expr | Vector | Resource
"""A value of an expression."""

BUILT_IN = frozenset({"max", "min", "ceil", "floor", "log2", "gcd", "if", "sum", "unitvec"})
"""Functions of expressions."""

RESERVED = BUILT_IN.union(_WORDS)
"""Words that no equation may define."""


class Builder(ExprBuilder):
    """Applies the operators of the expression language; errors say the file as well."""

    def __init__(self, file: str) -> None:
        self.file = file

    def place(self, word: Token) -> Place:
        """Return where `word` stands."""
        return place_of(word, self.file)

    def error(self, token: Token, message: str) -> Exception:
        """Return an error at `token`."""
        return self.place(token).error(message)

    def built_in(self, word: Token, args: Sequence[Quantity]) -> Quantity:
        """Return the built-in function called `word`, applied."""
        match word.value, args:
            case "unitvec", [Expr() as index]:
                return Vector((Entry("", index, ONE),))
            case "unitvec", [*_] if all(isinstance(arg, Expr) for arg in args):
                raise self.place(word).error(arity(word.value, 1, len(args)))
            case "max", [Vector() as vector]:
                return self.located(word, largest_element, vector)
            case "sum", [Vector() as vector]:
                return self.located(word, vector.total)
        numbers = tuple(arg for arg in args if isinstance(arg, Expr))
        if len(numbers) == len(args):
            return self.located(word, self.call_named, word.value, numbers)
        kinds = " and ".join(dict.fromkeys(map(described, args)))
        raise self.place(word).error(f"{word.value} does not take {kinds}")

    def vectors(
        self, first: Quantity, operators: Sequence[Token], rest: Sequence[Quantity]
    ) -> Vector:
        """Return a chain of operators, applied from the left to numbers and vectors."""
        result = first
        for operator, operand in zip(operators, rest, strict=True):
            match operator.value, result, operand:
                case "+", Vector(), Vector():
                    result = result + operand
                case "*" | "/", Expr(), Expr():
                    result = self.binary(result, operator, operand)
                case "*", Expr(), Vector():
                    result = operand.scaled(self.amount(result, operator))
                case "*" | "/", Vector(), Expr():
                    factor = self.binary(ONE, operator, operand)
                    result = result.scaled(self.amount(factor, operator))
                case _:
                    raise self.place(operator).error(
                        f"{operator.value!r} does not join {described(result)} and "
                        f"{described(operand)}"
                    )
        if not isinstance(result, Vector):
            raise self.place(operators[-1]).error("a vector is needed here")
        return result

    def amount(self, amount: Expr, word: Token) -> Expr:
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


MAX_STEPS = 20_000
"""Operators and applications of equations that one model may come to when substituted."""

MAX_LEVELS = 150
"""Levels of equations and brackets within each other."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean inside one equation, and which symbols its surroundings use."""

    builder: Builder
    names: Mapping[str, Quantity]
    live: frozenset[str]
    within: tuple[str, ...]

    def loop(self, variable: Token) -> tuple[str, _Scope]:
        """Return the symbol to use for the variable of a loop, and the scope of its body."""
        symbol = fresh_name(variable.value, self.live)
        meaning = self.builder.located(variable, sym, symbol)
        names = {**self.names, variable.value: meaning}
        return symbol, replace(self, names=names, live=self.live | {symbol})


class Substitution:
    """The equations of a model, by name, and what the closed ones have come to."""

    def __init__(self, equations: Mapping[str, Equation]) -> None:
        self.equations = equations
        self.symbols = frozenset(
            e.name for e in equations.values() if e.is_parameter and e.kind is Kind.NUMERIC
        )
        self.closed: dict[str, Quantity | Process] = {}
        self.steps = 0
        self.level = 0

    def closed_form(self, equation: Equation) -> Quantity | Process:
        """Return what an equation without formals stands for."""
        return self.apply(equation, (), equation.place, ())

    def default(self, equation: Equation) -> Rational | None:
        """Return the value that a numeric parameter has unless the user says otherwise."""
        if equation.formals:
            raise equation.place.error("a numeric parameter has no formals")
        if equation.body is None:
            return None
        value = self._body(equation, (), self.symbols, ())
        known = constant_of(value) if isinstance(value, Expr) else None
        if known is None:
            raise equation.place.error("the value of a parameter must be a constant")
        return known

    def apply(
        self,
        equation: Equation,
        args: Sequence[Quantity],
        place: Place,
        within: tuple[str, ...],
        live: frozenset[str] = frozenset(),
    ) -> Quantity | Process:
        """Return the body of `equation` with `args` for its formals."""
        name = equation.name
        if name in within:
            chain = " -> ".join((*within[within.index(name) :], name))
            raise place.error(f"{name!r} is defined by itself: {chain}")
        if equation.is_parameter:
            return _parameter(equation, args, place)
        if len(args) != len(equation.formals):
            raise place.error(arity(name, len(equation.formals), len(args)))
        if equation.formals:
            return self._body(equation, args, self.symbols | live, (*within, name))
        if name not in self.closed:
            self.closed[name] = self._body(equation, (), self.symbols, (*within, name))
        return self.closed[name]

    def _body(
        self,
        equation: Equation,
        args: Sequence[Quantity],
        live: frozenset[str],
        within: tuple[str, ...],
    ) -> Quantity | Process:
        body = equation.body
        if body is None:
            raise equation.place.error(f"{equation.name!r} has no definition")
        names = dict(zip(equation.formals, args, strict=True))
        scope = _Scope(Builder(equation.place.file), names, live, within)
        with self._deeper(equation.place):
            if equation.kind is Kind.PROCESS:
                return self._process(body, scope)
            value = self._value(body, scope)
        if isinstance(value, Resource) != (equation.kind is Kind.RESOURCE):
            raise equation.place.error(
                f"{equation.name!r} is a {equation.kind}, but its definition is {described(value)}"
            )
        return value

    @contextmanager
    def _deeper(self, place: Place) -> Iterator[None]:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise place.error(f"the equations come to more than {MAX_STEPS} steps")
        if self.level >= MAX_LEVELS:
            raise place.error(f"the equations nest more than {MAX_LEVELS} levels deep")
        self.level += 1
        try:
            yield
        finally:
            self.level -= 1

    def _process(self, node: Node, scope: _Scope) -> Process:
        parts = parts_of(node)
        if node.data == "nothing":
            return NOTHING
        if node.data in ("parallel", "sequence"):
            terms = tuple(self._process(part, scope) for part in parts)
            return Parallel(terms) if node.data == "parallel" else Sequential(terms)
        word = first_word(node)
        place = scope.builder.place(word)
        with self._deeper(place):
            match node.data:
                case "delay":
                    return Delay(self._time(parts[0], scope, place))
                case "use":
                    resource = self._value(parts[0], scope)
                    if not isinstance(resource, Resource):
                        raise place.error(f"use needs a resource, not {described(resource)}")
                    return Use(resource, self._time(parts[1], scope, place))
                case "loop":
                    low, high = (self._number(bound, scope, place) for bound in parts[:2])
                    symbol, inner = scope.loop(words_of(node)[1])
                    kind = SeqLoop if word.value == "seq" else ParLoop
                    return kind(symbol, low, high, self._process(parts[2], inner))
                case "branch":
                    condition = self._number(parts[0], scope, place)
                    known = constant_of(condition)
                    if known is not None and not 0 <= known <= 1:
                        raise place.error(f"a probability of {known} is outside 0..1")
                    then, *orelse = (self._process(part, scope) for part in parts[1:])
                    return Branch(condition, then, orelse[0] if orelse else NOTHING)
                case _:
                    found = self._named(word, [self._value(a, scope) for a in parts], scope)
                    if isinstance(found, Expr | Vector | Resource):
                        raise place.error(f"{word.value!r} is {described(found)}, not a process")
                    return found

    def _time(self, node: Node, scope: _Scope, place: Place) -> Expr:
        seconds = self._number(node, scope, place)
        known = constant_of(seconds)
        if known is not None and known < 0:
            raise place.error(f"a time of {number_text(known)} seconds is negative")
        return seconds

    def _number(self, node: Node, scope: _Scope, place: Place) -> Expr:
        value = self._value(node, scope)
        if not isinstance(value, Expr):
            raise place.error(f"a number is needed here, not {described(value)}")
        return value

    def _value(self, node: Node, scope: _Scope) -> Quantity:
        word, parts, builder = first_word(node), parts_of(node), scope.builder
        place = builder.place(word)
        with self._deeper(place):
            match node.data:
                case "vector":
                    items = [self._number(part, scope, place) for part in parts]
                    return Vector(
                        tuple(
                            Entry("", num(k), builder.amount(item, word))
                            for k, item in enumerate(items)
                        )
                    )
                case "element":
                    vector = self._quantity(word, [], scope)
                    if not isinstance(vector, Vector):
                        raise place.error(f"{word.value!r} is {described(vector)}, not a vector")
                    return vector.at("", self._number(parts[0], scope, place))
                case "reduction":
                    return self._reduction(node, scope, place)
            values = [self._value(part, scope) for part in parts]
            if node.data in ("name", "call"):
                return self._quantity(word, values, scope)
            if any(isinstance(value, Vector) for value in values):
                return builder.vectors(values[0], words_of(node), values[1:])
            if any(isinstance(value, Resource) for value in values):
                raise place.error("a resource is not a number")
            operands = iter(values)
            children = (c if isinstance(c, str) else next(operands) for c in node.children)
            result: Expr = getattr(builder, str(node.data))(*children)
            return result

    def _reduction(self, node: Node, scope: _Scope, place: Place) -> Quantity:
        word, variable = words_of(node)
        *bounds, body = parts_of(node)
        low, high = (self._number(bound, scope, place) for bound in bounds)
        symbol, inner = scope.loop(variable)
        value = self._value(body, inner)
        if isinstance(value, Vector) and word.value == "sum":
            return value.over(Loop(symbol, low, high))
        if not isinstance(value, Expr):
            raise place.error(f"{word.value} over an index does not take {described(value)}")
        reduce = scope.builder.reduce_named
        return scope.builder.located(word, reduce, word.value, symbol, low, high, value)

    def _quantity(self, word: Token, args: Sequence[Quantity], scope: _Scope) -> Quantity:
        found = self._named(word, args, scope)
        if not isinstance(found, Expr | Vector | Resource):
            raise scope.builder.place(word).error(f"{word.value!r} is a process, not a number")
        return found

    def _named(self, word: Token, args: Sequence[Quantity], scope: _Scope) -> Quantity | Process:
        name, place = word.value, scope.builder.place(word)
        if name in scope.names:
            if args:
                raise place.error(f"{name!r} takes no arguments here")
            return scope.names[name]
        if name in self.equations:
            return self.apply(self.equations[name], args, place, scope.within, scope.live)
        if name == "fcfs":
            return server("fcfs", args, place)
        if name in BUILT_IN and args:
            return scope.builder.built_in(word, args)
        near = get_close_matches(name, [*scope.names, *self.equations, *BUILT_IN, "fcfs"], n=1)
        suggestion = f"; did you mean {near[0]!r}?" if near else ""
        raise place.error(f"unknown name {name!r}{suggestion}")


def _parameter(equation: Equation, args: Sequence[Quantity], place: Place) -> Quantity:
    if equation.kind is Kind.PROCESS:
        raise equation.place.error("a process cannot be a parameter")
    if equation.kind is Kind.RESOURCE:
        if equation.body is not None:
            raise equation.place.error("a resource parameter has no definition")
        if len(equation.formals) > 2:
            raise equation.place.error("servers have an index and a multiplicity, no more")
        if equation.formals:
            return server(equation.name, args, place)
    if args:
        raise place.error(arity(equation.name, 0, len(args)))
    if equation.kind is Kind.RESOURCE:
        return Resource(ZERO, ONE, equation.name)
    return sym(equation.name)
