"""Work of array expressions: halos, traversals, and operations that make arrays of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from advisor.analysis.array_statements import calls, operations
from advisor.analysis.array_statements.interpreted import is_compiled, single
from advisor.analysis.array_statements.operations import PRODUCTS, STATEMENTS
from advisor.analysis.array_statements.traversals import advance, traversed
from advisor.analysis.facts import Facts, NotPriced
from advisor.analysis.placed.operands import (
    Operand,
    Pairs,
    local_region,
    pairs_of,
    selected,
    stretched,
)
from advisor.analysis.placed.owners import value_placement
from advisor.analysis.placed.placement import (
    NOWHERE,
    Placement,
    local_count,
    local_extents,
    pitches_bytes,
    region_placement,
)
from advisor.analysis.transfers.halos import Halos
from advisor.analysis.transfers.messages import fetch
from advisor.analysis.transfers.reads import fetched
from advisor.distribution import NotDistributed
from advisor.dtypes import itemsize_of
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType, describe, is_whole, region_extents, whole
from advisor.ir.statements import Scatter, Store, is_total
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
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Strided,
    Subscript,
    Tally,
    Transpose,
    Value,
    reads,
)
from advisor.numpy_table import strong
from costdb.expr import ONE, ZERO, Expr
from costdb.process.terms import Leaf, Process
from costdb.work import (
    Access,
    ArrayCall,
    ArrayOperation,
    Interpretation,
    Region,
    Statement,
    Visit,
)


@dataclass(slots=True)
class _Gathered:
    """What a fused array statement reads and computes."""

    operands: list[Operand] = field(default_factory=list)
    operations: int = 0
    leaves: dict[int, Operand] = field(default_factory=dict)

    def add(self, value: Value, operand: Operand) -> None:
        """Note where a value comes from."""
        self.operands.append(operand)
        self.leaves[id(value)] = operand


@dataclass(frozen=True, slots=True)
class Arrays:
    """A kernel's arrays at one point of it, and the work of expressions over them.

    Attributes
    ----------
    kernel : Kernel
    placed : mapping of str to Placement
    facts : Facts
    halos : Halos
    in_calls : bool
        Whether to find the calls of the library that a statement consists of, besides what it
        touches and computes as a whole.
    """

    kernel: Kernel
    placed: Mapping[str, Placement]
    facts: Facts
    halos: Halos
    in_calls: bool = True

    def type_of(self, name: str) -> ArrayType:
        """Return the element type and shape of a named array."""
        return ArrayType(self.kernel.dtype(name), self.kernel.extents(name))

    def placement(self, name: str) -> Placement:
        """Return where a named array lives."""
        if name not in self.placed:
            raise NotPriced(f"nothing says how `{name}` is distributed")
        return self.placed[name]

    def sizes_bytes(self) -> Iterator[Expr]:
        """Yield the bytes that the busiest rank holds of every array."""
        for name, placement in self.placed.items():
            found = self.type_of(name)
            extents = local_extents(placement, found.extents, self.facts)
            yield calls.product(extents) * itemsize_of(found.dtype)

    def bound(self, name: str, value: Value) -> list[Process]:
        """Return the work of binding a name to a fresh array."""
        if isinstance(value, Fill) and not value.value:
            return []
        found, placement = self.type_of(name), self.placement(name)
        if _makes_array(value) and value_placement(value, self.placed) == placement:
            return self._made(value)[0]
        return self._computed(value, whole(found.extents), found, placement, name)

    def stored(self, store: Store) -> list[Process]:
        """Return the work of changing elements of an existing array."""
        if is_total(store):
            # outside of loops over elements, each rank does it for itself
            return self.number(store.value)
        found, placement = self.type_of(store.array), self.placement(store.array)
        made = self._computed(
            store.value, store.region, found, placement, store.array, in_place=store.in_place
        )
        if self.in_calls and _is_single(store.region):
            made.append(Leaf(single(store)))
        return made

    def number(self, value: Value) -> list[Process]:
        """Return the work of computing one number that all ranks then have."""
        match value:
            case Scalar() | Read(_, ()):
                return []
            case Reduction():
                return self._made(value)[0]
            case Read(array, _):
                return operations.broadcast(self.type_of(array), self.placement(array))
            case Elementwise(_, parts):
                return [process for part in parts for process in self.number(part)]
            case Copy(operand, _):
                return self.number(operand)
        raise NotPriced("a number computed from arrays in a way that is not understood")

    def _computed(
        self,
        value: Value,
        region: tuple[Subscript, ...],
        found: ArrayType,
        placement: Placement,
        name: str = "",
        *,
        in_place: bool | None = None,
    ) -> list[Process]:
        """Return one fused statement: its temporaries, its halos, its traversal.

        It changes elements of a named array where `in_place` is not None, and else makes one.
        """
        gathered = _Gathered()
        made = self._collect(value, gathered, region, placement)
        gathered.operands = [stretched(operand, region) for operand in gathered.operands]
        pairs = [(operand, pairs_of(operand, region)) for operand in gathered.operands]
        made += fetched(pairs, region, placement, self.facts, self.halos)
        counts = tuple(
            local_count(placement, dimension, part, self.facts)
            for dimension, part in enumerate(region)
        )
        accesses = [
            Access(traversed(operand, region, counts, self.facts)) for operand in gathered.operands
        ]
        memory = selected(found, placement, region, counts, self.facts)
        accesses.append(Access(memory, store=True))
        operations = ONE * gathered.operations
        for count in counts:
            operations = operations * count
        # what is compiled is one loop, and calls no library
        made_of: tuple[ArrayCall, ...] | None = None if is_compiled(self.kernel) else ()
        # a single element is the interpreter's own work
        if self.in_calls and not _is_single(region):
            walked = [(operand.name or "", operand.region) for operand in gathered.operands]
            target = calls.Target(
                name,
                found,
                region,
                memory,
                placement.order,
                in_place is None,
                bool(in_place),
                self._advance(name, region, walked),
            )
            leaves = {
                key: calls.Leaf(
                    traversed(operand, region, counts, self.facts),
                    operand.name or "",
                    operand.region,
                    self._advance(operand.name or "", operand.region, walked),
                )
                for key, operand in gathered.leaves.items()
            }
            made_of = calls.Evaluation(target, self.type_of, leaves).run(value)
        made.append(Leaf(Statement(tuple(accesses), operations, STATEMENTS, made_of)))
        return made

    def _advance(
        self,
        name: str,
        region: tuple[Subscript, ...],
        others: list[tuple[str, tuple[Subscript, ...]]],
    ) -> Expr | None:
        if not name:
            return None
        found, placement = self.type_of(name), self.placement(name)
        return advance(name, found, placement, region, others, self.facts)

    def _collect(
        self,
        value: Value,
        gathered: _Gathered,
        region: tuple[Subscript, ...],
        placement: Placement,
    ) -> list[Process]:
        """Gather the operands of a fused statement; return the work before it."""
        match value:
            case Scalar() | Fill():
                return []
            case Copy(operand, _):
                return self._collect(operand, gathered, region, placement)
        one_element = not region_extents(region)
        if not one_element and not describe(value, self.type_of).extents:
            if isinstance(value, Read):
                return self._element(value, region, placement)
            return self.number(value)
        match value:
            case Read(array, part):
                named = Operand(array, self.type_of(array), self.placement(array), part)
                gathered.add(value, named)
                return []
            case Elementwise(_, parts):
                gathered.operations += 1
                return [
                    process
                    for part in parts
                    for process in self._collect(part, gathered, region, placement)
                ]
            case Expand() | Transpose():
                made, shown = self._shown(value)
                gathered.add(value, shown)
                return made
            case MatMul():
                made, own = self._product(value, region, placement)
                gathered.add(value, own)
                return made
        made, own = self._made(value)
        gathered.add(value, own)
        return made

    def _element(
        self, value: Read, region: tuple[Subscript, ...], placement: Placement
    ) -> list[Process]:
        """Return what brings one element to all ranks that compute a region with it."""
        named = Operand(
            value.array, self.type_of(value.array), self.placement(value.array), value.region
        )
        alone: Pairs = [(own, None) for own in range(len(value.region))]
        return fetched([(named, alone)], region, placement, self.facts, self.halos)

    def _shown(self, value: Value) -> tuple[list[Process], Operand]:
        """Return an operand whose dimensions are shown in another order, or with new ones."""
        if isinstance(value, Expand | Transpose):
            made, inner = self._shown(value.operand)
            view = list(inner.view or ())
            if isinstance(value, Expand):
                view.insert(value.axis, None)
            else:
                view = [view[axis] for axis in value.axes]
            return made, replace(inner, view=tuple(view))
        if isinstance(value, Read):
            kept = tuple(d for d, part in enumerate(value.region) if not isinstance(part, Point))
            array = value.array
            operand = Operand(array, self.type_of(array), self.placement(array), value.region, kept)
            return [], operand
        made, own = self._made(value)
        return made, replace(own, view=tuple(range(len(own.region))))

    def _product(
        self, value: MatMul, region: tuple[Subscript, ...], placement: Placement
    ) -> tuple[list[Process], Operand]:
        """Return the work of a matrix product whose result is needed in a region."""
        kept = [d for d, part in enumerate(region) if not isinstance(part, Point)]
        if any(isinstance(part, Strided) for part in region):
            raise NotPriced("a matrix product stored into a slice with a step")
        found = describe(value, self.type_of)
        if len(kept) != len(found.extents):
            raise NotPriced("a matrix product within a statement of other shape")
        made, left = self._shown(value.left)
        more, right = self._shown(value.right)
        made += more
        if any(isinstance(part, Strided) for part in (*left.region, *right.region)):
            raise NotPriced("a matrix product of slices with a step")
        assert left.view is not None and right.view is not None
        # rows of the one go with rows of the result, columns of the other with its columns
        sides = ((left, {left.view[0]: kept[0]}), (right, {right.view[1]: kept[1]}))
        for operand, going in sides:
            pairs = [(own, going.get(own)) for own in range(len(operand.region))]
            made += fetched([(operand, pairs)], region, placement, self.facts, self.halos)
        rows, columns = (local_count(placement, d, region[d], self.facts) for d in kept)
        depth = describe(value.left, self.type_of).extents[1]
        inner = region_placement(placement, region)
        itemsize = itemsize_of(found.dtype)
        accesses = (
            Access(Region(itemsize, (rows, depth), pitches_bytes((rows, depth), "C", itemsize))),
            Access(
                Region(itemsize, (depth, columns), pitches_bytes((depth, columns), "C", itemsize))
            ),
            Access(local_region(found, inner, (rows, columns), self.facts), store=True),
        )
        factors = tuple(
            Visit(access.region, operand.name or "")
            for access, operand in zip(accesses, (left, right), strict=False)
        )
        call = ArrayCall(
            ArrayOperation.MATMUL,
            found.dtype,
            rows * columns,
            Visit(calls.dense((rows, columns), found.dtype)),
            factors,
            fresh=True,
            length=depth,
        )
        made.append(Leaf(Statement(accesses, 2 * rows * columns * depth, PRODUCTS, (call,))))
        return made, Operand(None, found, inner, whole(found.extents))

    def _made(self, value: Value) -> tuple[list[Process], Operand]:
        """Return the work of an operation that makes an array of its own, and that array."""
        match value:
            case Read(array, region):
                if any(
                    isinstance(part, Strided) and self.placement(array).is_spread(d)
                    for d, part in enumerate(region)
                ):
                    raise NotPriced("an operation other than arithmetic on a slice with a step")
                inner = region_placement(self.placement(array), region)
                part = ArrayType(self.kernel.dtype(array), region_extents(region))
                whole_array = is_whole(region, self.kernel.extents(array))
                name = array if whole_array else None
                memory = None if whole_array else self._part_of(value)
                return self._shown_part(whole_array=whole_array), Operand(
                    name, part, inner, whole(part.extents), part=memory
                )
            case Scalar() | Fill() | Copy() | Elementwise() | Expand() | Transpose() | MatMul():
                found = describe(value, self.type_of)
                placement = self._placed(value)
                made = self._computed(value, whole(found.extents), found, placement)
                return made, Operand(None, found, placement, whole(found.extents))
            case Gather():
                return self._gather(value)
            case Tally():
                return self._tally(value)
            case Scan() | Roll() | PeriodicPad() | Flip() | Reduction() | Fourier() | Sort():
                pass
        if isinstance(value, Reduction) and _is_in_steps(value.operand):
            return self._reduced_in_steps(value, value.operand)
        made, source = self._made(value.operand)
        found = describe(value, self.type_of)
        if isinstance(value, Reduction):
            if value.fused:
                # what they are multiplied by is a matter of their calls
                made, factors = operations.without_calls(made) if self.in_calls else (made, ())
                made += operations.reduction(value, source, found, self.facts, factors)
            else:
                made += operations.reduction(value, source, found, self.facts)
            placement = source.placement if value.axis is None else self._placed(value)
            return made, Operand(None, found, placement, whole(found.extents))
        placement = self._placed(value)
        match value:
            case Scan(_, axis, _, _, _):
                made.append(operations.scan(axis, source, found, placement, self.facts))
            case Roll(_, axis, amount):
                if placement.is_spread(axis):
                    reach = operations.rolled(source, axis, amount)
                    made += fetch(source.name, reach, self.facts, self.halos)
                made.append(self._copied(source, found, placement, ArrayOperation.ROLL))
            case PeriodicPad(_, axis, before, after):
                made += operations.wrapped(source, axis, before, after, self.facts)
                made.append(self._copied(source, found, placement, ArrayOperation.PAD))
            case Flip(_, axis):
                if placement.is_spread(axis):
                    raise NotPriced("a reversal along a distributed dimension")
                made.append(self._copied(source, found, placement, ArrayOperation.VIEW))
            case Fourier():
                made += operations.fourier(value, source, found, placement, self.facts)
            case Sort(_, axis):
                made.append(operations.sorting(axis, source, found, placement, self.facts))
        return made, Operand(None, found, placement, whole(found.extents))

    def _shown_part(self, *, whole_array: bool) -> list[Process]:
        """Return the making of the view that an operation other than arithmetic is given."""
        if whole_array or not self.in_calls:
            return []
        return [Leaf(Statement((), ZERO, STATEMENTS, (calls.view(),)))]

    def _reduced_in_steps(self, value: Reduction, read: Read) -> tuple[list[Process], Operand]:
        """Return the reduction of a slice with a step."""
        array, placement = self.type_of(read.array), self.placement(read.array)
        found = describe(value, self.type_of)
        left = NOWHERE if value.axis is None else self._placed(value)
        ranks = tuple(
            placement.ranks(d) for d, one in enumerate(read.region) if not isinstance(one, Point)
        )
        part = operations.Reduced(self._part_of(read), ranks, array.dtype, read.array)
        made = operations.reduction_of(value, part, found)
        return made, Operand(None, found, left, whole(found.extents))

    def _part_of(self, read: Read) -> Region:
        """Return where one rank's elements of a part of an array lie."""
        array, placement = self.type_of(read.array), self.placement(read.array)
        counts = tuple(
            local_count(placement, d, part, self.facts) for d, part in enumerate(read.region)
        )
        memory = selected(array, placement, read.region, counts, self.facts)
        kept = [d for d, part in enumerate(read.region) if not isinstance(part, Point)]
        return Region(
            memory.itemsize_bytes,
            tuple(memory.counts[d] for d in kept),
            tuple(memory.pitches_bytes[d] for d in kept),
        )

    def _copied(
        self, source: Operand, found: ArrayType, placement: Placement, operation: ArrayOperation
    ) -> Process:
        return operations.copy(source, found, placement, self.facts, operation)

    def _gather(self, value: Gather) -> tuple[list[Process], Operand]:
        made, places = self._made(value.places)
        _, table = self._made(value.operand)
        made += operations.remote(table, places, (False,), self.facts)
        found = describe(value, self.type_of)
        return made, Operand(None, found, places.placement, places.region)

    def _tally(self, value: Tally) -> tuple[list[Process], Operand]:
        made, places = self._made(value.places)
        if value.weights is not None:
            made += self._made(value.weights)[0]
        found = describe(value, self.type_of)
        made += operations.tally(places, found, self.facts)
        dims = (NotDistributed(),)
        held = Placement(found.extents, (ZERO,), dims, places.placement.mesh, "C")
        return made, Operand(None, found, held, whole(found.extents))

    def scattered(self, statement: Scatter) -> list[Process]:
        """Return the work of combining values into places that only the data know."""
        made, places = self._made(statement.places)
        added = describe(statement.value, self.type_of)
        if added.extents and not isinstance(statement.value, Scalar | Fill):
            made += self._made(statement.value)[0]
        table = Operand(
            statement.array,
            self.type_of(statement.array),
            self.placement(statement.array),
            whole(self.kernel.extents(statement.array)),
        )
        # each increment reads its place and writes it
        casts = strong(added.dtype) != table.array.dtype
        made += operations.remote(table, places, (False, True), self.facts, casts=casts)
        if statement.by_element:
            extents = places.array.extents
            counts = local_extents(places.placement, extents, self.facts)
            made.append(
                Leaf(
                    Interpretation(
                        calls.product(counts),
                        loads=2 + len(reads(statement.value)),
                        stores=1,
                        operations=1,
                    )
                )
            )
        return made

    def _placed(self, value: Value) -> Placement:
        placement = value_placement(value, self.placed)
        if placement is None:
            raise NotPriced("an array that nothing says how it is distributed")
        return placement


def _is_single(region: tuple[Subscript, ...]) -> bool:
    return all(isinstance(part, Point) for part in region)


def _is_in_steps(value: Value) -> TypeGuard[Read]:
    """Return whether a value is a slice with a step."""
    return isinstance(value, Read) and any(isinstance(part, Strided) for part in value.region)


def _makes_array(value: Value) -> bool:
    return isinstance(value, Scan | Roll | PeriodicPad | Flip | Reduction | Fourier | Sort)
