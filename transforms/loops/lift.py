"""Values and statements of one iteration of a loop, with its index as an axis."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import chain
from typing import TypeGuard

from advisor.ir.dependence import slope_of
from advisor.ir.kernel import Kernel, Node, rebuilt, symbols
from advisor.ir.nests import index_name, unchosen
from advisor.ir.statements import Loop, Store
from advisor.ir.values import (
    Along,
    Called,
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Strided,
    Subscript,
    Transpose,
    Value,
    Windows,
    length,
    operands,
    parts_of,
    reads,
    residue,
)
from advisor.numpy_table import (
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    REDUCED,
    REDUCTIONS,
    SCANS,
    Kind,
    kind_of,
    promote,
    reduced_dtype,
    strong,
)
from costdb.expr import (
    ZERO,
    Expr,
    free_symbols,
    maximum,
    num,
    python_text,
    substitute,
    sym,
)
from costdb.expr.nodes import Mod, Num
from costdb.records import only
from transforms.kit.kernels import Proofs, proofs, type_of
from transforms.loops import axes
from transforms.loops.formulas import WORD_BITS, adds_truths, as_calls, bits, of_text
from transforms.loops.masked import JOINED, NotRaised, quiet

_SCANNED = {row.operation: row.result for row in SCANS.values()}
_PARTS = ("real", "imag")
_COLUMNS = ("linalg.solve", "linalg.lstsq[0]", "polyfit")
"""Functions of a vector that take several, as columns."""
STACKED = frozenset(f"linalg.{name}" for name in ("inv", "det", "cholesky", "eigvalsh"))
"""Functions of a matrix that take each of a stack of them."""

Raised = Store | Loop


def needed(store: Store) -> Iterator[Read]:
    """Yield what a statement surely reads or stores."""
    yield Read(store.array, store.region)

    def of(value: Value) -> Iterator[Read]:
        if isinstance(value, Read):
            yield value
        for part in operands(value)[: 1 if _chooses(value) else None]:
            yield from of(part)

    yield from of(store.value)


def _chooses(value: Value) -> TypeGuard[Elementwise]:
    """Return whether the first operand tells which elements need the others."""
    return isinstance(value, Elementwise) and value.operation in ("where", *JOINED)


def _rank(region: Sequence[Subscript]) -> int:
    return sum(not isinstance(part, Point) for part in region)


@dataclass(slots=True)
class Lift:
    """Makes an axis of the index of a loop.

    Attributes
    ----------
    loop : Loop
    outer : tuple of Loop
        Those around it, and around what is looked at.
    kernel : Kernel
    proofs : Proofs
        What holds within these.
    clamped : bool
        Whether its range must not end before it starts: a bound that is negative then would count
        from the end.
    guarded : bool
        Whether not every iteration needs what is looked at.
    needed : frozenset of Read
        What every iteration needs.
    known : mapping of Value to (Value, int)
        What numbers that iterations pass on are for all of them, and which axis is the index.
    """

    loop: Loop
    outer: tuple[Loop, ...]
    kernel: Kernel
    proofs: Proofs
    clamped: bool = False
    guarded: bool = False
    needed: frozenset[Read] = frozenset()
    known: Mapping[Value, tuple[Value, int | None]] = field(default_factory=dict)
    word: re.Pattern[str] = field(init=False)
    free: dict[int, tuple[Value, bool]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.word = re.compile(rf"\b{re.escape(index_name(self.loop.variable))}\b")

    def is_free(self, value: Value) -> bool:
        """Return whether a value is the same in all iterations."""
        if id(value) not in self.free:
            moves = self.loop.variable in symbols(value) or any(
                part in self.known or (isinstance(part, Scalar) and self.word.search(part.text))
                for part in parts_of(value)
            )
            self.free[id(value)] = value, not moves
        return self.free[id(value)][1]

    def counts_down(self, stores: Sequence[Store]) -> bool:
        """Return whether what stores go through moves down while the index goes up."""
        slopes = {
            slope_of(part.at, self.loop.variable)
            for one in stores
            for part in one.region
            if isinstance(part, Point) and self.loop.variable in free_symbols(part.at)
        }
        return self.loop.step == 1 and slopes == {-1}

    def turned_over(self, node: Node) -> Node:
        """Return statements, values or subscripts that go through the range from its other end."""
        loop = self.loop
        back = {loop.variable: loop.low + loop.high - 1 - sym(loop.variable)}
        return rebuilt(node, lambda expr: substitute(expr, back))

    def is_of_usual_type(self, value: Value) -> bool:
        """Return whether a reduction or a scan has the type that NumPy chooses.

        No other is written out.
        """
        match value:
            case Scan(operand, _, operation, dtype):
                result = _SCANNED[operation]
            case Reduction(operand, _, operation, dtype, fused=False) if operation in REDUCED:
                result = REDUCTIONS[REDUCED[operation]].result
            case _:
                return True
        return dtype == reduced_dtype(result, type_of(operand, self.kernel).dtype)

    def needs_elements(self, value: Value) -> bool:
        """Return whether a function refuses empty axes, and may be given some.

        A loop without iterations calls it for none.
        """
        match value:
            case Called(name):
                return name not in _PARTS
            case Fourier(operand, axis):
                along: tuple[int, ...] = (axis,)
            case Along(operand=operand, axes=along):
                pass
            case Reduction(operand, axis, "maximum" | "minimum" | "argmax" | "argmin"):
                along = tuple(range(self.rank(operand))) if axis is None else (axis,)
            case _:
                return False
        extents = type_of(operand, self.kernel).extents
        return not all(self.proofs.non_negative(extents[axis] - 1) for axis in along)

    def rank(self, value: Value) -> int:
        """Return how many axes a value has in one iteration."""
        return len(type_of(value, self.kernel).extents)

    def is_there(self, store: Store) -> bool:
        """Return whether single elements exist also where no iteration needs them."""
        if self.kernel.runs_through:
            ways = (part.operands[1:] for part in parts_of(store.value) if _chooses(part))
            asked = {read for way in chain(*ways) for read in reads(way)} - {*needed(store)}
            return not any(self._is_beyond(*one) for read in asked for one in self._points(read))
        places = (Read(store.array, store.region), *reads(store.value))
        return all(
            self.proofs.non_negative(at) and self.proofs.non_negative(extent - at - 1)
            for read in places
            for at, extent in self._points(read)
        )

    def _points(self, read: Read) -> Iterator[tuple[Expr, Expr]]:
        """Yield the single indices that stay such, each with the extent that it is within."""
        for part, extent in zip(read.region, self._extents(read), strict=True):
            if isinstance(part, Point) and self.loop.variable not in free_symbols(part.at):
                yield part.at, extent

    def _is_beyond(self, at: Expr, extent: Expr) -> bool:
        """Return whether an index goes beyond the end, or may do so in an iteration around."""
        if isinstance(at, Num):
            return self.proofs.non_negative(at - extent)
        return not self.proofs.non_negative(extent - at - 1)

    def is_apart(self, read: Read, region: Sequence[Subscript]) -> bool:
        """Return whether no iteration reads a single element, if it is of the same array."""
        within = proofs(self.kernel, (*self.outer, self.loop))
        return any(
            isinstance(one, Point)
            and isinstance(other, Point)
            and (
                within.non_negative(one.at - other.at - 1)
                or within.non_negative(other.at - one.at - 1)
            )
            for one, other in zip(read.region, region, strict=False)
        )

    def _extents(self, read: Read) -> tuple[Expr, ...]:
        return self.kernel.extents(read.array) if read.region else ()

    # --- slices

    def note(self, store: Store) -> Store:
        """Find whether slices would count from the end."""
        for read in (Read(store.array, store.region), *reads(store.value)):
            self._note(read)
        return store

    def _note(self, read: Read) -> None:
        if read.array in self.kernel.lists:
            # which has places for all iterations, and for no more
            return
        for axis, (part, extent) in enumerate(zip(read.region, self._extents(read), strict=True)):
            around = self.around(read.array, read.region, axis) is not None
            if around or not isinstance(part, Point) or self._jumps(part):
                continue
            if self.loop.variable in free_symbols(part.at):
                if slope_of(part.at, self.loop.variable) == -1:
                    part = self.turned_over(part)
                low, high, _ = self._bounds(part, self.loop.high, extent)
                known = self.kernel.runs_through or self.proofs.non_negative(high)
                self.clamped |= not known and not self.proofs.empty_when_negative(low, high, extent)

    def _bounds(self, part: Point, stop: Expr, extent: Expr) -> tuple[Expr, Expr, int]:
        """Return first, end and step of the indices that a subscript goes through up to a stop."""
        loop = self.loop
        slope = slope_of(part.at, loop.variable)
        if not isinstance(slope, int) or slope < 1:
            raise NotRaised
        low = substitute(part.at, {loop.variable: loop.low})
        if slope * loop.step == 1:
            return low, substitute(part.at, {loop.variable: stop}), 1
        step = slope * loop.step
        high = substitute(part.at, {loop.variable: stop - 1}) + 1
        # where the last one is reached, any stop before the next selects the same
        even = high - 1 + step - (residue(low, step) or 0)
        known = loop.step == 1 and self.proofs.non_negative(extent - even)
        return low, even if known else high, step

    def region(
        self, array: str, region: Sequence[Subscript], as_in: tuple[Read, ...] = ()
    ) -> tuple[tuple[Subscript, ...], int]:
        """Return a region with the index as a slice, and which axis of it that is.

        Whether every iteration needs it is known of it, or of what it is `as_in`.
        """
        made, axis = list(region), -1
        for number, part in enumerate(region):
            if self.loop.variable not in symbols(part):
                continue
            if not isinstance(part, Point) or axis >= 0:
                raise NotRaised
            extent = self.kernel.extents(array)[number]
            if array in self.kernel.lists and part.at == sym(self.loop.variable) - self.loop.low:
                made[number], axis = Range(ZERO, extent), _rank(region[:number])
                continue
            low, high, step = self._bounds(part, self.loop.high, extent)
            # an element beyond the end is an error, where a slice is shorter
            same = as_in or (Read(array, tuple(region)),)
            needed = not self.guarded or not self.needed.isdisjoint(same)
            runs = self.kernel.runs_through and needed
            runs = runs and not self.proofs.non_negative(high - extent - 1)
            if not (runs or self.proofs.non_negative(extent - high)):
                raise NotRaised
            if not self.proofs.non_negative(low):
                raise NotRaised
            if self.clamped:
                _, high, _ = self._bounds(part, maximum(self.loop.low, self.loop.high), extent)
            made[number] = Range(low, high) if step == 1 else Strided(low, high, step)
            axis = _rank(region[:number])
        if axis < 0:
            raise NotRaised
        return tuple(made), axis

    def is_window(self, part: Subscript) -> bool:
        """Return whether a slice moves with the index."""
        return not isinstance(part, Point) and self.loop.variable in symbols(part)

    def windows(self, read: Read) -> tuple[Value, int]:
        """Return a slice of one length that moves with the index, for all iterations."""
        moving = [n for n, one in enumerate(read.region) if self.loop.variable in symbols(one)]
        part, loop = read.region[moving[0]], self.loop
        if len(moving) > 1 or not isinstance(part, Range) or loop.step != 1:
            raise NotRaised
        extent = self.kernel.extents(read.array)[moving[0]]
        long = part.high - part.low
        low = substitute(part.low, {loop.variable: loop.low})
        high = substitute(part.high, {loop.variable: loop.high - 1})
        shown = loop.variable not in free_symbols(long) and slope_of(part.low, loop.variable) == 1
        # one that is cut off at an end is silently shorter, and of nothing there are none
        inside = self.proofs.non_negative(low) and self.proofs.non_negative(extent - high)
        runs = self.kernel.runs_through or self.proofs.non_negative(loop.high - loop.low - 1)
        if not (shown and inside and runs and self.proofs.non_negative(long - 1)):
            raise NotRaised
        region = (*read.region[: moving[0]], Range(low, high), *read.region[moving[0] + 1 :])
        axis, rank = _rank(region[: moving[0]]), _rank(region)
        found = Windows(Read(read.array, region), axis, long)
        order = (*range(axis + 1), rank, *range(axis + 1, rank))
        return axes.transposed(found, order), axis

    # --- statements and values

    def statement(self, one: Raised, of_store: Callable[[Store], Store]) -> Raised:
        """Return a statement with others in the place of stores, for all iterations."""
        if isinstance(one, Store):
            if not self.is_there(one):
                raise NotRaised
            return of_store(one)
        if self.loop.variable in symbols(one.low) | symbols(one.high):
            raise NotRaised
        outer, known = self.outer, self.proofs
        self.outer = (*outer, one)
        self.proofs = proofs(self.kernel, self.outer)
        body = tuple(self.statement(inner, of_store) for inner in only(Store | Loop, one.body))
        self.outer, self.proofs = outer, known
        return replace(one, body=body)

    def store(self, store: Store) -> Store:
        """Return the statement that stores what all iterations do."""
        stored, into = store.value, self.kernel.dtype(store.array)
        match stored:
            case Elementwise("maximum" | "minimum", (Read(), Reduction())) if store.in_place:
                # of no terms only a number has an extreme, its own
                raise NotRaised
            case Copy(operand, "float64") if (
                into == "float64" and store.array not in self.kernel.lists
            ):
                # it is converted there
                stored = operand
        region, axis = self.region(store.array, store.region)
        rank = _rank(store.region)
        value, own = self.value(stored, rank - axis)
        made = self.aligned(value, own, self.rank(stored), rank, axis)
        held = tuple(self.held(store, rank - axis))
        return replace(store, region=region, value=made, held=held, variable="")

    def held(self, store: Store, behind: int | None) -> Iterator[tuple[str, Value]]:
        """Yield what variables hold, for all iterations."""
        for name, value in store.held:
            for place in (behind, None):
                try:
                    yield name, self.value(value, place)[0]
                except NotRaised:
                    continue

    def value(self, value: Value, behind: int | None = None) -> tuple[Value, int | None]:
        """Return a value for all iterations, and which of its axes is the index; None: none is.

        There are so many axes `behind` it in what it is stored in; None: that does not matter.
        """
        if self.is_free(value):
            return value, None
        if value in self.known:
            return self.known[value]
        match value:
            case Scalar():
                return self.number(value), 0
            case Read(array, region):
                return self._read(array, region)
            case Elementwise(_, operands):
                return self._elementwise(value, operands, behind)
            case Copy(operand, dtype):
                inner, place = self.value(operand, behind)
                same = type_of(operand, self.kernel).dtype == dtype
                # `float` is written where elements may be something else
                same &= not self.kernel.assumed or dtype != "float64"
                return inner if same else Copy(inner, dtype), place
            case MatMul(left, right) if self.is_free(right):
                inner, place = self._moving(left)
                last = self.rank(left)
                if place == last:
                    order = (*range(last - 1), last, last - 1)
                    inner, place = Transpose(inner, order), last - 1
                return MatMul(inner, right), place
            case MatMul(left, right):
                # of stacks of matrices, each with the other one in its place
                rank, sides = self.rank(value), ((*self.value(one), one) for one in (left, right))
                stacks = (self.aligned(v, at, self.rank(one), rank, 0) for v, at, one in sides)
                return MatMul(*stacks), 0
            case Gather():
                return self._gather(value)
            case Reduction(Elementwise("multiply", (one, other)), _, "add", _, fused=True):
                return self.product(value, one, other)
            case Reduction(_, _, _, _, fused=False):
                return self._reduction(value)
            case Along():
                return self._along(value)
            case Windows() | Sort() | Scan() | Fourier() | Flip() | Roll():
                inner, place = self.value(value.operand)
                amount = value.amount if isinstance(value, Roll) else ZERO
                if place is None or self.loop.variable in free_symbols(amount):
                    raise NotRaised
                moved = replace(value, operand=inner, axis=value.axis + (place <= value.axis))
                return axes.windows(moved) if isinstance(moved, Windows) else moved, place
            case Transpose(operand, order):
                inner, place = self._moving(operand)
                return Transpose(inner, (place, *(at + (at >= place) for at in order))), 0
            case Expand(operand, at):
                inner, place = self._moving(operand)
                return Expand(inner, at + 1 if place <= at else at), place + (place > at)
            case Called(name, (operand,)) if name in _PARTS:
                inner, place = self.value(operand, behind)
                extents = type_of(inner, self.kernel).extents
                return replace(value, operands=(inner,), shape=extents), place
            case Called(name, (matrix,)) if name in STACKED and not self.guarded:
                inner, place = self._moving(matrix)
                rest = (n for n in range(self.rank(matrix) + 1) if n != place)
                stack = axes.transposed(inner, (place, *rest))
                shape = (type_of(stack, self.kernel).extents[0], *value.shape)
                return replace(value, operands=(stack,), shape=shape), 0
            case Called(name, (one, other)) if (
                name in _COLUMNS and self.is_free(one) and self.rank(other) == 1
            ):
                # of all sides, as columns, at once
                inner, place = self.value(other)
                columns = inner if place == 1 else turned(inner)
                shape = (value.shape[0], type_of(columns, self.kernel).extents[1])
                return replace(value, operands=(one, columns), shape=shape), 1
            case Part(Called(operands=pair) as inner, (Point(one), Point(other))) if (
                is_correlation(inner) and one != other
            ):
                if any(type_of(of, self.kernel).dtype != "float64" for of in pair):
                    raise NotRaised
                return self.value(correlation(*pair), behind)
            case Part(operand, region) if self.loop.variable not in symbols(region):
                inner, place = self._moving(operand)
                whole = Range(ZERO, type_of(inner, self.kernel).extents[place])
                return Part(inner, (*region[:place], whole, *region[place:])), _rank(region[:place])
            case _:
                raise NotRaised

    def _moving(self, value: Value) -> tuple[Value, int]:
        """Return a value that some iterations have otherwise, and which axis is the index."""
        made, place = self.value(value)
        assert place is not None
        return made, place

    def _read(
        self, array: str, region: tuple[Subscript, ...], as_in: tuple[Read, ...] = ()
    ) -> tuple[Value, int]:
        """Return elements for all iterations, also where they come in the opposite order."""
        if any(map(self.is_window, region)):
            return self.windows(Read(array, region))
        moving = [n for n, part in enumerate(region) if self.loop.variable in symbols(part)]
        around = [n for n in moving if self.around(array, region, n) is not None]
        if around:
            return self._rolled(array, region, around[0])
        if any(map(self._jumps, region)):
            if self.guarded and self.needed.isdisjoint(as_in or (Read(array, region),)):
                raise NotRaised
            table, (first, *others) = self._beside(Read(array, region))
            return self._gather(Gather(table, first, tuple(others)))
        if len(moving) == 2 and _rank(region) == 0:
            return self._diagonal(array, region, moving), 0
        try:
            made, axis = self.region(array, region, as_in)
        except NotRaised:
            if self.loop.step != 1 or self.loop.variable not in symbols(region):
                raise
            same = as_in or (Read(array, region),)
            made, axis = self.region(array, self.turned_over(region), same)
            return Flip(Read(array, made), axis), axis
        return Read(array, made), axis

    def around(self, array: str, region: Sequence[Subscript], axis: int) -> Expr | None:
        """Return how far ahead ``a[(i + k) % len(a)]`` is of the index; None for other places."""
        part, loop = region[axis], self.loop
        if not isinstance(part, Point) or not isinstance(part.at, Mod):
            return None
        extent, ahead = self.kernel.extents(array)[axis], part.at.dividend - sym(loop.variable)
        whole = loop.low == ZERO and loop.high == part.at.divisor == extent and loop.step == 1
        return ahead if whole and isinstance(ahead, Num) else None

    def _rolled(self, array: str, region: tuple[Subscript, ...], number: int) -> tuple[Value, int]:
        """Return elements of an axis that goes on at its beginning, for all iterations."""
        ahead = self.around(array, region, number)
        assert ahead is not None
        here = (*region[:number], Point(sym(self.loop.variable)), *region[number + 1 :])
        made, axis = self._read(array, here, (Read(array, region),))
        return Roll(made, axis, -ahead), axis

    def _diagonal(self, array: str, region: tuple[Subscript, ...], moving: Sequence[int]) -> Value:
        """Return elements that move along two axes at a time."""
        made = list(region)
        for number in moving:
            apart = [
                Point(ZERO) if n in moving and n != number else p for n, p in enumerate(region)
            ]
            made[number] = self.region(array, apart, (Read(array, region),))[0][number]
        lengths = {length(part) for part in made if not isinstance(part, Point)}
        if len(lengths) > 1:
            raise NotRaised
        read = Read(array, tuple(made))
        return Called("diagonal", (read,), tuple(lengths), self.kernel.dtype(array))

    def _gather(self, value: Gather) -> tuple[Value, int]:
        """Return what an array has at places, for all iterations."""
        table, places = value.operand, value.all_places
        moving = not all(map(self.is_free, places))
        if isinstance(table, Read) and (moving or any(map(self._jumps, table.region))):
            # along an axis beside them the places are the indices themselves
            table, places = self._beside(table, places)
        ranks = [self.rank(one) for one in places]
        if self.is_free(table):
            lifted = [(*self.value(one), own) for one, own in zip(places, ranks, strict=True)]
            found = {at if own == max(ranks) else 0 for _, at, own in lifted if at is not None}
            axis = found.pop() if len(found) == 1 else 0
            first, *others = (self.aligned(v, at, own, max(ranks), axis) for v, at, own in lifted)
            return Gather(table, first, tuple(others)), axis
        operand, place = self.value(table)
        if moving or place is None or place < len(places):
            raise NotRaised
        return replace(value, operand=operand), place - len(places) + max(ranks)

    def _jumps(self, part: Subscript) -> bool:
        """Return whether an index moves otherwise than by one number of places."""
        moved = isinstance(part, Point) and slope_of(part.at, self.loop.variable)
        return moved is None or isinstance(moved, Fraction)

    def _beside(self, table: Read, given: Sequence[Value] = ()) -> tuple[Read, tuple[Value, ...]]:
        """Return an array and places in it, where the index of the loop tells some of them."""
        kept = [n for n, part in enumerate(table.region) if not isinstance(part, Point)]
        places, region = dict(zip(kept, given, strict=False)), list(table.region)
        for number, (part, extent) in enumerate(zip(region, self._extents(table), strict=True)):
            if isinstance(part, Point) and self.loop.variable in free_symbols(part.at):
                places[number], region[number] = self._index(part.at), Range(ZERO, extent)
        kept = [n for n, part in enumerate(region) if not isinstance(part, Point)]
        if sorted(places) != kept[: len(places)]:
            raise NotRaised
        return Read(table.array, tuple(region)), tuple(places[number] for number in sorted(places))

    def _index(self, at: Expr) -> Scalar:
        """Return an index as a number that the source could compute."""
        names = {**self.kernel.context.scalar_texts}
        names[self.loop.variable] = index_name(self.loop.variable)
        text = python_text(at, names)
        if text is None:
            raise NotRaised
        return Scalar(as_calls(ast.parse(text, mode="eval").body), PYTHON_INTEGER)

    def number(self, value: Scalar) -> Value:
        """Return a number that is computed from the index, for all iterations."""
        name = index_name(self.loop.variable)
        if self.kernel.context.scalar_texts.get(self.loop.variable) != name or self.loop.step != 1:
            raise NotRaised
        try:
            node = ast.parse(value.text, mode="eval").body
        except SyntaxError:
            raise NotRaised from None
        if any(map(adds_truths, ast.walk(node))):
            raise NotRaised
        if bits(node, name if kind_of(strong(value.dtype)) is Kind.INTEGER else None) > WORD_BITS:
            # whole numbers of Python do not wrap around
            raise NotRaised
        made = of_text(node, lambda one: self._counted(one, value.dtype, name))
        if type_of(made, self.kernel).dtype != strong(value.dtype):
            raise NotRaised
        return made

    def _counted(self, node: ast.expr, dtype: str, name: str) -> Value:
        match node:
            case ast.Name(id=known) if known == name:
                low = self.loop.low
                return Fill("arange", (self.loop.high - low,), "int64", low)
            case ast.Constant(float()) | ast.Attribute(
                ast.Name("numpy" | "math" | "cmath"), "pi" | "e"
            ):
                return Scalar(ast.unparse(node), PYTHON_FLOAT)
            case ast.Constant(complex()):
                return Scalar(ast.unparse(node), PYTHON_COMPLEX)
            case ast.Name():
                return Scalar(ast.unparse(node), self._type_of_number(node.id, dtype))
        raise NotRaised

    def _type_of_number(self, name: str, otherwise: str) -> str:
        sizes = self.kernel.context.scalar_texts
        return PYTHON_INTEGER if name in sizes or name in sizes.values() else otherwise

    def _reduction(self, value: Reduction) -> tuple[Value, int]:
        """Return a reduction of each row, along one axis after another where it is of all."""
        prefix = self._prefix(value)
        if prefix is not None:
            return prefix
        operand = value.operand
        mask = next((p.mask for p in parts_of(operand) if isinstance(p, Chosen)), None)
        if mask is not None and self.rank(mask) != self.rank(operand):
            # of rows, of which each iteration may choose as many as it likes
            raise NotRaised
        if mask is not None and value.operation == "add":
            # of each row others are chosen
            terms = unchosen(operand, mask)
            chosen = None if terms is None else (mask, terms, Scalar("0", PYTHON_INTEGER))
            operand = operand if chosen is None else Elementwise("where", chosen)
            value = replace(value, operand=quiet(operand, self.kernel))
        made, place = self._moving(value.operand)
        rank = self.rank(value.operand)
        every = range(rank) if value.axis is None else (value.axis,)
        if len(every) > 1 and value.operation not in axes.BY_PARTS:
            raise NotRaised
        for one in reversed(every):
            moved = one + (place <= one)
            made = axes.reduced(replace(value, operand=made, axis=moved, called=False))
            place -= moved < place
        return made, place

    def _prefix(self, value: Reduction) -> tuple[Value, int] | None:
        """Return reductions of ever longer slices as a scan, from one element on."""
        match value:
            case Reduction(Read(array, region), _, "add" | "multiply" | "maximum" | "minimum"):
                moving = [n for n, one in enumerate(region) if self.loop.variable in symbols(one)]
            case _:
                return None
        part, loop = region[moving[0]] if moving else None, self.loop
        if len(moving) != 1 or not isinstance(part, Range) or _rank(region) != 1 or loop.step != 1:
            return None
        first = substitute(part.high, {loop.variable: loop.low})
        last = substitute(part.high, {loop.variable: loop.high - 1})
        fixed = loop.variable not in free_symbols(part.low)
        if not fixed or slope_of(part.high, loop.variable) != 1 or first - part.low != num(1):
            return None
        inside = self.proofs.non_negative(self.kernel.extents(array)[moving[0]] - last)
        if not inside or not self.proofs.non_negative(part.low):
            raise NotRaised
        whole = (*region[: moving[0]], Range(part.low, last), *region[moving[0] + 1 :])
        return Scan(Read(array, whole), 0, value.operation, value.dtype), 0

    def _along(self, value: Along) -> tuple[Value, int]:
        inner, place = self._moving(value.operand)
        computed, at = self._moving(value.computed)
        moved = tuple(one + (place <= one) for one in value.axes)
        wanted = place if value.kept else place - sum(one < place for one in moved)
        order = [n for n in range(self.rank(value) + 1) if n != at]
        computed = axes.transposed(computed, (*order[:wanted], at, *order[wanted:]))
        made = replace(value, operand=inner, axes=moved, computed=computed)
        return axes.along(made), wanted

    def _elementwise(
        self, value: Elementwise, operands: Sequence[Value], behind: int | None
    ) -> tuple[Value, int | None]:
        lifted = []
        around = self.guarded
        for number, one in enumerate(operands):
            self.guarded = around or (_chooses(value) and number > 0)
            lifted.append((*self.value(one, behind), self.rank(one)))
        self.guarded = around
        rank = max(own for _, _, own in lifted)
        if behind is None:
            # as an operand has it that has all axes, else before them
            found = [place for _, place, own in lifted if place is not None and own == rank]
            behind = rank - (found[0] if found else 0)
        axis = max(0, rank - behind)
        parts = tuple(self.aligned(v, place, own, rank, axis) for v, place, own in lifted)
        made = replace(value, operands=parts)
        plain = replace(value, operands=tuple(map(_of_python, operands, parts)))
        if strong(type_of(made, self.kernel).dtype) != strong(type_of(plain, self.kernel).dtype):
            # arrays of numbers widen what numbers do not
            raise NotRaised
        return made, axis

    def refuse_wider(self, factors: Sequence[Value], lifted: Sequence[Value]) -> None:
        """Refuse a product that is wider where numbers of Python are arrays."""
        plain = map(_of_python, factors, lifted)
        kinds = (reduce(promote, [type_of(v, self.kernel).dtype for v in some])
                 for some in (plain, lifted))  # fmt: skip
        if len(set(map(strong, kinds))) > 1:
            raise NotRaised

    def product(self, value: Reduction, one: Value, other: Value) -> tuple[Value, int | None]:
        """Return a product of vectors, or of a matrix and a vector, for all iterations."""
        if value.axis is None and (self.is_free(one) or self.is_free(other)):
            vector, moving = (one, other) if self.is_free(one) else (other, one)
            matrix, place = self.value(moving)
            if place == 0:
                return times(matrix, vector, value), 0
            return times_from_left(vector, matrix, value), 0
        if value.axis == 1 and isinstance(other, Expand) and self.is_free(one):
            columns, place = self.value(other.operand)
            return MatMul(one, columns if place == 1 else turned(columns)), 1
        if value.axis == 0 and isinstance(one, Expand) and self.is_free(other):
            rows, place = self.value(one.operand)
            return MatMul(rows if place == 0 else turned(rows), other), 0
        # a product of each row with another, which is as wide as they are, and a sum not
        if reduced_dtype("sum", value.dtype) != value.dtype:
            raise NotRaised
        return self._reduction(replace(value, fused=False))

    def aligned(self, value: Value, place: int | None, own: int, rank: int, axis: int) -> Value:
        """Return a value whose axes stand where those of the result do.

        Parameters
        ----------
        value : Value
        place : int or None
            Which of its axes is the index.
        own, rank : int
            Other axes: of the value, and of the result, whose last ones they are.
        axis : int
            Which axis of the result is the index.
        """
        before = max(0, axis - (rank - own))
        if place is None:
            return value if before == 0 or own == 0 else Expand(value, before)
        if place != before:
            order = [n for n in range(own + 1) if n != place]
            order.insert(before, place)
            value = turned(value) if order == [1, 0] else Transpose(value, tuple(order))
        for _ in range(max(0, rank - own - axis)):
            value = Expand(value, 1)
        return value


def is_correlation(value: Value) -> bool:
    """Return whether a value is the matrix of correlations of two vectors."""
    return isinstance(value, Called) and value.function == "corrcoef" and len(value.operands) == 2


def rounds_together(value: Value) -> bool:
    """Return whether a function rounds otherwise what it is given for all iterations."""
    return is_correlation(value) or (isinstance(value, Called) and value.function in _COLUMNS)


def correlation(*pair: Value) -> Value:
    """Return the correlation of two vectors in terms of their sums."""

    def product(one: Value, other: Value) -> Value:
        terms = Elementwise("multiply", (one, other))
        return Reduction(terms, None, "add", "float64", fused=one != other)

    one, other = (
        Elementwise("subtract", (of, Reduction(of, None, "mean", "float64"))) for of in pair
    )
    squares = Elementwise("multiply", (product(one, one), product(other, other)))
    root = Elementwise("sqrt", (squares,), called=True)
    made: Value = Elementwise("divide", (product(one, other), root))
    # as NumPy does, which rounds no further than to 1
    for end, bound in (("maximum", "-1"), ("minimum", "1")):
        made = Elementwise(end, (made, Scalar(bound, PYTHON_INTEGER)), called=True)
    return made


def times(matrix: Value, vector: Value, like: Reduction) -> Reduction:
    """Return the product of a matrix and a vector."""
    return replace(like, operand=Elementwise("multiply", (matrix, Expand(vector, 0))), axis=1)


def times_from_left(vector: Value, matrix: Value, like: Reduction) -> Reduction:
    """Return the product of a vector and a matrix."""
    return replace(like, operand=Elementwise("multiply", (Expand(vector, 1), matrix)), axis=0)


def turned(matrix: Value) -> Value:
    """Return the transpose of a matrix, of a product with such as one without."""
    match matrix:
        case Transpose(operand, (1, 0)):
            return operand
        case MatMul(left, right) if isinstance(left, Transpose) or isinstance(right, Transpose):
            return MatMul(turned(right), turned(left))
    return Transpose(matrix, (1, 0))


_WEAK = {"int64": PYTHON_INTEGER, "float64": PYTHON_FLOAT}


def _of_python(one: Value, lifted: Value) -> Value:
    """Return an operand as what it is in an iteration: a number of Python widens no array."""
    match one:
        case Scalar(text, dtype) if not isinstance(lifted, Scalar):
            return Scalar(text, _WEAK.get(dtype, dtype))
        case Copy(_, dtype, of_python=True):
            return Scalar("1", _WEAK.get(dtype, dtype))
    return one
