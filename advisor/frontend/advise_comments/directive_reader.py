"""Tokens of one ``# advise:`` directive, and a walk over them that explains what it misses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NoReturn, TypeVar

from advisor.frontend.advise_comments.directives import CommentError
from advisor.source import Span
from costdb.wording import IDENTIFIER

Item = TypeVar("Item")

_TOKEN: Final = re.compile(
    rf"(?P<name>{IDENTIFIER})|(?P<number>\d+(?:_\d+)*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<mark>\S)"
)
_CLOSING: Final = {"(": ")", "[": "]"}
_LARGEST_DIGITS: Final = 18
_LONGEST_SHOWN: Final = 30
_EXPR_COLUMN: Final = re.compile(r"column (\d+): (.*)")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}...")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class DirectiveReader:
    """Walks over the tokens of one directive."""

    def __init__(self, body: str, line: int, column: int) -> None:
        self.body = body
        self.line = line
        self.column = column  # of the body's first character, from 0
        self.tokens = [
            _Token(str(found.lastgroup), found.group(), found.start(), found.end())
            for found in _TOKEN.finditer(body)
        ]
        self.position = 0

    def peek(self, ahead: int = 0) -> str:
        """Return the text of a coming token, empty past the end."""
        place = self.position + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def last(self) -> str:
        """Return the text of the last token, empty when none is left."""
        return self.tokens[-1].text if self.position < len(self.tokens) else ""

    def fail(self, expected: str) -> NoReturn:
        """Refuse the next token."""
        found = self.peek()
        shown = f"found {_shown(found)}" if found else "the comment ends"
        self.fail_at(self.position, f"expected {expected}, but {shown}")

    def fail_at(self, position: int, message: str) -> NoReturn:
        """Refuse the directive because of the token at a position."""
        if position < len(self.tokens):
            offset = self.tokens[position].start
        else:
            offset = len(self.body.rstrip())
        raise CommentError(self.line, self.column + offset + 1, message)

    def fail_at_end(self, message: str) -> NoReturn:
        """Refuse the directive because of what is missing at its end."""
        self.fail_at(len(self.tokens), message)

    def accept(self, text: str) -> bool:
        """Step over the next token if it is `text`."""
        if self.peek() != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> None:
        """Step over `text`, which must come next."""
        if not self.accept(text):
            self.fail(repr(text))

    def name(self, what: str) -> str:
        """Step over a name."""
        if self.position == len(self.tokens) or self.tokens[self.position].kind != "name":
            self.fail(what)
        self.position += 1
        return self.tokens[self.position - 1].text

    def accept_decimal(self) -> bool:
        """Step over a number with a decimal point, if that comes next, and its sign."""
        place = self.position + (self.peek() == "-")
        if place == len(self.tokens) or self.tokens[place].kind != "number":
            return False
        if "." not in self.tokens[place].text:
            return False
        self.position = place + 1
        return True

    def integer(self, what: str, least: int) -> int:
        """Step over a whole number that is at least `least`."""
        digits = self.peek().replace("_", "")
        if not (digits.isascii() and digits.isdecimal()):
            self.fail(what)
        if len(digits) > _LARGEST_DIGITS:
            self.fail(f"{what} below 10**{_LARGEST_DIGITS}")
        if int(digits) < least:
            self.fail(f"{what}, at least {least}")
        self.position += 1
        return int(digits)

    def expression(
        self,
        what: str,
        stops: str = "",
        *,
        least: int = 0,
        most: int | None = None,
        leave: int = 0,
    ) -> str:
        """Step over an expression and return its text.

        Parameters
        ----------
        what : str
            Named when nothing is there.
        stops : str
            Marks that end the expression where they stand outside brackets.
        least, most : int
            Bounds of its value; only a constant is held against them.
        leave : int
            Tokens at the end of the directive that do not belong to it.
        """
        first = self.position
        closing: list[str] = []
        while self.position < len(self.tokens) - leave:
            text = self.peek()
            if closing and text == closing[-1]:
                closing.pop()
            elif not closing and text in stops:
                break
            elif text in _CLOSING:
                closing.append(_CLOSING[text])
            self.position += 1
        if closing:
            self.fail(repr(closing[-1]))
        if self.position == first:
            self.fail(what)
        start = self.tokens[first].start
        text = self.body[start : self.tokens[self.position - 1].end]
        value = self._constant(text, start)
        if value is not None and (value < least or (most is not None and value > most)):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            self.fail_at(first, f"expected {what} {bounds}, but found {_shown(text)}")
        return text

    def _constant(self, text: str, start: int) -> int | Fraction | float | None:
        """Check an expression and return its value, or None when it depends on a size."""
        # imported here: a file whose directives hold no expression need not pay for it
        from costdb.expr import ExprError, evaluate, free_symbols, parse

        try:
            expression = parse(text)
            return None if free_symbols(expression) else evaluate(expression, {})
        except ExprError as error:
            placed = _EXPR_COLUMN.fullmatch(str(error))
            offset = int(placed.group(1)) - 1 if placed else 0
            message = placed.group(2) if placed else str(error)
            raise CommentError(self.line, self.column + start + offset + 1, message) from error

    def separated(self, item: Callable[[], Item], closing: str) -> tuple[Item, ...]:
        """Step over items parted by commas, and the closing bracket."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        if not self.accept(closing):
            self.fail(f"',' or {closing!r}")
        return tuple(items)

    def span_since(self, position: int) -> Span:
        """Return the place of the tokens from a position to the last one stepped over."""
        start, end = self.tokens[position].start, self.tokens[self.position - 1].end
        return Span(self.line, self.column + start, self.line, self.column + end)

    def end(self) -> None:
        """Refuse anything that is left."""
        if self.position < len(self.tokens):
            self.fail("the end of the comment")
