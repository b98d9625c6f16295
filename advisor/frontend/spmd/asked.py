"""What following a function asks of all that is around it, and what it leaves there.

A body follows from its text, from the values of its parameters, and from the answers to what it
asks: what names of the module denote, what is known of symbols, which functions it calls. These
are noted in their order, and between them what it notes for others, because the next answer may
hang on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from advisor.frontend.spmd.values import Value
from advisor.ir.spmd.program import CallSite, SizeFact
from advisor.ir.spmd.sizes import Derived
from advisor.source import Span

if TYPE_CHECKING:
    import libcst as cst

    from advisor.frontend.spmd.frames import Entered


class Looked(NamedTuple):
    """What a name denoted that a function does not bind itself; None where nothing bound it."""

    function: str
    name: str
    value: Value | None


class Read(NamedTuple):
    """What was known of a symbol, and whether it differed from rank to rank."""

    symbol: str
    fact: SizeFact | None
    varies: bool


class Made(NamedTuple):
    """A symbol for a variable at a place, with what is first said of it."""

    name: str
    span: Span | None
    value: int | float | None
    fact: SizeFact | None
    symbol: str


class Varying(NamedTuple):
    """A symbol that differs from rank to rank from here on."""

    symbol: str


class Worked(NamedTuple):
    """How the program works a symbol's value out."""

    symbol: str
    rule: Derived
    why: str
    span: Span | None


class Ranks(NamedTuple):
    """How many ranks there are, unless something said so before."""

    value: int
    origin: str
    span: Span | None


class Entering(NamedTuple):
    """A function that is called, where it stands."""

    function: str
    node: cst.FunctionDef
    span: Span


class Site(NamedTuple):
    """Where a function is called."""

    function: str
    site: CallSite


class Way(NamedTuple):
    """A way in which a function was entered."""

    function: str
    entered: Entered


class Added(NamedTuple):
    """A function that is defined, with the names around it.

    `number` is how many there were before; `key` is what it is called among all.
    """

    name: str
    node: cst.FunctionDef
    shared: dict[str, Value]
    nested: bool
    number: int
    key: str


class Closure(NamedTuple):
    """A function that is called and follows with the one around it, which was begun before."""

    since: int


class Recorded(NamedTuple):
    """A dictionary or an instance that is made."""

    number: int


class Kept(NamedTuple):
    """An attribute of an instance or an entry of a dictionary; None where there was none."""

    record: int
    key: object
    value: Value | None


class Contents(NamedTuple):
    """All of them."""

    record: int
    found: tuple[tuple[object, Value], ...]


class Beyond(NamedTuple):
    """Something that is not noted was used: whoever did is followed again the next time."""


Entry = (
    Looked
    | Read
    | Made
    | Varying
    | Worked
    | Ranks
    | Entering
    | Site
    | Way
    | Added
    | Closure
    | Recorded
    | Kept
    | Contents
    | Beyond
)
Journal = list[Entry]
