"""Choices interact: the best plan of several steps, found by a search over what rules propose."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from advisor.analysis.lower import Unpriced
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal, Transform
from advisor.ranking.compare import (
    WORTH,
    Compared,
    Costed,
    Sizes,
    compared,
    cost_at,
    shortlist,
    time_s,
)
from advisor.ranking.findings import Candidate
from costdb.estimate import Missing
from costdb.expr import ExprError
from costdb.machines import Machine
from costdb.records import dataclass

WIDTH = 3
"""Plans that are followed up at each length."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: the rule, and what to do."""

    code: str
    title: str


@dataclass(frozen=True, slots=True)
class JointPlan:
    """Several steps, each a rule's proposal for what the steps before it leave.

    Attributes
    ----------
    steps : tuple of PlanStep
    costed : Costed
    compared : Compared
        With the kernel as written.
    kernel : Kernel
        As it is then.
    """

    steps: tuple[PlanStep, ...]
    costed: Costed
    compared: Compared
    kernel: Kernel

    def __str__(self) -> str:
        """Describe the plan in one line, gain first."""
        ratio = self.compared.ratio
        steps = ", then ".join(f"{step.title} ({step.code})" for step in self.steps)
        return f"{ratio.mid:.2f}x faster ({ratio.low:.2f}x to {ratio.high:.2f}x): {steps}"


@dataclass(frozen=True, slots=True)
class _State:
    plan: JointPlan

    @property
    def time(self) -> float:
        return self.plan.compared.after.mid

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(step.code for step in self.plan.steps)


def best_plan(
    kernel: Kernel,
    before: Costed,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[Transform],
    singles: Sequence[tuple[str, Candidate[Proposal]]] | None = None,
) -> JointPlan | None:
    """Return the fastest plan of two steps or more, if it beats every single step.

    Plans grow by one proposal of a rule not used yet. Of each length the fastest few are followed
    up, and no plan whose gain, even at the favourable end of its interval, stays below the middle
    of the best one's.

    Parameters
    ----------
    kernel : Kernel
    before : Costed
        The kernel as written.
    machine : Machine
    sizes : Sizes
    transforms : sequence of Transform
        Each is used once at most.
    singles : sequence of (str, Candidate), optional
        The fastest proposal of each rule for the kernel as written, with the rule's code, where
        that is known already.
    """
    start = _State(JointPlan((), before, compared(before, before, sizes.values), kernel))
    if singles is None:
        frontier = _grown(start, before, machine, sizes, transforms)
    else:
        frontier = [_followed(start, code, one, before, sizes) for code, one in singles]
    if not frontier:
        return None
    single = min(state.time for state in frontier)
    best: _State | None = None
    seen: set[frozenset[tuple[str, str]]] = set()
    frontier = _promising(frontier)
    while frontier:
        grown: list[_State] = []
        for state in frontier:
            for following in _grown(state, before, machine, sizes, transforms):
                key = frozenset((step.code, step.title) for step in following.plan.steps)
                if key not in seen and following.time < state.time:
                    seen.add(key)
                    grown.append(following)
        for state in grown:
            if best is None or state.time < best.time:
                best = state
        frontier = _promising(grown)
    if best is None or best.time * WORTH > single:
        return None
    return best.plan


def _promising(states: list[_State]) -> list[_State]:
    """Return the states to follow up, fastest first."""
    if not states:
        return []
    target = max(state.plan.compared.ratio.mid for state in states)
    able = [state for state in states if state.plan.compared.ratio.high >= target]
    return sorted(able, key=lambda state: state.time)[:WIDTH]


def _grown(
    state: _State,
    before: Costed,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[Transform],
) -> list[_State]:
    """Return the plans that are one step longer: of each rule the fastest proposal."""
    found: list[_State] = []
    for transform in transforms:
        if transform.code in state.codes:
            continue
        tried = [
            applied
            for proposal in shortlist(transform.propose(state.plan.kernel), machine, sizes.values)
            if (applied := _applied(proposal, machine, sizes))
        ]
        if tried:
            # intervals take several times as long as times, so only the fastest gets one
            fastest = min(tried, key=lambda applied: applied.time_s)
            with suppress(Unpriced):
                found.append(_followed(state, transform.code, fastest, before, sizes))
    return found


def _followed(
    state: _State, code: str, chosen: Candidate[Proposal], before: Costed, sizes: Sizes
) -> _State:
    steps = (*state.plan.steps, PlanStep(code, chosen.proposal.title))
    against = compared(before, chosen.costed, sizes.values)
    return _State(JointPlan(steps, chosen.costed, against, chosen.proposal.variant))


def _applied(proposal: Proposal, machine: Machine, sizes: Sizes) -> Candidate[Proposal] | None:
    try:
        after = cost_at(proposal.variant, machine, sizes.values)
        if isinstance(after, Missing):
            return None
        return Candidate(proposal, after, time_s(after, sizes.values))
    except (Unpriced, ExprError):
        return None


def as_built(kernel: Kernel, plan: JointPlan, machine: Machine, sizes: Sizes) -> str | None:
    """Return what a plan of a distributed kernel gains as a built program, or why it has no such.

    None where the program that is built of it is no faster.
    """
    from advisor.ranking.built import plan_of

    before, after = (plan_of(one, machine, sizes.values) for one in (kernel, plan.kernel))
    if before.costed is None or after.costed is None:
        return f"as modelled: {before.unknown or after.unknown}"
    gain = time_s(before.costed, sizes.values) / time_s(after.costed, sizes.values)
    return f"{gain:.2f}x of the built program" if gain >= WORTH else None
