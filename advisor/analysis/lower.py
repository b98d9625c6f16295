"""From a kernel to the work of its slowest rank, as a term of the process algebra.

Every count is the greatest over all ranks. Where some rank has a full block and neighbours on
all sides, it has all of them at once; else their sum bounds the slowest rank from above.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.facts import Bounds, Facts, NotPriced, Turning, least_sizes
from advisor.analysis.loops.turns import (
    cut_where_it_turns,
    fetched_before,
    owned_by,
    pipelined,
    recurrence_of,
    side_by_side,
    with_unit_steps,
)
from advisor.analysis.placed.owners import place
from advisor.analysis.processes import in_turn, ranks_together, together
from advisor.analysis.transfers.halos import Fetch, Halos, common
from advisor.ir.concrete import symbols
from advisor.ir.dependence import carried
from advisor.ir.kernel import Kernel
from advisor.ir.nests import nest_of
from advisor.ir.signs import least_index
from advisor.ir.statements import (
    Bind,
    Choice,
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
    unrolled,
    written,
)
from advisor.numpy_shapes import ShapeConflict
from advisor.source import Span
from costdb.expr import ONE, ZERO, Expr, ceil_div, free_symbols, less, num
from costdb.work import NOTHING, Branch, Fixed, Leaf, Process, SeqLoop, Sequential


class Unpriced(Exception):
    """A kernel that cannot be priced, with the statement that is the cause.

    `turning` is the shift of that statement whose direction is not known, if that is the cause.
    """

    def __init__(self, reason: str, span: Span, turning: Expr | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span
        self.turning = turning


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
        At the first statement that is not understood, or that no rule lowers.
    """
    kernel = replace(kernel, body=unrolled(kernel.body))
    halos, facts = Halos(), Facts(Bounds(least_sizes(kernel.body), {}))
    placed = place(kernel)
    arrays = Arrays(kernel, placed, facts, halos, in_calls=reuse and not kernel.context.is_compiled)
    made: Process = Sequential(tuple(_Lowering(arrays).block(kernel.body)))
    if not reuse:
        return made
    # only a machine with rates of calls has a use for it
    from costdb.arrays.model import with_distances

    ranks = ranks_together(placed.values())
    if ranks != ONE:
        made = together(made, ranks)
    return with_distances(made, sum(arrays.sizes_bytes(), ZERO))


class _Lowering:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.halos = arrays.halos
        self.facts = arrays.facts

    def block(self, statements: tuple[Statement, ...]) -> list[Process]:
        made: list[Process] = []
        for statement in statements:
            try:
                made.extend(self.statement(statement))
            except (NotPriced, ShapeConflict) as error:
                turning = error.shift if isinstance(error, Turning) else None
                raise Unpriced(str(error), statement.span, turning) from error
        return made

    def statement(self, statement: Statement) -> list[Process]:
        match statement:
            case Bind(name, value, _):
                made = self.arrays.bound(name, value)
            case Store():
                made = self.arrays.stored(statement)
            case ScalarBind(_, value, _):
                made = self.arrays.number(value)
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
            case Scatter():
                made = self.arrays.scattered(statement)
            case Unknown(reason, _, _):
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
            from advisor.analysis.loops.elements import element_loops

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
