"""Reference partitioning by typed fusion, and the work that the groups stand for.

References of an interval are put into one group when they name the same array, have the same
affinity at any moment, are of one kind (reads and writes have rates of their own), and no true
dependence or antidependence joins two of them. References to one location count once. A read
group and a write group of the same statements and locations (``a[i]++``) are then shown as one
that is accessed both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from costdb.evaluate import Domain, ImpossibleError, Missing, Priced
from costdb.expr import ONE, Expr, conditional, equal, less, minimum, num, sym
from costdb.lines.coefficients import Bill
from costdb.machines import Machine
from costdb.profile_parts import counts_in_keys, lacking, piecewise_linear
from costdb.quantity import Quantity, exactly
from costdb.records import dataclass, replace
from costdb.work import Pattern, Region, RemoteGroup

# References to shared arrays between two sequence points, as data.


class Spread(StrEnum):
    """How a shared array lies over the threads."""

    BLOCK = "block"
    CYCLIC = "cyclic"
    REMOTE = "remote"
    """All that is referenced lies on one other thread."""


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array.

    Attributes
    ----------
    name : str
    spread : Spread
    axis : int
        The axis that is spread over the threads.
    fastest : int
        The axis along which one thread's elements lie next to each other in memory.
    """

    name: str
    spread: Spread
    axis: int = 0
    fastest: int = 0


@dataclass(frozen=True, slots=True)
class Affine:
    """The subscript ``offset + sum(coefficient * index)``; zero coefficients are left out."""

    coefficients: tuple[tuple[str, int], ...]
    offset: int = 0

    def step(self, index: str) -> int:
        """Return by how much the subscript grows when the loop index grows by 1."""
        return dict(self.coefficients).get(index, 0)


@dataclass(frozen=True, slots=True)
class Irregular:
    """A subscript that analysis cannot follow: uniform over the axis, known by its name only."""

    name: str


Subscript = Affine | Irregular


@dataclass(frozen=True, slots=True)
class Reference:
    """One read or one write of an array element in a statement.

    Attributes
    ----------
    array : str
        Name of a :class:`SharedArray` of the interval.
    subscripts : tuple of Subscript
        One for each axis.
    statement : str
        Where it occurs; ``x += y`` is a read and a write of `x` in one statement.
    store : bool
    depth : int or None
        How many of the interval's loops enclose it, outermost first; None means all.
    """

    array: str
    subscripts: tuple[Subscript, ...]
    statement: str
    store: bool = False
    depth: int | None = None


class DependenceKind(StrEnum):
    """What orders two references."""

    TRUE = "true"
    ANTI = "anti"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Dependence:
    """Reference number `sink` must come after `source`."""

    source: int
    sink: int
    kind: DependenceKind


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the interval: its index, and the slowest thread's trips, never negative."""

    index: str
    trips: Expr


@dataclass(frozen=True, slots=True)
class Interval:
    """What one thread does between two sequence points.

    Attributes
    ----------
    threads : Expr
    arrays : tuple of SharedArray
    loops : tuple of Loop
        Outermost first.
    references : tuple of Reference
        Calls inlined, in program order.
    dependences : tuple of Dependence
    affinity : str
        Index of the loop whose trips go to the owner of that element; empty where every thread
        makes all trips.
    below, above : Expr or None
        1 where the slowest thread's block has a neighbour on that side, else 0; by default
        both sides have one as soon as there are two threads.
    """

    threads: Expr
    arrays: tuple[SharedArray, ...]
    loops: tuple[Loop, ...]
    references: tuple[Reference, ...]
    dependences: tuple[Dependence, ...] = ()
    affinity: str = ""
    below: Expr | None = None
    above: Expr | None = None

    def has_neighbour(self, offset: int) -> Expr:
        """Return 1 where the block that `offset` reaches into exists, else 0."""
        side = self.below if offset < 0 else self.above
        return less(num(1), self.threads) if side is None else side


CLOSE_ELEMENTS = 8
"""Greatest stride that counts as close. Not printed; one cache line of 64 bytes."""


class Affinity(StrEnum):
    """Whose elements a group touches, seen from the thread that executes it."""

    LOCAL = "local"
    REMOTE = "remote"
    MIXED = "mixed"
    """Uniform over all threads: one in T is the thread's own."""
    EDGE = "edge"
    """Local but for the first or last elements of the thread's block."""
    SHIFTED = "shifted"
    """All on the thread a fixed distance away, cyclically."""


class PartitionError(ImpossibleError):
    """References that contradict their interval; the message says how in one line."""


@dataclass(frozen=True, slots=True)
class Group:
    """References that are served alike.

    Attributes
    ----------
    array : str
    affinity : Affinity
    pattern : Pattern
        The best that the subscripts admit for what is not local.
    members : tuple of int
        Positions in the interval's references, ascending.
    reads, writes : bool
    offset : int
        How far an `EDGE` or `SHIFTED` group reaches from the thread's own elements.
    """

    array: str
    affinity: Affinity
    pattern: Pattern
    members: tuple[int, ...]
    reads: bool
    writes: bool
    offset: int = 0


def partition(interval: Interval) -> tuple[Group, ...]:
    """Return the groups of an interval's references, in order of their first member.

    Raises
    ------
    PartitionError
        A reference names no array of the interval, has the wrong number of subscripts or too
        great a depth, or a dependence names no reference.
    """
    _check(interval)
    fused: list[list[int]] = []
    for number in range(len(interval.references)):
        for members in fused:
            if all(_fusable(interval, number, member) for member in members):
                members.append(number)
                break
        else:
            fused.append([number])
    return _both_ways(interval, [_group(interval, tuple(members)) for members in fused])


def remote_groups(interval: Interval) -> tuple[RemoteGroup, ...]:
    """Return an interval as work to be priced: each group's counts by where they are served."""
    return tuple(
        work
        for group in partition(interval)
        for store, happens in ((False, group.reads), (True, group.writes))
        if happens
        for work in _works(interval, group, store)
    )


def _check(interval: Interval) -> None:
    arrays = {array.name: array for array in interval.arrays}
    for reference in interval.references:
        array = arrays.get(reference.array)
        if array is None:
            raise PartitionError(f"no shared array is named {reference.array!r}")
        axes = len(reference.subscripts)
        if not (0 <= array.axis < axes and 0 <= array.fastest < axes):
            raise PartitionError(f"{reference.array!r} has more axes than the {axes} subscripts")
        if not 0 <= _depth(interval, reference) <= len(interval.loops):
            raise PartitionError(f"{reference.array!r} is at a depth of loops that are not there")
    last = len(interval.references)
    for dependence in interval.dependences:
        if not (0 <= dependence.source < last and 0 <= dependence.sink < last):
            raise PartitionError("a dependence names a reference that is not there")


def _fusable(interval: Interval, one: int, other: int) -> bool:
    first, second = interval.references[one], interval.references[other]
    if first.array != second.array or first.store != second.store:
        return False
    array = _array(interval, first)
    if array.spread is not Spread.REMOTE and _owner(array, first) != _owner(array, second):
        return False
    return not any(
        {dependence.source, dependence.sink} == {one, other}
        and dependence.kind is not DependenceKind.OUTPUT
        for dependence in interval.dependences
    )


def _group(interval: Interval, members: tuple[int, ...]) -> Group:
    references = [interval.references[member] for member in members]
    array = _array(interval, references[0])
    affinity, offset = _affinity(interval, array, references[0])
    store = references[0].store
    pattern = Pattern.LOCAL if affinity is Affinity.LOCAL else _pattern(interval, array, references)
    return Group(array.name, affinity, pattern, members, not store, store, offset)


def _both_ways(interval: Interval, groups: list[Group]) -> tuple[Group, ...]:
    merged: list[Group] = []
    for group in groups:
        for place, earlier in enumerate(merged):
            other_way = earlier.array == group.array and earlier.reads != group.reads
            if other_way and _occurrences(interval, earlier) == _occurrences(interval, group):
                members = tuple(sorted(earlier.members + group.members))
                merged[place] = replace(earlier, members=members, reads=True, writes=True)
                break
        else:
            merged.append(group)
    return tuple(merged)


def _occurrences(interval: Interval, group: Group) -> frozenset[tuple[str, tuple[Subscript, ...]]]:
    references = (interval.references[member] for member in group.members)
    return frozenset((reference.statement, reference.subscripts) for reference in references)


def _affinity(interval: Interval, array: SharedArray, reference: Reference) -> tuple[Affinity, int]:
    owner = _owner(array, reference)
    if array.spread is Spread.REMOTE:
        return Affinity.REMOTE, 0
    if isinstance(owner, Irregular):
        return Affinity.MIXED, 0
    if interval.affinity and owner.coefficients == ((interval.affinity, 1),):
        if owner.offset == 0:
            return Affinity.LOCAL, 0
        aside = Affinity.EDGE if array.spread is Spread.BLOCK else Affinity.SHIFTED
        return aside, owner.offset
    # One fixed element is remote to every thread but its owner, so to the slowest.
    return (Affinity.MIXED if owner.coefficients else Affinity.REMOTE), 0


def _pattern(interval: Interval, array: SharedArray, references: list[Reference]) -> Pattern:
    """Return the best pattern that all references of a group admit together.

    Vector: the innermost loop moves every reference by one element of one thread's memory.
    Coalesce: by few elements, or it stays while the group's references lie close together.
    A cyclic array changes thread at each step along its spread axis, which leaves the baseline.
    """
    strides = {_stride(interval, array, reference) for reference in references}
    if None in strides or len(strides) != 1:
        return Pattern.BASELINE
    (stride,) = strides
    assert stride is not None
    if abs(stride) == 1:
        return Pattern.VECTOR
    if stride == 0:
        return Pattern.COALESCE if _close_together(array, references) else Pattern.BASELINE
    return Pattern.COALESCE if abs(stride) <= CLOSE_ELEMENTS else Pattern.BASELINE


def _stride(interval: Interval, array: SharedArray, reference: Reference) -> int | None:
    """Return elements moved by a step of the innermost loop; None where that is not near."""
    depth = _depth(interval, reference)
    if depth == 0:
        return 0
    index = interval.loops[depth - 1].index
    steps: list[int] = []
    for subscript in reference.subscripts:
        if isinstance(subscript, Irregular):
            return None
        steps.append(subscript.step(index))
    if array.spread is Spread.CYCLIC and steps[array.axis] != 0:
        return None
    if any(step != 0 for axis, step in enumerate(steps) if axis != array.fastest):
        return None
    if index == interval.affinity and steps[array.axis] != 0 and array.spread is Spread.BLOCK:
        # Only the few elements beyond the block's edge are remote, not a run of the loop's trips.
        return 0
    return steps[array.fastest]


def _close_together(array: SharedArray, references: list[Reference]) -> bool:
    """Tell whether there are several locations, apart by few elements of one thread's memory."""
    places: set[int] = set()
    rest: set[tuple[object, ...]] = set()
    for reference in references:
        fastest = reference.subscripts[array.fastest]
        assert isinstance(fastest, Affine)
        places.add(fastest.offset)
        others = tuple(s for axis, s in enumerate(reference.subscripts) if axis != array.fastest)
        rest.add((fastest.coefficients, *others))
    return len(rest) == 1 and 0 < max(places) - min(places) <= CLOSE_ELEMENTS


def _works(interval: Interval, group: Group, store: bool) -> list[RemoteGroup]:
    members = [interval.references[m] for m in group.members]
    references = [reference for reference in members if reference.store == store]
    count = _count(interval, references)

    def work(amount: Expr, pattern: Pattern, mixed: bool = False) -> RemoteGroup:
        return RemoteGroup(amount, interval.threads, pattern, store, mixed, group.array)

    match group.affinity:
        case Affinity.LOCAL:
            return [work(count, Pattern.LOCAL)]
        case Affinity.REMOTE:
            return [work(count, group.pattern)]
        case Affinity.MIXED:
            return [work(count, group.pattern, mixed=True)]
        case Affinity.EDGE:
            beyond = _count(interval, references, abs(group.offset))
            remote = beyond * interval.has_neighbour(group.offset)
        case Affinity.SHIFTED:
            own = equal(num(abs(group.offset)) % interval.threads, 0)
            remote = conditional(own, 0, count)
    return [work(count - remote, Pattern.LOCAL), work(remote, group.pattern)]


def _count(interval: Interval, references: list[Reference], edge: int | None = None) -> Expr:
    """Return how many locations the references touch, each once an iteration.

    With `edge`, only in the so many trips of the affinity loop that reach beyond the block.
    """
    depths: dict[tuple[Subscript, ...], int] = {}
    for reference in references:
        depth = _depth(interval, reference)
        depths[reference.subscripts] = max(depth, depths.get(reference.subscripts, 0))
    total = num(0)
    for depth in depths.values():
        iterations = num(1)
        for loop in interval.loops[:depth]:
            at_edge = edge is not None and loop.index == interval.affinity
            trips = minimum(edge, loop.trips) if at_edge and edge is not None else loop.trips
            iterations = iterations * trips
        total = total + iterations
    return total


def _array(interval: Interval, reference: Reference) -> SharedArray:
    return next(array for array in interval.arrays if array.name == reference.array)


def _owner(array: SharedArray, reference: Reference) -> Subscript:
    return reference.subscripts[array.axis]


def _depth(interval: Interval, reference: Reference) -> int:
    return len(interval.loops) if reference.depth is None else reference.depth


# --- model ----------------------------------------------------------------------------------------
# Prices of groups of references: each group by its pattern's rate, intervals as sums of groups.


# What one reference to shared data takes, by pattern, thread count, read or write.

SECTION = "pgas"

_BEST_FIRST = (Pattern.VECTOR, Pattern.COALESCE, Pattern.BASELINE)
_KINDS = {False: "read", True: "write"}
_MICROSECONDS_PER_SECOND = 1e6
_EXACT = exactly(1.0, "1", "no residual is stated")
_WORDS = {"rates": "gap", "call_us": "call"}
"""By table of a profile: what its symbols are called."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Microseconds for each reference of one pattern.

    Attributes
    ----------
    microseconds : Expr
        Over the thread count and the keys of `coefficients`.
    coefficients : mapping of str to Quantity
    threads : tuple of int
        Fewest and most threads that the rate was measured with.
    """

    microseconds: Expr
    coefficients: Mapping[str, Quantity]
    threads: tuple[int, int]


def gap(machine: Machine, pattern: Pattern, store: bool, threads: Expr) -> Gap | Missing:
    """Return the time of one reference, the reciprocal of the profile's rate.

    Between two measured thread counts the time (not the rate) is interpolated linearly, since
    times are what adds up along a thread's path; outside them the nearest count stands in, and
    the caller's domain marks it. The interval of each time includes the profile's `residual`,
    the ratio of measured to predicted times of whole programs.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    found = _measured(machine, "rates", pattern, store, threads)
    return found or lacking(machine, f"{SECTION}.rates.{pattern} for {_KINDS[store]}s")


def _measured(
    machine: Machine, entry: str, pattern: Pattern, store: bool, threads: Expr
) -> Gap | None:
    """Return the times that a table of the profile gives between its thread counts, if any."""
    kind = _KINDS[store]
    residual = machine.quantity(SECTION, "residual") or _EXACT
    coefficients: dict[str, Quantity] = {}
    knots: list[tuple[int, Expr]] = []
    for count in counts_in_keys(machine, "t", SECTION, entry, pattern):
        stated = machine.quantity(SECTION, entry, pattern, f"t{count}", kind)
        if stated is None:
            continue
        symbol = f"{SECTION}.{_WORDS[entry]}.{pattern}.t{count}.{kind}"
        coefficients[symbol] = _time(machine, stated, residual, is_rate=entry == "rates")
        knots.append((count, sym(symbol)))
    if not knots:
        return None
    return Gap(piecewise_linear(threads, knots), coefficients, (knots[0][0], knots[-1][0]))


def _time(machine: Machine, stated: Quantity, residual: Quantity, *, is_rate: bool) -> Quantity:
    if is_rate:
        if stated.low <= 0:
            raise machine.refuse("a rate must be above 0", SECTION, "rates")
        source = f"reciprocal of the rate, {stated.value:g} {stated.unit}: {stated.source}"
        stated = stated.reciprocal(_MICROSECONDS_PER_SECOND, "us", source=source)
    return stated.times(residual)


def served_pattern(machine: Machine, admitted: Pattern, store: bool) -> Pattern:
    """Return the best pattern that the subscripts admit and the platform optimizes.

    What admits vector access admits coalescing, and everything admits the baseline. A platform
    may optimize reads only.

    Raises
    ------
    MachineError
        The profile's list of optimizations is malformed.
    """
    if admitted is Pattern.LOCAL:
        return admitted
    kind = _KINDS[store]
    optimizations = machine.section(SECTION, "optimizations")
    for pattern in _BEST_FIRST[_BEST_FIRST.index(admitted) :]:
        optimized = optimizations.get(pattern, [])
        if not isinstance(optimized, list):
            raise machine.refuse("expected a list", SECTION, "optimizations", pattern)
        if kind in optimized:
            return pattern
    return Pattern.BASELINE


MODEL = "pgas"


def price_remote_group(group: RemoteGroup, machine: Machine) -> Priced | Missing:
    """Price a group of references by the best pattern that both it and the platform support.

    A mixed group, uniform over all threads, takes ``(T-1)/T`` of that pattern's time and
    ``1/T`` of a local shared access. A reference counts as one double word whatever its size.
    Calls cost extra where the profile says what one takes. Elements on a machine that knows nothing
    of such references are what message passing makes of them: a message for each.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    if group.itemsize_bytes and not machine.section(SECTION):
        bill = Bill(machine)
        away = group.count * (1 - ONE / group.threads) if group.mixed else group.count
        item = group.itemsize_bytes
        bill.charge_messages(away, Region(item, (ONE,), (ONE * item,)))
        return bill.total()
    pattern = served_pattern(machine, group.pattern, group.store)
    remote = gap(machine, pattern, group.store, group.threads)
    if isinstance(remote, Missing):
        return remote
    each, coefficients, ranges = remote.microseconds, dict(remote.coefficients), [remote.threads]
    if group.mixed and pattern is not Pattern.LOCAL:
        local = gap(machine, Pattern.LOCAL, group.store, group.threads)
        if isinstance(local, Missing):
            return local
        own_share = num(1) / group.threads
        each = (1 - own_share) * each + own_share * local.microseconds
        coefficients |= local.coefficients
        ranges.append(local.threads)
    fewest, most = (list(ends) for ends in zip(*ranges, strict=True))
    threads = Domain("threads", group.threads, max(fewest), min(most))
    bill = Bill(machine, MODEL, coefficients=coefficients, domains=[threads])
    label = f"{group.label}: {_described(group, pattern)}"
    bill.add(label, group.count * each)
    if group.calls != num(0) and pattern is not Pattern.LOCAL:
        each_call = _measured(machine, "call_us", pattern, group.store, group.threads)
        if each_call is not None:
            coefficients |= each_call.coefficients
            remote_share = 1 - num(1) / group.threads if group.mixed else num(1)
            bill.add(f"{label}, calls", group.calls * remote_share * each_call.microseconds)
        words = group.count / group.calls
        bill.within(words, MODEL, "call_words", "words of a call", less(0, group.calls))
    return bill.total()


def _described(group: RemoteGroup, pattern: Pattern) -> str:
    kind = "writes" if group.store else "reads"
    mixed = group.mixed and pattern is not Pattern.LOCAL
    return f"{pattern} {kind}, 1/T local" if mixed else f"{pattern} {kind}"
