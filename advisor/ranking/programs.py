"""Findings of one SPMD program: what each rule proposes, priced before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from advisor.analysis.spmd.lower import Gap, lower_steps
from advisor.finding import NOTHING_SEEN, Remark
from advisor.ir.spmd.program import RANKS, Program, SizeFact, with_derived
from advisor.ir.spmd.proposal import ProgramProposal, ProgramTransform
from advisor.ir.spmd.steps import Loop, Step
from advisor.ranking.compare import Costed, compared, time_s
from advisor.ranking.findings import Candidate, Judged, Place, finding_of, rivals_of, with_prices
from advisor.ranking.open_sizes import EXTENT, OTHER, best_where_open, finding_of_opened
from advisor.ranking.open_sizes import RANKS as RANKS_STAND_IN
from advisor.ranking.rank import Ranked, Worth, always
from advisor.ranking.sizes import Number, Sizes
from advisor.ranking.whole_programs import WholeProgram
from advisor.ranking.worth import weighed
from advisor.source import SourceProblem, Span
from costdb.estimate import Missing
from costdb.expr import ExprError, free_symbols, sym
from costdb.machines import Machine
from costdb.pricing import price_process
from costdb.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class LoweredCost:
    """A price with what it leaves out."""

    costed: Costed
    gaps: tuple[Gap, ...]


def cost_steps(
    steps: Sequence[Step], machine: Machine, loops: Sequence[Loop] = ()
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
    return replace(program, sizes=facts)


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
) -> Ranked:
    """Return the findings of a program, what saves most first.

    Proposals of a rule about the same place compete; the fastest is told with the others as its
    alternatives. Where nothing binds some size, or says how many ranks there are, findings say
    for which of its values they pay.
    """
    judged: list[Judged] = []
    remarks: dict[str, Remark] = {}
    program = _as_bound(program, sizes)
    whole = WholeProgram(program, machine, sizes.values)
    for transform in transforms:
        by_place: dict[Span, list[ProgramProposal]] = {}
        for proposal in transform.propose_program(program):
            by_place.setdefault(proposal.span, []).append(proposal)
        for proposals in by_place.values():
            found = _best(program, proposals, transform, machine, sizes, worth, whole)
            if isinstance(found, Judged):
                judged.append(found)
            elif found is not None:
                remarks.setdefault(found.message, found)
    judged.sort(key=lambda one: one.finding.order)
    told = frozenset(one.finding.kernel for one in judged)
    coverage = whole.coverage(told) if details else NOTHING_SEEN
    return Ranked(tuple(judged), tuple(remarks.values()), coverage=coverage)


def _best(
    program: Program,
    proposals: Sequence[ProgramProposal],
    transform: ProgramTransform,
    machine: Machine,
    sizes: Sizes,
    worth: Worth,
    whole: WholeProgram,
) -> Judged | Remark | None:
    first = proposals[0]
    function = first.function
    before = cost_steps(first.before, machine, first.loops)
    if isinstance(before, Missing):
        message = f"no prediction for `{transform.name}` here: {before.what}; {before.remedy}"
        return Remark(program.path, function.name, first.span, message)
    candidates, lost = with_prices(proposals, before.costed, partial(_price_of, machine))
    if not candidates:
        return None
    names = before.costed.sizes.union(*(after.sizes for _, after in candidates))
    place = Place(program.path, function.name, program.context.source, sym(RANKS))
    try:
        unbound = tuple(sorted(names - sizes.values.keys()))
        if unbound:
            stand_ins = _stand_ins(program, unbound)
            best_open = best_where_open(before.costed, candidates, lost, sizes, stand_ins, RANKS)
            if best_open is None or not worth(transform.code, best_open.gain):
                return None
            finding = finding_of_opened(place, machine, transform, before.costed, best_open)
            opened = Judged(finding, before.costed.priced, best_open.costed.priced)
            return _valued(opened, whole, first)
        now = time_s(before.costed, sizes.values)
        ranked = [Candidate(p, c, time_s(c, sizes.values)) for p, c in candidates]
        ranked.sort(key=lambda candidate: candidate.time_s)
        best = ranked[0]
        if best.time_s >= now:
            return None
        found = compared(before.costed, best.costed, sizes.values)
        if found.ratio.mid <= 1 or not worth(transform.code, found.ratio.mid):
            return None
        rivals = (*rivals_of(ranked, now, "the program"), *lost)
        finding = finding_of(place, machine, sizes, transform, before.costed, best, found, rivals)
    except (ExprError, ArithmeticError, OverflowError) as error:
        message = f"no prediction for `{transform.name}` here: {error}"
        return Remark(program.path, function.name, first.span, message)
    judged = Judged(finding, before.costed.priced, best.costed.priced)
    return _valued(judged, whole, best.proposal)


def _price_of(machine: Machine, proposal: ProgramProposal) -> Costed | Missing:
    found = cost_steps(proposal.after, machine, proposal.loops)
    return found if isinstance(found, Missing) else found.costed


def _valued(judged: Judged, whole: WholeProgram, proposal: ProgramProposal) -> Judged:
    around = whole.around(proposal.function, proposal.loops)
    return replace(judged, finding=weighed(judged.finding, around))


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
    return last == "size" or (last[:1] == "n" and last[1:].isdigit())
