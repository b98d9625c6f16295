"""Reading expressions from text, by the grammar and in no other way."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from costdb.expr.grammar import (
    EXPRESSION_RULES,
    ExprBuilder,
    check_text,
    error_at,
    read_number,
)
from costdb.expr.names import NAME_PATTERN, sym
from costdb.expr.nodes import Expr
from costdb.expr.numbers import ExprError

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

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
    return _parse_by_grammar(text)


def _parse_by_grammar(text: str) -> Expr:
    from lark.exceptions import UnexpectedInput

    try:
        built = _parser().parse(text)
    except UnexpectedInput as error:
        raise syntax_error(error, text) from None
    if not isinstance(built, Expr):
        raise error_at("an expression is missing", 1, 1)
    return built


@cache
def _parser() -> Lark:
    return make_parser(EXPRESSION_RULES, "expression", ExprBuilder())


def make_parser(rules: str, start: str, builder: object) -> Lark:
    """Return a parser that calls `builder` while it reads, so nothing recurses.

    Parameters
    ----------
    rules : str
        A grammar without white space, which is ignored between tokens.
    start : str
        The rule to begin with.
    builder : object
        Has a public method for each rule or alias, called with the parts as arguments.
    """
    from lark import Lark, Transformer

    actions: Transformer[Token, object] = Transformer()
    for name in dir(builder):
        if not name.startswith("_"):
            setattr(actions, name, _with_parts(getattr(builder, name)))
    return Lark(
        f"{rules}\n%ignore /[ \\t\\r\\n]+/\n",
        start=start,
        parser="lalr",
        transformer=actions,
        maybe_placeholders=False,
    )


def _with_parts(method: Callable[..., object]) -> Callable[[list[object]], object]:
    return lambda parts: method(*parts)


def syntax_error(error: UnexpectedInput, text: str) -> ExprError:
    """Return the parser library's complaint as one line with its column."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        lines = text.rstrip().split("\n")
        return error_at("the expression ends too early", len(lines), len(lines[-1]) + 1)
    if isinstance(error, UnexpectedToken):
        return error_at(f"did not expect {_shown(str(error.token))}", error.line, error.column)
    if isinstance(error, UnexpectedCharacters):
        return error_at(f"did not expect {_shown(error.char)}", error.line, error.column)
    return error_at("cannot be read", error.line, error.column)


def _shown(token: str) -> str:
    return repr(token if len(token) <= 30 else token[:27] + "...")
