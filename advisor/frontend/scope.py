"""What the names of a kernel denote at one point of its body."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Generic, Protocol, TypeVar, get_args

import libcst as cst

from advisor.frontend.bindings import SeenNames, number_type
from advisor.frontend.trees import NotKnown, NotUnderstood, nodes_in
from advisor.ir.effects import OBJECT
from advisor.ir.kernel import DeclaredArray, FilledList
from advisor.ir.nests import NO_INDEX, index_symbol
from advisor.ir.shapes import ArrayType, describe, region_extents
from advisor.ir.statements import Statement
from advisor.ir.values import Fill, Point, Read, Scalar, Subscript, Value, parts_of, reads, within
from advisor.numpy_table import PYTHON_INTEGER, Shape, ShapeConflict, UnknownDtype, strong
from advisor.observed import SeenArray, SeenNumber, What
from advisor.source import Span
from costdb.expr import ONE, Expr, sym, to_text
from costdb.expr.functions import is_name
from costdb.expr.nodes import Num
from costdb.records import dataclass, field

Entry = TypeVar("Entry")


KINDS = frozenset({"list", "tuple", "dict", "set", "str", "None", "function", "bool", "number"})
"""Kinds of Python's own objects, whose operators change no array and take no time worth telling."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What names denote at one point, apart from the arrays that are known by name."""

    lost: frozenset[str]
    views: Mapping[str, Read]
    scalars: Mapping[str, Expr]
    numbers: Mapping[str, str]
    elements: Mapping[str, Value]
    things: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Growing:
    """An array that a loop lets grow: how many loops are around that one, and what it is first."""

    around: int
    first: ArrayType


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a range: ``ends[at]`` up to the end behind it."""

    ends: tuple[Expr, ...]
    at: int

    def is_below(self, place: Expr) -> bool | None:
        """Return whether all of the part is below a place, or none; None where that is open."""
        if place in self.ends:
            return self.at < self.ends.index(place)
        before, behind = place - self.ends[0], place - self.ends[-1]
        if isinstance(before, Num) and before.value <= 0:
            return False
        return True if isinstance(behind, Num) and behind.value >= 0 else None


_TABLES = ("views", "scalars", "numbers", "elements", "things")


@dataclass(slots=True)
class Scope:
    """Names while a kernel's body is read from top to bottom.

    Attributes
    ----------
    imports : mapping of str to str
        What imported names stand for.
    not_builtin : callable
        Tells whether a name may be something other than the builtin of that name.
    declared, locals : dict
        Arrays; a name keeps one element type and shape.
    views : dict of str to Read
        Names that denote part of another array's memory.
    scalars : dict of str to Expr
        Integer variables whose value is an expression over sizes.
    numbers : dict of str to str
        Other numeric variables and their type.
    minima : dict of str to int
        Least value of a symbol, where it is not 1.
    maxima : dict of str to Expr
        Greatest value of the index of each loop around, outermost first.
    starts : dict of str to Expr
        Least value of the same indices, over those around them.
    accumulating : set of str
        Numbers that the loops around only accumulate, and that nothing within them may see.
    passed_on : set of str
        Numbers that the innermost loop around combines once in each iteration, and uses.
    elements : dict of str to Value
        Numbers that an iteration computes from single elements, as what they are computed from.
    carried : frozenset of str
        Names that iterations around need as those before them left them.
    by_element : bool
        Whether the innermost loop around holds nothing but statements on single elements.
    started : dict of str to Scalar
        Numbers that were surely set since the loop around began its iteration, and to what.
    totals : dict of str to ArrayType
        Numbers that loops accumulate from elements, as arrays of no dimensions.
    lost : set of str
        Arrays whose names now denote something that is not known.
    strided : set of str
        Arrays that share memory with another in a way that regions cannot express.
    renamed : set of str
        Arrays whose names were exchanged.
    linked : set of frozenset of str
        Names with others that they are bound to what is made of, and may be the memory of.
    loop_texts : dict of str to str
        For the index of each loop its name, where the body leaves it alone.
    counted_down : list of tuple of str and Expr
        Indices of loops that count down, and what they are of how far the loop has come.
    implied : set of str
        Arrays that the source needs where the statements read from it do not say so: for
        their shape or element type, say.
    loops : dict of (int, int) to int
        The numbers of loops by the lines in which they begin, and how many of that name begin there
        around them, in the order of reading.
    written_out : dict of str to Known
        Names of tuples and lists of numbers that stand in the source, and that nothing changes.
    times_bound : callable
        Tells in how many places the kernel binds a name.
    generators : set of str
        Names of generators of random numbers.
    written : dict of Span to Value
        Where values stand in the source.
    hints : mapping of str to str
        Why parameters are not known that nothing declares, and what to write.
    seen : SeenNames
        What a run showed of names that are bound.
    listed : dict of str to (Expr, str)
        Names of lists of numbers that the kernel leaves as they are: their lengths and types.
    lengths : dict of str to Expr
        Likewise of whatever else is as long from what binds it on.
    kin : dict of str to frozenset of str
        Names that may lead to the same memory, other than by regions of one array.
    kept : set of str
        Names of what code that nobody knows may have kept.
    later_texts : dict of str to str
        For sizes that are known once a name is bound: source that has their values from there on.
    counts : dict of Value to Expr
        How many elements masks choose, as long as they hold the same.
    running : list
        Index, first, end and step of each loop around; None where they are not known.
    varying : frozenset of str
        What the loops around bind: numbers that iterations may differ in.
    lists : dict of str to FilledList
        Lists that loops fill.
    growing : dict of str to Growing
        Arrays that a loop lets grow.
    odds : Expr
        How probable the branches are that are being read.
    rows : dict of str to str
        Lists that are filled to be elements of such a list.
    picked : dict of str to Value
        What is in those of which not every iteration of their loops has one place.
    things : dict of str to str
        Names of what is neither array nor number, and what kind of object each is.
    expanded : callable
        Reads a call of a function of the file, and returns what its result is written as; None for
        other calls.
    kind_of : callable
        Tells which of Python's own objects an expression makes; `OBJECT` for others.
    results : dict of Call to Value
        What these calls return, where it is one value.
    elsewhere : container of CSTNode
        What stands for nodes of these functions.
    pending : list of Statement
        What these functions did.
    given : set of str
        Arrays that come of calls of functions of the file.
    calls : tuple of str
        Functions of the file that are being read where they are called, outermost first.
    misfits : list of tuple of Expr
        Extents that are not known to agree, and kept something from being understood.
    rebound : list of tuple of Expr
        Extents of attributes, and of what is bound to these.
    splits : dict of str to Split
        Of which part of their ranges loops are being read, by the symbols of their indices.
    holding : dict of CSTNode to bool
        Comparisons that come out so wherever the loops that are being read do anything.
    """

    imports: Mapping[str, str]
    span: Callable[[cst.CSTNode], Span]
    not_builtin: Callable[[str], bool] = field(default=lambda name: False)
    declared: dict[str, DeclaredArray] = field(default_factory=dict)
    locals: dict[str, ArrayType] = field(default_factory=dict)
    views: dict[str, Read] = field(default_factory=dict)
    scalars: dict[str, Expr] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    minima: dict[str, int] = field(default_factory=dict)
    maxima: dict[str, Expr] = field(default_factory=dict)
    starts: dict[str, Expr] = field(default_factory=dict)
    accumulating: set[str] = field(default_factory=set)
    passed_on: set[str] = field(default_factory=set)
    elements: dict[str, Value] = field(default_factory=dict)
    carried: frozenset[str] = frozenset()
    by_element: bool = False
    started: dict[str, Scalar] = field(default_factory=dict)
    totals: dict[str, ArrayType] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    strided: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)
    linked: set[frozenset[str]] = field(default_factory=set)
    loop_texts: dict[str, str] = field(default_factory=dict)
    counted_down: list[tuple[str, Expr]] = field(default_factory=list)
    implied: set[str] = field(default_factory=set)
    loops: dict[tuple[int, int], int] = field(default_factory=dict)
    written_out: dict[str, Any] = field(default_factory=dict)
    times_bound: Callable[[str], int] = field(default=lambda name: 0)
    generators: set[str] = field(default_factory=set)
    written: dict[Span, Value] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    seen: SeenNames = field(default_factory=SeenNames)
    listed: dict[str, tuple[Expr, str]] = field(default_factory=dict)
    lengths: dict[str, Expr] = field(default_factory=dict)
    kin: dict[str, frozenset[str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    later_texts: dict[str, str] = field(default_factory=dict)
    counts: dict[Value, Expr] = field(default_factory=dict)
    running: list[tuple[str, Expr, Expr, int] | None] = field(default_factory=list)
    varying: frozenset[str] = frozenset()
    lists: dict[str, FilledList] = field(default_factory=dict)
    growing: dict[str, Growing] = field(default_factory=dict)
    odds: Expr = ONE
    rows: dict[str, str] = field(default_factory=dict)
    picked: dict[str, Value] = field(default_factory=dict)
    things: dict[str, str] = field(default_factory=dict)
    expanded: Callable[[cst.Call], cst.BaseExpression | None] = field(default=lambda node: None)
    kind_of: Callable[[cst.BaseExpression], str] = field(default=lambda node: OBJECT)
    results: dict[cst.Call, Value] = field(default_factory=dict)
    elsewhere: Container[cst.CSTNode] = ()
    pending: list[Statement] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    calls: tuple[str, ...] = ()
    misfits: list[tuple[Expr, ...]] = field(default_factory=list)
    rebound: list[tuple[Expr, ...]] = field(default_factory=list)
    splits: dict[str, Split] = field(default_factory=dict)
    holding: dict[cst.CSTNode, bool] = field(default_factory=dict)

    def unknown(self, name: str) -> NotKnown:
        """Return the problem that nothing says what a name denotes."""
        return NotKnown(name, self.hints.get(name, f"`{name}` is not known here"))

    def index(self, variable: str | None, line: int) -> str:
        """Return the symbol of the index of the loop that begins in a line."""
        name, around = variable or NO_INDEX, {one[0] for one in self.running if one is not None}
        # those of a comprehension begin in one line
        for deep in count():
            number = self.loops.setdefault((line, deep), len(self.loops) + 1)
            symbol = index_symbol(name, number)
            if symbol not in around:
                break
        return symbol

    def is_known(self, name: str) -> bool:
        """Return whether a name denotes an array or a number."""
        known = name in self.scalars or name in self.numbers or name in self.elements
        return known or self.is_array(name)

    def is_array(self, name: str) -> bool:
        """Return whether a name denotes an array or a view of one."""
        known = self.has_array(name) and name not in self.lost and name not in self.picked
        return name in self.views or known

    def is_inner(self, name: str) -> bool:
        """Return whether a name is that of a local array of a function of the file."""
        return name in self.locals and "__" in name and not self.times_bound(name)

    def has_array(self, name: str) -> bool:
        """Return whether a name denotes an array of its own somewhere in the kernel."""
        return name in self.declared or name in self.locals

    def array_type(self, name: str) -> ArrayType:
        """Return the type of a declared or local array."""
        if name not in self.lost:
            array = self.declared.get(name) or self.locals.get(name)
            if array is not None:
                return ArrayType(array.dtype, array.extents)
        if name in self.totals:
            return self.totals[name]
        reason = self.hints.get(name, f"`{name}` is not known to be an array")
        raise NotKnown(name, reason)

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape of a value."""
        try:
            return describe(value, self.array_type)
        except UnknownDtype as error:
            raise NotUnderstood(str(error)) from error
        except ShapeConflict as error:
            raise self.misfit(error) from error

    def misfit(self, conflict: ShapeConflict) -> NotUnderstood:
        """Return the problem that operands do not fit, and note which extents differ."""
        self.misfits += [conflict.extents] if conflict.extents else []
        return NotUnderstood(str(conflict))

    def select(self, name: str, region: tuple[Subscript, ...]) -> Read:
        """Return a region of what a name denotes, in the index space of the array behind it."""
        return part_of(self.views[name], region) if name in self.views else Read(name, region)

    def extents_of(self, name: str) -> tuple[Expr, ...]:
        """Return the shape of what a name denotes."""
        if name in self.views:
            return region_extents(self.views[name].region)
        return self.array_type(name).extents

    def bind_local(self, name: str, found: ArrayType) -> None:
        """Let a name denote a fresh array from here on."""
        if self.has_array(name):
            self.lost.discard(name)
            known = self.array_type(name)
            if known != found:
                alike = known.dtype == found.dtype and len(known.extents) == len(found.extents)
                if alike and "." in name:
                    self.rebound += zip(known.extents, found.extents, strict=True)
                raise NotUnderstood(f"`{name}` changes its shape or element type here")
        self.forget(name)
        self.lost.discard(name)
        if not self.has_array(name):
            self.locals[name] = found

    def bind_view(self, name: str, view: Read) -> None:
        """Let a name denote part of an array's memory from here on."""
        if self.has_array(name):
            raise NotUnderstood(f"`{name}` is rebound to another array's memory")
        self.forget(name)
        self.views[name] = view

    def bind_scalar(self, name: str, value: Expr) -> None:
        """Let a name denote a whole number."""
        self._bind(name, value, self.scalars)

    def bind_seen(self, name: str, what: What | None, *, once: bool) -> bool:
        """Let a name denote what a run showed; return whether that is an array or a number.

        Parameters
        ----------
        name : str
            It was forgotten.
        what : SeenArray or SeenNumber or str or None
        once : bool
            Whether it denotes that from here on, and nothing else.
        """
        array = self.seen.arrays.get(name)
        self.given.add(name)
        if isinstance(what, SeenArray) and array is not None:
            known = self.declared.get(name) or self.locals.get(name) or array
            if (known.dtype, known.extents) == (array.dtype, array.extents):
                self.lost.discard(name)
                if not self.has_array(name):
                    self.declared[name] = array
                    if once:
                        for axis, extent in enumerate(map(to_text, array.extents)):
                            if extent in (f"{name}.axis{axis}", f"{name}_extent_{axis}"):
                                self.later_texts[extent] = f"{name}.shape[{axis}]"
                return True
            if known.dtype == array.dtype and len(known.extents) == len(array.extents):
                self.misfits += zip(known.extents, array.extents, strict=True)
        elif isinstance(what, SeenNumber) and not self.has_array(name):
            if (
                once
                and what.dtype == "int"
                and (what.value is None or what.value > 0)
                and is_name(name)
            ):
                self.bind_size(name)
            else:
                self.bind_number(name, number_type(what))
            return True
        return False

    def bind_size(self, name: str) -> None:
        """Let a name denote a whole number of which nothing tells which one."""
        self.bind_scalar(name, sym(name))
        self.later_texts[name] = name

    def bind_number(self, name: str, dtype: str) -> None:
        """Let a name denote a number that is no expression over sizes."""
        self._bind(name, dtype, self.numbers)

    def bind_thing(self, name: str, kind: str) -> None:
        """Let a name denote something that is neither an array nor a number."""
        self.forget(name)
        self.things[name] = kind

    def bind_element(self, name: str, value: Value) -> None:
        """Let a name denote what is computed from single elements of arrays."""
        self._bind(name, value, self.elements)

    def _bind(self, name: str, value: Entry, table: dict[str, Entry]) -> None:
        if self.has_array(name):
            raise NotUnderstood(f"`{name}` is an array elsewhere and a number here")
        self.forget(name)
        table[name] = value

    def held_in(self, value: Value) -> tuple[tuple[str, Value], ...]:
        """Return what a value is computed from that names denote, with these names."""
        if not self.elements:
            return ()
        parts = tuple(parts_of(value))
        named = ((name, one) for name, one in self.elements.items() if self.times_bound(name))
        return tuple((name, one) for name, one in named if one in parts)

    def changed(self, array: str) -> None:
        """Drop what was computed from an array that a statement changes."""
        for name, value in list(self.elements.items()):
            if any(read.array == array for read in reads(value)):
                del self.elements[name]
        for mask in list(self.counts):
            if any(read.array == array for read in reads(mask)):
                del self.counts[mask]

    def forget(self, name: str) -> None:
        """Drop what a name denoted: it is about to denote something else."""
        if self.has_array(name):
            self.lost.add(name)
            self.changed(name)
        tables: tuple[dict[str, Any], ...]
        tables = self.views, self.scalars, self.numbers, self.started, self.elements, self.things
        for table in tables:
            table.pop(name, None)
        # what shared the memory of the old array goes on doing so, but not of the new one
        for view, target in list(self.views.items()):
            if target.array == name:
                del self.views[view]

    def unsettle(self, names: Iterable[str]) -> None:
        """Keep of names that a loop binds only that they are arrays, if they are."""
        for name in names:
            lost = name in self.lost
            self.forget(name)
            if not lost:
                self.lost.discard(name)

    def renew(self, names: Iterable[str], line: int) -> None:
        """Forget numbers that other code may have changed: those that are assumed stay numbers."""
        for name in names:
            self.forget(name)
            dtype = self.seen.assumed.get(name)
            if dtype == "int64":
                symbol = f"{name}.from{line}"
                self.bind_scalar(name, sym(symbol))
                self.later_texts[symbol] = name
            elif dtype is not None:
                self.bind_number(name, dtype)

    def moment(self) -> Moment:
        """Return what names denote now."""
        tables = (dict(getattr(self, name)) for name in _TABLES)
        return Moment(frozenset(self.lost), *tables)

    def restore(self, moment: Moment) -> None:
        """Let names denote what they did at a moment."""
        self.either(moment, moment)

    def rename_back(self, names: Iterable[str], moment: Moment) -> None:
        """Let names that were others for a while denote what they did at a moment."""
        for name in names:
            self.forget(name)
            for table in _TABLES:
                known = getattr(moment, table)
                if name in known:
                    getattr(self, table)[name] = known[name]

    def either(self, one: Moment, other: Moment) -> None:
        """Keep what names denote at both of two moments, of which either may have been.

        What is a number of one type at both stays one of that type; whether of Python or of NumPy,
        where it was either.
        """
        mine, others = self._number_types(one), self._number_types(other)
        self.lost = set(one.lost | other.lost)
        for name in _TABLES:
            setattr(self, name, _common(getattr(one, name), getattr(other, name)))
        known = self.scalars.keys() | self.elements.keys()
        for name in mine.keys() & others.keys() - known:
            if mine[name] == others[name]:
                self.numbers[name] = mine[name]
            elif strong(mine[name]) == strong(others[name]):
                self.numbers[name] = strong(mine[name])

    def _number_types(self, moment: Moment) -> dict[str, str]:
        found = dict.fromkeys(moment.scalars, PYTHON_INTEGER) | dict(moment.numbers)
        for name, value in moment.elements.items():
            with suppress(NotKnown, NotUnderstood):
                found[name] = self.type_of(value).dtype
        return found

    def behind(self, names: Iterable[str]) -> frozenset[str]:
        """Return names together with the arrays whose memory they denote, or may lead to."""
        given = frozenset(names)
        around = (name for name in self.seen.around if name.partition(".")[0] in given)
        given = given.union(around, *(self.kin[name] for name in given & self.kin.keys()))
        return given | {self.views[name].array for name in given & self.views.keys()}

    def is_followed(self, name: str) -> bool:
        """Return whether a name is one of the function's, or of an array."""
        return name in self.seen.around or self.times_bound(name) > 0 or self.has_array(name)

    def relate(self, names: Iterable[str]) -> None:
        """Note that names may lead to the same memory, other than by regions of one array."""
        numbers = self.scalars.keys() | self.numbers.keys()
        related = frozenset(filter(self.is_followed, frozenset(names) - numbers))
        related = related.union(*(self.kin.get(name, frozenset()) for name in related))
        self.kin |= dict.fromkeys(related, related)

    def share(self, name: str, base: str) -> None:
        """Note that an array shares memory with another in a way that regions cannot express."""
        self.strided |= {name, base}
        self.relate({name, base})

    @property
    def related(self) -> frozenset[str]:
        """Arrays that may share memory with another."""
        groups = (self.arrays_among(group) for group in {*self.kin.values()})
        return frozenset().union(*(one for one in groups if len(one) > 1))

    def is_object(self, name: str) -> bool:
        """Return whether a name has attributes that are followed, and is never bound."""
        owned = any(one.startswith(f"{name}.") for one in self.seen.around)
        return owned and not self.has_array(name) and self.times_bound(name) <= 1

    def arrays_among(self, names: Iterable[str]) -> frozenset[str]:
        """Return the arrays that names denote, or once denoted."""
        return frozenset(name for name in self.behind(names) if self.has_array(name))


def part_of(view: Read, region: tuple[Subscript, ...]) -> Read:
    """Return a region of a view, in the index space of the array behind it."""
    parts = iter(region)
    composed = (
        outer if isinstance(outer, Point) else within(outer, next(parts)) for outer in view.region
    )
    return Read(view.array, tuple(composed))


def _common(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> dict[str, Entry]:
    return {name: value for name, value in one.items() if other.get(name) == value}


# Values that are written out: numbers, tables of them, and loops over them.
#
# ``for dx, dy in ((0, 1), (1, 0)): ...`` does what its body does for each pair in turn, so it is
# read so often, with the names bound to what stands there.


_ONLY_READ = frozenset({"enumerate", "zip", "reversed", "len", "sum", "min", "max", "tuple"})
"""Functions that leave a list as it is."""


_LITERAL = (
    cst.Tuple | cst.List | cst.Element | cst.Integer | cst.Float
    | cst.UnaryOperation | cst.BinaryOperation | cst.BaseUnaryOp | cst.BaseBinaryOp
)  # fmt: skip


def is_of_literals(node: cst.BaseExpression, named: Container[str] = ()) -> bool:
    """Return whether a value is a tuple or list of numbers, or of such tuples, by keys also.

    Those that are `named` are numbers, too.
    """
    if isinstance(node, cst.Dict):
        pairs = [one for one in node.elements if isinstance(one, cst.DictElement)]
        keys = {getattr(one.key, "value", one.key) for one in pairs}
        parts = cst.Tuple([cst.Element(one.value) for one in pairs])
        return len(keys) == len(node.elements) and is_of_literals(parts, named)
    filled = isinstance(node, cst.Tuple | cst.List) and bool(node.elements)
    return filled and all(
        part.value in named if isinstance(part, cst.Name) else isinstance(part, _LITERAL)
        for part in nodes_in(node)
    )


def is_kept(
    name: str, source: cst.CSTNode, *, looked_up: bool = False, keyed: bool = False
) -> bool:
    """Return whether nothing in a piece of source can change the list that a name is bound to.

    Parameters
    ----------
    name : str
        It is bound once.
    source : CSTNode
        All that can see the name, with what binds it.
    looked_up : bool
        Whether an array of the same items is to do as well: outside of loops, nothing but single
        items are taken, and its length.
    keyed : bool
        Whether it is a dictionary, of which nothing is to be looked up by a key.
    """

    def is_it(node: cst.CSTNode) -> bool:
        return type(node) is cst.Name and node.value == name

    seen = only_read = 0
    for node in nodes_in(source):
        seen += is_it(node)
        if type(node) not in _USING:
            continue
        if looked_up and type(node) in _REPEATED and any(map(is_it, nodes_in(node))):
            return False
        match node:
            case cst.Subscript(value, [cst.SubscriptElement(cst.Index())]):
                only_read += is_it(value) and not keyed
            case cst.Subscript(value=value) | cst.For(iter=value) | cst.CompFor(iter=value):
                only_read += is_it(value) and not (looked_up or keyed)
            case cst.Call(func=cst.Name(value=function)) if function in _ONLY_READ:
                if not looked_up or function == "len":
                    only_read += sum(is_it(argument.value) for argument in node.args)
            case cst.Call(
                func=cst.Attribute(value, cst.Name(value="index" | "count" | "values" | "items"))
            ) | cst.ComparisonTarget(cst.In() | cst.NotIn(), value):
                only_read += is_it(value) and not looked_up
        if isinstance(node, _STORING):
            # takes back what the subscripts themselves count
            only_read -= sum(map(is_it, _subscripted(node.target)))
    return seen == only_read + 1


_REPEATED = frozenset({cst.For, cst.While, cst.CompFor, cst.Lambda, cst.FunctionDef})
_STORING = cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.Del | cst.For | cst.CompFor
_USING = _REPEATED.union(get_args(_STORING), [cst.Subscript, cst.Call, cst.ComparisonTarget])


def _subscripted(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what a store changes in a part of it."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _subscripted(element.value)
    while isinstance(target, cst.Subscript):
        target = target.value
        yield target


def looks_up(node: cst.For, scope: Scope) -> bool:
    """Return whether a loop's index is a place in a written-out table."""
    if not scope.written_out or not isinstance(node.target, cst.Name):
        return False
    index = node.target.value
    for found in nodes_in(node.body):
        base = found
        while isinstance(base, cst.Subscript):
            base = base.value
        if isinstance(found, cst.Subscript) and isinstance(base, cst.Name):
            places = (e.slice.value for e in found.slice if isinstance(e.slice, cst.Index))
            if base.value in scope.written_out and any(
                isinstance(place, cst.Name) and place.value == index for place in places
            ):
                return True
    return False


# --- arguments ------------------------------------------------------------------------------------
# What NumPy's functions are given, and what a front end must be able to say of it.


A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Given(Generic[A]):
    """An argument of a call, by place or by keyword."""

    value: A
    keyword: str | None = None
    star: bool = False


def matched(
    arguments: Sequence[Given[A]], parameters: tuple[str, ...], name: str
) -> Mapping[str, A]:
    """Return the arguments of a call by the names of its parameters.

    Raises
    ------
    NotUnderstood
        For an argument of any other parameter: it may mean something that is not modelled.
    """
    found: dict[str, A] = {}
    for position, argument in enumerate(arguments):
        if argument.star:
            raise NotUnderstood("starred arguments")
        if argument.keyword is None and position >= len(parameters):
            raise NotUnderstood(f"argument {position + 1} of `{name}` is not understood")
        parameter = parameters[position] if argument.keyword is None else argument.keyword
        if parameter not in parameters or parameter in found:
            raise NotUnderstood(f"`{parameter}=` of `{name}` is not understood")
        found[parameter] = argument.value
    return found


class Door(Protocol[A]):
    """A front end: how it reads arguments, and what it makes of operations on arrays.

    Values are forms, whose leaves are what the front end itself gives. What it cannot read or make
    it refuses by raising `NotUnderstood`.
    """

    def value(self, argument: A) -> Value:
        """Return the array or number that an argument is."""

    def array(self, argument: A, name: str) -> Value:
        """Return the array that an argument is."""

    def integer(self, argument: A) -> int | None:
        """Return a whole number that is known; None for anything else."""

    def size(self, argument: A, name: str) -> Expr:
        """Return a whole number that may be symbolic."""

    def shape(self, argument: A) -> Shape | None:
        """Return a shape; None for that of an array that is made all the same."""

    def items(self, argument: A) -> Sequence[A] | None:
        """Return what a tuple or list that is written out consists of; None for others."""

    def dtype(self, argument: A) -> str:
        """Return the element type that an argument states."""

    def text(self, argument: A) -> str | None:
        """Return a text that is known; None for anything else."""

    def is_none(self, argument: A) -> bool:
        """Return whether an argument is None."""

    def written(self, argument: A) -> str:
        """Return an argument as it is written, to tell it from others."""

    def constant(self, argument: A) -> tuple[str, str]:
        """Return a number as a text, and its element type in an array."""

    def misfit(self, conflict: ShapeConflict) -> NotUnderstood:
        """Return the problem that operands do not fit."""

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape of a value."""

    def may_be_complex(self, value: Value) -> bool:
        """Return whether elements are complex, or nobody tells."""

    def shares_out(self) -> bool:
        """Return whether ranks share out some array."""

    def made(self, form: Value) -> Value:
        """Return what an operation makes, once what it needs of its operands holds."""

    def copy(self, operand: Value, dtype: str, order: str, *, always: bool) -> Value:
        """Return an array of a type (``""``: its own), in an order (`C`, `F`, or `K`: as it lies).

        Unless `always`, what is so already is not copied.
        """

    def fill(
        self, value: str, shape: Shape | None, dtype: str, order: str, like: Value | None = None
    ) -> Value:
        """Return a new array of one constant; ``""`` leaves it undefined."""

    def vector(self, made: Fill, extent: Expr | None) -> Value:
        """Return a new vector, of which all but the length is told."""

    def between(self, operand: Value, axis: int, before: int, behind: int) -> Value:
        """Return an array without its first and last indices of an axis, so many of them."""

    def flat(self, operand: Value) -> Value:
        """Return an array as a vector."""

    def joined(self, name: str, parts: A, axis: int) -> Value:
        """Return arrays joined into one."""


# Operators of the source, by the functions of NumPy that they are.

OF_SYNTAX = {
    "Add": "add",
    "Subtract": "subtract",
    "Multiply": "multiply",
    "Divide": "divide",
    "FloorDivide": "floor_divide",
    "Modulo": "remainder",
    "Power": "power",
    "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or",
    "BitXor": "bitwise_xor",
    "LeftShift": "left_shift",
    "RightShift": "right_shift",
    "LessThan": "less",
    "LessThanEqual": "less_equal",
    "GreaterThan": "greater",
    "GreaterThanEqual": "greater_equal",
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Minus": "negative",
    "Plus": "positive",
    "BitInvert": "invert",
}
"""NumPy's functions by LibCST's names of the operators."""


def function_of(operator: cst.CSTNode) -> str | None:
    """Return NumPy's function for an operator, also of an augmented assignment; None for others."""
    return OF_SYNTAX.get(type(operator).__name__.removesuffix("Assign"))
