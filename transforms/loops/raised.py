"""# ADV504 loop-of-array-statements

**What it does.** Finds loops whose iterations are array statements already, a row, a column or a
product at a time, and proposes one statement over all iterations: the index of the loop becomes an
axis. Where each iteration adds to the same elements, the sum over the index becomes a product of
matrices or vectors.

**Why it costs.** Every array statement costs the interpreter and NumPy a microsecond or more,
whatever its length, and many short ones leave caches and vector units idle. A product of matrices
does the work of thousands of vector products with each number fetched once.

**Example**

```python
for k in range(a.shape[1]):
    c[i, :i + 1] += alpha * a[i, k] * a[:i + 1, k]
```

**Use instead**

```python
c[i, :i + 1] += alpha * (a[:i + 1, :] @ a[i, :])
```

**When it stays quiet.** Iterations that read what an earlier one wrote; slices whose ends move with
the index, as in a triangle; an index used as a number; transforms, sorts and scans; what a compiler
takes. Of the loops around, each is tried alone.

**Fix safety.** Safe where every element is computed by the same operations, each rounded exactly,
and no two arrays of the caller are involved that might overlap in memory. Unsafe for sums and
products of floating-point numbers, whose terms come in another order.

**Models used.** Arrays (calls, elements, cache lines), where the profile has their rates.

**References.** Loop distribution and vector form: Allen and Kennedy, Automatic Translation of
Fortran Programs to Vector Form, 1987.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.dependence import carried
from advisor.ir.kernel import Kernel
from advisor.ir.nests import index_name
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.rebuilt import symbols
from advisor.ir.shapes import ShapeConflict, kind_of_or_none
from advisor.ir.statements import Loop, Statement, Store, Threads, walk
from advisor.ir.values import (
    Elementwise,
    Expand,
    MatMul,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Strided,
    Subscript,
    Transpose,
    Value,
    parts_of,
    reads,
)
from advisor.numpy_table import PYTHON_INTEGER, REDUCTIONS, reduced_dtype
from advisor.source import Edit
from costdb.expr import Expr, free_symbols, maximum, sym
from transforms.kit.kernels import (
    compiled,
    is_compiled_alone,
    type_of,
    unless_apart,
    with_statement,
)
from transforms.kit.rewrite import first_line, python_text, replace_statement, stands_alone
from transforms.kit.rule import KernelRule
from transforms.kit.slices import ZERO, proofs
from transforms.loops.array_statements import inexact

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
_LOOSE, _SUM, _PRODUCT, _TIGHT = range(4)
_LEVELS = {"add": _SUM, "subtract": _SUM, "multiply": _PRODUCT, "divide": _PRODUCT}
_SUMS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


class _NotRaised(Exception):
    """A part that has no form with the index as an axis."""


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement over all iterations for each loop of array statements."""
    if is_compiled_alone(kernel):
        return
    for outer, loop in _loops(kernel.body, ()):
        if any(_is_of_arrays(one) for one in _stores(loop.body)):
            try:
                stores = raised(loop, outer, kernel)
            except (_NotRaised, ShapeConflict):
                continue
            # what has no words here is no better written by somebody else
            if _edits(loop, stores, kernel):
                yield _proposal(loop, stores, kernel)


def raised(loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> tuple[Store, ...]:
    """Return statements that do what all iterations of a loop do, within some outer ones.

    Raises
    ------
    _NotRaised
        There are none, or none are found.
    """
    name = index_name(loop.variable)
    plain = loop.step == 1 and not loop.stated and loop.threads is Threads.NO
    named = kernel.context.scalar_texts.get(loop.variable) == name
    if not plain or not named or name in kernel.observed:
        raise _NotRaised
    stores: list[Store] = []
    for statement in loop.body:
        if isinstance(statement, Loop):
            stores += raised(statement, (*outer, loop), kernel)
        elif isinstance(statement, Store) and statement.region:
            stores.append(statement)
        else:
            raise _NotRaised
    lift = _Lift(loop, outer, kernel)
    parts = [part for one in stores for part in parts_of(one.value)]
    if not all(map(lift.is_there, stores)) or not all(map(lift.is_of_usual_type, parts)):
        raise _NotRaised
    if all(lift.is_free(Read(one.array, one.region)) for one in stores):
        return tuple(_added_up(one, stores, lift) for one in stores)
    if carried(replace(loop, body=tuple(stores))):
        raise _NotRaised
    return tuple(lift.store(one) for one in stores)


def _loops(
    body: Sequence[Statement], outer: tuple[Loop, ...]
) -> Iterator[tuple[tuple[Loop, ...], Loop]]:
    for statement in body:
        if isinstance(statement, Loop):
            yield outer, statement
            yield from _loops(statement.body, (*outer, statement))


def _stores(body: Sequence[Statement]) -> Iterator[Store]:
    return (one for one in walk(tuple(body)) if isinstance(one, Store))


def _is_of_arrays(store: Store) -> bool:
    return any(not isinstance(part, Point) for part in store.region) or any(
        isinstance(part, Reduction) for part in parts_of(store.value)
    )


def _rank(region: Sequence[Subscript]) -> int:
    return sum(not isinstance(part, Point) for part in region)


class _Lift:
    """Makes an axis of the index of a loop."""

    def __init__(self, loop: Loop, outer: tuple[Loop, ...], kernel: Kernel) -> None:
        self.variable, self.low, self.high, self.kernel = loop.variable, loop.low, loop.high, kernel
        self.word = re.compile(rf"\b{re.escape(index_name(loop.variable))}\b")
        self.proofs = proofs(kernel, outer)

    def is_free(self, value: Value) -> bool:
        """Return whether a value is the same in all iterations."""
        return self.variable not in symbols(value) and not any(
            isinstance(part, Scalar) and self.word.search(part.text) for part in parts_of(value)
        )

    def is_of_usual_type(self, value: Value) -> bool:
        """Return whether a reduction has the type that NumPy chooses: no other is written out."""
        if not isinstance(value, Reduction) or value.fused or value.operation not in _SUMS:
            return True
        found = type_of(value.operand, self.kernel).dtype
        return value.dtype == reduced_dtype(REDUCTIONS[_SUMS[value.operation]].result, found)

    def rank(self, value: Value) -> int:
        """Return how many axes a value has in one iteration."""
        return len(type_of(value, self.kernel).extents)

    def region(self, array: str, region: Sequence[Subscript]) -> tuple[tuple[Subscript, ...], int]:
        """Return a region with the index as a slice, and which axis of it that is."""
        made, axis = list(region), -1
        for number, part in enumerate(region):
            if self.variable not in symbols(part):
                continue
            if not isinstance(part, Point) or axis >= 0:
                raise _NotRaised
            shift = part.at - sym(self.variable)
            if self.variable in free_symbols(shift):
                raise _NotRaised
            extent = self.kernel.extents(array)[number]
            made[number] = Range(self.low + shift, self.end(self.high + shift, shift, extent))
            axis = _rank(region[:number])
        if axis < 0:
            raise _NotRaised
        return tuple(made), axis

    def is_there(self, store: Store) -> bool:
        """Return whether single elements exist also where the loop has no iteration."""
        places = (Read(store.array, store.region), *reads(store.value))
        return self.kernel.runs_through or all(
            self.variable in free_symbols(part.at) or self.proofs.non_negative(extent - part.at - 1)
            for read in places
            for part, extent in zip(read.region, self.kernel.extents(read.array), strict=True)
            if isinstance(part, Point)
        )

    def end(self, stop: Expr, shift: Expr, extent: Expr) -> Expr:
        """Return where a slice ends: a negative bound would count from the end of the array."""
        start = self.low + shift
        known = self.kernel.runs_through or self.proofs.non_negative(stop)
        if known or self.proofs.empty_when_negative(start, stop, extent):
            return stop
        return maximum(0, stop)

    def store(self, store: Store) -> Store:
        """Return the statement that stores what all iterations do."""
        region, axis = self.region(store.array, store.region)
        rank = _rank(store.region)
        value, own = self.value(store.value, rank - axis)
        made = self.aligned(value, own, self.rank(store.value), rank, axis)
        return replace(store, region=region, value=made)

    def value(self, value: Value, behind: int | None = None) -> tuple[Value, int | None]:
        """Return a value for all iterations, and which of its axes is the index; None: none is.

        There are so many axes `behind` it in what it is stored in; None: that does not matter.
        """
        if self.is_free(value):
            return value, None
        match value:
            case Read(array, region):
                made, axis = self.region(array, region)
                return Read(array, made), axis
            case Elementwise(_, operands):
                return self.elementwise(value, operands, behind)
            case Reduction(Elementwise("multiply", (one, other)), _, "add", _, fused=True):
                return self.product(value, one, other)
            case Reduction(operand, along, _, _, fused=False):
                inner, place = self.value(operand)
                assert place is not None
                if along is None:
                    if self.rank(operand) != 1:
                        raise _NotRaised
                    along = 0
                moved = along + (place <= along)
                return replace(value, operand=inner, axis=moved), place - (moved < place)
            case Expand(operand, at):
                inner, place = self.value(operand)
                assert place is not None
                return Expand(inner, at + 1 if place <= at else at), place + (place > at)
            case _:
                raise _NotRaised

    def elementwise(
        self, value: Elementwise, operands: Sequence[Value], behind: int | None
    ) -> tuple[Value, int | None]:
        lifted = [(*self.value(one, behind), self.rank(one)) for one in operands]
        rank = max(own for _, _, own in lifted)
        if behind is None:
            # as the operand has it that has most axes
            found = [(own, own - place) for _, place, own in lifted if place is not None]
            behind = max(found)[1]
        axis = max(0, rank - behind)
        parts = tuple(self.aligned(v, place, own, rank, axis) for v, place, own in lifted)
        return replace(value, operands=parts), axis

    def product(self, value: Reduction, one: Value, other: Value) -> tuple[Value, int | None]:
        """Return a product of vectors, or of a matrix and a vector, for all iterations."""
        if value.axis is None:
            vector, moving = (one, other) if self.is_free(one) else (other, one)
            if not self.is_free(vector):
                raise _NotRaised
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
        raise _NotRaised

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


def _added_up(store: Store, stores: Sequence[Store], lift: _Lift) -> Store:
    """Return the statement that adds what all iterations add to the same elements."""
    match store.value:
        case Elementwise("add" | "subtract" as operation, (Read() as known, added)):
            pass
        case _:
            raise _NotRaised
    own = known == Read(store.array, store.region) and store.in_place
    others = [read for one in stores if one is not store for read in reads(one.value)]
    touched = {read.array for read in (*reads(added), *others)}
    targets = [one.array for one in stores]
    if not own or store.array in touched or targets.count(store.array) > 1:
        raise _NotRaised
    dtype = type_of(added, lift.kernel).dtype
    return replace(store, value=Elementwise(operation, (known, _sum(added, dtype, lift))))


def _sum(value: Value, dtype: str, lift: _Lift) -> Value:
    """Return the sum of a value over the index."""
    if isinstance(value, Elementwise) and value.operation in ("add", "subtract"):
        if any(map(lift.is_free, value.operands)):
            raise _NotRaised
        return replace(value, operands=tuple(_sum(one, dtype, lift) for one in value.operands))
    factors = list(_factors(value))
    summed = _summed([one for one in factors if not lift.is_free(one)], dtype, lift)
    for one in reversed([one for one in factors if lift.is_free(one)]):
        summed = Elementwise("multiply", (one, summed))
    return summed


def _factors(value: Value) -> Iterator[Value]:
    if isinstance(value, Elementwise) and value.operation == "multiply":
        for one in value.operands:
            yield from _factors(one)
    else:
        yield value


def _summed(moving: Sequence[Value], dtype: str, lift: _Lift) -> Value:
    """Return the sum over the index of a product of what changes with it."""
    if len(moving) == 1:
        value, place = lift.value(moving[0])
        return Reduction(value, place, "add", reduced_dtype("sum", dtype))
    if len(moving) != 2:
        raise _NotRaised
    like = Reduction(moving[0], None, "add", dtype, fused=True)
    first, second = sorted(moving, key=lift.rank)
    (one, _), (other, place) = lift.value(first), lift.value(second)
    match lift.rank(first), lift.rank(second):
        case 0, 0:
            return replace(like, operand=Elementwise("multiply", (one, other)))
        case 0, 1:
            return (_times_from_left if place == 0 else _times)(
                *((one, other) if place == 0 else (other, one)), like
            )
        case 1, 2 if isinstance(second, Expand) and second.axis == 1:
            # an outer product in each iteration
            (rows, at), (columns, there) = lift.value(second.operand), lift.value(first)
            left = rows if at == 1 else _turned(rows)
            return MatMul(left, columns if there == 0 else _turned(columns))
        case _:
            raise _NotRaised


# --- what it is offered as ----------------------------------------------------------------------


def _proposal(loop: Loop, stores: tuple[Store, ...], kernel: Kernel) -> Proposal:
    name = index_name(loop.variable)
    many = "one array statement" if len(stores) == 1 else "array statements over all of it"
    return Proposal(
        title=f"replace the loop over `{name}` by {many}",
        reason="one call does what every iteration calls NumPy for",
        span=first_line(loop.span, kernel.context),
        variant=kernel.with_body(with_statement(kernel.body, loop, stores)),
        legality=_legality(stores, kernel),
        edits=partial(_edits, loop, stores, kernel),
    )


def _legality(stores: Sequence[Store], kernel: Kernel) -> Legality:
    left_alone = compiled(kernel)
    if left_alone is not None:
        return left_alone
    for store in stores:
        sums = any(isinstance(part, Reduction | MatMul) for part in parts_of(store.value))
        if sums and kind_of_or_none(kernel.dtype(store.array)) is not Kind.INTEGER:
            return Legality(Applicability.UNSAFE, "sums are rounded in another order")
        rounded = next(inexact(store, kernel), None)
        if rounded is not None:
            return Legality(Applicability.UNSAFE, f"{rounded} may be rounded otherwise")
    shared = unless_apart(stores, kernel)
    if shared is not None:
        return shared
    return Legality(
        Applicability.SAFE,
        "no iteration reads what an earlier one wrote, and each element is computed by the same"
        " operations",
    )


def _edits(loop: Loop, stores: Sequence[Store], kernel: Kernel) -> tuple[Edit, ...]:
    if not stands_alone(kernel.context, loop.span):
        return ()
    texts = [_statement(one, kernel) for one in stores]
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return ()
    return (replace_statement(loop.span, known, kernel.context),)


def _statement(store: Store, kernel: Kernel) -> str | None:
    target = Read(store.array, store.region)
    match store.value:
        case Elementwise(operation, (Read() as known, value)) if (
            store.in_place and known == target and operation in _OPERATORS
        ):
            sign, text = f"{_OPERATORS[operation]}=", _text(value, kernel)
        case value:
            sign, text = "=", _text(value, kernel)
    place = _text(target, kernel)
    if place == store.array and sign == "=":
        place = f"{place}[:]"
    return None if place is None or text is None else f"{place} {sign} {text}"


def _text(value: Value, kernel: Kernel, level: int = _LOOSE) -> str | None:
    """Return a value as source, in parentheses where it binds less than `level`."""
    module = kernel.context.array_module
    match value:
        case Read():
            return _read(value, (), kernel)
        case Scalar(text, dtype):
            return _number(text, dtype, kernel)
        case Expand(Read() as read, axis):
            return _read(read, (axis,), kernel)
        case Expand(Expand(Read() as read, first), second):
            return _read(read, (first, second), kernel)
        case Transpose(operand, (1, 0)):
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"{inner}.T"
        case MatMul(left, right):
            return _joined("@", left, right, _PRODUCT, level, kernel)
        case Reduction(Elementwise("multiply", (one, other)), axis, "add", _, fused=True):
            if axis == 1 and isinstance(other, Expand):
                other = other.operand
            elif axis == 0 and isinstance(one, Expand):
                one = one.operand
            return _joined("@", one, other, _PRODUCT, level, kernel)
        case Reduction(operand, axis, operation, _, fused=False) if operation in _SUMS:
            inner = _text(operand, kernel, _TIGHT)
            along = "" if axis is None else f"axis={axis}"
            return None if inner is None else f"{inner}.{_SUMS[operation]}({along})"
        case Elementwise("negative", (operand,)):
            inner = _text(operand, kernel, _TIGHT)
            return None if inner is None else f"-{inner}"
        case Elementwise(operation, (left, right)) if operation in _LEVELS:
            own = _LEVELS[operation]
            return _joined(_OPERATORS[operation], left, right, own, level, kernel)
        case Elementwise(operation, operands) if module is not None and operation.isidentifier():
            parts = [_text(one, kernel) for one in operands]
            known = [part for part in parts if part is not None]
            whole = len(known) == len(parts)
            return f"{module}.{operation}({', '.join(known)})" if whole else None
    return None


def _number(text: str, dtype: str, kernel: Kernel) -> str | None:
    """Return a number as source: a literal, or a name that the source has for it.

    What is computed stands there by the name of the function, and what modules hold by theirs.
    """
    if text.isidentifier():
        known = kernel.context.scalar_texts.get(text) if dtype == PYTHON_INTEGER else None
        return known or (text if text in kernel.context.identifiers else None)
    try:
        return text if float(text) >= 0 else f"({text})"
    except ValueError:
        return None


def _joined(
    sign: str, left: Value, right: Value, own: int, level: int, kernel: Kernel
) -> str | None:
    # products of matrices and of numbers stand beside each other from left to right
    one = _text(left, kernel, own if sign != "@" else _TIGHT)
    other = _text(right, kernel, own + 1)
    if one is None or other is None:
        return None
    text = f"{one} {sign} {other}"
    return f"({text})" if own < level else text


def _read(read: Read, new_axes: Sequence[int], kernel: Kernel) -> str | None:
    texts = kernel.context.scalar_texts
    extents = kernel.extents(read.array)
    parts: list[str] = []
    for part, extent in zip(read.region, extents, strict=True):
        match part:
            case Point(at):
                ends = [python_text(at, texts)]
            case Range(low, high):
                ends = ["" if low == ZERO else python_text(low, texts)]
                ends.append("" if high == extent else python_text(high, texts))
            case Strided():
                return None
        if any(end is None for end in ends):
            return None
        parts.append(":".join(end for end in ends if end is not None))
    kept = [number for number, part in enumerate(read.region) if not isinstance(part, Point)]
    for axis in new_axes:
        place = kept[axis] if axis < len(kept) else len(parts)
        parts.insert(place, "None")
        kept = [n + (n >= place) for n in kept]
        kept.insert(axis, place)
    if all(part == ":" for part in parts):
        return read.array
    return f"{read.array}[{', '.join(parts)}]"


TRANSFORM = KernelRule("ADV504", "loop-of-array-statements", __doc__ or "", propose)
