"""TOML documents whose values know their place, so that every complaint can name it."""

from __future__ import annotations

import math
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Final

from costdb.choosing import SubjectError
from costdb.expr import Expr, ExprError, num, parse, sym
from costdb.wording import nearest

_LARGEST_BYTES: Final = 1_000_000
_LARGEST_NUMBER: Final = 10**15


def read_content(path: str | Path) -> bytes:
    """Return what a file holds; of one that is too large to be a document, no more than shows it.

    Raises
    ------
    SubjectError
        The file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(_LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SubjectError(f"{path}: {reason}") from error


def read_toml(content: bytes, origin: str) -> dict[str, object]:
    """Return a TOML document.

    Raises
    ------
    SubjectError
        Too large, not UTF-8, not TOML, or nested too deeply.
    """
    if len(content) > _LARGEST_BYTES:
        raise SubjectError(f"{origin}: larger than {_LARGEST_BYTES} bytes")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SubjectError(f"{origin}: not TOML: not UTF-8 text") from error
    except RecursionError as error:
        raise SubjectError(f"{origin}: nested too deeply") from error
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise SubjectError(f"{origin}: not TOML: {reason}") from error


class Node:
    """A value of the document that knows its place, for errors."""

    __slots__ = ("origin", "place", "value")

    def __init__(self, value: object, place: str, origin: str) -> None:
        self.value = value
        self.place = place
        self.origin = origin

    def refuse(self, problem: str) -> SubjectError:
        """Return the complaint about this value, to be raised."""
        return SubjectError(f"{self.origin}: {self.place or '/'}: {problem}")

    def table(self) -> dict[str, Node]:
        """Return the entries of a table."""
        if not isinstance(self.value, dict):
            raise self.refuse("expected a table")
        return {
            key: Node(inner, f"{self.place}/{key}", self.origin)
            for key, inner in self.value.items()
        }

    def known(self, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Node]:
        """Return the table's entries, refusing unknown and missing keys."""
        table = self.table()
        allowed = required + optional
        for key, inner in table.items():
            if key not in allowed:
                raise inner.refuse(f"unknown key{nearest(key, allowed)}")
        for key in required:
            if key not in table:
                raise self.refuse(f'"{key}" is missing')
        return table

    def items(self) -> list[Node]:
        """Return the items of an array."""
        if not isinstance(self.value, list):
            raise self.refuse("expected an array")
        return [
            Node(inner, f"{self.place}/{index}", self.origin)
            for index, inner in enumerate(self.value)
        ]

    def text(self) -> str:
        """Return a text that is not blank."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.refuse("expected a text")
        return self.value

    def name(self) -> str:
        """Return a text that may name a quantity."""
        text = self.text()
        try:
            sym(text)
        except ExprError as error:
            raise self.refuse(str(error)) from error
        return text

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.refuse("expected true or false")
        return self.value

    def number(self) -> int | Fraction:
        """Return a finite number, decimals exact."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse("expected a number")
        if not math.isfinite(value):
            raise self.refuse(f"expected a finite number, got {value}")
        if abs(value) > _LARGEST_NUMBER:
            raise self.refuse("the number is too large")
        # The shortest decimal is what the author wrote: 0.1 means one tenth.
        return value if isinstance(value, int) else Fraction(repr(value))

    def whole(self) -> int:
        """Return a whole number."""
        value = self.number()
        if not isinstance(value, int):
            raise self.refuse("expected a whole number")
        return value

    def expression(self) -> Expr:
        """Return an expression, given as text or as a number."""
        if not isinstance(self.value, str):
            return num(self.number())
        try:
            return parse(self.value)
        except ExprError as error:
            raise self.refuse(str(error)) from error
