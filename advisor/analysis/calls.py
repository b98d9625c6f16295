"""What an array library is called for in one statement, in the order in which it is evaluated.

Operands come before the operation that needs them, left to right. Each operation stores into an
array of its own, except the last one of a statement that works in place; a plain assignment to a
subscript copies. Views move nothing, but making one takes the interpreter time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from advisor.analysis.owners import without_points
from advisor.analysis.placement import pitches_bytes
from advisor.distribution import StorageOrder
from advisor.ir.shapes import ArrayType, describe, is_whole, region_extents
from advisor.ir.statements import Store, is_total
from advisor.ir.values import (
    Along,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Gather,
    Point,
    Read,
    Scalar,
    Subscript,
    Transpose,
    Value,
)
from advisor.numpy_table import IN_PYTHON, POWERS, ROWS, Kind, itemsize_of, kind_of, promote, strong
from advisor.source import Span
from costdb.arrays.amounts import fastest, is_turned
from costdb.expr import ONE, ZERO, Expr, minimum, num, to_text
from costdb.records import dataclass, field
from costdb.work import ArrayCall, ArrayOperation, Interpretation, Region, Visit

_BUFFERED = 8192
"""Elements of NumPy's buffer for operands of another type (`numpy.getbufsize`)."""


def operation_class(name: str, dtype: str, operands: int, *, by_one: bool) -> ArrayOperation:
    """Return the class of an elementwise operation.

    Whole numbers are divided as the processor does it, and by one number for all by multiplying.
    Of other types ``//`` needs the remainder, which is a call of a function for each element.

    Parameters
    ----------
    name : str
        NumPy's.
    dtype : str
        Element type that is computed in.
    operands : int
        Arrays among the operands.
    by_one : bool
        Whether the last operand is one number.
    """
    if name == "floor_divide" and kind_of(dtype) in (Kind.INTEGER, Kind.BOOLEAN):
        return ArrayOperation.DIVIDE_BY_ONE if by_one else ArrayOperation.DIVIDE
    if name in ROWS:
        return ROWS[name].cost
    return ArrayOperation.UNARY if operands < 2 else ArrayOperation.BINARY


def _computed_by(value: Elementwise) -> str:
    """Return the function that NumPy computes an operation by: some powers have one."""
    exponent = value.operands[-1]
    if value.operation == "power" and isinstance(exponent, Scalar):
        return POWERS.get(exponent.text, "power")
    return value.operation


def product(counts: tuple[Expr, ...]) -> Expr:
    """Return the product of counts."""
    found = ONE
    for count in counts:
        found = found * count
    return found


def dense(counts: tuple[Expr, ...], dtype: str, order: StorageOrder = "C") -> Region:
    """Return the memory of an array of its own."""
    itemsize = itemsize_of(dtype)
    return Region(itemsize, counts, pitches_bytes(counts, order, itemsize))


def view() -> ArrayCall:
    """Return the making of a view."""
    return ArrayCall(ArrayOperation.VIEW, "any", ONE)


def copied(source: Visit, target: Visit, dtypes: tuple[str, str], *, fresh: bool) -> ArrayCall:
    """Return a copy from one place to another, of the same shape but for broadcasting."""
    if dtypes[0] != dtypes[1]:
        operation = ArrayOperation.CAST
    elif is_turned(source.region, target.region):
        operation = ArrayOperation.TRANSPOSE
    else:
        operation = ArrayOperation.COPY
    elements = product(target.region.counts)
    return ArrayCall(operation, dtypes[1], elements, target, (source,), fresh=fresh)


def cast(call: ArrayCall, operand: Visit, dtype: str) -> tuple[ArrayCall, ...]:
    """Return the casts of a call's operand to the type that it is combined in.

    The library casts as many elements at a time as its buffer has, combines these and goes on.
    """
    if strong(dtype) == strong(call.dtype) or not operand.region.counts:
        return ()
    itemsize, counts = itemsize_of(call.dtype), operand.region.counts
    # every row lies where the one before it lay
    held = (*counts[:-1], minimum(counts[-1], _BUFFERED))
    pitches = (*(ZERO for _ in counts[1:]), num(itemsize))
    buffer = Visit(Region(itemsize, held, pitches))
    return (ArrayCall(ArrayOperation.CAST, call.dtype, call.elements, buffer, (operand,)),)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that is there before a statement's own arithmetic.

    Attributes
    ----------
    memory : Region
        A count and a pitch for every dimension of the target.
    array : str
        Its name; empty for an array that an operation made for this statement.
    region : tuple of Subscript
        What is read of the array.
    advance_bytes : Expr or None
        How far it moves with the innermost loop around; 0 where it follows another region of
        the array, and None where it stays.
    """

    memory: Region
    array: str
    region: tuple[Subscript, ...]
    advance_bytes: Expr | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Where a statement's result goes.

    Attributes
    ----------
    array : str
    found : ArrayType
    region : tuple of Subscript
        In the array's index space.
    memory : Region
        What the busiest rank has of it; a count for every dimension of `region`.
    order : {"C", "F"}
    fresh : bool
        Whether the statement makes the array.
    in_place : bool
        Whether the last operation stores there by itself.
    """

    array: str
    found: ArrayType
    region: tuple[Subscript, ...]
    memory: Region
    order: StorageOrder
    fresh: bool
    in_place: bool
    advance_bytes: Expr | None = None


@dataclass(slots=True)
class Evaluation:
    """The calls of one statement, as they are found.

    Attributes
    ----------
    target : Target
    types : callable
        Gives the element type and shape of a named array.
    leaves : mapping of int to Leaf
        By identity of the value.
    """

    target: Target
    types: Callable[[str], ArrayType]
    leaves: Mapping[int, Leaf]
    calls: list[ArrayCall] = field(default_factory=list)
    found: dict[int, ArrayType] = field(default_factory=dict)
    """Types of values, by their identity: every part of one asks for those of all within it."""
    results: dict[int, Visit] = field(default_factory=dict)
    """Of operations, by their identity too: what a function uses twice is computed once."""
    masked: bool = False
    """Whether what is evaluated is chosen by a mask."""

    def run(self, value: Value) -> tuple[ArrayCall, ...]:
        """Return the calls of a statement that gives its target a value."""
        target = self.target
        if target.fresh or is_whole(target.region, target.found.extents):
            return self._run(value)
        if target.in_place:
            # what an operator in place gives is stored where it lies already
            return (*self._run(value), view())
        *before, storing = self._run(value)
        return (*before, view(), storing)

    def _run(self, value: Value) -> tuple[ArrayCall, ...]:
        target = self.target
        if isinstance(value, Along):
            return self._run(value.computed)
        place = Visit(
            without_points(target.memory, target.region),
            target.array,
            advance_bytes=target.advance_bytes,
        )
        if isinstance(value, Elementwise) and (target.in_place or target.fresh):
            self._elementwise(value, place if target.in_place else None)
            return tuple(self.calls)
        if isinstance(value, Fill | Scalar):
            self._filled(place)
            return tuple(self.calls)
        inner = value.operand if isinstance(value, Copy) and not target.fresh else value
        source = self._evaluated(inner)
        made = isinstance(inner, Elementwise | Copy) or self._is_own(inner)
        if target.fresh and made:
            return tuple(self.calls)
        if source is None:
            self._filled(place)
            return tuple(self.calls)
        dtypes = self._dtype(inner), target.found.dtype
        if self._may_overlap(inner):
            # the library copies a source that may share memory with the target
            kept = Visit(dense(place.region.counts, dtypes[0]))
            self.calls.append(copied(source, kept, (dtypes[0], dtypes[0]), fresh=True))
            source = kept
        self.calls.append(copied(source, place, dtypes, fresh=target.fresh))
        return tuple(self.calls)

    def _filled(self, place: Visit) -> None:
        elements = product(place.region.counts)
        dtype, fresh = self.target.found.dtype, self.target.fresh
        self.calls.append(ArrayCall(ArrayOperation.FILL, dtype, elements, place, (), fresh=fresh))

    def _may_overlap(self, value: Value) -> bool:
        """Return whether a copy within one array goes through one of its own.

        Along one dimension the library copies in the direction that needs none.
        """
        leaf, target = self.leaves.get(id(value)), self.target
        if leaf is None or target.fresh or leaf.array != target.array:
            return False
        kept = [part for part in target.region if not isinstance(part, Point)]
        return len(kept) > 1 and leaf.region != target.region

    def _is_own(self, value: Value) -> bool:
        """Return whether a value is an array that an operation of its own made."""
        return id(value) in self.leaves and not self.leaves[id(value)].array

    def _type(self, value: Value) -> ArrayType:
        if id(value) not in self.found:
            self.found[id(value)] = describe(value, self.types)
        return self.found[id(value)]

    def _dtype(self, value: Value) -> str:
        return strong(self._type(value).dtype)

    def _evaluated(self, value: Value) -> Visit | None:
        """Return where the elements of a value are, after the calls that compute them."""
        known = self.leaves.get(id(value))
        if known is not None:
            if _is_view(value, self.types):
                self.calls.append(view())
            memory = without_points(known.memory, self.target.region)
            visit = Visit(memory, known.array, advance_bytes=known.advance_bytes)
            return self._taken(visit, self._dtype(value)) if self.masked else visit
        match value:
            case Fill(content, extents, dtype) if extents:
                made = self._made(value, dtype, ())
                elements = product(made.region.counts)
                fill = ArrayCall(ArrayOperation.FILL, dtype, elements, made, (), fresh=True)
                self.calls += [fill] * bool(content)
                return made
            case Along(computed=computed):
                return self._evaluated(computed)
            case Copy(operand, dtype):
                source = self._evaluated(operand)
                if source is None:
                    return None
                made = self._made(value, dtype, (source,))
                self.calls.append(copied(source, made, (self._dtype(operand), dtype), fresh=True))
                return made
            case Elementwise():
                if not self._type(value).extents and region_extents(self.target.region):
                    return None
                if id(value) not in self.results:
                    self.results[id(value)] = self._elementwise(value, None)
                return self.results[id(value)]
            case _:
                return None

    def _taken(self, source: Visit, dtype: str) -> Visit:
        """Return the elements that a mask chooses: a choice for each of its places."""
        made = Visit(dense(source.region.counts, dtype))
        elements = product(source.region.counts)
        call = ArrayCall(ArrayOperation.WHERE, dtype, elements, made, (source,), fresh=True)
        self.calls.append(call)
        return made

    def _elementwise(self, value: Elementwise, place: Visit | None) -> Visit:
        masked = value.operation == "where" and place is not None and not self.masked
        parts = []
        for number, part in enumerate(value.operands):
            self.masked = self.masked or (masked and number == 1)
            parts.append(self._evaluated(part))
        dtype = self._dtype(value)
        operands = tuple(part for part in parts if part is not None)
        result = place or self._made(value, dtype, operands)
        loop_dtype = dtype
        if ROWS[value.operation].cost is ArrayOperation.COMPARE:
            found = [self._type(part).dtype for part in value.operands]
            loop_dtype = strong(promote(found[0], found[1]))
        operation = operation_class(
            _computed_by(value), loop_dtype, len(parts), by_one=parts[-1] is None
        )
        elements = product(result.region.counts)
        call = ArrayCall(operation, loop_dtype, elements, result, operands, fresh=place is None)
        if ROWS[value.operation].cost is ArrayOperation.COMPARE:
            for one, operand in zip(parts, value.operands, strict=True):
                # what is one number along a row is cast once for it
                if one is not None and one.region.counts[-1:] != (ONE,):
                    self.calls += cast(call, one, self._dtype(operand))
        self.calls.append(call)
        return result

    def _made(self, value: Value, dtype: str, operands: Sequence[Visit]) -> Visit:
        """Return the memory of an array that a part of the statement makes, in operands' order."""
        kept = without_points(self.target.memory, self.target.region).counts
        extents = self._type(value).extents
        # what is stored flat has fewer dimensions
        many = len(extents)
        shown = kept[len(kept) - many :] if many <= len(kept) else extents
        counts = tuple(
            ONE if extent == ONE else count for extent, count in zip(extents, shown, strict=True)
        )
        axes = (fastest(one.region) for one in operands)
        order: StorageOrder = "F" if next((one for one in axes if one is not None), 0) else "C"
        if self.target.fresh and len(counts) == len(self.target.memory.counts):
            order = self.target.order
        return Visit(dense(counts, dtype, order))


def _is_view(value: Value, types: Callable[[str], ArrayType]) -> bool:
    """Return whether a value is shown of an array's memory, and not the whole array."""
    match value:
        case Read(array, region):
            return not is_whole(region, types(array).extents)
        case Expand() | Transpose() | Flip():
            return True
        case _:
            return False


# The steps of an interpreter in a statement that computes one element from others.
#
# An element is a number of the array library: fetching and storing it takes longer than an
# operator, and a function of the library that is called for one number longer still. What variables
# hold is computed once for all its uses; where it is written out again beside its variable, that
# counts as the variable.


_LOAD, _STORE, _OPERATION, _CALL = "loads", "stores", "operations", "calls"
_FUNCTION = "functions"
_OPERATORS = re.compile(r"[-+*/%(]")


def interpretations(body: Iterable[Store], iterations: Expr) -> list[Interpretation]:
    """Return what is interpreted for each of some stores, which one iteration does in turn.

    Parameters
    ----------
    body : iterable of Store
        That compute single elements from single elements.
    iterations : Expr
    """
    found: list[Interpretation] = []
    known: set[Value] = set()
    for store in body:
        steps = _Steps(store, known)
        found.append(steps.interpretation(iterations, loop=not found))
        # what a variable got before an array was changed, it has still
        known |= steps.computed
    return found


def single(store: Store) -> Interpretation:
    """Return what is interpreted for a store to one element that no loop of its own repeats."""
    return _Steps(store, set()).interpretation(num(1), loop=False)


def steps_of(value: Value) -> Interpretation:
    """Return what is interpreted for a number that is computed from single elements."""
    number = Store("", (), value, Span(1, 0, 1, 0), variable="number")
    return _Steps(number, set()).interpretation(num(1), loop=False)


@dataclass(slots=True)
class _Steps:
    store: Store
    known: set[Value]
    counts: Counter[str] = field(default_factory=Counter)
    computed: set[Value] = field(default_factory=set)

    def interpretation(self, iterations: Expr, *, loop: bool) -> Interpretation:
        """Return the steps of the store."""
        store = self.store
        self._value(store.value)
        if not is_total(store) and not store.variable:
            self.counts[_STORE] += 1
        steps: dict[str, Any] = self.counts
        return Interpretation(iterations, loop=loop, **steps)

    def _value(self, value: Value) -> None:
        """Count what it takes to have a value."""
        store = self.store
        if store.variable and value == Read(store.array, store.region):
            return
        if any(value == known for _, known in store.held):
            if value in self.known or value in self.computed:
                return
            self.computed.add(value)
        match value:
            case Scalar(text):
                self.counts[_OPERATION] += text.count("(")
            case Read(_, region):
                self.counts[_LOAD] += bool(region)
                places = (to_text(one.at) for one in region if isinstance(one, Point))
                self.counts[_OPERATION] += sum(len(_OPERATORS.findall(one)) for one in places)
            case Gather():
                for one in value.all_places:
                    self._value(one)
                self.counts[_LOAD] += 1
            case Copy(operand, _):
                self._value(operand)
                self.counts[_OPERATION] += 1
            case Elementwise("where", parts, called=False):
                self._value(parts[0])
                self._longer(parts[1:])
            case Elementwise(operation, parts, called):
                for part in parts:
                    self._value(part)
                # a power takes about as long as two other operators
                self.counts[_CALL if called else _OPERATION] += 1
                self.counts[_OPERATION] += operation == "power"
                self.counts[_FUNCTION] += IN_PYTHON.get(operation, 0)
            case _:
                # what makes an array on the way is work of the library
                pass

    def _longer(self, ways: tuple[Value, ...]) -> None:
        """Count one of two ways, of which only the data know which is taken: the longer one."""
        counted: list[Counter[str]] = []
        for way in ways:
            one = _Steps(self.store, self.known | self.computed)
            one._value(way)
            counted.append(one.counts)
        _, longer = max((sum(one.values()), number) for number, one in enumerate(counted))
        self.counts += counted[longer]
