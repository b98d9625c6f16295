"""The state of following a program: what names denote now, and the steps found so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import libcst as cst

from advisor.frontend.names import dotted
from advisor.frontend.spmd.symbols import Symbols
from advisor.frontend.spmd.values import (
    Array,
    Class,
    Comm,
    External,
    Function,
    Nothing,
    Number,
    Opaque,
    Record,
    Request,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Allocation, Buffer, Order, Origin, View, Whole
from advisor.ir.spmd.ranks import CommKind, Communicator
from advisor.ir.spmd.steps import Step, Unknown
from advisor.source import Span
from costdb.expr import Expr, num, sym
from costdb.expr.nodes import Num, Sym

MOST_STEPS = 60_000
"""Expressions that are looked at before the rest of a file counts as too much to follow."""


COMMAND_LINE = "an argument of the command line"
"""Why the value of a symbol is not known."""


BROADCAST = "what a broadcast gives to those who sent nothing"
"""Why an object is not known that the root of a broadcast knows."""


class TooMuch(Exception):
    """A file in which following every call takes too long."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An evaluated argument of a call."""

    value: Value
    keyword: str | None
    span: Span
    place: Span
    text: str
    star: str = ""


@dataclass(slots=True)
class Frame:
    """The names of one running function.

    Attributes
    ----------
    names : dict of str to Value
    function : str
    shared : dict of str to Value
        The names of the module, or of the function that a nested one stands in.
    given : frozenset of str
        Names declared ``global`` or ``nonlocal``.
    depth : int
        Loops around the present statement within this function.
    outer : int
        Loops around the call of this function.
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
    communicators: dict[Communicator, None] = field(default_factory=dict)


class FunctionTable(Protocol):
    """The functions and classes of the file, which know how to be entered."""

    def add(self, name: str, node: cst.FunctionDef, run: Run) -> Function:
        """Note a definition."""

    def own(self, cls: Class, names: list[str]) -> None:
        """Note the class whose methods some functions are."""

    def enter(self, run: Run, function: Function, given: list[Argument], span: Span) -> Value:
        """Follow a call."""

    def instantiate(self, run: Run, cls: Class, given: list[Argument], span: Span) -> Value:
        """Return a new instance."""


@dataclass(slots=True)
class Run:
    """One pass over a file.

    Attributes
    ----------
    span : callable
        The place of a node.
    lines : list of str
        The source, as spans count.
    symbols : Symbols
    frames : list of Frame
        Running functions, outermost first.
    steps : list of list of Step
        Blocks under construction, innermost last.
    heap : dict
        Attributes of instances and entries of dictionaries, by the record's number and key.
    communicators : frozenset of str
        Names on which methods are called that only mpi4py's communicators have.
    functions : FunctionTable
        Functions and classes of the file.
    """

    span: Callable[[cst.CSTNode], Span]
    lines: list[str]
    symbols: Symbols
    communicators: frozenset[str]
    functions: FunctionTable
    path: str = ""
    frames: list[Frame] = field(default_factory=list)
    steps: list[list[Step]] = field(default_factory=lambda: [[]])
    heap: dict[tuple[int, object], Value] = field(default_factory=dict)
    statement: Span = field(default_factory=lambda: Span(1, 0, 1, 0))
    targets: tuple[str, ...] = ()
    budget: int = MOST_STEPS
    records: int = 0
    clocks: int = 0

    @property
    def frame(self) -> Frame:
        """The innermost running function."""
        return self.frames[-1]

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
        lines = self.lines[span.start_line - 1 : span.end_line]
        if not lines:
            return ""
        lines = [*lines]
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
        self.steps.append([])
        depth = len(self.steps)
        try:
            yield self.steps[-1]
        finally:
            del self.steps[depth - 1 :]

    # names -------------------------------------------------------------------------------

    def lookup(self, name: str) -> Value | None:
        """Return what a name denotes; None where nothing binds it."""
        frame = self.frame
        if name in frame.names and name not in frame.given:
            return frame.names[name]
        if name in frame.shared:
            return frame.shared[name]
        return self.frames[0].names.get(name)

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
        """Let the name, attribute or entry that an expression spells denote something."""
        if isinstance(node, cst.Name):
            self.bind(node.value, value)
        elif isinstance(node, cst.Attribute):
            owner = self.plain(node.value)
            if isinstance(owner, Record):
                self.heap[owner.number, node.attr.value] = value

    def plain(self, node: cst.BaseExpression) -> Value | None:
        """Return what a dotted name denotes, without following anything else."""
        if isinstance(node, cst.Name):
            return self.lookup(node.value)
        if isinstance(node, cst.Attribute):
            owner = self.plain(node.value)
            if isinstance(owner, Record):
                return self.heap.get((owner.number, node.attr.value))
        return None

    # values ------------------------------------------------------------------------------

    def number(self, value: Value, name: str = "") -> Expr | None:
        """Return the whole number that a value is, symbolic where need be; None for others."""
        match value:
            case Number(expr=Expr() as expr):
                return expr
            case Number(varies=varies) if name:
                return self.symbols.unknown(name, "not known", self.statement, varies=varies)
            case Opaque(expr=Expr() as expr):
                return expr
            case Opaque(text=text, varies=varies) if text or name:
                why = f"`{text or name}` is not known"
                return self.symbols.unknown(text or name, why, None, varies=varies)
        return None

    def numbers(self, value: Value, name: str = "") -> tuple[Expr, ...] | None:
        """Return the entries of a shape: of a sequence, or of one number."""
        if isinstance(value, Sequence):
            if value.items is None:
                return None
            found = [self.number(v, f"{name}{k}") for k, v in enumerate(value.items)]
            return None if None in found else tuple(e for e in found if e is not None)
        single = self.number(value, name) if isinstance(value, Number | Opaque) else None
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
    ) -> View:
        """Return a view of all of a new array."""
        name = self.targets[0] if self.targets else text
        allocation = Allocation(origin, text, span, self.frame.depth, copied, sources)
        number = span.start_line * 1000 + span.start_column
        if extents is not None and len(extents) <= 1:
            order = Order.C
        buffer = Buffer(name, number, dtype, extents, order, allocation)
        self.frame.buffers.setdefault((name, number), buffer)
        region = None if extents is None else tuple(Whole(extent) for extent in extents)
        return View(buffer, region, text, span)

    def given_array(self, text: str, span: Span, rank: int | None, dtype: str | None) -> View:
        """Return an array that nothing in the file makes, with symbols for its extents."""
        extents = None
        if rank is not None:
            why = f"the shape of `{text}` is not known"
            extents = tuple(
                self.symbols.unknown(f"{text}.n{axis}", why, None) for axis in range(rank)
            )
        allocation = Allocation(Origin.PARAMETER, text, span, 0)
        order = Order.C if rank == 1 else Order.UNKNOWN
        buffer = Buffer(text, 0, dtype, extents, order, allocation)
        region = None if extents is None else tuple(Whole(extent) for extent in extents)
        return View(buffer, region, text, span)

    def communicator(self, kind: CommKind, text: str, span: Span, **more: object) -> Communicator:
        """Return a communicator, with symbols for its size and the own rank in it."""
        if kind in (CommKind.WORLD, CommKind.GIVEN):
            size, rank = sym("P"), sym("rank")
        elif kind is CommKind.SELF:
            size, rank = num(1), num(0)
        else:
            name = self.targets[0] if self.targets else text
            size = self.symbols.unknown(f"P.{name}", f"the size of {text} is not known", span)
            rank = self.symbols.unknown(f"rank.{name}", "the own rank", span, varies=True)
        return Communicator(kind, text, size, rank, span, **more)  # type: ignore[arg-type]

    def is_duck_typed(self, text: str, value: Value | None) -> bool:
        """Return whether a name of unknown meaning is used as only communicators are."""
        if text not in self.communicators:
            return False
        return value is None or (isinstance(value, Opaque) and not value.foreign)

    def join(self, one: Value | None, other: Value | None, name: str) -> Value:
        """Return what holds of a name that denotes one of two things."""
        if one is None or other is None:
            found = other if one is None else one
            # bound on one path only: whoever uses it took that path
            return found if found is not None else Opaque("not bound")
        if one == other:
            return one
        match one, other:
            case (Opaque(why=why), _) if why == BROADCAST:
                # the same name on both paths: the root has what the others are sent
                return other
            case (_, Opaque(why=why)) if why == BROADCAST:
                return one
            case (Nothing(), _):
                return other
            case (_, Nothing()):
                return one
            case (External(path="mpi4py.MPI.PROC_NULL"), Number() as number):
                return Number(number.expr, number.dtype, True, number.varies)
            case (Number() as number, External(path="mpi4py.MPI.PROC_NULL")):
                return Number(number.expr, number.dtype, True, number.varies)
            case (Opaque(expr=Expr()) as left, Number() as right):
                return self._joined_numbers(Number(left.expr), right, name)
            case (Number() as left, Opaque(expr=Expr()) as right):
                return self._joined_numbers(left, Number(right.expr), name)
            case (Record() as left, Record() as right) if left.cls == right.cls:
                return self._joined_records(left, right)
            case (Number() as left, Number() as right):
                return self._joined_numbers(left, right, name)
            case (Array(left_view), Array(right_view)):
                return self._joined_arrays(left_view, right_view, name)
            case (Sequence() as left_seq, Sequence() as right_seq):
                return self._joined_sequences(left_seq, right_seq, name)
            case (Text(), Text()):
                return Text(None)
            case (Request(), Request()):
                return one
            case (Comm(), Comm()):
                return one if one.communicator.text == other.communicator.text else self._mixed(one)
        return Opaque(f"`{name}` denotes different things on different paths", text=name)

    def _mixed(self, one: Comm) -> Value:
        made = self.communicator(CommKind.GIVEN, one.communicator.text, one.communicator.span)
        return Comm(made)

    def _joined_numbers(self, one: Number, other: Number, name: str) -> Number:
        dtype = one.dtype if one.dtype == other.dtype else "float"
        varies = one.varies or other.varies
        varies = varies or self.symbols.varies(one.expr) or self.symbols.varies(other.expr)
        expr = one.expr
        if one.expr != other.expr:
            default = self._default(one, other, name)
            if default is None:
                default = self._default(other, one, name)
            if default is not None:
                return Number(default, dtype)
            why = f"`{name}` has several values"
            expr = self.symbols.unknown(name, why, self.statement, varies=varies)
        return Number(expr, dtype, one.nobody or other.nobody, varies)

    def _default(self, one: Number, other: Number, name: str) -> Expr | None:
        """Return a size that the command line may set and the source otherwise does."""
        if not isinstance(one.expr, Sym) or other.expr is None:
            return None
        fact = self.symbols.facts.get(one.expr.name)
        if fact is None or fact.value is not None or fact.origin != COMMAND_LINE:
            return None
        if isinstance(other.expr, Num):
            line = self.statement.start_line
            origin = f"used where the command line says nothing, line {line}"
            return self.symbols.known(name, int(other.expr.value), origin, self.statement)
        return other.expr

    def _joined_arrays(self, one: View, other: View, name: str) -> Value:
        left, right = one.shape, other.shape
        if left is None or right is None or len(left) != len(right):
            shape = None
        else:
            why = f"`{name}` has several shapes"
            shape = tuple(
                a if a == b else self.symbols.unknown(f"{name}.n{k}", why, self.statement)
                for k, (a, b) in enumerate(zip(left, right, strict=True))
            )
        dtype = one.dtype if one.dtype == other.dtype else None
        order = one.order if one.order == other.order else Order.UNKNOWN
        if shape == left and dtype == one.dtype and order == one.order:
            return Array(one)
        saved, self.targets = self.targets, (name,)
        made = self.fresh(name, dtype, shape, Origin.COMPUTED, one.span, order)
        self.targets = saved
        return Array(made)

    def _joined_records(self, one: Record, other: Record) -> Record:
        made = self.record(one.cls)
        keys = {k for n, k in self.heap if n == one.number} & {
            k for n, k in self.heap if n == other.number
        }
        for key in keys:
            left, right = self.heap[one.number, key], self.heap[other.number, key]
            same = left if isinstance(left, Record) else self.join(left, right, str(key))
            self.heap[made.number, key] = same
        return made

    def _joined_sequences(self, one: Sequence, other: Sequence, name: str) -> Value:
        mine, others = one.items, other.items
        if mine is not None and others is not None and len(mine) == len(others):
            pairs = zip(mine, others, strict=True)
            joined = tuple(self.join(a, b, f"{name}[{k}]") for k, (a, b) in enumerate(pairs))
            return Sequence(joined, is_list=one.is_list)
        elements = [v for s in (one, other) for v in (s.items or (s.element,)) if v is not None]
        element = elements[0] if elements else None
        for found in elements[1:]:
            element = self.join(element, found, f"{name}[...]")
        length = self.symbols.unknown(f"{name}.len", "the length of a list", self.statement)
        return Sequence(None, element, length, one.is_list)

    def spelled(self, node: cst.BaseExpression) -> str:
        """Return a dotted name as it is spelled, ``""`` for anything else."""
        return dotted(node) or ""
