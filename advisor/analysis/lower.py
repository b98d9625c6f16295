"""From a kernel to the work of its slowest rank, as a term of the process algebra."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.analysis.communication import (
    Direction,
    NotPriced,
    covers,
    local_count,
    local_region,
    messages,
    needed,
)
from advisor.analysis.placement import (
    Placement,
    is_block,
    length_of,
    low_of,
    place,
)
from advisor.dtypes import itemsize_of
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType, ShapeConflict, describe, whole
from advisor.ir.statements import (
    Bind,
    Choice,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Stated,
    Statement,
    Store,
    Unknown,
    symbols,
    written,
)
from advisor.ir.values import (
    Copy,
    Elementwise,
    Fill,
    Flip,
    PeriodicPad,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Subscript,
    Value,
    operands,
)
from advisor.source import Span
from costdb.expr import Expr, ceil_div, num
from costdb.expr.nodes import Num
from costdb.process.terms import Branch, Leaf, Process, SeqLoop, Sequential
from costdb.work import (
    Access,
    Collective,
    CollectiveKind,
    Fixed,
    PrefixScan,
    Region,
)
from costdb.work import Statement as Computation

ZERO = num(0)
ONE = num(1)
STATEMENTS = "array statements"


class Unpriced(Exception):
    """A kernel that cannot be priced, with the statement that is the cause."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


def lower(kernel: Kernel) -> Process:
    """Return what the busiest rank does in one call of a kernel.

    Raises
    ------
    Unpriced
        At the first statement that is not understood, or that no rule lowers.
    """
    lowering = _Lowering(kernel, place(kernel))
    return Sequential(tuple(lowering.block(kernel.body)))


@dataclass(slots=True)
class _Operands:
    """What a fused array statement reads and computes."""

    reads: list[Read] = field(default_factory=list)
    temporaries: list[ArrayType] = field(default_factory=list)
    operations: int = 0


class _Lowering:
    def __init__(self, kernel: Kernel, placed: dict[str, Placement]) -> None:
        self.kernel = kernel
        self.placed = placed
        self.minima: dict[str, int] = {}
        # layers of neighbours' elements that are still what their owners hold
        self.held: dict[str, dict[Direction, tuple[Expr, ...]]] = {}
        self.before: list[Process] = []

    def block(self, statements: tuple[Statement, ...]) -> list[Process]:
        made: list[Process] = []
        for statement in statements:
            try:
                made.extend(self.statement(statement))
            except (NotPriced, ShapeConflict) as error:
                raise Unpriced(str(error), statement.span) from error
        return made

    def statement(self, statement: Statement) -> list[Process]:
        match statement:
            case Bind(name, value, _):
                made = self._bind(name, value)
            case Store(array, region, value, _):
                made = self._stored(array, region, value)
            case ScalarBind(_, value, _):
                made = self._scalar(value)
            case Loop():
                return self._loop(statement)
            case Choice(probability, then, orelse, _):
                return self._choice(probability, then, orelse)
            case Stated(microseconds, mentions, _):
                made = [Leaf(Fixed(microseconds))]
                self._forget(mentions)
            case Rename(names, _):
                self._forget(names)
                return []
            case Return():
                return []
            case Unknown(reason, _, _):
                raise NotPriced(reason)
        for name in written(statement):
            self.held.pop(name, None)
        return made

    def _forget(self, names: frozenset[str]) -> None:
        for name in names:
            self.held.pop(name, None)

    def _loop(self, loop: Loop) -> list[Process]:
        for name in frozenset().union(*map(written, loop.body)):
            self.held.pop(name, None)
        if not isinstance(loop.low, Num) or loop.low.value < 1:
            self.minima[loop.variable] = 0
        body = Sequential(tuple(self.block(loop.body)))
        if loop.step == 1:
            return [SeqLoop(loop.variable, loop.low, loop.high - 1, body)]
        if any(loop.variable in symbols(inner) for inner in loop.body):
            raise NotPriced("a loop with a step whose index is used")
        trips = ceil_div(loop.high - loop.low, num(loop.step))
        return [SeqLoop(loop.variable, ONE, trips, body)]

    def _choice(
        self, probability: Expr, then: tuple[Statement, ...], orelse: tuple[Statement, ...]
    ) -> list[Process]:
        held = {name: dict(layers) for name, layers in self.held.items()}
        first = Sequential(tuple(self.block(then)))
        self.held = held
        second = Sequential(tuple(self.block(orelse)))
        # either branch may have been taken, so nothing fetched in one of them is relied on
        self.held = {}
        return [Branch(probability, first, second)]

    def _type(self, name: str) -> ArrayType:
        return ArrayType(self.kernel.dtype(name), self.kernel.extents(name))

    def _placement(self, name: str) -> Placement:
        if name not in self.placed:
            raise NotPriced(f"nothing says how `{name}` is distributed")
        return self.placed[name]

    def _bind(self, name: str, value: Value) -> list[Process]:
        found = self._type(name)
        region = whole(found.extents)
        match value:
            case Scan() | Roll() | PeriodicPad() | Flip() | Reduction():
                return self._materialised(value, found, self._placement(name))
            case Fill("", _, _):
                return []
        return self._computed(value, region, found, self._placement(name))

    def _stored(self, array: str, region: tuple[Subscript, ...], value: Value) -> list[Process]:
        return self._computed(value, region, self._type(array), self._placement(array))

    def _computed(
        self,
        value: Value,
        region: tuple[Subscript, ...],
        found: ArrayType,
        placement: Placement,
    ) -> list[Process]:
        """Return one fused statement: its halos, its temporaries, its traversal."""
        gathered = _Operands()
        made = self._collect(value, gathered, region, placement)
        made += self._halos(gathered.reads, region, placement)
        counts = self._counts(region, placement)
        accesses = [Access(self._read_region(read, region, placement)) for read in gathered.reads]
        accesses += [
            Access(self._temporary_region(temporary, counts, placement))
            for temporary in gathered.temporaries
        ]
        accesses.append(Access(local_region(counts, found, placement), store=True))
        elements = ONE
        for count in counts:
            elements = elements * count
        made.append(Leaf(Computation(tuple(accesses), elements * gathered.operations, STATEMENTS)))
        return made

    def _counts(self, region: tuple[Subscript, ...], placement: Placement) -> tuple[Expr, ...]:
        return tuple(
            local_count(length_of(part), dimension, placement, self.minima)
            for dimension, part in enumerate(region)
        )

    def _collect(
        self,
        value: Value,
        gathered: _Operands,
        region: tuple[Subscript, ...],
        placement: Placement,
    ) -> list[Process]:
        match value:
            case Read():
                gathered.reads.append(value)
                return []
            case Scalar() | Fill():
                return []
            case Copy(operand, _):
                return self._collect(operand, gathered, region, placement)
            case Elementwise(_, parts):
                made = [
                    process
                    for part in parts
                    for process in self._collect(part, gathered, region, placement)
                ]
                gathered.operations += 1
                return made
        found = describe(value, self._type)
        kept = [d for d, part in enumerate(region) if isinstance(part, Range)]
        if len(found.extents) != len(kept):
            raise NotPriced("a reduced or scanned operand of other shape than its statement")
        gathered.temporaries.append(found)
        return self._materialised(value, found, placement)

    def _materialised(self, value: Value, found: ArrayType, placement: Placement) -> list[Process]:
        """Return the work of an operation that makes an array of its own."""
        assert not isinstance(value, Read | Scalar | Fill | Copy | Elementwise)
        made: list[Process] = []
        operand = value.operand
        source = describe(operand, self._type)
        if isinstance(operand, Read):
            inner = self._region_placement(operand)
        else:
            inner = placement
            if isinstance(operand, Copy | Elementwise):
                made += self._computed(operand, whole(source.extents), source, placement)
            else:
                made += self._materialised(operand, source, placement)
        match value:
            case Scan(_, axis, _, _, _):
                return [*made, self._scan(axis, found, inner)]
            case Roll(_, axis, amount):
                made += self._shifted(operand, {axis: -amount}, source, inner)
            case PeriodicPad(_, axis, before, after):
                # only the ends wrap around, and the ranks that hold them are the slowest
                for amount in (-before, after):
                    if amount != ZERO:
                        made += self._shifted(operand, {axis: amount}, source, inner)
            case Flip(_, axis):
                if inner.is_spread(axis):
                    raise NotPriced("a reversal along a distributed dimension")
            case Reduction(_, axis, _, _):
                return [*made, *self._reduction(axis, source, found, inner)]
        made.append(self._copy(source, found, inner, placement))
        return made

    def _region_placement(self, read: Read) -> Placement:
        outer = self._placement(read.array)
        kept = [d for d, part in enumerate(read.region) if isinstance(part, Range)]
        return Placement(
            tuple(outer.template[d] for d in kept),
            tuple(outer.origin[d] + low_of(read.region[d]) for d in kept),
            tuple(outer.dims[d] for d in kept),
            outer.mesh,
            outer.order,
        )

    def _shifted(
        self, operand: Value, by: dict[int, Expr], source: ArrayType, placement: Placement
    ) -> list[Process]:
        offset = tuple(by.get(dimension, ZERO) for dimension in range(len(source.extents)))
        name = operand.array if isinstance(operand, Read) else None
        return self._fetch(name, [offset], source, placement)

    def _fetch(
        self,
        name: str | None,
        offsets: list[tuple[Expr, ...]],
        found: ArrayType,
        placement: Placement,
    ) -> list[Process]:
        """Return the messages for layers that are not held already."""
        made: list[Process] = []
        held = {} if name is None else self.held.setdefault(name, {})
        for direction, depths in needed(offsets, placement, self.minima).items():
            known = held.get(direction)
            if known is not None and covers(known, depths):
                continue
            made += messages(direction, depths, found, placement, self.minima)
            held[direction] = depths
        return made

    def _copy(
        self, source: ArrayType, found: ArrayType, inner: Placement, placement: Placement
    ) -> Process:
        counts = self._counts(whole(found.extents), placement)
        read = local_region(self._counts(whole(source.extents), inner), source, inner)
        return Leaf(
            Computation(
                (Access(read), Access(local_region(counts, found, placement), store=True)),
                ZERO,
                STATEMENTS,
            )
        )

    def _scan(self, axis: int, found: ArrayType, placement: Placement) -> Process:
        if not is_block(placement.dims[axis]):
            raise NotPriced("a scan along a cyclically distributed dimension")
        counts = self._counts(whole(found.extents), placement)
        edge = tuple(ONE if d == axis else count for d, count in enumerate(counts))
        return Leaf(
            PrefixScan(
                ranks=placement.ranks(axis),
                edge=local_region(edge, found, placement),
                block=local_region(counts, found, placement),
                label=f"prefix scan, axis {axis}",
            )
        )

    def _reduction(
        self, axis: int | None, source: ArrayType, found: ArrayType, placement: Placement
    ) -> list[Process]:
        counts = self._counts(whole(source.extents), placement)
        elements = ONE
        for count in counts:
            elements = elements * count
        traversal = local_region(counts, source, placement)
        made: list[Process] = [Leaf(Computation((Access(traversal),), elements, STATEMENTS))]
        axes = range(len(counts)) if axis is None else (axis,)
        ranks = ONE
        for along in axes:
            ranks = ranks * placement.ranks(along)
        if ranks != ONE:
            kept = tuple(c for d, c in enumerate(counts) if axis is not None and d != axis)
            result = ArrayType(found.dtype, kept)
            region = _contiguous(result)
            made.append(Leaf(Collective(CollectiveKind.ALLREDUCE, ranks, region, "reduction")))
        return made

    def _scalar(self, value: Value) -> list[Process]:
        if isinstance(value, Reduction):
            found = describe(value, self._type)
            return self._materialised(value, found, self._any_placement(value))
        if isinstance(value, Read):
            placement = self._placement(value.array)
            ranks = ONE
            for dimension in range(len(placement.dims)):
                ranks = ranks * placement.ranks(dimension)
            if ranks == ONE:
                return []
            found = ArrayType(self.kernel.dtype(value.array), (ONE,))
            region = _contiguous(found)
            return [Leaf(Collective(CollectiveKind.BROADCAST, ranks, region, "broadcast"))]
        if all(isinstance(part, Scalar) for part in _leaves(value)):
            return []
        raise NotPriced("a number computed from arrays in a way that is not understood")

    def _any_placement(self, value: Reduction) -> Placement:
        if isinstance(value.operand, Read):
            return self._region_placement(value.operand)
        for leaf in _leaves(value.operand):
            if isinstance(leaf, Read):
                return self._region_placement(leaf)
        raise NotPriced("a reduction of something that is no array")

    def _halos(
        self, reads: list[Read], region: tuple[Subscript, ...], placement: Placement
    ) -> list[Process]:
        offsets: dict[str, list[tuple[Expr, ...]]] = {}
        for read in reads:
            offset = self._offset(read, region, placement)
            offsets.setdefault(read.array, []).append(offset)
        made: list[Process] = []
        for name, wanted in offsets.items():
            made += self._fetch(name, wanted, self._type(name), self._placement(name))
        return made

    def _offset(
        self, read: Read, region: tuple[Subscript, ...], placement: Placement
    ) -> tuple[Expr, ...]:
        """Return where a read lies relative to the element that is computed from it."""
        source = self._placement(read.array)
        if len(read.region) == len(region) and all(
            isinstance(one, Point) == isinstance(other, Point)
            for one, other in zip(read.region, region, strict=True)
        ):
            if not source.matches(placement):
                spread = any(
                    p.is_spread(d) for p in (source, placement) for d in range(len(p.dims))
                )
                if spread:
                    raise NotPriced(
                        f"`{read.array}` is distributed otherwise than the array computed from it"
                    )
            return tuple(
                (low_of(one) + source.origin[d]) - (low_of(other) + placement.origin[d])
                for d, (one, other) in enumerate(zip(read.region, region, strict=True))
            )
        if any(source.is_spread(d) for d in range(len(source.dims))):
            raise NotPriced(f"`{read.array}` is read across its distributed dimensions")
        return tuple(ZERO for _ in read.region)

    def _read_region(
        self, read: Read, region: tuple[Subscript, ...], placement: Placement
    ) -> Region:
        source = self._placement(read.array)
        found = self._type(read.array)
        counts = tuple(
            local_count(length_of(part), dimension, source, self.minima)
            for dimension, part in enumerate(read.region)
        )
        return local_region(counts, found, source)

    def _temporary_region(
        self, found: ArrayType, counts: tuple[Expr, ...], placement: Placement
    ) -> Region:
        return local_region(counts, found, placement)


def _contiguous(found: ArrayType) -> Region:
    size = itemsize_of(found.dtype)
    pitch: Expr = num(size)
    pitches: list[Expr] = []
    for extent in reversed(found.extents):
        pitches.append(pitch)
        pitch = pitch * extent
    return Region(size, found.extents or (ONE,), tuple(reversed(pitches)) or (num(size),))


def _leaves(value: Value) -> list[Value]:
    parts = operands(value)
    if not parts:
        return [value]
    return [leaf for part in parts for leaf in _leaves(part)]
