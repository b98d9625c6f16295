"""Expressions from text: the grammar, what its rules become, and the parser.

Other languages embed expressions by appending `EXPRESSION_RULES` to their own rules and by
deriving their builder from `ExprBuilder`; the rule to refer to is ``expression``. The parser
library is imported when it is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from costdb.expr.functions import (
    NAME_PATTERN,
    Conditional,
    Equal,
    Gcd,
    Less,
    LessEqual,
    Log2,
    Max,
    Min,
    Reduction,
    Sum,
    conditional,
    equal,
    gcd,
    less,
    less_equal,
    log2,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    maximum_over,
    minimum,
    summation,
    sym,
)
from costdb.expr.nodes import (
    MINUS_ONE,
    ONE,
    Add,
    CeilDiv,
    Expr,
    ExprError,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Rational,
    Sym,
    add,
    ceil,
    exact,
    floor,
    floor_div,
    is_reciprocal,
    magnitude,
    modulo,
    multiply,
    num,
    power,
    scale,
    split_coefficient,
)
from costdb.records import NAME_PART

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

APART = rf"(?!{NAME_PART}|\.)"
"""Follows a word of the language that may begin a longer name."""

EXPRESSION_RULES = rf"""
?expression: disjunction
?disjunction: conjunction | disjunction OR conjunction -> binary
?conjunction: negation | conjunction AND negation -> binary
?negation: comparison | NOT negation -> unary
?comparison: sum | sum COMPARE sum -> binary
?sum: product | product (SIGN product)+ -> chain
?product: factor | factor ((STAR | SLASH | DIV | MOD) factor)+ -> chain
?factor: power | SIGN factor -> unary
?power: atom | atom POWER factor -> binary
?atom: NUMBER -> number
    | NAME -> name
    | "(" expression ")"
    | call
call: NAME "(" expression ("," expression)* ")" -> call
    | NAME "(" NAME "=" expression "," expression "," expression ")" -> reduction
    | NAME "(" NAME "=" expression "," expression ")" product -> reduction

OR.2: /or{APART}/
AND.2: /and{APART}/
NOT.2: /not{APART}/
COMPARE: "==" | "!=" | "<=" | ">=" | "<" | ">"
SIGN: "+" | "-"
POWER.1: "**"
STAR: "*"
SLASH: "/"
DIV.2: "//" | /div{APART}/
MOD.2: "%" | /mod{APART}/
NUMBER: /(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/
NAME: /{NAME_PATTERN}/
"""
"""Rules of the grammar, rooted at ``expression``; white space is the embedding grammar's."""

MAX_TEXT = 100_000
"""Characters of one source file that are looked at."""

MAX_EXPRESSION = 50_000
"""Characters of one expression on its own."""

MAX_NESTING = 100
"""Brackets open at once."""

MAX_LITERAL = 400
"""Digits of a literal, and the largest decimal exponent."""

_BRACKET = re.compile(r"[(){}\[\]]")
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Expr]]] = {
    "max": (1, MAX_TEXT, maximum),
    "min": (1, MAX_TEXT, minimum),
    "ceil": (1, 1, ceil),
    "floor": (1, 1, floor),
    "log2": (1, 1, log2),
    "gcd": (2, 2, gcd),
    "if": (3, 3, conditional),
}
_REDUCTIONS: dict[str, Callable[[str, Expr, Expr, Expr], Expr]] = {
    "sum": summation,
    "max": maximum_over,
}
_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": floor_div,
    "div": floor_div,
    "%": modulo,
    "mod": modulo,
    "**": power,
    "==": equal,
    "!=": lambda a, b: logical_not(equal(a, b)),
    "<": less,
    "<=": less_equal,
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: less_equal(b, a),
    "and": logical_and,
    "or": logical_or,
}
_RUNS: dict[str, Callable[[Expr], Expr]] = {
    "+": lambda a: a,
    "-": lambda a: -a,
    "*": lambda a: a,
    "/": lambda a: power(a, MINUS_ONE),
}
_UNARY: dict[str, Callable[[Expr], Expr]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "not": logical_not,
}


_P = ParamSpec("_P")
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Exception)


def error_at(message: str, line: int, column: int) -> ExprError:
    """Return an error that names its column, and its line beyond the first."""
    return ExprError(f"{f'line {line}, ' if line > 1 else ''}column {column}: {message}")


def check_text(text: str, at: Callable[[str, int, int], Exception] = error_at) -> None:
    """Refuse text that is too long or too deeply bracketed to be worth parsing.

    Raises
    ------
    Exception
        What `at` returns for a message, a line and a column.
    """

    def refused(why: str, offset: int) -> Exception:
        line = text.count("\n", 0, offset) + 1
        return at(why, line, offset - text.rfind("\n", 0, offset))

    depth = 0
    for bracket in _BRACKET.finditer(text, 0, MAX_EXPRESSION):
        depth += 1 if bracket.group() in "([{" else -1
        if depth > MAX_NESTING:
            why = f"brackets nest more than {MAX_NESTING} levels deep"
            raise refused(why, bracket.start())
    if len(text) > MAX_EXPRESSION:
        why = f"the text is longer than {MAX_EXPRESSION} characters"
        raise refused(why, MAX_EXPRESSION)


def read_number(text: str) -> Expr:
    """Return the exact value of a literal such as ``3``, ``0.1`` or ``2.5e-3``."""
    digits, _, exponent = text.lower().partition("e")
    if len(digits) > MAX_LITERAL or len(exponent) > 6 or abs(int(exponent or "0")) > MAX_LITERAL:
        shown = text if len(text) <= 30 else text[:27] + "..."
        raise ExprError(f"the number {shown} is too large or too small")
    return num(exact(Fraction(text)))


class ExprBuilder:
    """Builds expressions bottom-up; each method is named after a rule.

    A derived builder says where something is wrong by overriding `error`.
    """

    def number(self, token: Token) -> Expr:
        """Return a literal."""
        return self.located(token, read_number, token.value)

    def name(self, token: Token) -> Expr:
        """Return the symbol that a name stands for."""
        return self.located(token, sym, token.value)

    def unary(self, operator: Token, operand: Expr) -> Expr:
        """Return a sign or a negation applied."""
        return self.located(operator, _UNARY[operator.value], operand)

    def binary(self, left: Expr, operator: Token, right: Expr) -> Expr:
        """Return an operator applied."""
        return self.located(operator, _BINARY[operator.value], left, right)

    def chain(self, first: Expr, *rest: Any) -> Expr:
        """Return operators of one level, and their operands, applied from the left."""
        # A run of + and - (or of * and /) is combined at once: pairwise, a long sum would take
        # time by the square of its length.
        run = [first]
        for operator, operand in zip(rest[::2], rest[1::2], strict=True):
            symbol = operator.value
            if symbol in _RUNS:
                run.append(self.located(operator, _RUNS[symbol], operand))
            else:
                run = [self.located(operator, _BINARY[symbol], multiply(run), operand)]
        join = add if rest[0].value in "+-" else multiply
        return self.located(rest[-2], join, run)

    def call(self, name: Token, *args: Expr) -> Expr:
        """Return a function applied."""
        return self.located(name, self.call_named, name.value, args)

    def reduction(self, name: Token, index: Token, low: Expr, high: Expr, body: Expr) -> Expr:
        """Return a sum or a maximum over an index."""
        return self.located(name, self.reduce_named, name.value, index.value, low, high, body)

    def call_named(self, name: str, args: tuple[Expr, ...]) -> Expr:
        """Return the function called `name`, applied."""
        if name not in _FUNCTIONS:
            known = ", ".join((*_FUNCTIONS, "sum"))
            raise ExprError(f"there is no function {name!r}; there are {known}")
        fewest, most, function = _FUNCTIONS[name]
        if not fewest <= len(args) <= most:
            count = f"{fewest} argument{'s' if fewest > 1 else ''}"
            raise ExprError(f"{name} takes {count}{' or more' if most > fewest else ''}")
        return function(*args)

    def reduce_named(self, name: str, index: str, low: Expr, high: Expr, body: Expr) -> Expr:
        """Return the reduction called `name`, applied."""
        if name not in _REDUCTIONS:
            raise ExprError(f"there is no reduction {name!r}; there are sum and max")
        sym(index)
        return _REDUCTIONS[name](index, low, high, body)

    def located(
        self, token: Token, build: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Return ``build(...)``, with the place of `token` added to an error from it."""
        try:
            return build(*args, **kwargs)
        except ExprError as error:
            raise self.error(token, str(error)) from None

    def error(self, token: Token, message: str) -> Exception:
        """Return an error at `token`."""
        return error_at(message, token.line or 1, token.column or 1)


_PLAIN_NUMBER = re.compile(r"[0-9]{1,300}(?:\.[0-9]{1,90})?")
_PLAIN_NAME = re.compile(NAME_PATTERN)


def parse(text: str) -> Expr:
    """Return the expression that `text` spells.

    Raises
    ------
    ExprError
        With the column of whatever cannot be read: foreign syntax, brackets more than
        `MAX_NESTING` deep, constants too large, numbers that are not finite.
    """
    plain = text.strip()
    # Most expressions of a profile are a single number; they need no parser library.
    if _PLAIN_NUMBER.fullmatch(plain):
        return read_number(plain)
    check_text(text)
    if _PLAIN_NAME.fullmatch(plain):
        try:
            return sym(plain)
        except ExprError as error:
            raise error_at(str(error), 1, text.index(plain) + 1) from None
    if not plain:
        raise error_at("an expression is missing", 1, 1)
    from lark.exceptions import UnexpectedInput

    try:
        built = _parser().parse(text)
    except UnexpectedInput as error:
        raise syntax_error(error, text, "the expression", error_at) from None
    assert isinstance(built, Expr)
    return built


@cache
def _parser() -> Lark:
    """Return a parser that calls the builder while it reads, so nothing recurses."""
    from lark import Lark, Transformer

    actions: Transformer[Token, Expr] = Transformer()
    for rule in ("number", "name", "unary", "binary", "chain", "call", "reduction"):
        setattr(actions, rule, _with_parts(getattr(ExprBuilder(), rule)))
    return Lark(
        f"{EXPRESSION_RULES}\n%ignore /[ \\t\\r\\n]+/\n",
        start="expression",
        parser="lalr",
        transformer=actions,
        maybe_placeholders=False,
    )


def _with_parts(method: Callable[..., object]) -> Callable[[list[object]], object]:
    return lambda parts: method(*parts)


def syntax_error(
    error: UnexpectedInput, text: str, what: str, at: Callable[[str, int, int], _E]
) -> _E:
    """Return the parser library's complaint about some text as an error with its place."""
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        lines = text.rstrip().split("\n")
        return at(f"{what} ends too early", len(lines), len(lines[-1]) + 1)
    read = text[error.pos_in_stream or 0] if token is None else str(token)
    return at(f"did not expect {shown(read)}", error.line, error.column)


def shown(token: str) -> str:
    """Return a token as it is quoted in messages."""
    return repr(token if len(token) <= 30 else token[:27] + "...")


# Expressions as text that the grammar reads back to an equal expression.

_COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(6)
_MAX_DECIMALS = 40


def to_text(expr: Expr) -> str:
    """Return text that `parse` reads back to an equal expression."""
    return _at_least(expr, _COMPARE)


def number_text(value: Rational) -> str:
    """Return a constant as a decimal where it terminates, else as ``a/b``."""
    if isinstance(value, int):
        return str(value)
    decimals = _decimals(value.denominator)
    if decimals is None or decimals > _MAX_DECIMALS:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**decimals // value.denominator)
    sign = "-" if value < 0 else ""
    if decimals > len(digits) + 4:
        return f"{sign}{digits}e-{decimals}"
    digits = digits.rjust(decimals + 1, "0")
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"


def _decimals(denominator: int) -> int | None:
    twos = (denominator & -denominator).bit_length() - 1
    rest = denominator >> twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    return max(twos, fives) if rest == 1 else None


def _at_least(expr: Expr, level: int) -> str:
    text, own = _render(expr)
    return f"({text})" if own < level else text


def _call(name: str, *args: Expr) -> tuple[str, int]:
    return f"{name}({', '.join(map(to_text, args))})", _ATOM


def _render(expr: Expr) -> tuple[str, int]:
    match expr:
        case Num():
            return _number(expr.value)
        case Sym():
            return expr.name, _ATOM
        case Add():
            return _sum(expr), _SUM
        case Mul():
            return _product(expr)
        case Pow():
            if is_reciprocal(expr):
                return f"1/{_at_least(power(expr, MINUS_ONE), _SIGN)}", _PRODUCT
            base = _at_least(expr.base, _ATOM)
            return f"{base}**{_at_least(expr.exponent, _SIGN)}", _POWER
        case Mod():
            left = _at_least(expr.dividend, _PRODUCT)
            return f"{left} % {_at_least(expr.divisor, _SIGN)}", _PRODUCT
        case FloorDiv() if expr.divisor != ONE:
            left = _at_least(expr.dividend, _PRODUCT)
            return f"{left} // {_at_least(expr.divisor, _SIGN)}", _PRODUCT
        case Conditional():
            return _call("if", *expr.children)
        case Reduction():
            name = "sum" if isinstance(expr, Sum) else "max"
            parts = ", ".join(map(to_text, expr.children))
            return f"{name}({expr.index} = {parts})", _ATOM
        case Less() | LessEqual() | Equal():
            left = _at_least(expr.left, _SUM)
            return f"{left} {_COMPARISONS[type(expr)]} {_at_least(expr.right, _SUM)}", _COMPARE
        case FloorDiv():
            return _call("floor", expr.dividend)
        case CeilDiv():
            if expr.divisor == ONE:
                return _call("ceil", expr.dividend)
            above = _at_least(expr.dividend, _PRODUCT)
            return f"ceil({above}/{_at_least(expr.divisor, _SIGN)})", _ATOM
        case _:
            return _call(_CALLS[type(expr)], *expr.children)


_COMPARISONS: dict[type[Expr], str] = {Less: "<", LessEqual: "<=", Equal: "=="}
_CALLS: dict[type[Expr], str] = {Max: "max", Min: "min", Log2: "log2", Gcd: "gcd"}


def _number(value: Rational) -> tuple[str, int]:
    text = number_text(value)
    if "/" in text:
        return text, _PRODUCT
    return text, _SIGN if value < 0 else _ATOM


def _sum(expr: Add) -> str:
    pieces: list[str] = []
    for term in (*expr.terms, Num(expr.constant)):
        coefficient, rest = _signed(term)
        if coefficient == 0:
            continue
        size = magnitude(coefficient)
        # A leading sign binds tighter than the rounded divisions.
        leads = not pieces and coefficient < 0 and isinstance(rest, FloorDiv | Mod)
        level = _SIGN if leads and size == 1 else _PRODUCT
        text = _at_least(Num(size) if rest == ONE else scale(size, rest), level)
        if pieces:
            pieces.append(" - " if coefficient < 0 else " + ")
        elif coefficient < 0:
            pieces.append("-")
        pieces.append(text)
    return "".join(pieces)


def _signed(term: Expr) -> tuple[Rational, Expr]:
    if isinstance(term, Num):
        return term.value, ONE
    return split_coefficient(term)


def _product(expr: Mul) -> tuple[str, int]:
    coefficient = expr.coefficient
    sign = "-" if coefficient < 0 else ""
    text = number_text(magnitude(coefficient))
    above = [_factor(f) for f in expr.factors if not is_reciprocal(f)]
    below = [_factor(power(f, MINUS_ONE)) for f in expr.factors if is_reciprocal(f)]
    if "/" in text:
        number = Fraction(magnitude(coefficient))
        if number.numerator != 1:
            above.append(str(number.numerator))
        below.append(str(number.denominator))
    elif text != "1":
        above.append(text)
    top = "*".join(above) or "1"
    if not below:
        return sign + top, _PRODUCT
    bottom = below[0] if len(below) == 1 else f"({'*'.join(below)})"
    return f"{sign}{top}/{bottom}", _PRODUCT


def _factor(factor: Expr) -> str:
    return _at_least(factor, _SIGN)


def python_text(expr: Expr, texts: Mapping[str, str]) -> str | None:
    """Return Python source for a whole-number expression; None where a size has no name there.

    Parameters
    ----------
    expr : Expr
    texts : mapping of str to str
        Source text for each symbol.
    """
    try:
        return _python(expr, texts)
    except LookupError:
        return None


def _python(expr: Expr, texts: Mapping[str, str]) -> str:
    """Return a whole-number expression; a `LookupError` says that a part of it has no words."""

    def joined(between: str, *parts: Expr) -> str:
        inner = ((part, _python(part, texts)) for part in parts)
        return between.join(
            text if isinstance(part, Sym | Num | Max | Min) else f"({text})" for part, text in inner
        )

    match expr:
        case Num(int(value)):
            return str(value)
        case Sym(name):
            return texts[name]
        case Add(terms, int(constant)):
            parts = [_python(one, texts) for one in terms] + [str(constant)] * bool(constant)
            return " + ".join(parts).replace(" + -", " - ")
        case Mul(factors, int(coefficient)):
            sign = {1: "", -1: "-"}.get(coefficient, f"{coefficient} * ")
            return f"{sign}{joined(' * ', *factors)}"
        case FloorDiv(dividend, divisor):
            return joined(" // ", dividend, divisor)
        case CeilDiv(dividend, divisor):
            return f"-(-{joined(' // ', dividend, divisor)})"
        case Mod(dividend, divisor):
            return joined(" % ", dividend, divisor)
        case Max() | Min():
            name = "max" if isinstance(expr, Max) else "min"
            return f"{name}({', '.join(_python(part, texts) for part in expr.children)})"
    raise LookupError
