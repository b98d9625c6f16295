"""A kernel run element by element: who computes what, who reads whose elements, what is sent.

Nothing here comes from the analysis: ownership is that of `tests.advisor.ownership` (tested
against MPI), regions are lists of indices, halos are sets of elements. The only thing given is
where the arrays live that the kernel makes itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from advisor.distribution import AxisMap
from advisor.ir.kernel import Kernel
from advisor.ir.statements import (
    Bind,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Statement,
    Store,
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
    Strided,
    Subscript,
    Value,
)
from costdb.expr import Expr, evaluate
from tests.advisor.ownership import coordinates, local_index, local_part, owners, ranks_along

Index = tuple[int, ...]


@dataclass(frozen=True)
class Home:
    """Where an array lives: element ``i`` at ``i + origin`` of a distributed index space."""

    template: Index
    dims: tuple[AxisMap, ...]
    mesh: Mapping[str, int]
    origin: Index
    order: str = "C"

    def owners(self, index: Index) -> tuple[int, ...]:
        """Return who owns an element; what lies outside belongs to the nearest inside."""
        place = tuple(
            min(max(i + o, 0), n - 1)
            for i, o, n in zip(index, self.origin, self.template, strict=True)
        )
        return owners(place, self.template, self.dims, self.mesh)


@dataclass(frozen=True)
class Sent:
    """One message: the elements of an array that one rank gets from another."""

    array: str
    sender: int
    elements: frozenset[Index]
    itemsize: int

    @property
    def bytes(self) -> int:
        return self.itemsize * len(self.elements)


@dataclass
class Rank:
    """What one rank does."""

    received: list[Sent] = field(default_factory=list)
    loads: int = 0
    stores: int = 0
    operations: int = 0
    scanned: int = 0
    reduced: int = 0

    @property
    def sizes(self) -> list[int]:
        """Elements of each message, ascending."""
        return sorted(len(sent.elements) for sent in self.received)

    def totals(self) -> Counter[str]:
        """Return every count under its name."""
        return Counter(
            messages=len(self.received),
            elements=sum(self.sizes),
            bytes=sum(sent.bytes for sent in self.received),
            loads=self.loads,
            stores=self.stores,
            operations=self.operations,
            scanned=self.scanned,
            reduced=self.reduced,
        )


@dataclass
class _Array:
    """A named array, or one that an expression makes."""

    name: str
    shape: Index
    home: Home
    itemsize: int
    # what ranks hold besides their own, and is still what its owner has
    held: dict[int, set[Index]] = field(default_factory=dict)


class Simulation:
    """A kernel with sizes, run for all ranks at once.

    Parameters
    ----------
    kernel : Kernel
    sizes : mapping of str to int
    origins : mapping of str to tuple of (str, tuple of int)
        For an array that the kernel makes: beside which declared array its elements live, and
        how far its first element is from that array's. Arrays of the same shape as a declared
        one need not be named.
    """

    def __init__(
        self,
        kernel: Kernel,
        sizes: Mapping[str, int],
        origins: Mapping[str, tuple[str, Index]] | None = None,
    ) -> None:
        self.kernel = kernel
        self.sizes: dict[str, int] = dict(sizes)
        self.arrays: dict[str, _Array] = {}
        for name, declared in kernel.arrays.items():
            spec = declared.spec
            mesh = {axis: self._mesh_extent(extent) for axis, extent in spec.mesh.axes}
            shape = tuple(map(self.value, declared.extents))
            home = Home(shape, spec.dims, mesh, (0,) * len(shape), spec.order)
            self.arrays[name] = _Array(name, shape, home, _itemsize(declared.dtype))
        for name, local in kernel.locals.items():
            shape = tuple(map(self.value, local.extents))
            like, origin = (origins or {}).get(name, ("", (0,) * len(shape)))
            if not like:
                like = next(a.name for a in self.arrays.values() if a.shape == shape)
            beside = self.arrays[like].home
            home = Home(beside.template, beside.dims, beside.mesh, origin, beside.order)
            self.arrays[name] = _Array(name, shape, home, _itemsize(local.dtype))
        self.mesh = next(iter(self.arrays.values())).home.mesh
        count = 1
        for extent in self.mesh.values():
            count *= extent
        self.ranks = [Rank() for _ in range(count)]

    def run(self) -> "Simulation":
        """Execute the kernel once."""
        self._block(self.kernel.body)
        return self

    def value(self, expr: Expr) -> int:
        """Return the value of a size expression."""
        found = evaluate(expr, self.sizes)
        assert found == int(found)
        return int(found)

    def _mesh_extent(self, extent: int | str) -> int:
        return extent if isinstance(extent, int) else self.sizes[extent]

    # statements

    def _block(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Loop(variable, low, high, step, body, _):
                for index in range(self.value(low), self.value(high), step):
                    self.sizes[variable] = index
                    self._block(body)
            case Store(name, region, value, _):
                self._assign(self.arrays[name], region, value)
            case Bind(name, value, _):
                array = self.arrays[name]
                if isinstance(value, Scan | Roll | PeriodicPad | Flip):
                    made = self._made(value)
                    assert made.home == array.home and made.shape == array.shape
                elif not (isinstance(value, Fill) and not value.value):
                    self._assign(array, None, value)
                array.held = {}
            case ScalarBind(_, value, _):
                self._number(value)
            case Rename(names, _) if len(names) == 2:
                one, other = sorted(names)
                first, second = self.arrays[one], self.arrays[other]
                first.held, second.held = second.held, first.held
            case Rename(names, _):
                # which denotes which is not said, so nothing counts as held
                for name in names:
                    self.arrays[name].held = {}
            case Return():
                pass
            case _:
                raise AssertionError(f"{statement} is not simulated")

    def _indices(self, region: Sequence[Subscript]) -> list[list[int]]:
        return [self._selected(part) for part in region]

    def _selected(self, part: Subscript) -> list[int]:
        match part:
            case Range(low, high):
                return list(range(self.value(low), self.value(high)))
            case Strided(start, stop, step):
                return list(range(self.value(start), self.value(stop), step))
            case Point(at):
                return [self.value(at)]

    def _assign(self, target: _Array, subscripts: Sequence[Subscript] | None, value: Value) -> None:
        leaves = self._leaves(value)
        region = [list(range(n)) for n in target.shape]
        points = [False] * len(region)
        if subscripts is not None:
            region = self._indices(subscripts)
            points = [isinstance(part, Point) for part in subscripts]
        wanted: dict[str, dict[int, set[Index]]] = {}
        sources: dict[str, _Array] = {}
        for place in product(*(range(len(part)) for part in region)):
            element = tuple(part[i] for part, i in zip(region, place, strict=True))
            for rank in target.home.owners(element):
                me = self.ranks[rank]
                me.stores += 1
                me.operations += leaves.operations
                for array, where in leaves.reads:
                    me.loads += 1
                    read = _broadcast(place, points, where)
                    sources[array.name] = array
                    wanted.setdefault(array.name, {}).setdefault(rank, set()).add(read)
        for name, by_rank in wanted.items():
            self._fetch(sources[name], by_rank)
        # as the model has it: any write makes all copies of the array stale
        target.held = {}

    def _fetch(self, array: _Array, wanted: Mapping[int, set[Index]]) -> None:
        """Send every rank what it reads, does not own and does not hold, one message a sender."""
        for rank, elements in wanted.items():
            held = array.held.setdefault(rank, set())
            by_sender: dict[int, set[Index]] = {}
            for element in elements - held:
                owning = array.home.owners(element)
                if rank not in owning:
                    by_sender.setdefault(self._nearest(rank, owning), set()).add(element)
            for sender, sent in sorted(by_sender.items()):
                held |= sent
                message = Sent(array.name, sender, frozenset(sent), array.itemsize)
                self.ranks[rank].received.append(message)

    def _nearest(self, rank: int, owning: Sequence[int]) -> int:
        extents = tuple(self.mesh.values())
        own = coordinates(rank, extents)

        def unlike(other: int) -> int:
            return sum(a != b for a, b in zip(own, coordinates(other, extents), strict=True))

        return min(owning, key=unlike)

    # values

    def _leaves(self, value: Value) -> "_Leaves":
        """Return the reads and the operations of one element of a fused expression."""
        match value:
            case Scalar() | Fill():
                return _Leaves([], 0)
            case Copy(operand, _):
                return self._leaves(operand)
            case Read(name, region):
                return _Leaves([(self.arrays[name], (region, self._indices(region)))], 0)
            case Elementwise(_, parts):
                inner = [self._leaves(part) for part in parts]
                reads = [read for part in inner for read in part.reads]
                return _Leaves(reads, 1 + sum(part.operations for part in inner))
        made = self._made(value)
        everything = [list(range(n)) for n in made.shape]
        ranges: tuple[Subscript, ...] = ()
        return _Leaves([(made, (ranges, everything))], 0)

    def _made(self, value: Value) -> _Array:
        """Carry out an operation that makes an array; return where its result lives."""
        if isinstance(value, Read):
            array, region = self.arrays[value.array], self._indices(value.region)
            if region == [list(range(n)) for n in array.shape]:
                return array
            kept = [d for d, part in enumerate(value.region) if isinstance(part, Range)]
            home = Home(
                tuple(array.home.template[d] for d in kept),
                tuple(array.home.dims[d] for d in kept),
                array.home.mesh,
                tuple(array.home.origin[d] + region[d][0] for d in kept),
                array.home.order,
            )
            shape = tuple(len(region[d]) for d in kept)
            return _Array("<part>", shape, home, array.itemsize)
        assert isinstance(value, Scan | Roll | PeriodicPad | Flip)
        source = self._made(value.operand)
        shape, home = list(source.shape), source.home
        wanted: dict[int, set[Index]] = {}
        match value:
            case Scan(_, axis, _, dtype, _):
                made = _Array("<scan>", source.shape, home, _itemsize(dtype))
                for element in _elements(source.shape):
                    for rank in home.owners(element):
                        self.ranks[rank].scanned += 1
                return made
            case Roll(_, axis, amount):
                shift = self.value(amount)

                def origin(element: Index) -> Index:
                    return _moved(element, axis, (element[axis] - shift) % source.shape[axis])

            case PeriodicPad(_, axis, before, after):
                wide = self.value(before)
                shape[axis] += wide + self.value(after)
                at = tuple(o - wide * (d == axis) for d, o in enumerate(home.origin))
                home = Home(home.template, home.dims, home.mesh, at, home.order)

                def origin(element: Index) -> Index:
                    return _moved(element, axis, (element[axis] - wide) % source.shape[axis])

            case Flip(_, axis):

                def origin(element: Index) -> Index:
                    return _moved(element, axis, source.shape[axis] - 1 - element[axis])

        made = _Array("<made>", tuple(shape), home, source.itemsize)
        for element in _elements(made.shape):
            read = origin(element)
            for rank in made.home.owners(element):
                self.ranks[rank].stores += 1
                wanted.setdefault(rank, set()).add(read)
        for element in _elements(source.shape):
            for rank in source.home.owners(element):
                self.ranks[rank].loads += 1
        if isinstance(value, Roll):
            self._fetch(source, wanted)
        else:
            source.held = {}
            self._fetch(source, wanted)
            source.held = {}
        return made

    def _number(self, value: Value) -> None:
        assert isinstance(value, Reduction) and isinstance(value.operand, Read)
        array, region = self.arrays[value.operand.array], self._indices(value.operand.region)
        for element in product(*region):
            for rank in array.home.owners(element):
                self.ranks[rank].loads += 1
                self.ranks[rank].reduced += 1

    # geometry

    def addresses(self, sent: Sent) -> list[int]:
        """Return the bytes at which a message's elements begin in their sender's memory."""
        home = self.arrays[sent.array].home
        parts = local_part(sent.sender, home.template, home.dims, home.mesh)
        pitches = dense_pitches([len(part) for part in parts], home.order, sent.itemsize)
        found = []
        for element in sent.elements:
            offset = 0
            for d, (index, extent) in enumerate(zip(element, home.template, strict=True)):
                ranks = ranks_along(home.dims[d], home.mesh)
                offset += pitches[d] * local_index(index, extent, ranks, home.dims[d])
            found.append(offset)
        return sorted(found)


@dataclass(frozen=True)
class _Leaves:
    reads: list[tuple[_Array, tuple[Sequence[Subscript], list[list[int]]]]]
    operations: int


def _broadcast(
    place: Index,
    points: Sequence[bool],
    where: tuple[Sequence[Subscript], list[list[int]]],
) -> Index:
    """Return the element that is read for one place of the target, by NumPy's rules."""
    region, indices = where
    single = [isinstance(part, Point) for part in region] or [False] * len(indices)
    kept = [d for d, point in enumerate(single) if not point]
    free = [i for i, point in zip(place, points, strict=True) if not point]
    steps = free[len(free) - len(kept) :]
    at = {d: 0 if len(indices[d]) == 1 else i for d, i in zip(kept, steps, strict=True)}
    return tuple(indices[d][at.get(d, 0)] for d in range(len(indices)))


def _elements(shape: Index) -> Iterator[Index]:
    return product(*map(range, shape))


def _moved(element: Index, axis: int, index: int) -> Index:
    return tuple(index if d == axis else i for d, i in enumerate(element))


def _itemsize(dtype: str) -> int:
    digits = "".join(c for c in dtype if c.isdigit())
    return int(digits) // 8


def dense_pitches(extents: Sequence[int], order: str, itemsize: int) -> list[int]:
    """Return the distance in memory between neighbours along each dimension."""
    pitches = [0] * len(extents)
    step = itemsize
    for d in reversed(range(len(extents))) if order == "C" else range(len(extents)):
        pitches[d] = step
        step *= max(extents[d], 1)
    return pitches
