"""Documents whose values know their place, so that every complaint can name it, and their reader.

A record is read by the types of its fields, which are the keys of its table.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, NewType, TypeVar, get_args, get_origin, get_type_hints

from costdb.choosing import SubjectError
from costdb.expr import Expr, ExprError, num, parse, sym
from costdb.records import bounded, fields, nearest

_LARGEST_BYTES: Final = 1_000_000
_LARGEST_NUMBER: Final = 10**15

Name = NewType("Name", str)
"""A text that may name a quantity."""
_One = TypeVar("_One")


def read_content(path: str | Path) -> bytes:
    """Return what a file holds; of one that is too large to be a document, no more than shows it.

    Raises
    ------
    SubjectError
        The file cannot be read.
    """
    return bounded(path, _LARGEST_BYTES, lambda why: SubjectError(f"{path}: {why}"))


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

    def one_of(self, known: Mapping[str, _One]) -> _One:
        """Return what one of the known texts stands for."""
        text = self.text()
        if text not in known:
            raise self.refuse(f"{text} is not one of {', '.join(known)}")
        return known[text]

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


def read(kind: Any, node: Node) -> Any:
    """Return what a value of a document says, as the type that a field is declared with."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return read(parts[0], node)
    if origin is tuple:
        return tuple(read(parts[0], one) for one in node.items())
    if origin is Literal:
        return node.one_of({one: one for one in parts})
    if origin is not None:
        return {name: read(parts[1], one) for name, one in node.table().items()}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return node.one_of({one.value: one for one in kind})
    return _PLAIN[kind](node) if kind in _PLAIN else record(kind, node)


_PLAIN: Mapping[Any, Callable[[Node], Any]] = {
    **{str: Node.text, Name: Node.name, int: Node.whole, bool: Node.flag, Expr: Node.expression},
    float: lambda node: float(node.number()),
}


def record(kind: Any, node: Node, **known: Any) -> Any:
    """Return a dataclass of what a table says; fields without a default must be there.

    Parameters
    ----------
    kind : type
    node : Node
    **known
        Fields that are read elsewhere; `when` may stand in the table.
    """
    stated = [one for one in fields(kind) if one.name not in known]
    needed = [one for one in stated if one.default is one.default_factory]  # both are missing
    required = tuple(one.name.rstrip("_") for one in needed)
    optional = tuple(one.name for one in stated if one not in needed)
    keys = node.known(required, (*optional, *{"when"} & known.keys()))
    hints = {name.rstrip("_"): (name, hint) for name, hint in get_type_hints(kind).items()}
    read_here = ((*hints[key], one) for key, one in keys.items() if key not in known)
    return kind(**known, **{name: read(hint, one) for name, hint, one in read_here})
