"""How much of each coefficient one call of an array library takes.

A call takes a fixed time, some for every entry into its innermost loop, some for every element,
and some for every cache line that comes from beyond the first level, by the level that still has
it: the sum of what the core does and of transfers level by level that the execution-cache-memory
model has. Where memory is strided, elements and lines have coefficients of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import log2 as log2_of

from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    floor_div,
    free_symbols,
    gcd,
    less,
    log2,
    maximum,
    minimum,
    num,
    substitute,
)
from costdb.expr.functions import CHANCE, Max, Min
from costdb.expr.nodes import Num, add, multiply
from costdb.machines import RESIDUAL
from costdb.records import dataclass
from costdb.work import IN_BLAS, ArrayCall, ArrayOperation, Region, Visit


@dataclass(frozen=True, slots=True)
class Shape:
    """How a region lies in memory.

    Attributes
    ----------
    lines : Expr
        Cache lines touched, as expected for any alignment.
    apart_bytes : Expr or None
        Between neighbours, where each may have a line of its own; None where they fill lines.
    """

    lines: Expr
    apart_bytes: Expr | None = None


def shape_of(region: Region, line_bytes: int) -> Shape:
    """Return how a region lies in memory."""
    item, line = num(region.itemsize_bytes), num(line_bytes)
    dims = [
        (count, pitch)
        for count, pitch in zip(region.counts, region.pitches_bytes, strict=True)
        if count != ONE and pitch != ZERO
    ]
    if not dims:
        return Shape(ONE)
    inner = next((d for d in reversed(dims) if d[1] == item), None)
    if inner is None:
        pitch = _closest(dims)[1]
        lines = multiply(count for count, _ in dims)
        return Shape(lines * minimum(1, pitch / line), pitch)
    run, rest = inner[0] * item, [d for d in dims if d is not inner]
    # dimensions that go on where the one inside them ends make longer runs
    while following := next((d for d in rest if _goes_on((d[1],), inner[0], (inner[1],))), None):
        run, inner = run * following[0], following
        rest.remove(following)
    lines = run / line + (1 - item / line)
    if rest:
        lines = minimum(lines, _closest(rest)[1] / line)
    return Shape(multiply((lines, *(count for count, _ in rest))))


def _closest(dims: list[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """Return the dimension with the least pitch where numbers tell, else the last one."""
    if all(isinstance(pitch, Num) for _, pitch in dims):
        return min(dims, key=lambda d: abs(float(d[1].value)) if isinstance(d[1], Num) else 0.0)
    return dims[-1]


def moving_axes(region: Region) -> list[int]:
    """Return the axes along which memory changes: 0 is the last, -1 before it."""
    dimensions = zip(region.counts, region.pitches_bytes, strict=True)
    axes = enumerate(dimensions, 1 - len(region.counts))
    return [axis for axis, (count, pitch) in axes if count != ONE and pitch != ZERO]


def fastest(region: Region) -> int | None:
    """Return the axis along which elements are next to each other.

    None where there is none, or only one axis along which memory changes: no order then.
    """
    axes, item = moving_axes(region), num(region.itemsize_bytes)
    if len(axes) < 2:
        return None
    return next((axis for axis in axes if region.pitches_bytes[axis - 1] == item), None)


def is_turned(region: Region, other: Region) -> bool:
    """Return whether neighbours in one region's memory are not neighbours in another's.

    Along a dimension in which a region is repeated it has no neighbours: the others count then.
    """
    one, there = fastest(region), fastest(other)
    if one is None or there is None:
        return False
    moving = moving_axes(region)
    if there not in moving:
        there = max(moving) if there == 0 else min(moving)
    return one != there


def inner_runs(call: ArrayCall) -> Expr:
    """Return how often the library's innermost loop is entered.

    Dimensions that go on in all memory alike where the one inside them ends are one loop.
    """
    runs, inside = ONE, None
    for count, pitches in _dimensions(call):
        if inside is not None and not _goes_on(pitches, *inside):
            runs = runs * count
            continue
        inside = count, pitches
    return runs


def _with_gaps(call: ArrayCall) -> tuple[int, Expr]:
    """Return how many operands and results do not go on from row to row, and how long rows are."""
    found: set[int] = set()
    run, inside = ONE, None
    for count, pitches in _dimensions(call):
        if inside is not None:
            length, inner = inside
            pairs = enumerate(zip(pitches, inner, strict=True))
            found |= {n for n, (one, next_) in pairs if not _follows(one, length, next_)}
        run = run if found else run * count
        inside = count, pitches
    return len(found), run


def _buffered(call: ArrayCall) -> Expr:
    """Return which part of its operands and results a call on elements copies to buffers."""
    gaps, run = _with_gaps(call) if call.operation in _BY_ELEMENT else (0, ONE)
    if not gaps:
        return ZERO
    shorter = less(_with_even_chances(run) * (1 + gaps), BUFFER_ELEMENTS)
    return shorter * gaps / (1 + _OPERANDS.get(call.operation, 2))


def _dimensions(call: ArrayCall) -> Iterator[tuple[Expr, list[Expr]]]:
    """Yield extents other than 1 and the pitches of all visits along them, the innermost first.

    The library goes through memory as its operands lie: what it makes of them lies alike.
    """
    made = call.fresh and call.operation in _BY_ELEMENT and call.operands
    visits = call.operands if made else call.visits
    ranks = max((len(visit.region.counts) for visit in visits), default=0)
    regions = [_padded(visit.region, ranks) for visit in visits]
    order = list(reversed(range(ranks)))
    first = next((axis for one in visits if (axis := fastest(one.region)) is not None), 0)
    if order:
        order.insert(0, order.pop(-first))
    for dimension in order:
        count = next((counts[dimension] for counts, _ in regions if counts[dimension] != ONE), ONE)
        if count != ONE:
            yield count, [pitches[dimension] for _, pitches in regions]


def _goes_on(pitches: Sequence[Expr], count: Expr, inside: Sequence[Expr]) -> bool:
    """Return whether a dimension goes on, everywhere, where the one inside it ends."""
    return all(_follows(pitch, count, inner) for pitch, inner in zip(pitches, inside, strict=True))


def _follows(pitch: Expr, count: Expr, inside: Expr) -> bool:
    """Return whether memory goes on where so many elements end.

    Rows of a region that shrinks, cut to what a rank has, go on for as long as they are whole: they
    count as if they always did.
    """
    if pitch == count * inside:
        return True
    return isinstance(count, Min | Max) and any(_follows(pitch, one, inside) for one in count.args)


def _padded(region: Region, ranks: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    missing = ranks - len(region.counts)
    return (ONE,) * missing + region.counts, (ZERO,) * missing + region.pitches_bytes


def distinct(call: ArrayCall) -> tuple[Visit, ...]:
    """Return the memory of a call, each part once: what is stored where it was loaded."""
    found: dict[tuple[str, Region], Visit] = {}
    for visit in call.operands if _is_spent(call) else call.visits:
        found.setdefault((visit.array or str(id(visit)), visit.region), visit)
    return tuple(found.values())


def _is_spent(call: ArrayCall) -> bool:
    """Return whether a result is stored in a temporary that is an operand, as operators do."""
    made = call.result
    operators = ArrayOperation.BINARY, ArrayOperation.DIVIDE
    return (
        call.fresh
        and made is not None
        and not made.array
        and call.operation in operators
        and made in call.operands
    )


BEYOND = "beyond"
_PITCHES_BYTES = 4096
"""Lines so far apart share a set of the first level: what a pitch says of sets ends at the page."""
_STEPS = ((2, 3), (1, 1), (4, 3))
"""A level has lost a third of its data at two thirds of its size, two at its size, and all at four
thirds: in steps, which closed forms of loops bear better than slopes."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The caches of a machine, nearest first.

    Attributes
    ----------
    levels : tuple of int
        Bytes that each holds, ascending.
    line_bytes : int
    """

    levels: tuple[int, ...]
    line_bytes: int

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of what lies beyond the first level, nearest first."""
        return (*(f"b{level}" for level in self.levels[1:]), BEYOND)

    def crowding(self, pitch: Expr) -> Expr:
        """Return by how much larger lines at a pitch seem to a cache than they are.

        Those at a pitch that shares a large power of two with a page fit few of its sets.
        """
        return maximum(1, gcd(floor_div(pitch, 1), _PITCHES_BYTES) / self.line_bytes)

    def shares(self, distance: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each level, the share of data that comes from there.

        Parameters
        ----------
        distance : Expr
            Bytes touched since the data was last used.
        """
        yield from self._differences([_lost_of(distance, level) for level in self.levels])

    def shares_anywhere(self, table_bytes: Expr) -> Iterator[tuple[str, Expr]]:
        """Yield, for each level, the share of references to random places of a table.

        A level holds a part of the table, whichever it is.
        """
        table_bytes = _with_even_chances(table_bytes)
        lost = [1 - level / maximum(level, table_bytes) for level in self.levels]
        yield from self._differences(lost)

    def _differences(self, lost: Sequence[Expr]) -> Iterator[tuple[str, Expr]]:
        for number, key in enumerate(self.keys):
            here = lost[number] - (lost[number + 1] if number + 1 < len(lost) else ZERO)
            if here != ZERO:
                yield key, here


@lru_cache(maxsize=4096)
def _lost_of(used: Expr, size: int) -> Expr:
    """Return the share that a store of some size has lost when so much was used since."""
    used = _with_even_chances(used)
    return add(less(times * size, parts * used) for times, parts in _STEPS) / len(_STEPS)


def _with_even_chances(expr: Expr) -> Expr:
    """Return an expression where every condition that nothing tells holds half of the times.

    Whether something fits is asked of that: of what hangs on a share no price is a sum of products.
    """
    chances = [name for name in free_symbols(expr) if name.startswith(CHANCE)]
    return substitute(expr, dict.fromkeys(chances, num(Fraction(1, 2)))) if chances else expr


CALL, RUN = "call_us", "run_us"
ELEMENT, ROWS_ELEMENT, APART_ELEMENT = "element_us", "rows_element_us", "apart_element_us"
"""Where all operands lie in rows with gaps between them the library copies all of them to buffers
and back, and where elements lie apart none comes with another one's line."""
BUFFER_ELEMENTS = 8192
"""Rows are as well computed where they are once they fill a buffer: for each operand that would
not be copied, and once for the call."""
LINE, APART_LINE = "line_us", "apart_line_us"
LINES = (LINE, APART_LINE)
FAULT = "fault_us"
"""Not of a class: memory that the system has to give is as dear for every operation."""
GIVEN_BACK = "given_back"
"""Whether the memory of results that are neither small nor large comes anew each time, too."""
SMALL_BYTES, FRESH_BYTES = 256 * 2**10, 32 * 2**20
"""The C library keeps what smaller results take, and gives back what larger ones do: what lies
between goes by what else is in the heap when it is freed."""
PAGE_BYTES = 4096
RESIDUALS = RESIDUAL, f"apart_{RESIDUAL}"
"""What a fit leaves unexplained: where elements lie apart it is harder to know."""

_BY_ROWS = frozenset({
    ArrayOperation.FFT, ArrayOperation.SORT, ArrayOperation.SCAN, ArrayOperation.MATVEC,
})  # fmt: skip
_WALKING = frozenset({ArrayOperation.SCAN, ArrayOperation.SORT, ArrayOperation.FFT})
_ADDING = frozenset({ArrayOperation.ADD_AT, ArrayOperation.ADD_AT_CAST})
_WITHOUT_RUNS = frozenset(
    {*_ADDING, ArrayOperation.TAKE, ArrayOperation.LOOP, ArrayOperation.COMPILED}
)
_BY_ELEMENT = frozenset({
    ArrayOperation.BINARY, ArrayOperation.DIVIDE, ArrayOperation.COMPARE, ArrayOperation.UNARY,
    ArrayOperation.ROOT, ArrayOperation.TRANSCENDENTAL, ArrayOperation.FUNCTION,
    ArrayOperation.POWER, ArrayOperation.CIRCULAR,
    ArrayOperation.WHERE, ArrayOperation.DIVIDE_BY_ONE, ArrayOperation.REMAINDER,
})  # fmt: skip
_OPERANDS = {
    ArrayOperation.UNARY: 1, ArrayOperation.ROOT: 1, ArrayOperation.TRANSCENDENTAL: 1,
    ArrayOperation.CIRCULAR: 1, ArrayOperation.DIVIDE_BY_ONE: 1, ArrayOperation.WHERE: 3,
}  # fmt: skip
"""How many operands calls of a class have beside a result; of others it is two."""


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of one coefficient: its place under the operation's rates, and a formula."""

    place: tuple[str, ...]
    amount: Expr


def residual_key(places: Collection[tuple[str, ...]]) -> str:
    """Return which residual holds for a call that takes of the coefficients at `places`."""
    return RESIDUALS[(APART_ELEMENT,) in places]


WITHOUT_BLAS = "matmul_without_blas"
_MULTIPLYING = frozenset({ArrayOperation.MATMUL, ArrayOperation.MATVEC})


def rate_key(call: ArrayCall) -> str:
    """Return the name of a call's class in a profile: along the last axis, or across."""
    if call.operation in _MULTIPLYING and call.dtype not in IN_BLAS:
        return WITHOUT_BLAS
    across = call.axis_from_last not in (None, 0)
    return f"{call.operation}_across" if across else str(call.operation)


def amounts(call: ArrayCall, memory: Hierarchy) -> Iterator[Amount]:
    """Yield what a call takes of each coefficient.

    Parameters
    ----------
    call : ArrayCall
    memory : Hierarchy
        Lines from the first level cost nothing of their own.
    """
    yield Amount((CALL,), ONE)
    if call.operation is ArrayOperation.VIEW:
        return
    yield Amount((RUN,), _runs(call))
    shapes = [(visit, shape_of(visit.region, memory.line_bytes)) for visit in distinct(call)]
    walks = {visit: walk for visit, _ in shapes if (walk := _walked_across(call, visit))}
    # products without BLAS take one element at a time, wherever the next one lies
    apart = rate_key(call) != WITHOUT_BLAS and any(
        shape.apart_bytes is not None or visit in walks for visit, shape in shapes
    )
    buffered = ZERO if apart else _buffered(call)
    work = call.elements * _work_each(call)
    yield Amount((APART_ELEMENT if apart else ELEMENT,), work * (1 - buffered))
    if buffered != ZERO:
        yield Amount((ROWS_ELEMENT,), work * buffered)
    own = sum((shape.lines for _, shape in shapes), ZERO) * memory.line_bytes
    walked = sum(((length for _, length in walks.values())), ZERO) * memory.line_bytes
    for visit, shape in shapes:
        if is_table(call, visit):
            for key, here in memory.shares_anywhere(shape.lines * memory.line_bytes):
                yield Amount((APART_LINE, key), call.elements * here)
        elif visit in walks:
            yield from _across(visit, walks[visit][0], own, walked, memory)
        else:
            yield from _along(call, visit, shape, own, memory)
    if call.fresh and call.result is not None and not _is_spent(call):
        size = shape_of(call.result.region, memory.line_bytes).lines * memory.line_bytes
        asked = _with_even_chances(size)
        large, some = less(FRESH_BYTES, asked), less(SMALL_BYTES, asked)
        yield Amount((FAULT,), size / PAGE_BYTES * large)
        yield Amount((FAULT, GIVEN_BACK), size / PAGE_BYTES * (some - large))


def _along(
    call: ArrayCall, visit: Visit, shape: Shape, own: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    """Yield the lines of memory that a call goes through in its order."""
    # packing goes through a factor of a product in the order in which it lies
    name, crowding = LINE, ONE
    if shape.apart_bytes is not None and call.operation is not ArrayOperation.MATMUL:
        name, crowding = APART_LINE, memory.crowding(shape.apart_bytes)
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    # a region that moves by less than a line with a loop brings a new one once in a while
    new = ONE
    if visit.advance_bytes is not None:
        new = minimum(1, visit.advance_bytes / memory.line_bytes)
    for distance, share in ((far, new), (own, 1 - new)):
        if share != ZERO:
            for key, here in memory.shares(distance * crowding):
                yield Amount((name, key), shape.lines * share * here)


def _across(
    visit: Visit, pitch: Expr, own: Expr, walked: Expr, memory: Hierarchy
) -> Iterator[Amount]:
    """Yield the lines of walks side by side: each has a line for every element.

    The next walk finds them where this one left them, if that is not too long ago.
    """
    elements = multiply(visit.region.counts)
    first = minimum(1, num(visit.region.itemsize_bytes) / memory.line_bytes)
    far = own if visit.distance_bytes is None else maximum(own, visit.distance_bytes)
    for distance, share in ((far, first), (walked * memory.crowding(pitch), 1 - first)):
        for key, here in memory.shares(distance):
            yield Amount((APART_LINE, key), elements * share * here)


def is_table(call: ArrayCall, visit: Visit) -> bool:
    """Return whether a call refers to places of this memory that only the data know."""
    if call.operation is ArrayOperation.TAKE:
        return bool(call.operands) and visit is call.operands[0]
    return call.operation in _ADDING and visit is call.result


def _walked_across(call: ArrayCall, visit: Visit) -> tuple[Expr, Expr] | None:
    """Return pitch and length of a walk that takes one element of each line it comes to.

    Operations along an axis that is not the last one do one walk after another; so does what goes
    through memory in the order of other memory: a copy that transposes, and an operation on
    elements of arrays that lie in different orders.
    """
    region = visit.region
    if len(region.counts) < 2:
        return None
    if call.operation is ArrayOperation.TRANSPOSE or call.operation in _BY_ELEMENT:
        # what makes its result takes the order of its operands
        new = call.result if call.fresh and call.operation in _BY_ELEMENT else None
        given = (one.region for one in call.visits[::-1] if one is not new)
        first = next((one for one in given if fastest(one) == 0), None)
        if visit is new or first is None or not is_turned(region, first):
            return None
        place = -1
    elif call.operation in _WALKING and call.axis_from_last:
        place = -1 - call.axis_from_last
    else:
        return None
    return region.pitches_bytes[place], region.counts[place]


def _runs(call: ArrayCall) -> Expr:
    """Return how often the library's innermost loop is entered."""
    if call.operation in _BY_ROWS and call.length is not None:
        return ZERO if call.length == ZERO else call.elements / call.length
    if call.operation is ArrayOperation.MATMUL:
        return call.elements
    return ZERO if call.operation in _WITHOUT_RUNS else inner_runs(call)


def _work_each(call: ArrayCall) -> Expr:
    """Return what is done for each element, in the unit of the class."""
    length = call.length
    if length is None:
        return ONE
    match call.operation:
        case ArrayOperation.MATMUL:
            return length
        case ArrayOperation.FFT if isinstance(length, Num):
            return num(_passes(max(2, int(length.value))))
        case ArrayOperation.FFT | ArrayOperation.SORT:
            if isinstance(length, Num):
                return num(log2_of(max(2, length.value)))
            return log2(maximum(2, length))
        case _:
            return ONE


def _passes(length: int) -> float:
    """Return what a transform does for each element: for powers of two, their logarithm.

    A pass for each prime factor combines as many elements as the factor. A length with a large one
    is a convolution instead (Bluestein's algorithm): three transforms of twice the length.
    """
    convolved, combined, rest, factor = 6 * (log2_of(length) + 1), 0, length, 2
    while rest > 1 and combined / 2 < convolved:
        while rest % factor == 0:
            rest //= factor
            combined += factor
        # no factor is left below the root of what is
        factor = factor + 1 if factor * factor <= rest else max(rest, 2)
    return min(combined / 2, convolved)
