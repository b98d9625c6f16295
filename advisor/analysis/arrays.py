"""Work of array expressions: halos, traversals, and operations that make arrays of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.analysis.along import ONE, ZERO, Along
from advisor.analysis.communication import OneRead, Reach
from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.halos import Halos
from advisor.analysis.placement import (
    Placement,
    length_of,
    local_count,
    local_extents,
    low_of,
    pitches_bytes,
    region_placement,
    value_placement,
)
from advisor.distribution import CyclicDim
from advisor.dtypes import itemsize_of
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType, describe, is_whole, region_extents, whole
from advisor.ir.signs import largest
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    PeriodicPad,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Subscript,
    Transpose,
    Value,
)
from costdb.expr import Expr
from costdb.process.terms import NOTHING, Branch, Leaf, Process
from costdb.work import Access, Collective, CollectiveKind, Message, PrefixScan, Region, Statement

STATEMENTS = "array statements"

_NAMES: Mapping[type, str] = {
    Expand: "a new axis",
    Transpose: "a transposition",
    MatMul: "a matrix product",
    Fourier: "a Fourier transform",
    Sort: "a sort",
    Gather: "a gather",
}


@dataclass(frozen=True, slots=True)
class Operand:
    """A region of an array that a statement reads.

    Attributes
    ----------
    name : str or None
        None for an array that has no name.
    array : ArrayType
        The array behind the region.
    placement : Placement
        Of that array.
    region : tuple of Subscript
    """

    name: str | None
    array: ArrayType
    placement: Placement
    region: tuple[Subscript, ...]


@dataclass(slots=True)
class _Gathered:
    """What a fused array statement reads and computes."""

    operands: list[Operand] = field(default_factory=list)
    operations: int = 0


@dataclass(frozen=True, slots=True)
class Arrays:
    """A kernel's arrays at one point of it, and the work of expressions over them."""

    kernel: Kernel
    placed: Mapping[str, Placement]
    facts: Facts
    halos: Halos

    def type_of(self, name: str) -> ArrayType:
        """Return the element type and shape of a named array."""
        return ArrayType(self.kernel.dtype(name), self.kernel.extents(name))

    def placement(self, name: str) -> Placement:
        """Return where a named array lives."""
        if name not in self.placed:
            raise NotPriced(f"nothing says how `{name}` is distributed")
        return self.placed[name]

    def bound(self, name: str, value: Value) -> list[Process]:
        """Return the work of binding a name to a fresh array."""
        if isinstance(value, Fill) and not value.value:
            return []
        found, placement = self.type_of(name), self.placement(name)
        if _makes_array(value) and value_placement(value, self.placed) == placement:
            return self._made(value)[0]
        return self._computed(value, whole(found.extents), found, placement)

    def stored(self, name: str, region: tuple[Subscript, ...], value: Value) -> list[Process]:
        """Return the work of changing elements of an existing array."""
        return self._computed(value, region, self.type_of(name), self.placement(name))

    def number(self, value: Value) -> list[Process]:
        """Return the work of computing one number that all ranks then have."""
        match value:
            case Scalar():
                return []
            case Reduction():
                return self._made(value)[0]
            case Read(array, _):
                return self._broadcast(self.type_of(array), self.placement(array))
            case Elementwise(_, parts):
                return [process for part in parts for process in self.number(part)]
            case Copy(operand, _):
                return self.number(operand)
        raise NotPriced("a number computed from arrays in a way that is not understood")

    def _broadcast(self, found: ArrayType, placement: Placement) -> list[Process]:
        ranks = ONE
        for dimension in range(len(placement.dims)):
            ranks = ranks * placement.ranks(dimension)
        if ranks == ONE:
            return []
        region = Region(itemsize_of(found.dtype), (ONE,), (ONE * itemsize_of(found.dtype),))
        return [Leaf(Collective(CollectiveKind.BROADCAST, ranks, region, "broadcast"))]

    def _computed(
        self,
        value: Value,
        region: tuple[Subscript, ...],
        found: ArrayType,
        placement: Placement,
    ) -> list[Process]:
        """Return one fused statement: its temporaries, its halos, its traversal."""
        gathered = _Gathered()
        made = self._collect(value, gathered, region)
        made += self._halos(gathered.operands, region, placement)
        counts = tuple(
            local_count(placement, dimension, part, self.facts)
            for dimension, part in enumerate(region)
        )
        accesses = [
            Access(self._traversed(operand, region, counts)) for operand in gathered.operands
        ]
        accesses.append(Access(self._local(found, placement, counts), store=True))
        operations = ONE * gathered.operations
        for count in counts:
            operations = operations * count
        made.append(Leaf(Statement(tuple(accesses), operations, STATEMENTS)))
        return made

    def _collect(
        self, value: Value, gathered: _Gathered, region: tuple[Subscript, ...]
    ) -> list[Process]:
        """Gather the operands of a fused statement; return the work before it."""
        match value:
            case Scalar() | Fill():
                return []
            case Copy(operand, _):
                return self._collect(operand, gathered, region)
        one_element = not region_extents(region)
        if not one_element and not describe(value, self.type_of).extents:
            return self.number(value)
        match value:
            case Read(array, part):
                named = Operand(array, self.type_of(array), self.placement(array), part)
                gathered.operands.append(named)
                return []
            case Elementwise(_, parts):
                gathered.operations += 1
                return [p for part in parts for p in self._collect(part, gathered, region)]
        made, own = self._made(value)
        gathered.operands.append(own)
        return made

    def _made(self, value: Value) -> tuple[list[Process], Operand]:
        """Return the work of an operation that makes an array of its own, and that array."""
        match value:
            case Read(array, region):
                inner = region_placement(self.placement(array), region)
                part = ArrayType(self.kernel.dtype(array), region_extents(region))
                whole_array = is_whole(region, self.kernel.extents(array))
                name = array if whole_array else None
                return [], Operand(name, part, inner, whole(part.extents))
            case Scalar() | Fill() | Copy() | Elementwise():
                found = describe(value, self.type_of)
                placement = self._placed(value)
                made = self._computed(value, whole(found.extents), found, placement)
                return made, Operand(None, found, placement, whole(found.extents))
            case Scan() | Roll() | PeriodicPad() | Flip() | Reduction():
                pass
            case _:
                raise NotPriced(f"no rule prices this operation yet: {_NAMES[type(value)]}")
        made, source = self._made(value.operand)
        found = describe(value, self.type_of)
        if isinstance(value, Reduction):
            made += self._reduction(value.axis, source, found)
            placement = source.placement if value.axis is None else self._placed(value)
            return made, Operand(None, found, placement, whole(found.extents))
        placement = self._placed(value)
        match value:
            case Scan(_, axis, _, _, _):
                made.append(self._scan(axis, found, placement))
            case Roll(_, axis, amount):
                made += self._rolled(source, axis, amount)
                made.append(self._copy(source, found, placement))
            case PeriodicPad(_, axis, before, after):
                made += self._wrapped(source, axis, before, after)
                made.append(self._copy(source, found, placement))
            case Flip(_, axis):
                if placement.is_spread(axis):
                    raise NotPriced("a reversal along a distributed dimension")
                made.append(self._copy(source, found, placement))
        return made, Operand(None, found, placement, whole(found.extents))

    def _placed(self, value: Value) -> Placement:
        placement = value_placement(value, self.placed)
        if placement is None:
            raise NotPriced("an array that nothing says how it is distributed")
        return placement

    def _rolled(self, source: Operand, axis: int, amount: Expr) -> list[Process]:
        if not source.placement.is_spread(axis):
            return []
        dimensions = range(len(source.array.extents))
        spread = [d for d in dimensions if source.placement.is_spread(d)]
        reach = Reach(
            source.array,
            source.placement,
            {d: source.placement.along(d, source.region[d]) for d in spread},
            (
                OneRead(
                    {d: -amount if d == axis else ZERO for d in spread},
                    {d: (ZERO, source.array.extents[d]) for d in dimensions if d not in spread},
                ),
            ),
            wraps_after=source.array.extents[axis],
        )
        return self.halos.fetch(source.name, reach, self.facts)

    def _wrapped(self, source: Operand, axis: int, before: Expr, after: Expr) -> list[Process]:
        """Return what the ranks at the ends fetch; no rank is at both, unless it is alone."""
        placement, found = source.placement, source.array
        if not placement.is_spread(axis):
            return []
        if isinstance(placement.dims[axis], CyclicDim):
            raise NotPriced("a periodic rim along a cyclically distributed dimension")
        extents = local_extents(placement, found.extents, self.facts)
        layers = largest((before, after), self.facts.minima)
        counts = tuple(layers if d == axis else extent for d, extent in enumerate(extents))
        message = Message(self._local(found, placement, counts), f"halo messages, axis {axis}")
        several = placement.along(axis, source.region[axis]).several
        return [Leaf(message) if several == ONE else Branch(several, Leaf(message), NOTHING)]

    def _copy(self, source: Operand, found: ArrayType, placement: Placement) -> Process:
        read = local_extents(source.placement, source.array.extents, self.facts)
        stored = local_extents(placement, found.extents, self.facts)
        accesses = (
            Access(self._local(source.array, source.placement, read)),
            Access(self._local(found, placement, stored), store=True),
        )
        return Leaf(Statement(accesses, ZERO, STATEMENTS))

    def _scan(self, axis: int, found: ArrayType, placement: Placement) -> Process:
        if isinstance(placement.dims[axis], CyclicDim) and placement.is_spread(axis):
            raise NotPriced("a scan along a cyclically distributed dimension")
        counts = local_extents(placement, found.extents, self.facts)
        edge = tuple(ONE if d == axis else count for d, count in enumerate(counts))
        return Leaf(
            PrefixScan(
                ranks=placement.ranks(axis),
                edge=self._local(found, placement, edge),
                block=self._local(found, placement, counts),
                label=f"prefix scan, axis {axis}",
            )
        )

    def _reduction(self, axis: int | None, source: Operand, found: ArrayType) -> list[Process]:
        placement = source.placement
        counts = local_extents(placement, source.array.extents, self.facts)
        elements = ONE
        for count in counts:
            elements = elements * count
        traversal = Access(self._local(source.array, placement, counts))
        made: list[Process] = [Leaf(Statement((traversal,), elements, STATEMENTS))]
        ranks = ONE
        for along in range(len(counts)) if axis is None else (axis,):
            ranks = ranks * placement.ranks(along)
        if ranks != ONE:
            kept = tuple(c for d, c in enumerate(counts) if axis is not None and d != axis)
            itemsize = itemsize_of(found.dtype)
            region = Region(itemsize, kept or (ONE,), pitches_bytes(kept or (ONE,), "C", itemsize))
            made.append(Leaf(Collective(CollectiveKind.ALLREDUCE, ranks, region, "reduction")))
        return made

    def _halos(
        self, operands: list[Operand], region: tuple[Subscript, ...], placement: Placement
    ) -> list[Process]:
        together: dict[tuple[object, ...], tuple[Operand, dict[int, Along], list[OneRead]]] = {}
        for operand in operands:
            spread, read = self._relative(operand, region, placement)
            if spread:
                unnamed = None if operand.name else id(operand)
                key = (operand.name, unnamed, *sorted(spread.items()))
                together.setdefault(key, (operand, spread, []))[2].append(read)
        made: list[Process] = []
        for operand, spread, reads in together.values():
            reach = Reach(operand.array, operand.placement, spread, tuple(reads))
            made += self.halos.fetch(operand.name, reach, self.facts)
        return made

    def _relative(
        self, operand: Operand, region: tuple[Subscript, ...], placement: Placement
    ) -> tuple[dict[int, Along], OneRead]:
        """Return where an operand lies relative to the elements that are computed from it."""
        source = operand.placement
        spread: dict[int, Along] = {}
        offsets: dict[int, Expr] = {}
        ranges: dict[int, tuple[Expr, Expr]] = {}
        for own, target in paired(operand.region, region):
            part = operand.region[own]
            if not source.is_spread(own):
                low = low_of(part)
                ranges[own] = (low, low + length_of(part))
                continue
            if target is None:
                raise NotPriced(f"{_called(operand)} is read across its distributed dimensions")
            if not source.along_as(own, placement, target):
                raise NotPriced(
                    f"{_called(operand)} is distributed otherwise than the array computed from it"
                )
            if length_of(part) != length_of(region[target]):
                raise NotPriced(f"{_called(operand)} is read across its distributed dimensions")
            spread[own] = placement.along(target, region[target])
            offsets[own] = (low_of(part) + source.origin[own]) - spread[own].low
        return spread, OneRead(offsets, ranges)

    def _traversed(
        self, operand: Operand, region: tuple[Subscript, ...], counts: tuple[Expr, ...]
    ) -> Region:
        """Return the memory that an operand's elements are loaded from, one for each computed."""
        itemsize = itemsize_of(operand.array.dtype)
        extents = local_extents(operand.placement, operand.array.extents, self.facts)
        pitches = pitches_bytes(extents, operand.placement.order, itemsize)
        steps = [ZERO] * len(region)
        for own, target in paired(operand.region, region):
            part = operand.region[own]
            if target is not None and isinstance(part, Range) and length_of(part) != ONE:
                steps[target] = pitches[own]
        return Region(itemsize, counts, tuple(steps))

    def _local(self, found: ArrayType, placement: Placement, counts: tuple[Expr, ...]) -> Region:
        """Return a region of one rank's part of an array."""
        itemsize = itemsize_of(found.dtype)
        extents = local_extents(placement, found.extents, self.facts)
        return Region(itemsize, counts, pitches_bytes(extents, placement.order, itemsize))


def paired(
    part: tuple[Subscript, ...], region: tuple[Subscript, ...]
) -> list[tuple[int, int | None]]:
    """Return, for each dimension of what is read, the dimension of the target it goes with.

    Where both single out indices of the same dimensions, those go together; otherwise the
    dimensions that are left go together from the last one backwards, as NumPy broadcasts.
    """
    points = [isinstance(one, Point) for one in part]
    if points == [isinstance(other, Point) for other in region]:
        return [(dimension, dimension) for dimension in range(len(part))]
    kept = [dimension for dimension, one in enumerate(part) if isinstance(one, Range)]
    targets = [dimension for dimension, one in enumerate(region) if isinstance(one, Range)]
    going = dict(zip(reversed(kept), reversed(targets), strict=False))
    return [(dimension, going.get(dimension)) for dimension in range(len(part))]


def _makes_array(value: Value) -> bool:
    return isinstance(value, Scan | Roll | PeriodicPad | Flip | Reduction)


def _called(operand: Operand) -> str:
    return "an intermediate array" if operand.name is None else f"`{operand.name}`"
