"""Findings of one SPMD program: what each rule proposes, priced before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from operator import methodcaller
from types import MappingProxyType

from advisor.analysis.spmd.lower import Gap, lower_steps
from advisor.analysis.spmd.statements import itemsize
from advisor.finding import (
    MODULE,
    NOTHING_SEEN,
    ONE_EACH_CORE,
    Condition,
    Coverage,
    Finding,
    NotUnderstood,
    Ranked,
    Remark,
)
from advisor.frontend.prefilter import NO_RULE
from advisor.frontend.seen import solved
from advisor.ir.kernel import SOME, proposals_of
from advisor.ir.spmd.memory import PayloadKind, unknown_count
from advisor.ir.spmd.program import (
    RANKS,
    Program,
    ProgramProposal,
    ProgramTransform,
    SizeFact,
    SpmdFunction,
    with_derived,
)
from advisor.ir.spmd.steps import Call, Communicate, Loop, LoopKind, Step, Visit, walk
from advisor.numpy_table import UnknownDtype, itemsize_of
from advisor.observed import SeenMessages
from advisor.ranking.compare import Costed, Number, Sizes, compared, time_s
from advisor.ranking.findings import (
    Candidate,
    Judged,
    Place,
    finding_of,
    finding_unpriced,
    rivals_of,
    with_prices,
)
from advisor.ranking.open_sizes import EXTENT, OTHER, best_where_open, finding_of_opened
from advisor.ranking.open_sizes import RANKS as RANKS_STAND_IN
from advisor.ranking.rank import Worth, always
from advisor.ranking.worth import Whole, priced_as, weighed
from advisor.source import SourceProblem, Span
from costdb.evaluate import Missing, middle
from costdb.expr import Expr, ExprError, free_symbols, num, substitute, sym
from costdb.machines import Machine
from costdb.pricing import Known, price_known, price_process
from costdb.records import dataclass, field, replace

LEAST_S, LEAST_SHARE = 1e-3, 0.1
"""Time of a loop, and its share of a program, from which on silence about it is no calm."""

ONCE_S = 2e-5
"""Time saved below which a change of what runs once is nothing to a program that has to start."""


@dataclass(frozen=True, slots=True)
class LoweredCost:
    """A price with what it leaves out."""

    costed: Costed
    gaps: tuple[Gap, ...]


def cost_steps(
    steps: tuple[Step, ...], machine: Machine, loops: tuple[Loop, ...] = ()
) -> LoweredCost | Missing:
    """Return the work and the price of steps, for the slowest rank."""
    lowered = lower_steps(steps, loops)
    priced = price_process(lowered.process, machine)
    if isinstance(priced, Missing):
        return priced
    return LoweredCost(Costed(lowered.process, priced), lowered.gaps)


def bind_program(
    program: Program,
    given: Mapping[str, Number],
    given_by: Mapping[str, str] | None = None,
) -> Sizes:
    """Return the values of a program's symbols: what the source says, overruled by `given`.

    Raises
    ------
    SourceProblem
        The number of ranks, or what the source says is a whole number, is given as another.
    """
    values: dict[str, Number] = {}
    origins: dict[str, str] = {}
    for name, fact in program.sizes.items():
        if fact.value is not None:
            values[name], origins[name] = fact.value, fact.origin
    for name, value in given.items():
        by = (given_by or {}).get(name, "-D")
        if not isinstance(value, int) and (is_ranks(name) or isinstance(values.get(name), int)):
            message = f"size {name} must be a whole number, not {value:g} ({by})"
            raise SourceProblem(program.path, 1, 0, message)
        values[name], origins[name] = value, by
    whole = with_derived({n: fact.derived for n, fact in program.sizes.items()}, values)
    for name in whole.keys() - values.keys():
        origins[name] = program.sizes[name].origin
    return Sizes(whole, origins)


def _as_bound(program: Program, sizes: Sizes) -> Program:
    """Return a program with what the user binds in the place of what its source says.

    Rules look at how many ranks there are, and at sizes that they know to be the same on all of
    them: those that the source gives a value. Other sizes may differ from rank to rank, whatever
    value they are priced with.
    """
    facts = dict(program.sizes)
    for name in {RANKS, *facts} & sizes.values.keys():
        fact = facts.get(name, SizeFact(None, ""))
        value = sizes.values[name]
        if value != fact.value and (name == RANKS or fact.value is not None):
            facts[name] = replace(fact, value=value, origin=sizes.origins[name])
    return program if facts == program.sizes else replace(program, sizes=facts)


def with_ranks(program: Program, sizes: Sizes, machine: Machine) -> Sizes:
    """Return sizes with the ranks of a command line in the text, or one for each core.

    Where nothing else says how many there are. Times are told for them; no rule may rely on them.
    """
    tried, cores = program.sizes.get(RANKS), machine.quantity("hardware", "cores")
    if RANKS in sizes.values:
        return sizes
    if tried is not None and tried.tried and tried.value is not None:
        count, origin = int(tried.value), tried.origin
    elif cores is not None and cores.value >= 2:
        count, origin = int(cores.value), ONE_EACH_CORE
    else:
        return sizes
    return Sizes({**sizes.values, RANKS: count}, {**sizes.origins, RANKS: origin})


def _without_tried(program: Program, sizes: Sizes) -> Sizes:
    """Return sizes without the number of ranks that a command line in the text shows."""
    fact = program.sizes.get(RANKS)
    if fact is None or not fact.tried or sizes.origins.get(RANKS) != fact.origin:
        return sizes
    return Sizes({name: v for name, v in sizes.values.items() if name != RANKS}, sizes.origins)


def is_ranks(name: str) -> bool:
    """Return whether a symbol is the size of a communicator."""
    return name == RANKS or name.startswith(f"{RANKS}.")


def rank_program(
    program: Program,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[ProgramTransform],
    worth: Worth = always,
    *,
    details: bool = True,
    loops: Mapping[int, Sequence[Finding]] = MappingProxyType({}),
) -> Ranked:
    """Return the findings of a program, what saves most first.

    Those about `loops` that were read alone, by the lines where they begin, are weighed with it.

    Proposals of a rule about the same place compete; the fastest is told with the others as its
    alternatives. Where nothing binds some size, or says how many ranks there are, findings say
    for which of its values they pay.
    """
    judged: list[Judged] = []
    unpriced: list[Finding] = []
    remarks: dict[str, Remark] = {}
    program = _as_bound(program, sizes)
    sizes = _without_tried(program, sizes)
    whole = WholeProgram(program, machine, with_ranks(program, sizes, machine).values)
    for transform in transforms:
        by_place: dict[Span, list[ProgramProposal]] = {}
        for proposal in proposals_of(program, transform.propose_program):
            by_place.setdefault(proposal.span, []).append(proposal)
        for proposals in by_place.values():
            found = _best(whole, proposals, transform, sizes, worth)
            if isinstance(found, Judged):
                judged.append(found)
            elif isinstance(found, Finding):
                unpriced.append(found)
            elif found is not None:
                remarks.setdefault(found.message, found)
    judged.sort(key=lambda one: one.finding.order)
    each = (whole.loop(line, one) for line, found in loops.items() for one in found)
    weighed = tuple(one for one in each if one is not None)
    findings = (*weighed, *(one.finding for one in judged), *unpriced)
    told = {one.kernel for one in findings}
    coverage = whole.coverage(frozenset(told), loops) if details else NOTHING_SEEN
    return Ranked(
        findings,
        tuple(remarks.values()),
        coverage=coverage,
        names=frozenset({RANKS, *program.sizes}),
        judged=tuple(judged),
    )


def _best(
    whole: WholeProgram,
    proposals: Sequence[ProgramProposal],
    transform: ProgramTransform,
    sizes: Sizes,
    worth: Worth,
) -> Judged | Finding | Remark | None:
    program, machine, first = whole.program, whole.machine, proposals[0]
    function = first.function
    place = Place(program.path, function.name, program.context.source, sym(RANKS))
    if not first.before:
        return _without_price(whole, place, first, transform, sizes)
    before = cost_steps(first.before, machine, first.loops)
    if isinstance(before, Missing):
        if _runs_once(first):
            return None
        message = f"no prediction for `{transform.name}` here: {before.what}; {before.remedy}"
        return Remark(program.path, function.name, first.span, message)
    costed = before.costed
    candidates, lost = with_prices(proposals, costed, partial(_price_of, machine))
    if not candidates or whole.sizes.get(RANKS, inf) < first.ranks_from:
        return _without_price(whole, place, first, transform, sizes)
    names = costed.sizes.union(*(after.sizes for _, after in candidates))
    try:
        unbound = tuple(sorted(names - sizes.values.keys()))
        here = with_ranks(program, sizes, machine)
        if RANKS in unbound and here is not sizes:
            is_tried = here.origins[RANKS] != ONE_EACH_CORE
            if unbound == (RANKS,) or is_tried:
                found_here = _best(whole, proposals, transform, here, worth)
                once = _runs_once(first)  # which is not worth a search
                if isinstance(found_here, Judged) or unbound != (RANKS,) or once:
                    return found_here
        if unbound:
            stand_ins = _stand_ins(program, unbound)
            usual = {**sizes.values, **stand_ins}
            least = min(time_s(one, usual) for _, one in candidates)
            if _runs_once(first) and time_s(costed, usual) - least < ONCE_S:
                return None
            best_open = best_where_open(costed, candidates, lost, sizes, stand_ins, RANKS)
            if best_open is None or not worth(transform.code, best_open.gain):
                return None
            finding = finding_of_opened(place, machine, transform, costed, best_open)
            finding = best_open.offered(finding)
            after, chosen = best_open.costed, first
        else:
            now = time_s(costed, sizes.values)
            ranked = [Candidate(p, c, time_s(c, sizes.values)) for p, c in candidates]
            ranked.sort(key=lambda candidate: candidate.time_s)
            best = ranked[0]
            if best.time_s >= now:
                return None
            after, chosen = best.costed, best.proposal
            found = compared(costed, after, sizes.values)
            if found.ratio.mid <= 1 or not worth(transform.code, found.ratio.mid):
                return None
            if _runs_once(chosen) and now - best.time_s < ONCE_S:
                return None
            rivals = (*rivals_of(ranked, now, "the program"), *lost)
            finding = finding_of(place, machine, sizes, transform, costed, best, found, rivals)
    except (ExprError, ArithmeticError) as error:
        message = f"no prediction for `{transform.name}` here: {error}"
        return Remark(program.path, function.name, first.span, message)
    valued = weighed(finding, whole.around(chosen.function, chosen.loops))
    return Judged(valued, costed.priced, after.priced)


def _without_price(
    whole: WholeProgram,
    place: Place,
    proposal: ProgramProposal,
    transform: ProgramTransform,
    sizes: Sizes,
) -> Finding | None:
    """Return a finding that only says from how many ranks on it pays, if there may be so many."""
    least = proposal.ranks_from
    if not least or sizes.values.get(RANKS, least) < least:
        return None
    text, legality = f"{RANKS} >= {least}", proposal.legality
    about = place, whole.machine, transform, proposal, f"pays for {text}", legality
    finding = finding_unpriced(*about, Condition(text, (RANKS,), least, always=False))
    return weighed(finding, whole.around(proposal.function, proposal.loops))


def _price_of(machine: Machine, proposal: ProgramProposal) -> Costed | Missing:
    found = cost_steps(proposal.after, machine, proposal.loops)
    return found if isinstance(found, Missing) else found.costed


def _runs_once(proposal: ProgramProposal) -> bool:
    """Return whether no loop of the file repeats what changes: set-up and output, mostly."""
    looped = proposal.loops or any(isinstance(step, Loop) for step in proposal.before)
    return not looped and proposal.function.depth == 0


def _stand_ins(program: Program, unbound: Sequence[str]) -> dict[str, Number]:
    """Return the values of open sizes where another one is searched."""
    buffers = (buffer for function in program.functions for buffer in function.buffers)
    extents = [extent for buffer in buffers for extent in buffer.extents or ()]
    of_arrays = frozenset[str]().union(*(free_symbols(extent) for extent in extents))

    def usual(name: str) -> int:
        if is_ranks(name):
            return RANKS_STAND_IN
        return EXTENT if name in of_arrays or _is_extent(name) else OTHER

    return {name: usual(name) for name in unbound}


def _is_extent(name: str) -> bool:
    """Return whether a symbol was made for the shape of an array of unknown origin."""
    last = name.rpartition(".")[2]
    return last in ("size", "len") or (last[:1] == "n" and last[1:].isdigit())


# Whole programs: what their parts take, how often places run in them, and what was not seen.


@dataclass(slots=True)
class WholeProgram:
    """A program as what its findings are parts of.

    Attributes
    ----------
    program : Program
    machine : Machine
    sizes : mapping of str to number
        What is bound.
    """

    program: Program
    machine: Machine
    sizes: Mapping[str, int | float]
    _prices: dict[str, tuple[Known, tuple[Gap, ...]]] = field(default_factory=dict)

    def around(self, function: SpmdFunction, loops: tuple[Loop, ...]) -> Whole:
        """Return what steps of a function are a part of, which stand in some of its loops."""
        name = function.name
        whose = priced_as(self.machine, sym(RANKS), self.sizes, distributed=self._communicates)
        known = Whole(None, False, None, whose)
        for entry in sorted(self._entries(), key=lambda entry: entry.name != MODULE):
            if name not in (entry.name, *_reached(entry)):
                continue
            times = 1.0 if entry.name == name else self._runs(entry, partial(_calls, name))
            if any(loop.trips is None for loop in loops):
                times = None
            found = self._timed(entry, Whole(None, False, times, whose))
            if found.time_s is not None:
                return found
            known = found if known.times is None else known
        return known

    def _timed(self, entry: SpmdFunction, whole: Whole) -> Whole:
        """Return what a place is a part of with the time of a function, where that is known."""
        price, gaps = self._price(entry)
        with suppress(ExprError, ArithmeticError):
            time = middle(price, self.sizes)
            return replace(whole, time_s=time, complete=not (gaps or price.omitted))
        return whole

    def loop(self, line: int, finding: Finding) -> Finding | None:
        """Return a finding about a loop that begins in a line as about a part of the program.

        None where all that it saves is nothing to a program that has to start.
        """
        around, often = Whole(None, False, None, finding.priced_as), float(SOME)
        begins = methodcaller("begins", line)
        for entry in self._entries():
            times = self._runs(entry, begins)
            if times != 0:
                around = self._timed(entry, replace(around, times=times))
                often = times or self._runs(entry, begins, SOME) or 0.0
                break
        told = finding.prediction
        # of a loop that is not all known this is the least
        partly = told is not None and told.omitted and finding.span.start_line == line
        saves_s = weighed(finding, replace(around, times=often)).saves_s
        small = saves_s is not None and saves_s < (ONCE_S if partly else LEAST_S)
        return None if small else weighed(finding, around)

    def _runs(
        self, entry: SpmdFunction, wanted: Callable[[Visit], bool], unknown: float | None = None
    ) -> float | None:
        """Return how often some steps run in all of a function; None where nobody knows.

        Unless so often is taken for a loop of which nothing tells.
        """
        visits = walk(entry.body, into_calls=True)
        trips = [visit.times(self.sizes, unknown) for visit in visits if wanted(visit)]
        known = [one for one in trips if one is not None]
        return sum(known) if len(known) == len(trips) else None

    def _slow(self, loops: Mapping[int, Sequence[Finding]]) -> Iterator[NotUnderstood]:
        """Yield loops that take much of the program's time, and of which no rule finds more."""
        lines = self.program.context.lines
        silent = {line for line, found in loops.items() if not found}
        for entry in self._entries():
            for visit in walk(entry.body, into_calls=True):
                step, line = visit.step, visit.step.span.start_line
                if not isinstance(step, Loop) or line not in silent:
                    continue
                inner = (one.step for one in walk((step,), into_calls=True))
                if any(isinstance(one, Communicate) for one in inner):
                    continue
                price = price_known(lower_steps((step,), visit.loops).process, self.machine)
                try:
                    part = middle(price, self.sizes)
                    whole = middle(self._price(entry)[0], self.sizes)
                except (ExprError, ArithmeticError):
                    if not self._open_trips(step):
                        continue
                    took = "as long as its sizes say"
                else:
                    took = f"{1e3 * part:.3g} ms"
                    if part < max(LEAST_S, LEAST_SHARE * whole):
                        continue
                silent.discard(line)
                why = f"{took}, by single steps of the interpreter; {NO_RULE}"
                yield NotUnderstood(self.program.path, line, lines[line - 1].strip(), why)

    def _serialised(self, told: frozenset[str]) -> Iterator[NotUnderstood]:
        """Yield messages that are pickled time and again, in functions that no finding is about."""
        lines = self.program.context.lines
        for entry in self._entries():
            for visit in walk(entry.body, into_calls=True):
                step, line = visit.step, visit.step.span.start_line
                if not isinstance(step, Communicate) or not step.pickled or not visit.loops:
                    continue
                number = step.send is None or step.send.kind is PayloadKind.SCALAR
                around = [f for f in self.program.functions if f.whole.contains(step.span)]
                within = max(around, key=lambda f: f.whole.start_line, default=entry)
                if not number and within.name not in told:
                    why = f"what it sends is serialised, each time; {NO_RULE}"
                    yield NotUnderstood(self.program.path, line, lines[line - 1].strip(), why)

    def _open_trips(self, loop: Loop) -> frozenset[str]:
        """Return the sizes without values that say how often a loop and those in it run."""
        visits = walk((loop,), into_calls=True)
        loops = [visit.step for visit in visits if isinstance(visit.step, Loop)]
        used = (free_symbols(one.trips) for one in loops if one.trips is not None)
        return frozenset().union(*used) - self.sizes.keys() - {one.variable for one in loops}

    def coverage(self, told: frozenset[str], loops: Mapping[int, Sequence[Finding]]) -> Coverage:
        """Return what was analysed of a program, and what was not.

        Parameters
        ----------
        told : frozenset of str
            Functions that findings are about.
        loops : mapping of int to sequence of Finding
            By lines, of loops that were read alone.
        """
        unknown: dict[NotUnderstood, None] = {}
        unpriced: dict[str, None] = {}
        without: set[str] = set()
        open_: set[str] = set()
        lines = self.program.context.lines
        for entry in self._entries():
            price, gaps = self._price(entry)
            used = free_symbols(price.microseconds) - price.coefficients.keys() - {RANKS}
            if not used <= self.sizes.keys():
                # that nothing pays at the values tried says little of others
                open_ |= {entry.name, *_reached(entry)}
            for missing in price.lacking:
                whose = self._whose(entry)
                unpriced[f"{whose}, no price on {self.machine.name}: {missing.what}"] = None
                without |= {entry.name, *_reached(entry)}
            for gap in gaps:
                line = gap.span.start_line
                text = lines[line - 1].strip()
                unknown[NotUnderstood(self.program.path, line, text, gap.reason)] = None
                without |= {f.name for f in self.program.functions if f.whole.contains(gap.span)}
        for slow in (*self._slow(loops), *self._serialised(told)):
            unknown[slow] = None
            told |= {
                f.name
                for f in self.program.functions
                if f.whole.start_line <= slow.line <= f.whole.end_line
            }
        known = [f.name for f in self.program.functions if f.name not in without]
        analysed = tuple(map(self._shown, known))
        fine = tuple(self._shown(name) for name in known if name not in told | open_)
        left = tuple(self._shown(f.name) for f in self.program.functions if f.name in without)
        return Coverage(analysed, fine, tuple(unknown), (), tuple(unpriced), left)

    @property
    def _communicates(self) -> bool:
        return any(True for function in self.program.functions for _ in function.operations())

    def _whose(self, function: SpmdFunction) -> str:
        steps = [visit.step for visit in walk(function.body, into_calls=True)]
        loops = sum(isinstance(s, Loop) and s.kind is LoopKind.THREADS for s in steps)
        if loops and not any(isinstance(step, Communicate) for step in steps):
            name = self._shown(function.name)
            return f"{loops} parallel {'loop' if loops == 1 else 'loops'} in {name}"
        return self._shown(function.name)

    def _shown(self, name: str) -> str:
        return self.program.path if name == MODULE else name

    def _entries(self) -> tuple[SpmdFunction, ...]:
        """Return the module, and functions that nothing in the file calls."""
        return tuple(f for f in self.program.functions if f.name == MODULE or not f.calls)

    def _price(self, entry: SpmdFunction) -> tuple[Known, tuple[Gap, ...]]:
        """Return the price of a function, and what that leaves out."""
        if entry.name not in self._prices:
            lowered = lower_steps(entry.body)
            self._prices[entry.name] = price_known(lowered.process, self.machine), lowered.gaps
        return self._prices[entry.name]


def _calls(name: str, visit: Visit) -> bool:
    return isinstance(visit.step, Call) and visit.step.function == name


def _reached(root: SpmdFunction) -> frozenset[str]:
    """Return the functions that one calls, also through others."""
    steps = (visit.step for visit in walk(root.body, into_calls=True))
    return frozenset(step.function for step in steps if isinstance(step, Call))


# What a run showed of a program's messages: how many ranks, and sizes that buffers had.

_LITERAL = "line "
"""How the origin of a size begins that an assignment of the source states: newer than any run."""


def as_observed(program: Program, messages: Sequence[SeenMessages]) -> Program:
    """Return a program with the sizes that a run showed.

    They go over what only stands in for the user's choice (the default of an option, a number of
    ranks in a comment), not over what an assignment states: the run was of an older text if it
    differs. Sizes on which two messages disagree, and those of messages that were not all of one
    size, are left as the source says.

    Parameters
    ----------
    program : Program
    messages : sequence of SeenMessages
        Of the lines of its file, which may have moved since.
    """
    if not messages:
        return program
    found: dict[str, set[int]] = {}
    ranks = {one.world for one in messages}
    if len(ranks) == 1 and _is_open(program, RANKS):
        found[RANKS] = ranks
    known = _known(program, found)
    for step, seen in _matched(program, messages):
        for extent, value in _extents(step, seen):
            for name, size in solved(substitute(extent, known), value):
                if _is_open(program, name):
                    found.setdefault(name, set()).add(size)
    origin = messages[0].origin
    sizes = dict(program.sizes)
    for name, values in found.items():
        if len(values) == 1 and min(values) >= 1:
            (value,) = values
            span = sizes[name].span if name in sizes else None
            sizes[name] = SizeFact(value, origin, span)
    return replace(program, sizes=sizes)


def _is_open(program: Program, name: str) -> bool:
    fact = program.sizes.get(name)
    if fact is None:
        return True
    # what follows from other sizes goes on following from them
    return fact.derived is None and (fact.value is None or not fact.origin.startswith(_LITERAL))


def _known(program: Program, found: Mapping[str, set[int]]) -> dict[str, Expr]:
    """Return what is certain before any message is looked at."""
    stated = {
        name: num(fact.value)
        for name, fact in program.sizes.items()
        if fact.value is not None and not _is_open(program, name)
    }
    return stated | {name: num(next(iter(values))) for name, values in found.items()}


def _matched(
    program: Program, messages: Iterable[SeenMessages]
) -> Iterator[tuple[Communicate, SeenMessages]]:
    """Yield operations with what a run showed of them: by method and text, not by line."""
    lines = program.context.source.splitlines()
    by_text: dict[tuple[str, str], list[SeenMessages]] = {}
    for one in messages:
        by_text.setdefault((one.method, one.text), []).append(one)
    for function in program.functions:
        for _, step in function.operations():
            line = step.span.start_line
            text = lines[line - 1].strip() if line <= len(lines) else ""
            seen = by_text.get((step.method, text), [])
            if len({one.line for one in seen}) > 1:
                # alike lines: only where none has moved can they be told apart
                seen = [one for one in seen if one.line == line]
            if len(seen) == 1:
                yield step, seen[0]


def _extents(step: Communicate, seen: SeenMessages) -> Iterator[tuple[Expr, int]]:
    """Yield formulas with the values that they had."""
    payload = step.send or step.receive
    if payload is None or seen.least_bytes != seen.most_bytes or not seen.most_bytes:
        return
    view = payload.view
    for stated, found in (
        (None if view is None else view.shape, seen.shape),
        (None if view is None else view.buffer.extents, seen.whole),
    ):
        if stated is not None and found is not None and len(stated) == len(found):
            yield from zip(stated, found, strict=True)
    if payload.datatype is not None:
        return
    if payload.count is None:
        name = payload.text if view is None else view.buffer.name
        size = itemsize(payload.dtype)
        count = unknown_count(name)
    else:
        size, count = _itemsize(seen.dtype), payload.count
    if size and seen.most_bytes % size == 0:
        yield count, seen.most_bytes // size


def _itemsize(dtype: str) -> int:
    try:
        return itemsize_of(dtype)
    except UnknownDtype:
        return 0
