"""From a kernel to the work of its slowest rank, as a term of the process algebra.

Every count is the greatest over all ranks. Where some rank has a full block and neighbours on
all sides, it has all of them at once; else their sum bounds the slowest rank from above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from advisor.analysis.arrays import Arrays
from advisor.analysis.halos import Fetch, Halos, common
from advisor.analysis.messages import fetched
from advisor.analysis.owners import pairs_of, place
from advisor.analysis.placement import Along, Bounds, Facts, NotPriced, Turning, least_sizes, owners
from advisor.analysis.processes import (
    compiled,
    in_turn,
    meets,
    of_lists,
    ranks_together,
    together,
    with_distances,
    works,
)
from advisor.distribution import CyclicDim
from advisor.ir.dependence import carried, least_index
from advisor.ir.kernel import Kernel, once, rebuilt, symbols, with_part
from advisor.ir.nests import nest_of
from advisor.ir.statements import (
    Bind,
    Choice,
    Compiled,
    Loop,
    Rename,
    Return,
    ScalarBind,
    Scatter,
    Stated,
    Statement,
    Store,
    Unknown,
    Unrolled,
    is_total,
    mentioned,
    unrolled,
    walk,
    within,
    written,
)
from advisor.ir.values import Point, Range, reads
from advisor.numpy_table import ShapeConflict
from advisor.source import Span
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil_div,
    equal,
    floor_div,
    free_symbols,
    less,
    maximum,
    minimum,
    num,
    substitute,
    sym,
)
from costdb.expr.functions import CHANCE, Equal
from costdb.expr.nodes import Num, Sym
from costdb.work import (
    NOTHING,
    UNREAD,
    Branch,
    Fixed,
    Interpretation,
    Leaf,
    Message,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
)
from costdb.work import Unknown as Untimed

# Loops whose iterations belong to one rank each: in turn, or side by side.
#
# ``for j in ...: x[:, j] = ...`` with columns dealt out gives each iteration to the owner of its
# column. Where iterations need nothing of one another, all owners work at the same time, and the
# loop takes as long as the owner with most to do; where one waits for another, they take turns.


# Loops that do the same with another index: in steps of 1, or cut where a shift turns round.


def with_unit_steps(loop: Loop) -> Loop:
    """Return a loop that counts its iterations from 0."""
    if loop.step == 1:
        return loop
    index = {loop.variable: loop.low + sym(loop.variable) * loop.step}
    body = _body(loop, index)
    trips = ceil_div(loop.high - loop.low, num(loop.step))
    return replace(loop, low=ZERO, high=trips, step=1, body=body)


def cut_where_it_turns(loop: Loop, shift: Expr, facts: Facts) -> tuple[Statement, ...] | None:
    """Return a loop as the iterations before, at and after the one whose shift is 0.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    shift : Expr
        Which grows or falls by 1 from one iteration to the next.
    facts : Facts
        What is known outside the loop.

    Returns
    -------
    tuple of Statement, or None
        None where it is not shown that one of the iterations has no shift.
    """
    turn = _turn(loop, shift)
    inner = {each.variable for each in walk(loop.body) if isinstance(each, Loop)}
    if turn is None or free_symbols(turn) & inner:
        return None
    before, after = turn - loop.low, loop.high - 1 - turn
    if not (facts.non_negative(before) and facts.non_negative(after)):
        return None
    index = sym(loop.variable)
    earlier = _iterations(replace(loop, high=turn))
    at_turn = _body(loop, {loop.variable: turn})
    body = _body(loop, {loop.variable: index + turn})
    later = _iterations(replace(loop, low=ONE, high=after + 1, body=body))
    return (*earlier, *at_turn, *later)


def _iterations(loop: Loop) -> tuple[Statement, ...]:
    """Return a loop without what is surely one iteration, or none, being called a loop."""
    trips = loop.high - loop.low
    if trips == ZERO:
        return ()
    return _body(loop, {loop.variable: loop.low}) if trips == ONE else (loop,)


def _turn(loop: Loop, shift: Expr) -> Expr | None:
    """Return the index at which a shift is 0; None where it is not the index and a constant."""
    name = loop.variable
    at_zero = substitute(shift, {name: ZERO})
    growth = substitute(shift, {name: ONE}) - at_zero
    if growth not in (ONE, num(-1)) or shift != at_zero + growth * sym(name):
        return None
    return -at_zero if growth == ONE else at_zero


def _body(loop: Loop, index: Mapping[str, Expr]) -> tuple[Statement, ...]:
    return rebuilt(loop.body, lambda part: substitute(part, index))


# What iterations that belong to one rank each read at a place of another: fetched before them.
#
# ``for i in range(k + 1, n): a[i, :] -= a[i, k] * a[k, :]`` needs row ``k`` on every rank that has
# rows below it, once, since no iteration changes it.


def fetched_before(loop: Loop, arrays: Arrays) -> tuple[list[Process], Loop]:
    """Return what is fetched before a loop, and the loop with that at hand.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    arrays : Arrays

    Raises
    ------
    NotPriced
        Where the ranks that need it have no closed form.
    """
    if any(isinstance(inner, Loop) for inner in loop.body):
        return [], loop
    if owned_by(loop, arrays) is None or carried(loop, arrays.facts.minima):
        return [], loop
    made: list[Process] = []
    body = []
    for statement in walk(loop.body):
        assert isinstance(statement, Store)
        target, value, region = arrays.placement(statement.array), statement.value, statement.region
        dimension, here = next(
            (d, part)
            for d, part in enumerate(region)
            if isinstance(part, Point)
            and target.is_spread(d)
            and loop.variable in free_symbols(part.at)
        )
        others = (*region[:dimension], *region[dimension + 1 :])
        offset = here.at - sym(loop.variable)
        all_of_it = Range(loop.low + offset, loop.high + offset)
        for read in dict.fromkeys(reads(value)):
            source = arrays.named(read.array, read.region)
            spread = [d for d in range(len(read.region)) if source.placement.is_spread(d)]
            # what an iteration needs, or does, may be another part of it each time
            moves = loop.variable in symbols((*read.region, *others))
            if moves or len(spread) != 1 or not isinstance(read.region[spread[0]], Point):
                continue
            if not source.placement.along_as(spread[0], target, dimension):
                continue
            over = (*region[:dimension], all_of_it, *region[dimension + 1 :])
            pairs = [(source, pairs_of(source, over))]
            made += fetched(pairs, over, target, arrays.facts, arrays.halos)
            # what was read elsewhere is read at the place of the owner
            place = (*read.region[: spread[0]], here, *read.region[spread[0] + 1 :])
            value = with_part(value, read, replace(read, region=place))
        body.append(replace(statement, value=value))
    return made, replace(loop, body=tuple(body)) if made else loop


# Recurrences along a distributed axis, done in chunks of another axis.
#
# Each rank does its part of a recurrence for one chunk and hands the edge on; while the next rank
# goes on with that chunk, it begins the next one. With ``C`` chunks over ``R`` ranks the last rank
# is done after ``C + R - 1`` stages: the first chunk fills the pipeline, the last one drains it.


def recurrence_of(chunks: Loop, arrays: Arrays) -> Loop | None:
    """Return the recurrence that independent chunks repeat, if ranks can do it as a pipeline.

    Parameters
    ----------
    chunks : Loop
        Over chunks, with steps of 1.
    arrays : Arrays
    """
    if len(chunks.body) != 1 or not isinstance(chunks.body[0], Loop):
        return None
    inner = chunks.body[0]
    if inner.step != 1 or any(not isinstance(s, Store) for s in walk(inner.body)):
        return None
    if carried(chunks, arrays.facts.minima) or not carried(inner, arrays.facts.minima):
        return None
    owned = owned_by(inner, arrays)
    return None if owned is None or isinstance(owned.dim, CyclicDim) else inner


def pipelined(chunks: Loop, inner: Loop, body: Process, arrays: Arrays) -> Process | None:
    """Return the stages of a pipeline, None where one stage is not like another.

    Exact where all ranks that take part have equally much to do and chunks are equally large;
    otherwise an upper bound, with every stage as long as the longest.

    Parameters
    ----------
    chunks, inner : Loop
    body : Process
        The work of one iteration of `inner`.
    arrays : Arrays
    """
    owned = owned_by(inner, arrays)
    if owned is None or meets(body) or chunks.variable in symbols(body):
        return None
    if inner.variable in symbols(tuple(_statements(body))):
        return None
    stages = chunks.high - chunks.low + owners(owned.low, owned.high, owned) - 1
    # the first rank receives nothing, the second one is like all that follow, if not more
    stage = Parallel((of_rank(inner, body, owned, ZERO), of_rank(inner, body, owned, ONE)))
    return SeqLoop(f"{chunks.variable}.stage", ONE, stages, stage)


def _statements(process: Process) -> Iterator[object]:
    return (work for work in works(process) if not isinstance(work, Message))


def side_by_side(loop: Loop, body: Process, arrays: Arrays) -> Process | None:
    """Return a loop with its iterations done by their owners at the same time.

    None where they take turns, where an iteration belongs to several ranks, or where they meet
    in a collective operation.

    Parameters
    ----------
    loop : Loop
        With steps of 1.
    body : Process
        The work of one iteration.
    arrays : Arrays
    """
    owned = owned_by(loop, arrays)
    if owned is None or meets(body) or carried(loop, arrays.facts.minima):
        return None
    if loop.variable not in symbols(body):
        return SeqLoop(loop.variable, ONE, owned.count(arrays.facts), body)
    rank = f"{loop.variable}.owner"
    return ParLoop(rank, ZERO, owned.ranks - 1, of_rank(loop, body, owned, sym(rank)))


def of_rank(loop: Loop, body: Process, owned: Along, rank: Expr) -> Process:
    """Return the iterations of a loop that one rank owns."""
    shift, last = owned.low - loop.low, loop.high - 1
    if isinstance(owned.dim, CyclicDim):
        owner = floor_div(sym(loop.variable) + shift, owned.piece) % owned.ranks
        mine = Branch(equal(owner, rank), body, NOTHING)
        return SeqLoop(loop.variable, loop.low, last, mine)
    begin = rank * owned.piece - shift
    first = begin if loop.low == ZERO and shift == ZERO else maximum(loop.low, begin)
    return SeqLoop(loop.variable, first, minimum(last, begin + owned.piece - 1), body)


def owned_by(loop: Loop, arrays: Arrays) -> Along | None:
    """Return which indices of a distributed dimension decide who does an iteration."""
    found: set[Along] = set()
    for statement in walk(loop.body):
        if isinstance(statement, Loop):
            continue
        if not isinstance(statement, Store) or is_total(statement):
            return None
        placement = arrays.placement(statement.array)
        places = [
            (dimension, part.at)
            for dimension, part in enumerate(statement.region)
            if isinstance(part, Point) and placement.is_spread(dimension)
        ]
        moving = [(d, at) for d, at in places if loop.variable in free_symbols(at)]
        if len(moving) != 1 or len(places) != 1:
            return None
        dimension, at = moving[0]
        offset = at - sym(loop.variable) + placement.origin[dimension]
        if loop.variable in free_symbols(offset):
            return None
        found.add(
            Along(
                loop.low + offset,
                loop.high + offset,
                placement.template[dimension],
                placement.ranks(dimension),
                placement.dims[dimension],
            )
        )
    return found.pop() if len(found) == 1 else None


class Unpriced(Exception):
    """A kernel that cannot be priced, with the statement that is the cause.

    `turning` is the shift of that statement whose direction is not known, if that is the cause.
    """

    def __init__(self, reason: str, span: Span, turning: Expr | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span
        self.turning = turning


@once
def lower(kernel: Kernel, *, reuse: bool = True) -> Process:
    """Return what the busiest rank does in one call of a kernel.

    Parameters
    ----------
    kernel : Kernel
    reuse : bool
        Whether to find the calls of the array library, and how far back the data of each was used
        last; only a machine with rates of such calls prices that.

    Raises
    ------
    Unpriced
        At the first statement that is not understood, or that no rule lowers, of a kernel whose
        arrays are distributed: what it sends is not known. Elsewhere such a statement is work
        that nobody can price.
    """
    kernel = replace(kernel, body=unrolled(kernel.body))
    halos, facts = Halos(), Facts(Bounds(least_sizes(kernel.body), {}))
    placed = place(kernel)
    arrays = Arrays(kernel, placed, facts, halos, in_calls=reuse and not kernel.context.is_compiled)
    made: Process = Sequential(tuple(_Lowering(arrays).block(kernel.body)))
    if not reuse:
        return made
    ranks = ranks_together(placed.values())
    if ranks != ONE:
        made = together(made, ranks)
    parts = (one for one in walk(kernel.body) if not within(one) and not isinstance(one, Unknown))
    # what only work without a price uses takes the space of none that has one
    used = frozenset[str]().union(*map(mentioned, parts))
    return with_distances(made, sum(arrays.sizes_bytes(used), ZERO))


class _Lowering:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.halos = arrays.halos
        self.facts = arrays.facts
        self.is_distributed = any(a.spec.mesh.axes for a in arrays.kernel.arrays.values())

    def block(self, statements: tuple[Statement, ...]) -> list[Process]:
        made: list[Process] = []
        for statement in statements:
            try:
                made.extend(self.statement(statement))
            except (NotPriced, ShapeConflict) as error:
                turning = error.shift if isinstance(error, Turning) else None
                of_all = isinstance(statement, Unknown) and statement.of_all
                if turning is not None or self.is_distributed or of_all:
                    raise Unpriced(str(error), statement.span, turning) from error
                # it takes the same time in whatever is compared, nobody knows how long
                made.append(Leaf(Untimed(statement.span.start_line, "", str(error))))
                steps = statement.steps if isinstance(statement, Unknown) else (0, 0, 1)
                if self.arrays.in_calls and any(steps):
                    names = dict(zip(("loads", "operations", "calls"), steps, strict=True))
                    made.append(Leaf(Interpretation(ONE, UNREAD, **names, loop=False)))
                self.halos.forget(written(statement))
        return made

    def statement(self, statement: Statement) -> list[Process]:
        match statement:
            case Bind() | Store() | ScalarBind() | Scatter():
                made = self.arrays.changed(statement)
            case Loop():
                return self._loop(statement)
            case Choice(probability, then, orelse, _):
                return self._choice(probability, then, orelse)
            case Stated(microseconds, _, _):
                made = [Leaf(Fixed(microseconds))]
            case Rename(names):
                self._rename(names)
                return []
            case Return():
                return []
            case Unknown(reason=reason):
                raise NotPriced(reason)
            case Unrolled(body, _):
                return self.block(body)
        self.halos.forget(written(statement))
        return made

    def _rename(self, names: frozenset[str]) -> None:
        if len({self.arrays.placed.get(name) for name in names}) != 1:
            shown = ", ".join(f"`{name}`" for name in sorted(names))
            raise NotPriced(f"{shown} change names, but are distributed or stored differently")
        if len(names) == 2:
            self.halos.exchange(names)
        else:
            self.halos.forget(names)

    def _loop(self, loop: Loop) -> list[Process]:
        """Return what a loop does; one whose shifts turn round is cut where they do."""
        if loop.listed is not None:
            count, places = loop.listed
            made = self._loop(replace(loop, listed=None))
            put = Leaf(Interpretation(count, "elements of lists"))
            return [put, *(of_lists(one, places) for one in made)]
        if loop.compiled is not Compiled.NO:
            interpreted = self._loop(replace(loop, compiled=Compiled.NO))
            waiting = loop.compiled is Compiled.WAITING
            called = Leaf(Interpretation(ONE, "call of a compiled function", calls=1, loop=False))
            return [called, *(compiled(one, waiting=waiting) for one in interpreted)]
        length = loop.high - loop.low
        if any(name.startswith(CHANCE) for name in free_symbols(length)):
            # a share of elements that is chosen is no whole number; iterations are
            loop = replace(loop, high=loop.low + ceil_div(length, ONE))
        halos = self.halos
        held, certain, fetched = dict(halos.held), halos.certain, list(halos.fetched)
        try:
            return self._whole_loop(loop)
        except Unpriced as error:
            if error.turning is None or loop.step != 1:
                raise
            parts = cut_where_it_turns(loop, error.turning, self.facts)
            if parts is None:
                raise
        halos.held, halos.certain, halos.fetched = held, certain, fetched
        return self.block(parts)

    def _whole_loop(self, loop: Loop) -> list[Process]:
        nest = nest_of(loop)
        if nest is not None and nest.is_by_element:
            # the model of single remote references, which few kernels need
            from advisor.analysis.elements import element_loops

            made = element_loops(nest, self.arrays)
            self.halos.forget(written(loop))
            return made
        if loop.step != 1 and any(loop.variable in symbols(inner) for inner in loop.body):
            loop = with_unit_steps(loop)
        piped = self._pipelined(loop)
        if piped is not None:
            return [piped]
        runs = less(loop.low, loop.high)
        at_hand, loop = self._fetched_before(loop, runs)
        changed = frozenset().union(*map(written, loop.body))
        before, certain = dict(self.halos.held), self.halos.certain
        self.halos.certain = True
        self.halos.forget(changed)
        at_start = dict(self.halos.held)
        outer, self.halos.fetched = self.halos.fetched, []
        body = self._body(loop)
        first = at_hand
        lasting = [f for f in self.halos.fetched if _outlasts(f, changed, loop.variable)]
        if lasting:
            # what no iteration changes is fetched once, before the first
            first = [process for fetch in lasting for process in fetch.sent]
            self.halos.held = at_start
            for fetch in lasting:
                known = at_start.get(fetch.name, ())
                self.halos.held[fetch.name] = (*known, fetch.request)
            self.halos.fetched = []
            body = self._body(loop)
            if runs != ONE:
                first = [Branch(runs, Sequential(tuple(first)), NOTHING)]
            first = at_hand + first
        self.halos.certain = certain
        self.halos.fetched = outer
        if certain:
            self.halos.fetched = [*outer, *(_guarded(fetch, runs) for fetch in lasting)]
        self.halos.forget_symbol(loop.variable)
        if not self.facts.non_negative(loop.high - loop.low - 1):
            self.halos.held = common(self.halos.held, before)
        if loop.step == 1:
            shared = side_by_side(loop, body, self.arrays)
            if shared is not None:
                return [*first, shared]
            if carried(loop, self.facts.minima) and owned_by(loop, self.arrays) is not None:
                body = in_turn(body)
            return [*first, SeqLoop(loop.variable, loop.low, loop.high - 1, body)]
        trips = ceil_div(loop.high - loop.low, num(loop.step))
        return [*first, SeqLoop(loop.variable, ONE, trips, body)]

    def _fetched_before(self, loop: Loop, runs: Expr) -> tuple[list[Process], Loop]:
        """Return what iterations read at one place of another rank, and the loop with it there."""
        if loop.step != 1:
            return [], loop
        certain = self.halos.certain
        self.halos.certain = certain and runs == ONE
        made, loop = fetched_before(loop, self.arrays)
        self.halos.certain = certain
        if made and runs != ONE:
            made = [Branch(runs, Sequential(tuple(made)), NOTHING)]
        return made, loop

    def _pipelined(self, chunks: Loop) -> Process | None:
        """Return chunks of a recurrence that ranks hand on to one another."""
        inner = recurrence_of(chunks, self.arrays)
        if inner is None:
            return None
        held, fetched = dict(self.halos.held), self.halos.fetched
        self.halos.fetched = []
        self.halos.forget(written(chunks))
        least = least_index(chunks.low, self.facts.minima)
        with self.facts.within(chunks.variable, least, chunks.high - 1):
            body = self._body(inner)
        piped = pipelined(chunks, inner, body, self.arrays)
        self.halos.held, self.halos.fetched = held, fetched
        if piped is not None:
            self.halos.forget(written(chunks))
        return piped

    def _body(self, loop: Loop) -> Process:
        least = least_index(loop.low, self.facts.minima)
        with self.facts.within(loop.variable, least, loop.high - 1):
            return Sequential(tuple(self.block(loop.body)))

    def _choice(
        self, probability: Expr, then: tuple[Statement, ...], orelse: tuple[Statement, ...]
    ) -> list[Process]:
        if probability in (ZERO, ONE):
            return self.block(then if probability == ONE else orelse)
        match probability:
            case Equal(Equal(Sym(), Sym()) as same, Num(value=0)) | (Equal(Sym(), Sym()) as same):
                if len(free_symbols(same) & self.facts.bounds.maxima.keys()) > 1:
                    # a sum over both indices takes long, and is off by what one in many does
                    return self.block(orelse if same is probability else then)
        before, certain = dict(self.halos.held), self.halos.certain
        self.halos.certain = False
        first = Sequential(tuple(self.block(then)))
        after_first, self.halos.held = self.halos.held, before
        second = Sequential(tuple(self.block(orelse)))
        self.halos.held = common(after_first, self.halos.held)
        self.halos.certain = certain
        return [Branch(probability, first, second)]


def _outlasts(fetch: Fetch, changed: frozenset[str], index: str) -> bool:
    return fetch.name not in changed and index not in fetch.symbols


def _guarded(fetch: Fetch, runs: Expr) -> Fetch:
    if runs == ONE:
        return fetch
    sent = tuple(Branch(runs, process, NOTHING) for process in fetch.sent)
    return replace(fetch, sent=sent, symbols=fetch.symbols | free_symbols(runs))
