"""Work of array expressions: halos, traversals, and operations that make arrays of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from advisor.analysis import calls, operations
from advisor.analysis.halos import Halos
from advisor.analysis.messages import fetch, fetched
from advisor.analysis.operations import PRODUCTS, STATEMENTS
from advisor.analysis.owners import (
    Operand,
    Pairs,
    advance,
    held,
    is_local,
    local,
    local_region,
    pairs_of,
    selected,
    stretched,
    traversed,
    value_placement,
    without_points,
)
from advisor.analysis.placement import (
    Facts,
    NotPriced,
    Placement,
    is_spread_in_steps,
    local_count,
    local_counts,
    local_extents,
    region_placement,
)
from advisor.distribution import NotDistributed
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ArrayType, describe, is_whole, region_extents, whole
from advisor.ir.statements import SET, Bind, ScalarBind, Scatter, Store, is_total
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
    Windows,
    reads,
)
from advisor.numpy_functions import spelled
from advisor.numpy_table import IN_PYTHON, broadcast, itemsize_of, strong
from costdb.expr import ONE, ZERO, Expr
from costdb.records import dataclass, field, replace
from costdb.work import (
    IN_BLAS,
    Access,
    ArrayCall,
    ArrayOperation,
    Interpretation,
    Leaf,
    Process,
    Region,
    Statement,
    Visit,
)


@dataclass(slots=True)
class _Gathered:
    """What a fused array statement computes, and from which operands, each with its value."""

    operands: list[tuple[Value, Operand]] = field(default_factory=list)
    operations: int = 0


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
    known: dict[int, tuple[Value, Operand]] = field(default_factory=dict)
    """What operations made in this statement, by identity: what is used twice is made once."""

    def type_of(self, name: str) -> ArrayType:
        """Return the element type and shape of a named array."""
        return ArrayType(self.kernel.dtype(name), self.kernel.extents(name))

    def placement(self, name: str) -> Placement:
        """Return where a named array lives."""
        if name not in self.placed:
            raise NotPriced(f"nothing says how `{name}` is distributed")
        return self.placed[name]

    def sizes_bytes(self, names: Collection[str]) -> Iterator[Expr]:
        """Yield the bytes that the busiest rank holds of each of some arrays."""
        for name in filter(names.__contains__, self.placed):
            placement = self.placed[name]
            found = self.type_of(name)
            extents = local_extents(placement, found.extents, self.facts)
            yield calls.product(extents) * itemsize_of(found.dtype)

    def changed(self, statement: Bind | Store | ScalarBind | Scatter) -> list[Process]:
        """Return the work of a statement that is no loop."""
        match statement:
            case Bind(name, value, _):
                return self.bound(name, value)
            case Store():
                return self.stored(statement)
            case ScalarBind(_, value, _, combined):
                return self.number(value, combined=combined)
            case Scatter():
                return self.scattered(statement)

    def bound(self, name: str, value: Value) -> list[Process]:
        """Return the work of binding a name to a fresh array."""
        self.known.clear()
        if isinstance(value, Fill) and not value.value:
            return []
        found, placement = self.type_of(name), self.placement(name)
        if _makes_array(value) and self._placed(value) == placement:
            return self._made(value)[0]
        shown = value
        while isinstance(shown, Expand):
            shown = shown.operand
        if self.in_calls and shown is not value and isinstance(shown, Read):
            # the same memory, with more dimensions
            return self._shown(value)[0]
        return self._computed(value, whole(found.extents), found, placement, name)

    def stored(self, store: Store) -> list[Process]:
        """Return the work of changing elements of an existing array."""
        self.known.clear()
        if is_total(store):
            # outside of loops over elements, each rank does it for itself
            return self._number(store.value)
        found, placement = self.type_of(store.array), self.placement(store.array)
        made = self._computed(
            store.value, store.region, found, placement, store.array, in_place=store.in_place
        )
        if self.in_calls and _is_single(store.region):
            # the interpreter's own work, which only a machine with rates of calls prices
            from advisor.analysis.calls import single

            made.append(Leaf(single(store)))
        return made

    def number(self, value: Value, *, combined: bool = False) -> list[Process]:
        """Return the work of computing one number that all ranks then have.

        It is `combined` with the number that the name denoted.
        """
        self.known.clear()
        return self._number(value, int(combined))

    def _number(self, value: Value, operations_: int = 0) -> list[Process]:
        sent, steps = self._sent(value), calls.steps_of(value)
        steps = replace(steps, operations=steps.operations + operations_)
        some = self.in_calls and steps != Interpretation(ONE, loop=False)
        return [Leaf(steps), *sent] if some else sent

    def made(self, value: Value) -> list[Process]:
        """Return the work of making an array of its own, or a number."""
        self.known.clear()
        return self._made(value)[0]

    def _sent(self, value: Value) -> list[Process]:
        """Return what a number takes apart from the steps of the interpreter."""
        match value:
            case Scalar() | Read(_, ()):
                return []
            case Reduction() | Called() | Part():
                return self._made(value)[0]
            case Along(function, computed=computed):
                given = self._given(value)
                return [*given, *self._sent(computed), *self._in_python(function)]
            case Read(array, _):
                return operations.broadcast(self.type_of(array), self.placement(array))
            case Elementwise(_, parts):
                return [process for part in parts for process in self._sent(part)]
            case Gather():
                return [process for one in value.all_places for process in self._sent(one)]
            case Copy(operand, _):
                return self._sent(operand)
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
        wide = [stretched(operand, region) for _, operand in gathered.operands]
        pairs = [(operand, pairs_of(operand, region)) for operand in wide]
        made += fetched(pairs, region, placement, self.facts, self.halos)
        counts = local_counts(placement, region, self.facts)
        loaded = [traversed(operand, region, counts, self.facts) for operand in wide]
        memory = selected(found, placement, region, counts, self.facts)
        accesses = (*map(Access, loaded), Access(memory, store=True))
        operations = gathered.operations * calls.product(counts)
        # what is compiled is one loop, and calls no library
        made_of: tuple[ArrayCall, ...] | None = None if self.kernel.context.is_compiled else ()
        # a single element is the interpreter's own work
        if self.in_calls and not _is_single(region):
            walked = [(operand.name or "", operand.region) for operand in wide]
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
                id(one): calls.Leaf(
                    place,
                    operand.name or "",
                    operand.region,
                    self._advance(operand.name or "", operand.region, walked),
                )
                for (one, operand), place in zip(gathered.operands, loaded, strict=True)
            }
            made_of = calls.Evaluation(target, self.type_of, leaves).run(value)
        made.append(Leaf(Statement(accesses, operations, STATEMENTS, made_of)))
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
        self, value: Value, gathered: _Gathered, region: tuple[Subscript, ...], placement: Placement
    ) -> list[Process]:
        """Gather the operands of a fused statement; return the work before it."""
        if id(value) in self.known:
            gathered.operands.append((value, self.known[id(value)][1]))
            return []
        match value:
            case Scalar() | Fill():
                return []
            case Copy(operand, _):
                return self._collect(operand, gathered, region, placement)
            case Along(function, computed=computed):
                made = self._given(value)
                made += self._collect(computed, gathered, region, placement)
                return [*made, *self._in_python(function)]
        one_element = not region_extents(region)
        if not one_element and not describe(value, self.type_of).extents:
            if not isinstance(value, Read):
                return self._number(value)
            steps: list[Process] = [Leaf(calls.steps_of(value))] if self.in_calls else []
            return [*self._element(value, region, placement), *steps]
        match value:
            case Read(array, part):
                gathered.operands.append((value, self.named(array, part)))
                return []
            case Elementwise(operation, parts):
                gathered.operations += 1
                made = [] if one_element else self._in_python(operation)
                for one in parts:
                    made += self._collect(one, gathered, region, placement)
                return made
            case Expand() | Transpose():
                made, own = self._shown(value)
            case MatMul():
                made, own = self._product(value, region, placement)
            case _:
                made, own = self._made(value)
        gathered.operands.append((value, own))
        return made

    def _element(
        self, value: Read, region: tuple[Subscript, ...], placement: Placement
    ) -> list[Process]:
        """Return what brings one element to all ranks that compute a region with it."""
        alone: Pairs = [(own, None) for own in range(len(value.region))]
        pairs = [(self.named(value.array, value.region), alone)]
        return fetched(pairs, region, placement, self.facts, self.halos)

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
            return [], replace(self.named(value.array, value.region), view=kept)
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
        # rows of the one go with rows of the result, columns of the other with its columns, and
        # what is stacked with what is
        rows_of = dict(zip(left.view[-2::-1], kept[-2::-1], strict=False))
        columns_of = dict(zip(right.view[-3::-1], kept[-3::-1], strict=False))
        sides = ((left, rows_of), (right, {**columns_of, right.view[-1]: kept[-1]}))
        for operand, going in sides:
            pairs = [(own, going.get(own)) for own in range(len(operand.region))]
            made += fetched([(operand, pairs)], region, placement, self.facts, self.halos)
        counts = tuple(local_count(placement, d, region[d], self.facts) for d in kept)
        rows, columns = calls.product(counts[:-1]), counts[-1]
        depth = describe(value.left, self.type_of).extents[-1]
        stacked = describe(value.right, self.type_of).extents[:-2]
        inner = region_placement(placement, region)
        factors = (
            Visit(calls.dense((rows, depth), found.dtype), left.name or ""),
            Visit(calls.dense((*stacked, depth, columns), found.dtype), right.name or ""),
        )
        accesses = (
            *(Access(factor.region) for factor in factors),
            Access(local_region(found, inner, counts, self.facts), store=True),
        )
        elements = rows * columns
        if left.name and found.dtype in IN_BLAS and _is_turned(value.left, value.right):
            # the library computes one half of what is symmetric, and copies it to the other
            elements = elements / 2
        call = ArrayCall(
            ArrayOperation.MATMUL,
            found.dtype,
            elements,
            Visit(calls.dense((rows, columns), found.dtype)),
            factors,
            fresh=True,
            length=depth,
        )
        made.append(Leaf(Statement(accesses, 2 * rows * columns * depth, PRODUCTS, (call,))))
        return made, _fresh(found, inner)

    def _made(self, value: Value) -> tuple[list[Process], Operand]:
        """Return the work of an operation that makes an array of its own, and that array."""
        if id(value) in self.known:
            return [], self.known[id(value)][1]
        made, own = self._made_anew(value)
        self.known[id(value)] = value, own
        return made, own

    def _made_anew(self, value: Value) -> tuple[list[Process], Operand]:
        match value:
            case Read(array, region):
                if is_spread_in_steps(self.placement(array), region):
                    raise NotPriced("an operation other than arithmetic on a slice with a step")
                return self._part(value)
            case Scalar() | Fill() | Copy() | Elementwise() | Expand() | Transpose() | MatMul():
                found = describe(value, self.type_of)
                placement = self._placed(value)
                made = self._computed(value, whole(found.extents), found, placement)
                return made, _fresh(found, placement)
            case Called():
                return self._called(value)
            case Part(operand, region):
                made, source = self._made(operand)
                shown = Leaf(Statement((), ZERO, STATEMENTS, (calls.view(),)))
                if not is_local(source.placement):
                    raise NotPriced("a subscript of an expression that ranks share out")
                lies = region_placement(source.placement, region)
                made += [shown] * self.in_calls
                return made, _fresh(describe(value, self.type_of), lies)
            case Gather():
                return self._gather(value)
            case Chosen():
                return self._chosen(value)
            case Tally():
                return self._tally(value)
            case Windows():
                return self._windows(value)
            case Along(function, computed=computed):
                given = self._given(value)
                made, own = self._made(computed)
                return [*given, *made, *self._in_python(function)], own
            case Scan() | Roll() | PeriodicPad() | Flip() | Reduction() | Fourier() | Sort():
                pass
        found = describe(value, self.type_of)
        if isinstance(value, Reduction):
            part = value.operand
            made, source = self._part(part) if isinstance(part, Read) else self._made(part)
            fused = None
            if value.fused:
                made, fused = operations.products(made)
            made += operations.reduction(value, source, found, self.facts, fused)
            made += self._in_python(value.operation, called=value.called)
            placement = source.placement if value.axis is None else self._placed(value)
            return made, _fresh(found, placement)
        made, source = self._made(value.operand)
        placement = self._placed(value)
        copied = partial(operations.copy, source, found, placement, self.facts)
        match value:
            case Scan(_, axis, _, _, _):
                made.append(operations.scan(axis, source, found, placement, self.facts))
            case Roll(_, axis, amount):
                if placement.is_spread(axis):
                    reach = operations.rolled(source, axis, amount)
                    made += fetch(source.name, reach, self.facts, self.halos)
                made.append(copied(ArrayOperation.ROLL))
            case PeriodicPad(_, axis, before, after):
                made += operations.wrapped(source, axis, before, after, self.facts)
                made.append(copied(ArrayOperation.PAD))
            case Flip(_, axis):
                if placement.is_spread(axis):
                    raise NotPriced("a reversal along a distributed dimension")
                made.append(copied(ArrayOperation.VIEW))
            case Fourier():
                made += operations.fourier(value, source, found, placement, self.facts)
            case Sort(_, axis):
                made.append(operations.sorting(axis, source, found, placement, self.facts))
        return made, _fresh(found, placement)

    def _part(self, read: Read) -> tuple[list[Process], Operand]:
        """Return a part of an array as an array of its own, of which a view is made."""
        array, placement = self.type_of(read.array), self.placement(read.array)
        part = ArrayType(array.dtype, region_extents(read.region))
        own = _fresh(part, region_placement(placement, read.region))
        if is_whole(read.region, array.extents):
            return [], replace(own, name=read.array)
        counts = local_counts(placement, read.region, self.facts)
        memory = selected(array, placement, read.region, counts, self.facts)
        view = Leaf(Statement((), ZERO, STATEMENTS, (calls.view(),)))
        made: list[Process] = [view] if self.in_calls else []
        return made, replace(own, part=without_points(memory, read.region))

    def _called(self, value: Called) -> tuple[list[Process], Operand]:
        """Return the work of a function that has no operation of its own, of whole arrays."""
        spread = [read.array for read in reads(value) if not is_local(self.placement(read.array))]
        if spread:
            raise NotPriced(f"{spelled(value.function)} of `{spread[0]}`, which ranks share out")
        made: list[Process] = []
        sources: list[Operand] = []
        for operand in value.operands:
            if describe(operand, self.type_of).extents:
                more, source = (
                    self._part(operand) if isinstance(operand, Read) else self._made(operand)
                )
                made += more
                sources.append(source)
            else:
                made += self._number(operand)
        found = describe(value, self.type_of)
        if value.function == "einsum":
            shapes = [describe(one, self.type_of).extents for one in value.operands]
            made += operations.contracted(value, shapes)
        else:
            made += self._in_python(value.function)
            made += operations.called(value.function, sources, found, self.facts)
        return made, _fresh(found, local(found.extents))

    def _given(self, value: Along) -> list[Process]:
        """Return the work of what a function is given, which is made before and once."""
        if isinstance(value.operand, Read | Scalar | Transpose | Expand | Flip | Windows):
            return []
        return self._made(value.operand)[0]

    def _in_python(self, function: str, *, called: bool = False) -> list[Process]:
        """Return what the library does in Python before and after its own loops."""
        functions = (IN_PYTHON.get(function, 0) + called) * self.in_calls
        return [Leaf(Interpretation(ONE, functions=functions, loop=False))] * bool(functions)

    def _windows(self, value: Windows) -> tuple[list[Process], Operand]:
        """Return windows, whose memory is that of the array that they move over."""
        made, source = self._made(value.operand)
        if source.placement.is_spread(value.axis):
            raise NotPriced("windows along a distributed dimension")
        memory, axis, found = held(source, self.facts), value.axis, describe(value, self.type_of)
        pitches = (*memory.pitches_bytes, memory.pitches_bytes[axis])
        counts = list(memory.counts)
        counts[axis] = counts[axis] - value.length + 1
        part = Region(memory.itemsize_bytes, (*counts, value.length), pitches)
        view = Leaf(Statement((), ZERO, STATEMENTS, (calls.view(),)))
        own = replace(_fresh(found, self._placed(value)), part=part)
        return [*made, view] if self.in_calls else made, own

    def _gather(self, value: Gather) -> tuple[list[Process], Operand]:
        found = describe(value, self.type_of)
        along = [one for one in value.all_places if describe(one, self.type_of).extents]
        made: list[Process] = []
        indices: list[Operand] = []
        for one in along:
            more, index = self._made(one)
            made, indices = [*made, *more], [*indices, index]
        _, table = self._made(value.operand)
        if len(table.array.extents) == 1 and indices:
            made += operations.remote(table, indices[0], (False,), self.facts)
            return made, _fresh(found, indices[0].placement)
        if not all(isinstance(dim, NotDistributed) for dim in table.placement.dims):
            raise NotPriced("places of what is distributed")
        made.append(operations.taken(table, indices, found, self.facts))
        return made, _fresh(found, local(found.extents))

    def _chosen(self, value: Chosen) -> tuple[list[Process], Operand]:
        """Return the taking of what a mask chooses, which passes over all of the mask."""
        found = describe(value, self.type_of)
        placement = self._placed(value)
        match value.mask:
            case Fill() | Called("between"):
                # what is in a list was chosen when it was filled, and a row is a view
                return [], _fresh(found, placement)
        made, mask = self._made(value.mask)
        more, source = self._made(value.operand)
        made += [*more, operations.chosen(source, mask, found, self.facts)]
        return made, _fresh(found, placement)

    def _tally(self, value: Tally) -> tuple[list[Process], Operand]:
        made, places = self._made(value.places)
        if value.weights is not None:
            made += self._made(value.weights)[0]
        found = describe(value, self.type_of)
        dims = (NotDistributed(),)
        counted = _fresh(found, Placement(found.extents, (ZERO,), dims, places.placement.mesh, "C"))
        return [*made, *operations.tally(places, counted, self.facts)], counted

    def scattered(self, statement: Scatter) -> list[Process]:
        """Return the work of combining values into places that only the data know."""
        self.known.clear()
        if statement.others or statement.operation == SET:
            return self._scattered_along(statement)
        made, places = self._made(statement.places)
        loads = 2 + len(reads(statement.value))
        step = partial(Interpretation, loads=loads, stores=1, operations=1)
        alone = all(isinstance(dim, NotDistributed) for dim in self.placement(statement.array).dims)
        if statement.by_element and not places.array.extents and alone and self.in_calls:
            # the interpreter takes one element, and no call of NumPy
            return [Leaf(step(ONE, loop=False))]
        added = describe(statement.value, self.type_of)
        if added.extents and not isinstance(statement.value, Scalar | Fill):
            made += self._made(statement.value)[0]
        table = self.named(statement.array, whole(self.kernel.extents(statement.array)))
        # each increment reads its place and writes it
        casts = strong(added.dtype) != table.array.dtype
        made += operations.remote(table, places, (False, True), self.facts, casts=casts)
        if statement.by_element:
            times = calls.product(local_extents(places.placement, places.array.extents, self.facts))
            made.append(Leaf(step(times)))
        return made

    def _scattered_along(self, statement: Scatter) -> list[Process]:
        """Return the work of places along several axes, and of stores to places."""
        if not all(isinstance(dim, NotDistributed) for dim in self.placement(statement.array).dims):
            raise NotPriced("places of what is distributed")
        types = [describe(one, self.type_of) for one in statement.all_places]
        count = calls.product(broadcast([one.extents for one in types]))
        values = (*statement.all_places, statement.value)
        if statement.by_element:
            loads = sum(len(reads(one)) for one in values) + (statement.operation != SET)
            each = Interpretation(
                count, loads=loads, stores=1, operations=1, loop=any(one.extents for one in types)
            )
            return [Leaf(each)]
        made: list[Process] = []
        indices: list[Operand] = []
        for one in values:
            if isinstance(one, Scalar | Fill):
                continue
            more, index = self._made(one)
            made, indices = [*made, *more], [*indices, index]
        table = self.named(statement.array, whole(self.kernel.extents(statement.array)))
        adds = statement.operation != SET
        return [*made, operations.put(table, indices, count, self.facts, adds=adds)]

    def named(self, name: str, region: tuple[Subscript, ...]) -> Operand:
        """Return a region of a named array."""
        return Operand(name, self.type_of(name), self.placement(name), region)

    def _placed(self, value: Value) -> Placement:
        placement = value_placement(value, self.placed)
        extents = describe(value, self.type_of).extents
        if placement is not None and placement.template and len(placement.dims) >= len(extents):
            return placement
        # single elements, or rows, say nothing of what they are combined with
        if placement is not None and not extents:
            return placement
        if not reads(value) or all(map(is_local, self.placed.values())):
            # of numbers each rank makes its own
            return local(extents)
        raise NotPriced("an array that nothing says how it is distributed")


def _is_turned(one: Value, other: Value) -> bool:
    """Return whether two matrices are one and its transposition."""
    if isinstance(other, Transpose):
        one, other = other, one
    return isinstance(one, Transpose) and one.axes == (1, 0) and one.operand == other


def _is_single(region: tuple[Subscript, ...]) -> bool:
    return all(isinstance(part, Point) for part in region)


def _fresh(found: ArrayType, placement: Placement) -> Operand:
    """Return all of an array without a name."""
    return Operand(None, found, placement, whole(found.extents))


def _makes_array(value: Value) -> bool:
    return isinstance(
        value, Scan | Roll | PeriodicPad | Flip | Reduction | Fourier | Sort | Called | Part
    )
