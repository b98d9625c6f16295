"""The state of following a program: what names denote now, and the steps found so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TypeAlias

import libcst as cst

from advisor.files import decode_source
from advisor.finding import MODULE
from advisor.frontend.comments import read_comments
from advisor.frontend.directives import CommentError, Pragmas, read_pragmas
from advisor.frontend.prefilter import sibling_file
from advisor.frontend.spmd.values import (
    Array,
    Class,
    Comm,
    Function,
    Number,
    Opaque,
    Record,
    Sequence,
    Symbols,
    Value,
)
from advisor.frontend.trees import Tree, tree_of
from advisor.ir import shapes
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View
from advisor.ir.spmd.program import CallSite
from advisor.ir.spmd.steps import CommKind, Communicate, Communicator, Step, Unknown
from advisor.source import SourceProblem, Span
from costdb.expr import Expr, num, sym
from costdb.records import dataclass, field

# Files that a pass follows, their functions, and the calls of these that run.


MOST_MODULES = 8
"""Modules beside a program that are followed."""

LINE_END = re.compile(r"\r\n|\n|\r")


class TooMuch(Exception):
    """A file in which following every call takes too long."""


# Functions of a file, and what following the file found of them.


State: TypeAlias = tuple[list[dict[str, Value]], dict[int, dict[object, Value]]]
"""What names denote in each running function, and what is kept of records."""


@dataclass(slots=True)
class Entered:
    """One way in which a function was entered, and what held around it."""

    names: dict[str, Value]
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    returned: frozenset[str]
    around: State


@dataclass(slots=True)
class Defined:
    """A function of the file and what following the file found of it."""

    function: Function
    owner: Class | None = None
    shared: dict[str, Value] = field(default_factory=dict)
    entered: list[Entered] = field(default_factory=list)
    sites: list[CallSite] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """The names of one running function.

    Attributes
    ----------
    names : dict of str to Value
    function : str
    shared : dict of str to Value
        The names of the module, or of the function that a nested one stands in.
    given : set of str
        Names declared ``global`` or ``nonlocal``.
    depth : int
        Loops around the present statement within this function.
    outer : int
        Loops around the call of this function.
    of_all_ranks : str
        The communicator that it is given, and that nothing says more of.
    left : list of (str, State)
        How paths left the innermost loop, or the function, and what held there.
    missed : set of str
        Names that were asked for where nothing bound them.
    """

    names: dict[str, Value]
    function: str
    shared: dict[str, Value]
    given: set[str] = field(default_factory=set)
    depth: int = 0
    outer: int = 0
    returned: list[Value] = field(default_factory=list)
    returned_names: set[str] = field(default_factory=set)
    buffers: dict[tuple[str, int], Buffer] = field(default_factory=dict)
    module: str = ""
    of_all_ranks: str = ""
    left: list[tuple[str, State]] = field(default_factory=list)
    missed: set[str] = field(default_factory=set)

    def entered(
        self, names: dict[str, Value], steps: tuple[Step, ...], around: State = ([], {})
    ) -> Entered:
        """Return what was found when it was entered with names."""
        buffers, returned = tuple(self.buffers.values()), frozenset(self.returned_names)
        # of names around it, those that it asked for
        asked = [{n: value for n, value in one.items() if n in self.missed} for one in around[0]]
        return Entered(names, steps, buffers, returned, (asked, around[1]))


# Files that a pass follows: the program, and modules beside it.


@dataclass(frozen=True, slots=True)
class Context:
    """A file that a pass follows: the program, or a module beside it.

    Attributes
    ----------
    path : str
    lines : list of str
        The source, as spans count.
    tree : Tree
    pragmas : Pragmas
    communicators : frozenset of str
        Names on which methods are called that only mpi4py's communicators have.
    frame : Frame
        Its top level.
    module : str
        How it is imported; ``""`` for the program itself.
    defined : dict of str to Defined
        Its functions.
    """

    path: str
    lines: list[str]
    tree: Tree
    pragmas: Pragmas
    communicators: frozenset[str]
    frame: Frame
    module: str = ""
    defined: dict[str, Defined] = field(default_factory=dict)


def file_of(
    path: str, source: str, communicators: frozenset[str], module: str = "", **names: Value
) -> Context:
    """Return a file that nothing is followed of yet.

    Raises
    ------
    SourceProblem
        When the file does not parse, or a comment to the tool cannot be right.
    """
    tree = tree_of(path, source)
    try:
        pragmas = read_pragmas(path, read_comments(source))
    except CommentError as error:
        raise error.in_file(path) from error
    frame = Frame(names, MODULE, names, module=module)
    return Context(path, LINE_END.split(source), tree, pragmas, communicators, frame, module)


@dataclass(slots=True)
class Siblings:
    """The modules beside a file, followed when a program imports them; they are read, never run.

    Attributes
    ----------
    path : str
        The program.
    given : dict of str to str
        Texts of modules that are not to be read from their files.
    contexts : dict of str to Context or None
        None: there is none, it does not parse, or it is being followed already.
    """

    path: str
    given: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, Context | None] = field(default_factory=dict)
    followed: int = 0

    def context(self, run: Run, module: str) -> Context | None:
        """Return a module, followed when it is first asked for; None where there is none."""
        name = module.rpartition(".")[2]
        if name not in self.contexts:
            # modules that import each other find nothing of the one that is not done
            self.contexts[name] = None
            if self.followed < MOST_MODULES:
                self.contexts[name] = self._followed(run, name, module)
        return self.contexts[name]

    def _followed(self, run: Run, name: str, module: str) -> Context | None:
        file = sibling_file(self.path, module)
        if file is None:
            return None
        try:
            source = self.given.get(file.stem)
            if source is None:
                source = decode_source(str(file), file.read_bytes()).text
            context = file_of(str(file), source, run.file.communicators, name)
        except (OSError, SourceProblem, RecursionError):
            # what is wrong with it is told where it is checked itself
            return None
        self.followed += 1
        try:
            with run.within(context), run.block():
                run.follow_block(context.tree.module, run)
        except TooMuch:
            return None
        return context


MOST_STEPS = 60_000
"""Expressions that are looked at before the rest of a file counts as too much to follow."""


@dataclass(slots=True)
class Run:
    """One pass over a file.

    Attributes
    ----------
    home : Context
        The program itself.
    evaluate : callable
        Follows an expression.
    follow_block : callable
        Follows a block of statements.
    beside : Siblings or None
        Where modules beside the program are found.
    reading : str
        The module that the pass is for.
    symbols : Symbols
    file : Context
        What is followed now.
    frames : list of Frame
        Running functions, outermost first.
    steps : list of list of Step
        Blocks under construction, innermost last.
    kept : dict
        Attributes of instances and entries of dictionaries by their keys, by the record's number:
        for paths that part and meet. Whoever reads or sets one asks `entry` or `keep`.
    own : set of int
        Records that changed since paths parted last; what is kept of others is shared.
    sent : dict of Communicate to None
        Sends of objects, of this pass and of one before it.
    missed : bool
        Whether a receive of an object came before any send that it may match.
    loops : dict of For to dict of str to Value or None
        Loops of the program itself, with what the names in them denote.
    sending : set of For
        Those that send something.
    bound : dict of CSTNode to dict of str to Value or None
        Assignments of the program itself, with what the names that they bind denote after them.
    """

    home: Context
    evaluate: Callable[[cst.BaseExpression, Run], Value]
    follow_block: Callable[[cst.BaseSuite | cst.Module, Run], bool]
    beside: Siblings | None = None
    reading: str = ""
    symbols: Symbols = field(default_factory=Symbols)
    file: Context = field(init=False)
    frames: list[Frame] = field(init=False)
    steps: list[list[Step]] = field(default_factory=lambda: [[]])
    kept: dict[int, dict[object, Value]] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)
    statement: Span = field(default_factory=lambda: Span(1, 0, 1, 0))
    targets: tuple[str, ...] = ()
    budget: int = MOST_STEPS
    records: int = 0
    clocks: int = 0
    sent: dict[Communicate, None] = field(default_factory=dict)
    missed: bool = False
    loops: dict[cst.CSTNode, dict[str, Value | None]] = field(default_factory=dict)
    sending: set[cst.For | cst.While] = field(default_factory=set)
    bound: dict[cst.CSTNode, dict[str, Value | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.file = self.home
        self.frames = [self.home.frame]

    @contextmanager
    def within(self, context: Context) -> Iterator[None]:
        """Follow another file for a while; loops around it stay around it."""
        saved = self.file, self.frames, self.statement, self.targets
        context.frame.outer = self.frame.outer + self.frame.depth
        self.file, self.symbols.module = context, context.module
        self.frames = [context.frame, *self.frames[1:]]
        try:
            yield
        finally:
            self.file, self.frames, self.statement, self.targets = saved
            self.symbols.module = self.file.module

    def span(self, node: cst.CSTNode) -> Span:
        """Return the place of a node."""
        return self.file.tree.span_of(node)

    def context(self, module: str) -> Context | None:
        """Return a file of this pass by the name of its module."""
        if module == "":
            return self.home
        return None if self.beside is None else self.beside.context(self, module)

    @property
    def place(self) -> str:
        """What a report adds to a line of another file than the one it is about."""
        if self.file.module == self.reading:
            return ""
        name = self.file.module or PurePath(self.file.path).stem
        return f" of {name}.py"

    @property
    def frame(self) -> Frame:
        """The innermost running function."""
        return self.frames[-1]

    @property
    def target(self) -> str:
        """What is assigned to now, ``""`` for nothing with a name."""
        return self.targets[0] if self.targets else ""

    def spend(self) -> None:
        """Count one expression.

        Raises
        ------
        TooMuch
            When there were too many.
        """
        self.budget -= 1
        if self.budget < 0:
            raise TooMuch

    def text(self, node: cst.CSTNode) -> str:
        """Return the source of a node on one line."""
        return self.text_of(self.span(node))

    def text_of(self, span: Span) -> str:
        """Return the source of a span on one line."""
        lines = self.file.lines[span.start_line - 1 : span.end_line]
        if not lines:
            return ""
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.start_column :]
        return " ".join(line.strip() for line in lines)

    def emit(self, step: Step) -> None:
        """Add a step to the block under construction."""
        self.steps[-1].append(step)

    def unknown(self, reason: str, span: Span, mentions: frozenset[str] = frozenset()) -> None:
        """Add an explicit unknown."""
        self.emit(Unknown(reason, span, mentions))

    @contextmanager
    def block(self) -> Iterator[list[Step]]:
        """Collect steps in a block of their own."""
        depth = len(self.steps)
        self.steps.append([])
        try:
            yield self.steps[depth]
        finally:
            del self.steps[depth:]

    @contextmanager
    def named(self, *names: str) -> Iterator[None]:
        """Let what is made meanwhile be called as what it is assigned to."""
        saved, self.targets = self.targets, tuple(name for name in names if name)
        try:
            yield
        finally:
            self.targets = saved

    # names -------------------------------------------------------------------------------

    def state(self) -> State:
        """Return what holds now, for paths that part here."""
        self.own.clear()
        return [dict(frame.names) for frame in self.frames], dict(self.kept)

    def restore(self, state: State) -> None:
        """Let hold what held."""
        self.own.clear()
        # functions that are defined there look at the same names
        for frame, names in zip(self.frames, state[0], strict=False):
            frame.names.clear()
            frame.names.update(names)
        self.kept = dict(state[1])

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Bind names for a while only."""
        saved = dict(self.frame.names)
        yield
        self.frame.names.clear()
        self.frame.names.update(saved)

    def keep(self, record: int, key: object, value: Value) -> None:
        """Set an attribute of an instance or an entry of a dictionary."""
        if record not in self.own:
            self.own.add(record)
            self.kept[record] = dict(self.kept.get(record, {}))
        self.kept[record][key] = value

    def entry(self, record: int, key: object) -> Value | None:
        """Return an attribute of an instance or an entry of a dictionary; None for none."""
        return self.kept.get(record, {}).get(key)

    def entries(self, record: int) -> list[tuple[object, Value]]:
        """Return all of them with their keys, in the order in which they were first set."""
        return list(self.kept.get(record, {}).items())

    def lookup(self, name: str) -> Value | None:
        """Return what a name denotes; None where nothing binds it."""
        frame = self.frame
        if name in frame.names and name not in frame.given:
            return frame.names[name]
        frame.missed.add(name)
        return frame.shared[name] if name in frame.shared else self.frames[0].names.get(name)

    def bind(self, name: str, value: Value) -> None:
        """Let a name denote something."""
        frame = self.frame
        if name in frame.given:
            frame.shared[name] = value
            self.frames[0].names[name] = value
        frame.names[name] = value

    def record(self, cls: Class | None = None) -> Record:
        """Return a new dictionary or instance."""
        self.records += 1
        return Record(self.records, cls)

    def rebind(self, node: cst.BaseExpression, value: Value) -> None:
        """Let the name or attribute that an expression spells denote something."""
        if isinstance(node, cst.Name):
            self.bind(node.value, value)
        elif isinstance(node, cst.Attribute):
            owner = self.plain(node.value)
            if isinstance(owner, Record):
                self.keep(owner.number, node.attr.value, value)

    def reshaped(self, view: View) -> None:
        """Note that an array's shape or type changed in place, under all of its names."""
        unknown = Opaque("an array whose shape was changed")

        def is_it(value: Value) -> bool:
            return isinstance(value, Array) and not value.view.buffer.memories.isdisjoint(
                view.buffer.memories
            )

        for frame in self.frames:
            frame.names.update(
                (name, unknown) for name, value in frame.names.items() if is_it(value)
            )
        for record in self.kept:
            for key, value in self.entries(record):
                if is_it(value):
                    self.keep(record, key, unknown)

    def plain(self, node: cst.BaseExpression) -> Value | None:
        """Return what a dotted name denotes, without following anything else."""
        if isinstance(node, cst.Name):
            return self.lookup(node.value)
        if isinstance(node, cst.Attribute):
            owner = self.plain(node.value)
            if isinstance(owner, Record):
                return self.entry(owner.number, node.attr.value)
        return None

    # values ------------------------------------------------------------------------------

    def varies(self, *values: Value) -> bool:
        """Return whether any of some values may differ from rank to rank."""
        for value in values:
            match value:
                case Number() | Opaque() if value.varies or self.symbols.varies(value.expr):
                    return True
                case Sequence(items=tuple() as items) if self.varies(*items):
                    return True
        return False

    def number(self, value: Value | None, name: str = "", place: Span | None = None) -> Expr | None:
        """Return the whole number that a value is, symbolic where need be; None for others.

        Parameters
        ----------
        value : Value
        name : str
            Of the symbol for a number that nothing tells and that has no name of its own.
        place : Span, optional
            Where that one stands, the statement otherwise: what is not known is not the same
            number in another place.
        """
        match value:
            case Number(expr=Expr() as expr):
                return expr
            case Opaque(expr=Expr() as expr):
                return expr
            case Opaque(text=text, varies=varies) if text:
                return self.symbols.unknown(text, f"`{text}` is not known", None, varies=varies)
            case Number(varies=varies) | Opaque(varies=varies) if name:
                why = "not known"
                if place is not None:
                    why = f"only a run tells what is in `{self.text_of(place)}`"
                return self.symbols.unknown(name, why, place or self.statement, varies=varies)
        return None

    def numbers(self, value: Value, name: str = "") -> tuple[Expr, ...] | None:
        """Return the entries of a shape: of a sequence, or of one number."""
        if isinstance(value, Sequence):
            if value.items is None:
                return None
            found = [self.number(v, f"{name}{k}") for k, v in enumerate(value.items)]
            return None if None in found else tuple(e for e in found if e is not None)
        if isinstance(value, Opaque) and value.text.endswith(".shape"):
            return None
        single = self.number(value, name)
        return None if single is None else (single,)

    def integer(self, value: Value | None) -> int | None:
        """Return a concrete whole number, through the values of sizes."""
        if isinstance(value, Number):
            return self.symbols.value(value.expr)
        return None

    def fresh(
        self,
        text: str,
        dtype: str | None,
        extents: tuple[Expr, ...] | None,
        origin: Origin,
        span: Span,
        order: Order = Order.C,
        copied: View | None = None,
        sources: tuple[View, ...] = (),
        within: Buffer | None = None,
    ) -> View:
        """Return a view of all of a new array, or `within` another's memory."""
        name = self.target or text
        allocation = Allocation(origin, text, span, copied, sources, within)
        number = span.start_line * 1000 + span.start_column
        if extents is not None and len(extents) <= 1:
            order = Order.C
        buffer = Buffer(name, number, dtype, extents, order, allocation)
        self.frame.buffers[name, number] = buffer
        return whole(buffer)

    def given_array(self, text: str, span: Span, rank: int | None = None) -> View:
        """Return an array that nothing in the file makes, with symbols for its extents."""
        extents = None
        if rank is not None:
            why = f"the shape of `{text}` is not known"
            extents = tuple(
                self.symbols.unknown(f"{text}.n{axis}", why, None) for axis in range(rank)
            )
        order = Order.C if rank == 1 else Order.UNKNOWN
        return whole(
            Buffer(text, 0, None, extents, order, Allocation(Origin.PARAMETER, text, span))
        )

    def communicator(self, kind: CommKind, text: str, span: Span, **more: object) -> Communicator:
        """Return a communicator, with symbols for its size and the own rank in it."""
        if kind is CommKind.WORLD or (kind is CommKind.GIVEN and self._stands_for_all(text)):
            size, rank = sym("P"), sym("rank")
        elif kind is CommKind.SELF:
            size, rank = num(1), num(0)
        else:
            given = kind is CommKind.GIVEN
            name = text if given else self.target or text
            # a name is one communicator wherever it is used; an expression makes one where it is
            made = None if given else span
            size = self.symbols.unknown(f"P.{name}", f"the size of {text} is not known", made)
            rank = self.symbols.unknown(f"rank.{name}", "the own rank", made, varies=True)
        return Communicator(kind, text, size, rank, span, **more)  # type: ignore[arg-type]

    def _stands_for_all(self, text: str) -> bool:
        """Return whether a communicator that a function is given is taken for that of all ranks.

        The first one is, under whatever names; another one beside it (`row_comm`, `col_comm`) has
        other ranks.
        """
        name = text.rpartition(".")[2]
        self.frame.of_all_ranks = self.frame.of_all_ranks or name
        return self.frame.of_all_ranks == name

    def duck_typed(self, text: str, value: Value | None) -> Comm | None:
        """Return a name of unknown meaning as the communicator that it is used as."""
        unknown = value is None or (isinstance(value, Opaque) and not value.foreign)
        if not unknown or text not in self.file.communicators:
            return None
        return Comm(self.communicator(CommKind.GIVEN, text, self.statement, duck_typed=True))


def whole(buffer: Buffer) -> View:
    """Return a view of all of an array."""
    extents, made = buffer.extents, buffer.allocation
    region = None if extents is None else shapes.whole(extents)
    return View(buffer, region, made.text, made.span)
