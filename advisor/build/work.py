"""What a built program does, for the models that price it: noted line by line as it is written.

What a statement computes is lowered as ever. What it takes to have its operands is not: that is
what the written lines do, at the place where they stand: rims that are packed, sent and unpacked,
fetched elements that become an array of their own, blocks that are copied to have room, and about
how many calls an interpreter makes in the definitions that lines call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from advisor.analysis.arrays import Arrays
from advisor.analysis.calls import dense, product
from advisor.analysis.halos import Halos
from advisor.analysis.placement import (
    Facts,
    NotPriced,
    Placement,
    local_extents,
    pitches_bytes,
)
from advisor.analysis.processes import of_work, works
from advisor.build.text import Axis
from advisor.ir.kernel import Kernel, mapped
from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Bind, ScalarBind, Scatter, Statement, Store
from advisor.numpy_table import ShapeConflict, itemsize_of
from costdb.expr import ONE, ZERO, Expr, ExprError, less_equal, minimum, num
from costdb.records import dataclass, field, only, replace
from costdb.work import (
    NOTHING,
    Access,
    ArrayCall,
    ArrayOperation,
    Branch,
    Collective,
    CollectiveKind,
    Interpretation,
    Leaf,
    Message,
    PrefixScan,
    Process,
    Region,
    RemoteGroup,
    Sequential,
    Unknown,
    Visit,
    Work,
    repeated,
)
from costdb.work import Statement as Computed

RIMS, FETCHED, COPIES, PLACES, WRITTEN = (
    "exchange of rims",
    "fetched elements",
    "copies of blocks",
    "places sent to their owners",
    "calls of what the program defines",
)
_MOVES: Final = frozenset(
    (CollectiveKind.BROADCAST, CollectiveKind.ALLGATHER, CollectiveKind.ALLTOALL)
)


@dataclass(frozen=True, slots=True)
class Lowered:
    """A statement lowered by itself.

    Attributes
    ----------
    computing : tuple of Process
        What it computes.
    moved : mapping of str to tuple of Process
        What of each array comes from other ranks; of what has no name, under an empty one.
    """

    computing: tuple[Process, ...] = ()
    moved: Mapping[str, tuple[Process, ...]] = field(default_factory=dict)


def lowered(
    one: Statement, kernel: Kernel, placed: Mapping[str, Placement], facts: Facts
) -> Lowered:
    """Return a statement's work, what it computes apart from what comes from other ranks."""
    if not isinstance(one, Bind | Store | ScalarBind | Scatter):
        return Lowered()
    arrays = Arrays(kernel, placed, facts, Halos(), in_calls=not kernel.context.is_compiled)
    try:
        made = arrays.changed(one)
    except (NotPriced, ShapeConflict, ExprError) as error:
        text = kernel.context.lines[one.span.start_line - 1].strip()
        return Lowered((Leaf(Unknown(one.span.start_line, text, str(error))),))
    moved: dict[str, tuple[Process, ...]] = {}
    for fetch in arrays.halos.fetched:
        moved[fetch.name] = (*moved.get(fetch.name, ()), *fetch.sent)
    named = {work for sent in moved.values() for part in sent for work in works(part)}
    brings = [_only(part, lambda work: _is_moved(work) and work not in named) for part in made]
    moved[""] = tuple(part for part in brings if any(True for _ in works(part)))
    return Lowered(tuple(_only(part, lambda work: not _is_moved(work)) for part in made), moved)


def _only(part: Process, kept: Callable[[Work], bool]) -> Process:
    return of_work(part, lambda work: Leaf(work) if kept(work) else NOTHING)


def _is_moved(work: Work) -> bool:
    """Return whether it brings elements of other ranks."""
    return isinstance(work, Message | RemoteGroup) or (
        isinstance(work, Collective) and work.kind in _MOVES
    )


def as_fetched(found: Lowered, array: str, counts: Sequence[Expr], into: str) -> Lowered:
    """Return a statement that reads so many elements of an array where they were fetched to.

    What else it reads of the array are its own elements, where they are.
    """

    def there(region: Region) -> Region:
        moving = tuple(
            ONE if pitch == ZERO else count
            for count, pitch in zip(region.counts, region.pitches_bytes, strict=True)
        )
        own = pitches_bytes(moving, "C", region.itemsize_bytes)
        pitches = (
            new if old != ZERO else old for new, old in zip(own, region.pitches_bytes, strict=True)
        )
        return replace(region, pitches_bytes=tuple(pitches))

    calls = (
        call
        for process in found.computing
        for work in only(Computed, works(process))
        for call in work.calls or ()
    )
    read = {one for call in calls for one in call.operands if one.array == array}
    fetched = [count for count in counts if count != ONE]
    moved = {one for one in read if _moving(one.region) == fetched} or read

    def other(part: object) -> object:
        if isinstance(part, ArrayCall):
            places = (
                Visit(there(one.region), into) if one in moved else one for one in part.operands
            )
            return replace(part, operands=tuple(places))
        return None

    return replace(found, computing=mapped(found.computing, other))


def _moving(region: Region) -> list[Expr]:
    """Return how many elements a region has along the dimensions along which memory changes."""
    dimensions = zip(region.counts, region.pitches_bytes, strict=True)
    return [count for count, pitch in dimensions if count != ONE and pitch != ZERO]


# Copies and messages.


def part_of(found: ArrayType, placement: Placement, facts: Facts, room: Sequence[int]) -> Region:
    """Return where a rank's block lies in an array that has room on either side of it."""
    extents = local_extents(placement, found.extents, facts)
    itemsize = itemsize_of(found.dtype)
    wide = tuple(extent + more for extent, more in zip(extents, room, strict=True))
    return Region(itemsize, extents, pitches_bytes(wide, placement.order, itemsize))


def copied(
    source: Region, target: Region, dtype: str, label: str, into: str = "", *, fresh: bool = False
) -> Process:
    """Return a copy of elements from one place to another, of the array `into` if named."""
    elements = product(source.counts)
    call = ArrayCall(
        ArrayOperation.COPY, dtype, elements, Visit(target, into), (Visit(source),), fresh=fresh
    )
    accesses = Access(source), Access(target, store=True)
    return Leaf(Computed(accesses, ZERO, label, (call,)))


def packed(region: Region, dtype: str, label: str) -> Process:
    """Return the message of elements that lie apart, with a copy at either end."""
    run = dense(region.counts, dtype)
    return Sequential(
        (
            copied(region, run, dtype, label),
            Leaf(Message(run, label)),
            copied(run, region, dtype, label),
        )
    )


def rim(
    found: ArrayType,
    placement: Placement,
    facts: Facts,
    room: Sequence[tuple[int, int]],
    d: int,
) -> Process:
    """Return the exchange of a rim along one dimension, both sides at a time."""
    block = part_of(found, placement, facts, [sum(one) for one in room])
    # rims of dimensions that come before go along
    wide = [n + sum(room[e]) if e < d else n for e, n in enumerate(block.counts)]
    ranks = placement.ranks(d)
    sides = [width for width in room[d] if width]
    made: list[Process] = []
    for number, width in enumerate(sides):
        counts = (*wide[:d], num(width), *wide[d + 1 :])
        sent = packed(replace(block, counts=tuple(counts)), found.dtype, RIMS)
        # on two ranks either has one neighbour only
        made.append(_from(ranks, 2 + number, sent))
    return Sequential(tuple(made))


def _from(ranks: Expr, least: int, one: Process) -> Process:
    test = less_equal(least, ranks)
    return one if test == ONE else Branch(test, one, NOTHING)


def brought(
    moved: Sequence[Process],
    found: ArrayType,
    counts: Sequence[Expr],
    into: str,
    *,
    as_sent: bool,
    fresh: bool,
) -> Iterator[Process]:
    """Yield what it takes to fetch elements: what others send, and an array of all of them.

    Where they have one owner it is `as_sent` by the kernel: to all ranks at once.
    """
    run = dense(tuple(counts), found.dtype)
    yield copied(run, run, found.dtype, FETCHED, into, fresh=fresh)
    for part in moved:
        yield part if as_sent else _sent(part, found.dtype)


def exchanged(
    found: ArrayType, placement: Placement, counts: Sequence[Expr], facts: Facts
) -> Iterator[Process]:
    """Yield what comes from others of an array that is needed dealt out in another way."""
    block = part_of(found, placement, facts, [0] * len(counts))
    pieces = tuple(minimum(own, count) for own, count in zip(block.counts, counts, strict=True))
    ranks = product(tuple(placement.ranks(d) for d in range(len(counts))))
    if ranks != ONE:
        yield Leaf(Collective(CollectiveKind.ALLTOALL, ranks, replace(block, counts=pieces)))


def _sent(part: Process, dtype: str) -> Process:
    """Return what brings elements as `fetch` does it: a copy, and a message to each."""

    def single(region: Region) -> Process:
        run = dense(region.counts, dtype)
        sent = Leaf(Message(run, FETCHED))
        inner = region.pitches_bytes[-1:] if region.counts else ()
        if inner == (num(region.itemsize_bytes),) and len(region.counts) == 1:
            return sent
        return Sequential((copied(region, run, dtype, FETCHED, fresh=True), sent))

    def sent_each(work: Work) -> Process:
        match work:
            case Message(region, _):
                return single(region)
            case Collective(_, ranks, region, _):
                return repeated(ranks - 1, single(region))
        return Leaf(work)

    return of_work(part, sent_each)


def count_along(axis: Axis, facts: Facts) -> Expr:
    """Return how many elements of an axis the rank computes that has most of them."""
    if axis.spread is None:
        return axis.count
    found = axis.spread.owned(axis.low, axis.low + axis.count * axis.step).count(facts)
    return found if axis.step == 1 else found / axis.step


# What ranks do together.


def with_scans(part: Process, dtype: str) -> Process:
    """Return a process whose running sums are those that a program makes; no type: of one rank."""

    def made(work: Work) -> Process:
        if not isinstance(work, PrefixScan):
            return Leaf(work)
        if dtype:
            return scanned(work, dtype)
        accesses = Access(work.block), Access(work.block, store=True)
        return Leaf(Computed(accesses, product(work.block.counts), work.label, work.calls))

    return of_work(part, made)


def scanned(scan: PrefixScan, dtype: str) -> Process:
    """Return running sums over ranks: one's own, their totals, what ranks before have."""
    counts = scan.block.counts
    block = Visit(scan.block)
    elements = product(counts)
    run = Visit(dense(counts, dtype))
    total = ArrayCall(ArrayOperation.SCAN, dtype, elements, None, (block,), length=elements)
    total = next(iter(scan.calls or ()), total)
    calls = (
        *(scan.calls or ()),
        replace(
            total, operation=ArrayOperation.REDUCE, operands=(block,), result=None, fresh=False
        ),
        ArrayCall(ArrayOperation.BINARY, dtype, elements, run, (run,), fresh=True),
    )
    accesses = Access(scan.block), Access(scan.block, store=True)
    edge = dense(scan.edge.counts, dtype)
    return Sequential(
        (
            Leaf(Computed(accesses, elements, scan.label, calls)),
            Leaf(Collective(CollectiveKind.PREFIX, scan.ranks, edge, scan.label)),
        )
    )


def placed_sums(
    table: ArrayType,
    places: ArrayType,
    counts: Sequence[Expr],
    own: Sequence[Expr],
    ranks: Expr,
    *,
    in_blocks: bool,
) -> Process:
    """Return what `add_at` does with places: find owners, sort by them, send, combine."""
    n, each = product(tuple(counts)), product(tuple(counts)) / ranks
    vector = Visit(dense((n,), places.dtype))
    values = Visit(dense((n,), table.dtype))
    held = Visit(dense(tuple(own), table.dtype))

    def call(operation: ArrayOperation, dtype: str = places.dtype, **more: Any) -> ArrayCall:
        made = ArrayCall(operation, dtype, n, vector, (vector,), fresh=True)
        return replace(made, **more)

    finding = (
        call(ArrayOperation.REDUCE, result=None, fresh=False, length=n, axis_from_last=0),
        call(ArrayOperation.REDUCE, result=None, fresh=False, length=n, axis_from_last=0),
        call(ArrayOperation.DIVIDE_BY_ONE),
        *(() if in_blocks else (call(ArrayOperation.REMAINDER),)),
        call(ArrayOperation.TAKE, operands=(vector, vector), length=ranks),
        call(ArrayOperation.CAST, "int16"),
        call(ArrayOperation.SORT, "int16", length=n, axis_from_last=0),
        call(ArrayOperation.ADD_AT, fresh=False, length=ranks),
        call(ArrayOperation.TAKE, operands=(vector, vector), length=n),
        call(ArrayOperation.TAKE, table.dtype, operands=(values, vector), length=n),
    )
    turns = (
        call(ArrayOperation.DIVIDE_BY_ONE),
        call(ArrayOperation.BINARY),
        call(ArrayOperation.BINARY),
    )
    combining = (
        *(() if in_blocks else turns),
        call(ArrayOperation.REMAINDER),
        call(
            ArrayOperation.ADD_AT, table.dtype, result=held, operands=(vector,), fresh=False,
            length=product(tuple(own)),
        ),
    )  # fmt: skip
    passed = Access(vector.region), Access(held.region, store=True)
    sizes = dense((num(1),), "int64")
    sent = [
        Leaf(Collective(CollectiveKind.ALLTOALL, ranks, sizes, PLACES)),
        *(
            Leaf(Collective(CollectiveKind.ALLTOALLV, ranks, dense((each,), dtype), PLACES))
            for dtype in (places.dtype, table.dtype)
        ),
    ]
    return Sequential(
        (
            Leaf(Computed(passed, n, PLACES, finding)),
            *sent,
            Leaf(Computed(passed, n, PLACES, combining)),
        )
    )


# What an interpreter does besides.

_CALLS: Final = {
    "fetch": (3, 2, 54, 9), "from_owner": (3, 2, 13, 2), "add_at": (16, 12, 0, 0),
    "scanned": (3, 17, 0, 0), "reduced": (5, 12, 0, 0), "combined": (3, 7, 0, 0),
    "halo": (2, 2, 0, 0), "receive": (3, 2, 0, 0), "send": (4, 2, 0, 0), "padded": (5, 1, 0, 0),
    "part": (14, 0, 0, 0), "own": (13, 1, 0, 0), "at": (11, 2, 0, 0), "some": (9, 0, 0, 0),
    "owned": (3, 2, 0, 0), "range": (4, 0, 0, 0), "below": (4, 0, 0, 0), "holds": (3, 0, 0, 0),
    "local": (2, 0, 0, 0), "moved": (2, 0, 0, 0), "line": (1, 0, 0, 0),
}  # fmt: skip
"""About how many calls what the program defines makes, its own included: of what is written in
Python, and of libraries; then the same for each rank that it goes through."""
_CALLED: Final = re.compile(r"(\w+)\(")


def calls_of(text: str) -> tuple[int, int, int, int]:
    """Return the calls that a line makes of what the program defines, as `_CALLS` has them.

    A line's own calls of the library are its work.
    """
    found = [0, 0, 0, 0]
    here, _, asked = text.partition("lambda ")
    for part, by_rank in ((here, False), (asked, True)):
        for name in _CALLED.findall(part):
            counts = _CALLS.get("halo" if name.lower().endswith("_halo") else name, (0,) * 4)
            # what a rank needs is asked of each
            for place, count in enumerate(counts):
                found[place % 2 + 2 if by_rank else place] += count
    once, library, each, each_library = found
    return once, library, each, each_library


def interpreted(text: str, ranks: Expr) -> list[Process]:
    """Return the interpreter's part in a line.

    A call in Python takes about as long as having one element of an array does.
    """
    once, library, each, each_library = calls_of(text)
    counts = (ONE, once, library), (ranks, each, each_library)
    return [
        Leaf(Interpretation(times, WRITTEN, loads=loads, calls=calls, loop=False))
        for times, loads, calls in counts
        if loads or calls
    ]
