"""Loops raised to statements over arrays: the index of a loop becomes an axis.

One loop is raised at a time, the innermost first, so that elements become vectors, vectors become
matrices, and sums become products. Dependences decide what may be: each statement must come
through all iterations before the next one begins, and may not read what an earlier iteration of
itself wrote. Where all iterations add to the same elements, their sum over the index is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.ir.concrete import symbols
from advisor.ir.dependence import may_be_distributed, slope_of
from advisor.ir.kernel import Kernel
from advisor.ir.nests import NO_INDEX, index_name
from advisor.ir.shapes import ShapeConflict
from advisor.ir.statements import Loop, Store, Threads, walk
from advisor.ir.values import (
    Along,
    Copy,
    Elementwise,
    Expand,
    Fourier,
    Gather,
    MatMul,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Scan,
    Sort,
    Strided,
    Subscript,
    Transpose,
    Value,
    Windows,
    operands,
    parts_of,
    reads,
    residue,
)
from advisor.numpy_table import REDUCTIONS, reduced_dtype
from costdb.expr import Expr, free_symbols, maximum, num, substitute
from transforms.kit.kernels import Proofs, proofs, type_of
from transforms.loops import axes
from transforms.loops.running import passed, running

SUMS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
"""What NumPy calls the reductions by these operations."""

METHODS = {
    REDUCTIONS[name].operation: name
    for name in ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")
}
"""What NumPy calls reductions along an axis."""

_COMBINED = {**{name: name for name in SUMS}, "subtract": "add"}


Raised = Store | Loop


class NotRaised(Exception):
    """A part that has no form with the index as an axis."""


def raised(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel, kept: Container[str] = ()
) -> tuple[Raised, ...]:
    """Return statements that do what all iterations of a loop do, within some outer ones.

    Parameters
    ----------
    loop : Loop
    outer : tuple of Loop
    kernel : Kernel
    kept : container of str
        Indices of inner loops that stay loops, around statements on arrays.

    Raises
    ------
    NotRaised
        There are none, or none are found.
    ShapeConflict
        The shapes of what they compute with are not seen to agree.
    """
    if not is_raisable(loop, kernel):
        raise NotRaised
    body = _inside(loop, outer, kernel, kept)
    lift = Lift(loop, outer, kernel, proofs(kernel, outer))
    if passed(loop, kernel):
        numbers = [number.store for number in passed(loop, kernel)]
        lift.needed = frozenset(read for number in numbers for read in needed(number))
        for number in numbers:
            lift.note(number)
        found = running(replace(loop, body=body), outer, kernel, lift.value)
        if found is None:
            raise NotRaised
        body = tuple(one for one in body if one not in numbers)
        lift.known = found
    stores = [one for one in walk(body) if isinstance(one, Store)]
    parts = [part for one in stores for part in axes.told(one.value)]
    if not all(map(lift.is_of_usual_type, parts)):
        raise NotRaised
    if all(lift.is_free(Read(one.array, one.region)) for one in stores):
        if any(isinstance(one, Loop) for one in body) or not all(map(lift.is_there, stores)):
            raise NotRaised
        return tuple(_added_up(one, stores, lift) for one in stores)
    if not may_be_distributed(replace(loop, body=body)):
        raise NotRaised
    lift.needed = frozenset(read for one in stores for read in needed(one))
    # slices of one length must be seen to have it
    for one in body:
        lift.statement(one, lift.note)
    return tuple(lift.statement(one, lift.store) for one in body)


def is_raisable(loop: Loop, kernel: Kernel) -> bool:
    """Return whether nothing but its statements needs the index of a loop."""
    name = index_name(loop.variable)
    plain = not loop.stated and loop.threads is Threads.NO
    # of the elements of an array that has a name no index has one
    named = kernel.context.scalar_texts.get(loop.variable) == name or name == NO_INDEX
    return plain and named and name not in kernel.observed


def sequential(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> frozenset[str]:
    """Return the indices within a loop that add up, or that wait for one another."""
    found: set[str] = set()
    for one in loop.body:
        if isinstance(one, Loop):
            around = (*outer, loop)
            found |= sequential(one, around, kernel)
            stores = [inner for inner in walk(one.body) if isinstance(inner, Store)]
            adds = any(one.variable not in symbols(inner.region) for inner in stores)
            try:
                raised(one, around, kernel, found)
            except (NotRaised, ShapeConflict):
                adds = True
            found |= {one.variable} if adds else set()
    return frozenset(found)


def _inside(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel, kept: Container[str]
) -> tuple[Raised, ...]:
    """Return the body of a loop with statements in the place of the loops that do not stay."""
    body: list[Raised] = []
    for one in loop.body:
        if isinstance(one, Loop) and one.variable in kept and one.step == 1 and not one.stated:
            body.append(replace(one, body=_inside(one, (*outer, loop), kernel, kept)))
        elif isinstance(one, Loop):
            body += raised(one, (*outer, loop), kernel, kept)
        elif isinstance(one, Store):
            body.append(one)
        else:
            raise NotRaised
    return tuple(body)


def needed(store: Store) -> Iterator[Read]:
    """Yield what a statement surely reads or stores."""
    yield Read(store.array, store.region)

    def of(value: Value) -> Iterator[Read]:
        if isinstance(value, Read):
            yield value
        chosen = isinstance(value, Elementwise) and value.operation == "where"
        for part in operands(value)[: 1 if chosen else None]:
            yield from of(part)

    yield from of(store.value)


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

    def __post_init__(self) -> None:
        self.word = re.compile(rf"\b{re.escape(index_name(self.loop.variable))}\b")

    def is_free(self, value: Value) -> bool:
        """Return whether a value is the same in all iterations."""
        return self.loop.variable not in symbols(value) and not any(
            part in self.known or (isinstance(part, Scalar) and self.word.search(part.text))
            for part in parts_of(value)
        )

    def is_of_usual_type(self, value: Value) -> bool:
        """Return whether a reduction has the type that NumPy chooses: no other is written out."""
        if not isinstance(value, Reduction) or value.fused or value.operation not in METHODS:
            return True
        found = type_of(value.operand, self.kernel).dtype
        return value.dtype == reduced_dtype(REDUCTIONS[METHODS[value.operation]].result, found)

    def rank(self, value: Value) -> int:
        """Return how many axes a value has in one iteration."""
        return len(type_of(value, self.kernel).extents)

    def is_there(self, store: Store) -> bool:
        """Return whether single elements exist also where the loop has no iteration."""
        places = (Read(store.array, store.region), *reads(store.value))
        return self.kernel.runs_through or all(
            self.loop.variable in free_symbols(part.at)
            or (
                self.proofs.non_negative(part.at) and self.proofs.non_negative(extent - part.at - 1)
            )
            for read in places
            for part, extent in zip(read.region, self._extents(read), strict=True)
            if isinstance(part, Point)
        )

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
        for part, extent in zip(read.region, self._extents(read), strict=True):
            if isinstance(part, Point) and self.loop.variable in free_symbols(part.at):
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

    def region(self, array: str, region: Sequence[Subscript]) -> tuple[tuple[Subscript, ...], int]:
        """Return a region with the index as a slice, and which axis of it that is."""
        made, axis = list(region), -1
        for number, part in enumerate(region):
            if self.loop.variable not in symbols(part):
                continue
            if not isinstance(part, Point) or axis >= 0:
                raise NotRaised
            extent = self.kernel.extents(array)[number]
            low, high, step = self._bounds(part, self.loop.high, extent)
            # an element beyond the end is an error, where a slice is shorter
            needed = not self.guarded or Read(array, tuple(region)) in self.needed
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
        body = tuple(
            self.statement(inner, of_store) for inner in one.body if isinstance(inner, Store | Loop)
        )
        self.outer, self.proofs = outer, known
        return replace(one, body=body)

    def store(self, store: Store) -> Store:
        """Return the statement that stores what all iterations do."""
        match store.value:
            case Elementwise("maximum" | "minimum", (Read(), Reduction())) if store.in_place:
                # of no terms only a number has an extreme, its own
                raise NotRaised
        region, axis = self.region(store.array, store.region)
        rank = _rank(store.region)
        value, own = self.value(store.value, rank - axis)
        made = self.aligned(value, own, self.rank(store.value), rank, axis)
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
            case Read(array, region):
                if any(map(self.is_window, region)):
                    return self.windows(value)
                made, axis = self.region(array, region)
                return Read(array, made), axis
            case Elementwise(_, operands):
                return self._elementwise(value, operands, behind)
            case Copy(operand, dtype):
                inner, place = self.value(operand, behind)
                return Copy(inner, dtype), place
            case MatMul(left, right) if self.is_free(right):
                inner, place = self.value(left)
                assert place is not None
                last = self.rank(left)
                if place == last:
                    order = (*range(last - 1), last, last - 1)
                    inner, place = Transpose(inner, order), last - 1
                return MatMul(inner, right), place
            case Gather(operand, places) if self.is_free(operand) and self.rank(places) == 0:
                inner, place = self.value(places)
                return Gather(operand, inner), place
            case Reduction(Elementwise("multiply", (one, other)), _, "add", _, fused=True):
                return self.product(value, one, other)
            case Reduction(_, _, _, _, fused=False):
                return self._reduction(value)
            case Along():
                return self._along(value)
            case Windows() | Sort() | Scan() | Fourier():
                inner, place = self.value(value.operand)
                assert place is not None
                moved = replace(value, operand=inner, axis=value.axis + (place <= value.axis))
                return axes.windows(moved) if isinstance(moved, Windows) else moved, place
            case Expand(operand, at):
                inner, place = self.value(operand)
                assert place is not None
                return Expand(inner, at + 1 if place <= at else at), place + (place > at)
            case _:
                raise NotRaised

    def _reduction(self, value: Reduction) -> tuple[Value, int]:
        """Return a reduction of each row, along one axis after another where it is of all."""
        prefix = self._prefix(value)
        if prefix is not None:
            return prefix
        made, place = self.value(value.operand)
        assert place is not None
        rank = self.rank(value.operand)
        every = range(rank) if value.axis is None else (value.axis,)
        if len(every) > 1 and value.operation not in axes.BY_PARTS:
            raise NotRaised
        for one in reversed(every):
            moved = one + (place <= one)
            made = axes.reduced(replace(value, operand=made, axis=moved))
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
        inner, place = self.value(value.operand)
        computed, at = self.value(value.computed)
        assert place is not None and at is not None
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
            self.guarded = around or (value.operation == "where" and number > 0)
            lifted.append((*self.value(one, behind), self.rank(one)))
        self.guarded = around
        rank = max(own for _, _, own in lifted)
        if behind is None:
            # as an operand has it that has all axes, else before them
            found = [place for _, place, own in lifted if place is not None and own == rank]
            behind = rank - (found[0] if found else 0)
        axis = max(0, rank - behind)
        parts = tuple(self.aligned(v, place, own, rank, axis) for v, place, own in lifted)
        return replace(value, operands=parts), axis

    def product(self, value: Reduction, one: Value, other: Value) -> tuple[Value, int | None]:
        """Return a product of vectors, or of a matrix and a vector, for all iterations."""
        if value.axis is None:
            vector, moving = (one, other) if self.is_free(one) else (other, one)
            if not self.is_free(vector):
                # a product of each row with another
                return self._reduction(replace(value, fused=False))
            matrix, place = self.value(moving)
            if place == 0:
                return _times(matrix, vector, value), 0
            return _times_from_left(vector, matrix, value), 0
        if value.axis == 1 and isinstance(other, Expand) and self.is_free(one):
            columns, place = self.value(other.operand)
            return MatMul(one, columns if place == 1 else _turned(columns)), 1
        if value.axis == 0 and isinstance(one, Expand) and self.is_free(other):
            rows, place = self.value(one.operand)
            return MatMul(rows if place == 0 else _turned(rows), other), 0
        raise NotRaised

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
            value = Transpose(value, (*order[:before], place, *order[before:]))
        for _ in range(max(0, rank - own - axis)):
            value = Expand(value, 1)
        return value


def _times(matrix: Value, vector: Value, like: Reduction) -> Reduction:
    return replace(like, operand=Elementwise("multiply", (matrix, Expand(vector, 0))), axis=1)


def _times_from_left(vector: Value, matrix: Value, like: Reduction) -> Reduction:
    return replace(like, operand=Elementwise("multiply", (Expand(vector, 1), matrix)), axis=0)


def _turned(matrix: Value) -> Value:
    return Transpose(matrix, (1, 0))


# --- what all iterations add to the same elements -----------------------------------------------


def combined(store: Store) -> tuple[str, Value] | None:
    """Return how a statement combines an element, or a number, with a term."""
    own = Read(store.array, store.region)
    match store.value:
        case Elementwise(operation, (one, two)) if operation in _COMBINED:
            if two == own and operation != "subtract":
                one, two = two, one
            if one == own:
                return operation, two
    return None


def _added_up(store: Store, stores: Sequence[Store], lift: Lift) -> Store:
    """Return the statement that combines the same elements with what all iterations do."""
    found = combined(store)
    if found is None:
        raise NotRaised
    operation, term = found
    extreme = operation in ("maximum", "minimum")
    alone = all(isinstance(part, Point) for part in store.region)
    if operation not in ("add", "subtract") and not (extreme and alone):
        # of no terms there is no greatest one, but with a first one
        raise NotRaised
    others = [read for one in stores if one is not store for read in reads(one.value)]
    touched = {read.array for read in others}
    touched |= {read.array for read in reads(term) if not lift.is_apart(read, store.region)}
    targets = [one.array for one in stores]
    if store.array in touched or targets.count(store.array) > 1:
        raise NotRaised
    lift.note(store)
    own = Read(store.array, store.region)
    made = _reduced(term, _COMBINED[operation], type_of(term, lift.kernel).dtype, lift)
    value = Elementwise(operation, (own, made))
    held = tuple(lift.held(store, None))
    return replace(store, value=value, in_place=True, held=held)


def _reduced(value: Value, operation: str, dtype: str, lift: Lift) -> Value:
    """Return what all iterations make of a value by an operation."""
    if lift.is_free(value):
        raise NotRaised
    if operation == "add":
        match value:
            case Elementwise("add" | "subtract", parts):
                sums = [_products(one, dtype, lift) for one in parts]
                if all(one is not None for one in sums):
                    return replace(value, operands=tuple(one for one in sums if one is not None))
        product = _products(value, dtype, lift)
        if product is not None:
            return product
        factors = list(_factors(value))
        fixed = [one for one in factors if lift.is_free(one)]
        moving = [one for one in factors if not lift.is_free(one)]
        if fixed and len(moving) == 1:
            return _scaled(fixed, _reduction(moving[0], operation, dtype, lift))
    return _reduction(value, operation, dtype, lift)


def _reduction(value: Value, operation: str, dtype: str, lift: Lift) -> Value:
    match value:
        case Elementwise("where", (condition, Scalar("1"), Scalar("0"))):
            value, dtype = condition, "bool"
    whole, place = lift.value(value)
    match whole:
        case Reduction(_, _, known, _, fused=False) if known == operation:
            if not lift.rank(value):
                # along one axis alone it would have no extreme of nothing
                return replace(whole, operand=axes.chain(whole)[0], axis=None)
    found = reduced_dtype(REDUCTIONS[SUMS[operation]].result, dtype)
    return Reduction(whole, place if lift.rank(value) else None, operation, found)


def _scaled(factors: Sequence[Value], value: Value) -> Value:
    for one in reversed(factors):
        value = Elementwise("multiply", (one, value))
    return value


def _factors(value: Value) -> Iterator[Value]:
    if isinstance(value, Elementwise) and value.operation == "multiply":
        for one in value.operands:
            yield from _factors(one)
    else:
        yield value


def _products(value: Value, dtype: str, lift: Lift) -> Value | None:
    """Return a sum of products of two factors as a product of arrays; None where it is none."""
    factors = list(_factors(value))
    moving = [one for one in factors if not lift.is_free(one)]
    if len(moving) != 2 or (moving[0] == moving[1] and not isinstance(moving[0], Read)):
        # a square is computed once
        return None
    like = Reduction(moving[0], None, "add", dtype, fused=True)
    first, second = sorted(moving, key=lift.rank)
    (one, _), (other, place) = lift.value(first), lift.value(second)
    made: Value
    match lift.rank(first), lift.rank(second):
        case 0, 0:
            ordered = lift.value(moving[0])[0], lift.value(moving[1])[0]
            made = replace(like, operand=Elementwise("multiply", ordered))
        case 0, 1:
            made = (_times_from_left if place == 0 else _times)(
                *((one, other) if place == 0 else (other, one)), like
            )
        case 1, 2 if isinstance(second, Expand) and second.axis == 1:
            # an outer product in each iteration
            (rows, at), (columns, there) = lift.value(second.operand), lift.value(first)
            left = rows if at == 1 else _turned(rows)
            made = MatMul(left, columns if there == 0 else _turned(columns))
        case _:
            return None
    return _scaled([one for one in factors if lift.is_free(one)], made)


__all__ = ["Lift", "NotRaised", "ShapeConflict", "combined", "raised"]
