"""A kernel: its arrays, layouts and sizes; what rules offer for it; it at given sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from operator import is_not
from typing import Any, Protocol, TypeVar, cast

from advisor.distribution import ArraySpec, MeshSpec
from advisor.finding import Applicability
from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Loop, Statement, walk
from advisor.ir.values import Along, Value
from advisor.source import Edit, Span
from costdb.expr import Expr, free_symbols, num, substitute
from costdb.records import dataclass, field, fields, is_dataclass, replace

COMPILERS = ("numba", "jit", "njit")
"""Parts of the names of decorators that compile a function."""

SOME = 10
"""How often a loop, or a call, repeats of which nothing tells that."""

_Of = TypeVar("_Of")
_Found = TypeVar("_Found")
_Find = TypeVar("_Find", bound=Callable[..., Any])


def once(find: _Find) -> _Find:
    """Keep what a function finds of a kernel, or of a program, as long as that is kept."""

    @wraps(find)
    def asked(of: Any, *given: Any, **named: Any) -> Any:
        key = (find, given, *named.items())
        if key not in of.found:
            of.found[key] = find(of, *given, **named)
        return of.found[key]

    return cast(_Find, asked)


@once
def proposals_of(of: _Of, propose: Callable[[_Of], Iterable[_Found]]) -> tuple[_Found, ...]:
    """Return what a rule proposes for a kernel or a program."""
    return tuple(propose(of))


# form feeds and the other marks at which str.splitlines cuts end no line of Python
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Places:
    """Where a declaration stands in the source.

    Attributes
    ----------
    whole : Span
        The annotation, for messages.
    dimensions : tuple of Span
        The text of each dimension's distribution, for edits.
    mesh : tuple of (str, Span)
        The text of the extent of each mesh axis, for edits.
    """

    whole: Span
    dimensions: tuple[Span, ...]
    mesh: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class DeclaredArray:
    """An array whose distribution the source states, and where it does.

    Attributes
    ----------
    spec : ArraySpec
        Shape, distribution by dimension, mesh and storage order, as written.
    dtype : str
        NumPy's full name of the element type.
    extents : tuple of Expr
        The shape, parsed.
    places : Places
    """

    spec: ArraySpec
    dtype: str
    extents: tuple[Expr, ...]
    places: Places


LocalArray = ArrayType
"""An array that the kernel makes; where it lives follows from what it is made of."""


@dataclass(frozen=True, slots=True)
class FilledList:
    """A list that loops fill, which is an array with a place for each iteration.

    Attributes
    ----------
    around : int
        How many loops are around all of it.
    picked : bool
        Whether conditions decide what is appended.
    escapes : bool
        Whether something takes it for a list, and does not make an array of it.
    places : int
        How many loops fill it, one within the other.
    of_python : bool or None
        Whether it holds Python's numbers, and not NumPy's; None where it may hold either.
    place : Span or None
        Of the call that makes an array of it, where it is a comprehension and has no name.
    row : str
        The array that each iteration makes to append it, and does not change after that.
    rebound : Span or None
        Where what an array of it makes gets its name.
    """

    around: int
    picked: bool
    escapes: bool
    places: int = 0
    of_python: bool | None = None
    place: Span | None = None
    row: str = ""
    rebound: Span | None = None


@dataclass(frozen=True, slots=True)
class SizeBinding:
    """A default value for a size, and the place that gives it.

    Attributes
    ----------
    value : int or float
    span : Span
    origin : str
        What gave it, where that is not the line of `span`: a run, say.
    """

    value: int | float
    span: Span
    origin: str = ""


@lru_cache(maxsize=4)
def lines_of(source: str) -> list[str]:
    """Return the lines of a source as spans count them, without their ends; nobody changes them."""
    return _LINE_END.split(source)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a rewrite needs to know of the text around it.

    Attributes
    ----------
    source : str
        The whole file.
    array_module : str or None
        The name under which NumPy (or whatever follows its interface) is imported.
    scalar_texts : mapping of str to str
        For each size symbol, an expression of the source that has its value inside the kernel.
    computed : tuple of (str, Expr)
        Numbers that the kernel binds once and computes from sizes, and indices that count down.
    identifiers : frozenset of str
        Every name that the kernel's function uses; fresh names must avoid them.
    not_builtins : frozenset of str
        Names of builtins that may stand for something else in the kernel.
    comments : tuple of Span
        Every comment of the kernel.
    decorators : tuple of str
        Decorators that may do anything with the function, its text included.
    keeps_bits : bool
        Whether all that they do is to have numba compile it, without licence to compute anything
        in another way.
    indent : str
        One level of indentation.
    shared : frozenset of Span
        Parts of declarations that other kernels of the file use too.
    written : tuple of (Span, Value)
        Where values stand in the source.
    whole : tuple of int
        The first and the last line of the kernel, with what stands above ``def`` for it.
    """

    source: str
    array_module: str | None
    scalar_texts: Mapping[str, str]
    identifiers: frozenset[str]
    indent: str
    not_builtins: frozenset[str] = frozenset()
    comments: tuple[Span, ...] = ()
    decorators: tuple[str, ...] = ()
    shared: frozenset[Span] = frozenset()
    keeps_bits: bool = False
    whole: tuple[int, int] = (1, 0)
    computed: tuple[tuple[str, Expr], ...] = ()
    written: tuple[tuple[Span, Value], ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines of the source as spans count them, without their ends."""
        return lines_of(self.source)

    @property
    def is_compiled(self) -> bool:
        """Whether decorators say that nothing interprets the kernel."""
        parts = (part for name in self.decorators for part in name.split("."))
        return any(part in COMPILERS for part in parts)

    def text(self, span: Span) -> str:
        """Return the source of a span, its line ends as line feeds."""
        lines = self.lines[span.start_line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.start_column :]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One annotated function.

    Attributes
    ----------
    name : str
    span : Span
        Its ``def`` line.
    arrays : mapping of str to DeclaredArray
        Parameters and annotated variables.
    locals : mapping of str to LocalArray
        Arrays that statements bind. A name keeps one shape throughout.
    aliases : frozenset of str
        Names that may share memory with another name.
    linked : frozenset of frozenset of str
        Pairs of names one of which the source binds to what may be the memory of the other one.
    observed : frozenset of str
        Names whose meaning matters to something that `body` does not show: functions defined
        within the kernel, the shape or element type of other arrays, conditions, and for the
        index of a loop any use outside of it.
    sizes : mapping of str to SizeBinding
        Defaults from the source.
    body : tuple of Statement
    context : SourceContext
    implied : frozenset of str
        Those of them of which no more is known than that the source of a statement has them.
    calls : int
        How often a program calls it, `SOME` where nothing tells.
    asked : bool
        Whether somebody asked about it, by marking it or by running it. Otherwise its file calls
        it, and what is not understood of it is no news to anybody.
    assumed : bool
        Whether no call and no run tells what it is given, only how it uses that.
    alone : bool
        Whether it is a loop of a program that does more.
    general : callable or None
        Reads it again with an extent of its own for every dimension of the arrays it is given,
        and where an element type is named, with that one in the place of those that comments or
        runs tell. None where no shape is declared.
    runs_through : bool
        Whether every loop is taken to have iterations, so that what it subscripts is there.
    least : mapping of str to int
        Numbers that are taken to be no less than so much.
    types_are_usual : bool
        Whether some element type is told by a comment or a run, and not by the source's types.
    kinds : callable
        Reads it as it is in calls of the other kinds that were seen.
    shown : frozenset of str
        Arrays of which nothing in the source says that they are.
    numbers : mapping of str to str
        Types of the numbers that it is given.
    given_as_lists : frozenset of str
        Arrays for which the file's calls give lists, to which no operation is applied at once.
    overlaps : frozenset of frozenset of str
        Pairs of arguments that had memory in common in a call that was seen.
    lists : mapping of str to FilledList
        Local arrays that are lists in the source, and numbers that are comprehensions there.
    found : dict
        What follows from it alone, see :func:`once`.
    """

    name: str
    span: Span
    arrays: Mapping[str, DeclaredArray]
    locals: Mapping[str, LocalArray]
    aliases: frozenset[str]
    sizes: Mapping[str, SizeBinding]
    body: tuple[Statement, ...]
    context: SourceContext = field(repr=False)
    linked: frozenset[frozenset[str]] = frozenset()
    observed: frozenset[str] = frozenset()
    implied: frozenset[str] = frozenset()
    calls: int = SOME
    asked: bool = True
    assumed: bool = False
    alone: bool = False
    general: Callable[[str | None], Kernel] | None = field(default=None, compare=False, repr=False)
    types_are_usual: bool = field(default=False, compare=False, repr=False)
    runs_through: bool = field(default=False, compare=False, repr=False)
    least: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    kinds: Callable[[], tuple[Kernel, ...]] = field(default=tuple, compare=False, repr=False)
    shown: frozenset[str] = frozenset()
    numbers: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    overlaps: frozenset[frozenset[str]] = frozenset()
    given_as_lists: frozenset[str] = frozenset()
    lists: Mapping[str, FilledList] = field(default_factory=dict)
    found: dict[object, Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    def with_body(self, body: tuple[Statement, ...]) -> Kernel:
        """Return the kernel with other statements."""
        return replace(self, body=body)

    def with_locals(self, more: Mapping[str, LocalArray]) -> Kernel:
        """Return the kernel with further local arrays."""
        return replace(self, locals={**self.locals, **more})

    def with_arrays(self, arrays: Mapping[str, DeclaredArray]) -> Kernel:
        """Return the kernel with other declarations."""
        return replace(self, arrays=arrays)

    def dtype(self, name: str) -> str:
        """Return the element type of an array."""
        return (self.arrays.get(name) or self.locals[name]).dtype

    @property
    def lines(self) -> range:
        """The lines of its source, from the comments and decorators above it on."""
        first, last = self.context.whole
        return range(first, last + 1)

    def extents(self, name: str) -> tuple[Expr, ...]:
        """Return the shape of an array."""
        return (self.arrays.get(name) or self.locals[name]).extents


# --- proposal -------------------------------------------------------------------------------------
# What a rule is, and what it offers: a variant of a kernel, why it is legal, how to write it.


ALWAYS = 1.0, 0.0
"""Any speed-up, and any time saved, is worth a word."""


@dataclass(frozen=True, slots=True)
class Legality:
    """Whether a rewrite keeps results, and the argument in words."""

    applicability: Applicability
    argument: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """One way to write a kernel otherwise.

    Attributes
    ----------
    title : str
        What to do, as an imperative: "sum the windows by prefix scans".
    reason : str
        Why it can be faster, without numbers.
    span : Span
        The statement that the choice is about.
    variant : Kernel
        The kernel as it would be.
    legality : Legality
    edits : callable returning tuple of Edit
        Builds the edits; called only when somebody looks at them. Empty where the source
        cannot be changed mechanically.
    least : (float, float)
        The speed-up, and the seconds saved in all calls, from which on it is worth a word.
    rest : Kernel or None
        The kernel without what is changed, where that by itself has to be so much faster.
    computing : (str, str) or None
        Its title and reason where calls and steps take less than half of the time of that.
    of_any_rank : bool
        Whether it holds also where arrays have more dimensions than it is read with.
    """

    title: str
    reason: str
    span: Span
    variant: Kernel
    legality: Legality
    edits: Callable[[], tuple[Edit, ...]]
    least: tuple[float, float] = ALWAYS
    rest: Kernel | None = None
    computing: tuple[str, str] | None = None
    of_any_rank: bool = False


class Rule(Protocol):
    """One kind of choice, with a page of its own."""

    @property
    def code(self) -> str:
        """Stable code, such as ``ADV201``."""

    @property
    def name(self) -> str:
        """Kebab-case name of the anti-pattern."""

    @property
    def documentation(self) -> str:
        """The rule's page, in Markdown."""

    @property
    def module(self) -> str:
        """The module that it is in, which begins with its page."""


class Transform(Rule, Protocol):
    """A rule about kernels, found through the entry-point group ``advise.transforms``."""

    def propose(self, kernel: Kernel) -> Iterable[Proposal]:
        """Yield every alternative to the choices that the kernel makes."""


# --- concrete -------------------------------------------------------------------------------------
# A kernel at given sizes, and the symbols that its cost follows from.
#
# Formulas of numbers are found many times faster than formulas of symbols, which is what ranking
# many variants of a kernel needs. Reports need the symbols again.


# Anything made of dataclasses and tuples: its symbols, and itself with other parts.

Node = TypeVar("Node")


def rebuilt(node: Node, other: Callable[[Expr], Expr]) -> Node:
    """Return a statement, a value, work, or a tuple of them, with every expression replaced.

    Parameters
    ----------
    node : dataclass, tuple, Expr or anything else
        Of what is anything else nothing changes; what holds no other expression stays the object
        that it is.
    other : callable
        Gives what stands for an expression.
    """
    return mapped(node, lambda part: other(part) if isinstance(part, Expr) else None)


def with_part(node: Node, old: object, new: object) -> Node:
    """Return a value, or a tuple of them, with another part wherever an equal one stands."""
    return mapped(node, lambda part: new if part == old else None)


def with_name(node: Node, old: str, new: str) -> Node:
    """Return statements with another name for an array, which nothing else is called."""

    def other(part: object) -> object:
        if isinstance(part, frozenset) and old in part:
            return part - {old} | {new}
        return new if part == old else None

    return mapped(node, other)


def spelled_out(node: Node) -> Node:
    """Return statements or values with what functions along axes come to in their places."""
    return mapped(
        node, lambda part: spelled_out(part.computed) if isinstance(part, Along) else None
    )


def mapped(node: Node, other: Callable[[object], object]) -> Node:
    """Return a node with its parts replaced where `other` gives something, outermost first."""
    changed = other(node)
    if changed is not None:
        return cast(Node, changed)
    if isinstance(node, tuple):
        parts = [mapped(part, other) for part in node]
        return cast(Node, tuple(parts)) if any(map(is_not, parts, node)) else node
    names = _names_of(cast(type, type(node)))
    before = [getattr(node, name) for name in names]
    after = [mapped(part, other) for part in before]
    if any(map(is_not, after, before)):
        return type(node)(**dict(zip(names, after, strict=True)))
    return node


def symbols(node: object) -> frozenset[str]:
    """Return every symbol in the expressions of a statement, a value, a region, or several."""
    found: set[str] = set()
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Expr):
            found |= free_symbols(part)
            continue
        names = _names_of(cast(type, type(part)))
        pending += part if isinstance(part, tuple) else [getattr(part, name) for name in names]
    return frozenset(found)


@lru_cache(maxsize=256)
def _names_of(kind: type) -> tuple[str, ...]:
    """Return what of the objects of a type may hold expressions."""
    if not is_dataclass(kind) or kind is Span:
        return ()
    return tuple(field.name for field in fields(kind))


# A kernel at given sizes.


Bindings = Mapping[str, Expr]


def at_sizes(kernel: Kernel, sizes: Mapping[str, int | float]) -> Kernel:
    """Return a kernel with values for its sizes; sizes that are no whole numbers stay symbols.

    Parameters
    ----------
    kernel : Kernel
    sizes : mapping of str to number
    """
    return _at(kernel, tuple((name, one) for name, one in sizes.items() if isinstance(one, int)))


@once
def _at(kernel: Kernel, sizes: tuple[tuple[str, int], ...]) -> Kernel:
    whole = dict(sizes)
    bindings = {name: num(value) for name, value in whole.items()}
    return replace(
        kernel,
        arrays={name: _declared(array, bindings, whole) for name, array in kernel.arrays.items()},
        locals={name: _local(array, bindings) for name, array in kernel.locals.items()},
        body=rebuilt(
            kernel.body,
            lambda expr: (
                expr if free_symbols(expr).isdisjoint(bindings) else substitute(expr, bindings)
            ),
        ),
    )


@once
def symbols_of(kernel: Kernel) -> frozenset[str]:
    """Return the symbols that the cost of a kernel may depend on.

    Parameters
    ----------
    kernel : Kernel
    """
    indices = _indices_of(kernel)
    return _extents_of(kernel).union(*(symbols(one) - indices for one in kernel.body))


def whole_numbers_of(kernel: Kernel) -> frozenset[str]:
    """Return the symbols that stand for whole numbers: extents, and the program's own integers.

    A symbol that only a pragma names, as in ``cost a*N us``, may be any number.

    Parameters
    ----------
    kernel : Kernel
    """
    own = frozenset(kernel.context.scalar_texts) - _indices_of(kernel)
    return _extents_of(kernel).union(kernel.sizes, own)


def _indices_of(kernel: Kernel) -> frozenset[str]:
    return frozenset(loop.variable for loop in walk(kernel.body) if isinstance(loop, Loop))


def _extents_of(kernel: Kernel) -> frozenset[str]:
    """Return the symbols in the shapes of arrays and in those of meshes."""
    extents = [
        extent for name in (*kernel.arrays, *kernel.locals) for extent in kernel.extents(name)
    ]
    ranks = (
        extent
        for array in kernel.arrays.values()
        for _, extent in array.spec.mesh.axes
        if isinstance(extent, str)
    )
    return frozenset(ranks).union(*map(free_symbols, extents))


def _declared(array: DeclaredArray, bindings: Bindings, sizes: Mapping[str, int]) -> DeclaredArray:
    axes = tuple(
        (name, sizes.get(extent, extent) if isinstance(extent, str) else extent)
        for name, extent in array.spec.mesh.axes
    )
    extents = tuple(substitute(extent, bindings) for extent in array.extents)
    return replace(array, spec=replace(array.spec, mesh=MeshSpec(axes)), extents=extents)


def _local(array: LocalArray, bindings: Bindings) -> LocalArray:
    return replace(array, extents=tuple(substitute(e, bindings) for e in array.extents))
