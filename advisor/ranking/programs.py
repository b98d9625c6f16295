"""Findings of one SPMD program: what each rule proposes, priced before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.analysis.spmd.lower import Gap, lower_steps
from advisor.finding import Alternative, Remark
from advisor.ir.spmd.program import RANKS, Program
from advisor.ir.spmd.proposal import ProgramProposal, ProgramTransform
from advisor.ir.spmd.steps import Loop, Step
from advisor.ranking.compare import Costed, compared, time_s
from advisor.ranking.findings import Candidate, Place, finding_of, rivals_of
from advisor.ranking.rank import Judged, Ranked, Worth, always
from advisor.ranking.sizes import Number, Sizes
from advisor.source import Span
from costdb.estimate import Missing
from costdb.expr import ExprError
from costdb.machines import Machine
from costdb.pricing import price_process

ASSUMED_RANKS = 4
"""How many ranks a finding speaks of where nothing says how many there are."""

ASSUMED_SIZE = 1000
"""What a size is taken to be where nothing binds it."""

SWEEP = (10, 100_000)
"""Other values at which a gain must hold before it is told of a size that nothing binds."""

RANKS_SWEEP = (2, 64)
"""The same for the number of ranks."""


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
    """Return the values of a program's symbols: what the source says, overruled by `given`."""
    values: dict[str, Number] = {}
    origins: dict[str, str] = {}
    for name, fact in program.sizes.items():
        if fact.value is not None:
            values[name], origins[name] = fact.value, fact.origin
    for name, value in given.items():
        values[name], origins[name] = value, (given_by or {}).get(name, "-D")
    return Sizes(values, origins)


def with_assumed(program: Program, sizes: Sizes, names: frozenset[str]) -> Sizes:
    """Return sizes with an assumed value, said to be one, for every name that has none."""
    values, origins = dict(sizes.values), dict(sizes.origins)
    for name in sorted(names - values.keys()):
        values[name] = ASSUMED_RANKS if is_ranks(name) else ASSUMED_SIZE
        fact = program.sizes.get(name)
        why = "nothing binds it" if fact is None else fact.origin
        origins[name] = f"assumed: {why}"
    return Sizes(values, origins)


def is_ranks(name: str) -> bool:
    """Return whether a symbol is the size of a communicator."""
    return name == RANKS or name.startswith(f"{RANKS}.")


def rank_program(
    program: Program,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[ProgramTransform],
    worth: Worth = always,
) -> Ranked:
    """Return the findings of a program, greatest gain first.

    Proposals of a rule about the same place compete; the fastest is told with the others as its
    alternatives. A gain that rests on sizes that nothing binds is told only where it holds for
    small and for large ones.
    """
    judged: list[Judged] = []
    remarks: dict[str, Remark] = {}
    for transform in transforms:
        by_place: dict[Span, list[ProgramProposal]] = {}
        for proposal in transform.propose_program(program):
            by_place.setdefault(proposal.span, []).append(proposal)
        for proposals in by_place.values():
            found = _best(program, proposals, transform, machine, sizes, worth)
            if isinstance(found, Judged):
                judged.append(found)
            elif found is not None:
                remarks.setdefault(found.message, found)
    judged.sort(key=lambda one: (-one.finding.speedup, one.finding.code))
    return Ranked(tuple(judged), tuple(remarks.values()))


def _best(
    program: Program,
    proposals: Sequence[ProgramProposal],
    transform: ProgramTransform,
    machine: Machine,
    sizes: Sizes,
    worth: Worth,
) -> Judged | Remark | None:
    first = proposals[0]
    function = first.function
    before = cost_steps(first.before, machine, first.loops)
    if isinstance(before, Missing):
        message = f"no prediction for `{transform.name}` here: {before.what}; {before.remedy}"
        return Remark(program.path, function.name, first.span, message)
    candidates: list[tuple[ProgramProposal, Costed]] = []
    lost: list[Alternative] = []
    names = before.costed.sizes
    for proposal in proposals:
        after = cost_steps(proposal.after, machine, proposal.loops)
        if isinstance(after, Missing):
            lost.append(Alternative(proposal.title, None, f"no prediction: {after.what}"))
            continue
        candidates.append((proposal, after.costed))
        names |= after.costed.sizes
    if not candidates:
        return None
    known = with_assumed(program, sizes, names)
    try:
        now = time_s(before.costed, known.values)
        ranked = [Candidate(p, c, time_s(c, known.values)) for p, c in candidates]
        ranked.sort(key=lambda candidate: candidate.time_s)
        best = ranked[0]
        if best.time_s >= now:
            return None
        found = compared(before.costed, best.costed, known.values)
        if found.ratio.mid <= 1 or not worth(transform.code, found.ratio.mid, found.ratio.low):
            return None
        if not _holds(before.costed, best.costed, sizes, known):
            return None
        rivals = (*rivals_of(ranked, now, "the program"), *lost)
        place = Place(program.path, function.name, program.context.source)
        finding = finding_of(place, machine, known, transform, before.costed, best, found, rivals)
    except (ExprError, ArithmeticError, OverflowError) as error:
        message = f"no prediction for `{transform.name}` here: {error}"
        return Remark(program.path, function.name, first.span, message)
    return Judged(finding, before.costed.priced, best.costed.priced)


def _holds(before: Costed, after: Costed, bound: Sizes, known: Sizes) -> bool:
    """Return whether a gain holds whatever the sizes are that nothing binds."""
    free = (before.sizes | after.sizes) - bound.values.keys()
    for name in sorted(free):
        for value in RANKS_SWEEP if is_ranks(name) else SWEEP:
            values = {**known.values, name: value}
            if time_s(after, values) > time_s(before, values):
                return False
    return True
