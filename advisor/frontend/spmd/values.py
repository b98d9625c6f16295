"""What an expression of an SPMD program may denote, as far as its source tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import DerivedType
from advisor.ir.spmd.ranks import Communicator
from advisor.ir.spmd.steps import Communicate
from advisor.source import Span
from costdb.expr import Expr
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
    differ from rank to rank.
    """

    expr: Expr | None
    dtype: str = "int"
    nobody: bool = False
    varies: bool = False


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
    """A request of a non-blocking operation; `text` is what it was assigned to first.

    A persistent one `starts` its operation again and again; one of a lower-case receive `gives`
    the object, when it is waited for.
    """

    text: str
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
    """A function of the file, with the instance that it is bound to.

    `module` is the file beside it that has the function, ``""`` for the file itself.
    """

    name: str
    node: cst.FunctionDef = field(compare=False, hash=False)
    owner: Record | None = None
    closure: int = 0
    module: str = ""


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the file, or of the module beside it."""

    name: str
    methods: tuple[tuple[str, Function], ...] = field(default=(), compare=False)
    constants: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    module: str = ""

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
WHOLE_SLICE = Slice(Nothing(), Nothing(), Nothing())


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
