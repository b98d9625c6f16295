"""What an expression of an SPMD program may denote, and the symbols for what is not told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from advisor.ir.spmd.memory import DerivedType, View
from advisor.ir.spmd.program import RANK, RANKS, Derived, SizeFact
from advisor.ir.spmd.steps import Communicate, Communicator
from advisor.source import Span
from costdb.expr import Expr, ExprError, evaluate, free_symbols, sym
from costdb.expr.functions import NOT_NUMBERS, OPERATOR_WORDS, name_like
from costdb.expr.nodes import Num
from costdb.records import dataclass, field

if TYPE_CHECKING:
    import libcst as cst


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something of unknown type.

    Attributes
    ----------
    why : str
    expr : Expr or None
        Its value, should it be a whole number.
    text : str
        A dotted name that denotes it, where it has one.
    foreign : bool
        Comes from a library that is known not to be mpi4py, so it is no communicator of it.
    varies : bool
        May differ from rank to rank.
    """

    why: str
    expr: Expr | None = None
    text: str = ""
    foreign: bool = False
    varies: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A Python or NumPy number; `dtype` is ``int``, ``float``, ``complex``, ``bool``, or NumPy's.

    `nobody` says that it is ``PROC_NULL`` on some ranks, `varies` that its unknown value may
    differ from rank to rank, `text` how it is written where it is no whole number.
    """

    expr: Expr | None
    dtype: str = "int"
    nobody: bool = False
    varies: bool = False
    text: str = field(default="?", compare=False)


@dataclass(frozen=True, slots=True)
class Array:
    """An array, or a view of one."""

    view: View


@dataclass(frozen=True, slots=True)
class Nothing:
    """``None``."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `value` None where it is not known."""

    value: str | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list or tuple: its items, or where these are not known one for all and a length.

    `index` is the symbol that stands for the place of an entry in `element`, and the first place.
    """

    items: tuple[Value, ...] | None
    element: Value | None = None
    length: Expr | None = None
    is_list: bool = True
    index: tuple[str, Expr] | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """``range(...)``, or numba's ``prange(...)`` over `threads`."""

    low: Expr
    high: Expr
    step: Expr
    threads: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """``low:high:step``, with `Nothing` for what is left out."""

    low: Value
    high: Value
    step: Value


@dataclass(frozen=True, slots=True)
class Zipped:
    """``zip(...)``, or ``enumerate(...)`` of one thing, whose entries are `numbered`."""

    over: tuple[Value, ...]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A dictionary, or an instance of a class of the file; its content is kept by number."""

    number: int
    cls: Class | None = None


@dataclass(frozen=True, slots=True)
class Comm:
    """A communicator."""

    communicator: Communicator


@dataclass(frozen=True, slots=True)
class Window:
    """An RMA window."""

    name: str
    communicator: Communicator


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a non-blocking operation; a persistent one `starts` it again and again.

    That of a lower-case receive `gives` the object, when it is waited for.
    """

    starts: Communicate | None = None
    gives: Value | None = None


@dataclass(frozen=True, slots=True)
class Datatype:
    """An MPI datatype: a basic one by NumPy's name, or a derived one."""

    basic: str | None
    derived: DerivedType | None = None


@dataclass(frozen=True, slots=True)
class NeighbourRank:
    """What ``Shift`` of a Cartesian communicator returns."""

    axis: int | None
    displacement: int | None


@dataclass(frozen=True, slots=True)
class External:
    """Something that an imported library defines, by its full name."""

    path: str


@dataclass(frozen=True, slots=True)
class Sibling:
    """A module in a file beside the program."""

    name: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a communicator, an array, a list or any other object, not yet called."""

    owner: Value
    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the file, with the instance, or the class, that it is bound to.

    `module` is the file beside it that has the function, ``""`` for the file itself.
    """

    name: str
    node: cst.FunctionDef = field(compare=False, hash=False)
    owner: Record | Class | None = None
    closure: int = 0
    module: str = ""


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the file, or of the module beside it; `inherited` are methods of its bases."""

    name: str
    methods: tuple[tuple[str, Function], ...] = field(default=(), compare=False)
    constants: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    module: str = ""
    inherited: tuple[tuple[str, Function], ...] = field(default=(), compare=False)

    def method(self, name: str) -> Function | None:
        """Return a method by its name."""
        return dict(self.methods).get(name)

    def constant(self, name: str) -> Value | None:
        """Return what the body of the class binds a name to."""
        return dict(self.constants).get(name)


Value = (
    Opaque
    | Number
    | Array
    | Nothing
    | Text
    | Sequence
    | Range
    | Slice
    | Zipped
    | Record
    | Comm
    | Window
    | Request
    | Datatype
    | NeighbourRank
    | External
    | Sibling
    | Method
    | Function
    | Class
)

NOBODY = External("mpi4py.MPI.PROC_NULL")
ANYBODY = External("mpi4py.MPI.ANY_SOURCE")
IN_PLACE = External("mpi4py.MPI.IN_PLACE")


@dataclass(frozen=True, slots=True)
class Argument:
    """An evaluated argument of a call; its `place` includes its keyword."""

    value: Value
    keyword: str | None
    span: Span
    place: Span
    text: str
    star: str = ""


class Arguments:
    """The arguments of a call, by place and by keyword."""

    def __init__(self, given: Iterable[Argument] = ()) -> None:
        self.all = tuple(given)
        self.positional = [a for a in self.all if a.keyword is None and not a.star]
        self.keywords = {a.keyword: a for a in self.all if a.keyword is not None}
        self.starred = any(a.star for a in self.all)

    def at(self, position: int, *keywords: str) -> Value | None:
        """Return the argument at a place or under one of some keywords."""
        if position < len(self.positional):
            return self.positional[position].value
        return next((self.keywords[k].value for k in keywords if k in self.keywords), None)

    def keyword(self, name: str) -> Value | None:
        """Return the argument under a keyword."""
        return self.keywords[name].value if name in self.keywords else None

    def values(self) -> list[Value]:
        """Return the arguments given by place."""
        return [a.value for a in self.positional]

    def behind(self, position: int) -> Arguments:
        """Return the arguments without the first ones."""
        return Arguments(self.all[position:])

    def by_keyword(self) -> dict[str, Value]:
        """Return the arguments given by keyword."""
        return {name: one.value for name, one in self.keywords.items()}

    def named(self, parameters: Iterable[str]) -> dict[str, Argument]:
        """Return the arguments by the names of the parameters that they are for."""
        return dict(zip(parameters, self.positional, strict=False)) | self.keywords


# The symbols of a program: what they stand for, what binds them, which differ by rank.


COMMAND_LINE = "an argument of the command line"
"""Why the value of a symbol is not known."""

BROADCAST = "what a broadcast gives to those who sent nothing"
"""Why an object is not known that the root of a broadcast knows."""

RECEIVED = "what a pickled receive gives"
"""Why an object is not known that another rank sends."""

_RESERVED = frozenset({RANK, RANKS}) | NOT_NUMBERS | OPERATOR_WORDS


@dataclass(slots=True)
class Symbols:
    """Symbols by the variable and the place that they were made for.

    Attributes
    ----------
    facts : dict of str to SizeFact
    by_rank : set of str
    module : str
        The file beside the program that is followed, ``""`` for the program itself.
    """

    facts: dict[str, SizeFact] = field(default_factory=dict)
    by_rank: set[str] = field(default_factory=lambda: {RANK})
    module: str = ""
    _places: dict[tuple[str, Span | None, int | float | None, str], str] = field(
        default_factory=dict
    )
    _taken: set[str] = field(default_factory=lambda: set(_RESERVED))

    def known(self, name: str, value: int | float, origin: str, span: Span) -> Expr:
        """Return a symbol for a variable with a usual value."""
        return sym(self.made(name, span, value, SizeFact(value, origin, span)))

    def unknown(self, name: str, why: str, span: Span | None, *, varies: bool = False) -> Expr:
        """Return a symbol for something that nothing binds."""
        symbol = self.made(name, span, None, SizeFact(None, why, span))
        if varies:
            self.vary(symbol)
        return sym(symbol)

    def derive(self, symbol: str, rule: Derived, why: str, span: Span | None) -> None:
        """Note how the program works a symbol's value out."""
        self.facts[symbol] = SizeFact(None, why, span, rule)

    def index(self, name: str, span: Span) -> str:
        """Return the symbol of a loop's index."""
        return self.made(name, span, None, None)

    def made(
        self, name: str, span: Span | None, value: int | float | None, fact: SizeFact | None
    ) -> str:
        """Return a symbol, with what is said of it unless something is known already."""
        symbol = self._symbol(name, span, value)
        if fact is not None:
            self.facts.setdefault(symbol, fact)
        return symbol

    def vary(self, symbol: str) -> None:
        """Note that a symbol may differ from rank to rank."""
        self.by_rank.add(symbol)

    def _symbol(self, name: str, span: Span | None, value: int | float | None) -> str:
        key = (name, span, value, self.module if span is not None else "")
        if key not in self._places:
            base = _identifier(name)
            symbol, number = base, 2
            while symbol in self._taken or symbol.lower() in NOT_NUMBERS:
                symbol, number = f"{base}_{number}", number + 1
            self._places[key] = symbol
            self._taken.add(symbol)
        return self._places[key]

    def varies(self, expr: Expr | None) -> bool:
        """Return whether an expression may differ from rank to rank."""
        return expr is not None and not self.by_rank.isdisjoint(free_symbols(expr))

    def value(self, expr: Expr | None) -> int | None:
        """Return the whole number that an expression has with the values that are known."""
        if expr is None:
            return None
        if isinstance(expr, Num):
            return int(expr.value) if expr.value == int(expr.value) else None
        bound = {
            name: fact.value
            for name in free_symbols(expr)
            if (fact := self.facts.get(name)) is not None and fact.value is not None
        }
        try:
            found = evaluate(expr, bound)
        except (ExprError, ArithmeticError, ValueError):
            return None
        return int(found) if found == int(found) else None

    def note_ranks(
        self, value: int, origin: str, span: Span | None, *, tried: bool = False
    ) -> None:
        """Note how many ranks there are, unless something said so before."""
        known = self.facts.get(RANKS)
        if value >= 1 and (known is None or known.value is None):
            self.facts[RANKS] = SizeFact(value, origin, span, tried=tried)

    def bind(self, names: Iterable[tuple[str, int | float]], origin: str, span: Span) -> None:
        """Let a comment bind symbols, over whatever else does."""
        for name, value in names:
            self.facts[name] = SizeFact(value, origin, span)


def _identifier(name: str) -> str:
    """Return a name of the expression language that resembles a piece of source."""
    parts = [part.strip("_") or "_" for part in name_like(name).split(".") if part]
    made = ".".join(p if p.isidentifier() else f"_{p}" for p in parts)
    made = made.removeprefix("self.")[:40].strip(".") or "size"
    return f"{made}_" if made.lower() in _RESERVED - {RANK, RANKS} else made
