"""Process models as text: from the source of a file to its equations.

The expressions in it are those of :mod:`costdb.expr`, with vectors added. A percent sign starts
a comment, so a remainder is spelled ``mod``. Text is read by a grammar and in no other way.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from costdb.choosing import PlacedError
from costdb.expr.parse import APART, EXPRESSION_RULES, check_text, syntax_error
from costdb.records import dataclass

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node: TypeAlias = Tree[Token]

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
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise Place(file).error(f"is longer than {MAX_BYTES} bytes")
        text = data.decode()
    except OSError as error:
        raise Place(file).error(f"cannot be read: {error.strerror}") from None
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
