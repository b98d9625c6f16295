"""Plans of several steps: each is the fastest that rules propose for what those before leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.analysis.lower import Unpriced
from advisor.ir.proposal import Proposal, Transform
from advisor.ranking.compare import WORTH, Compared, Costed, compared, cost_at, shortlist, time_s
from advisor.ranking.findings import Candidate, Subject
from costdb.estimate import Missing
from costdb.expr import ExprError
from costdb.records import dataclass

Step = tuple[str, Candidate[Proposal]]
"""The code of a rule, and its proposal for what the steps before it leave."""


@dataclass(frozen=True, slots=True)
class JointPlan:
    """Several steps, and how the last kernel compares with the one as written."""

    steps: tuple[Step, ...]
    compared: Compared

    def __str__(self) -> str:
        """Describe the plan in one line, gain first."""
        ratio = self.compared.ratio
        steps = ", then ".join(f"{one.proposal.title} ({code})" for code, one in self.steps)
        return f"{ratio.mid:.2f}x faster ({ratio.low:.2f}x to {ratio.high:.2f}x): {steps}"


def best_plan(
    subject: Subject, before: Costed, transforms: Sequence[Transform], singles: Sequence[Step]
) -> JointPlan | None:
    """Return the plan of two steps or more that is found step by step, if it beats every single.

    Parameters
    ----------
    subject : Subject
    before : Costed
        The kernel as written.
    transforms : sequence of Transform
        Each is used once at most.
    singles : sequence of (str, Candidate)
        The fastest proposal of each rule for the kernel as written.
    """
    steps: list[Step] = []
    found = list(singles)
    while found:
        following = min(found, key=lambda step: step[1].time_s)
        if steps and following[1].time_s >= steps[-1][1].time_s:
            break
        steps.append(following)
        found = list(_steps_after(steps, subject, transforms))
    if len(steps) < 2 or steps[-1][1].time_s * WORTH > steps[0][1].time_s:
        return None
    try:
        against = compared(before, steps[-1][1].costed, subject.sizes.values)
    except Unpriced:
        return None
    return JointPlan(tuple(steps), against)


def _steps_after(
    steps: Sequence[Step], subject: Subject, transforms: Sequence[Transform]
) -> Iterator[Step]:
    """Yield what rules that were not followed yet propose, with its price."""
    used, kernel = {code for code, _ in steps}, steps[-1][1].proposal.variant
    values = subject.sizes.values
    for transform in transforms:
        if transform.code in used:
            continue
        for proposal in shortlist(transform.propose(kernel), subject.machine, values):
            try:
                after = cost_at(proposal.variant, subject.machine, values)
                if not isinstance(after, Missing):
                    yield transform.code, Candidate(proposal, after, time_s(after, values))
            except (Unpriced, ExprError):
                continue


def as_built(plan: JointPlan, subject: Subject) -> str | None:
    """Return what a plan of a distributed kernel gains as a built program, or why it has no such.

    None where the program that is built of it is no faster.
    """
    from advisor.ranking.built import plan_of

    values, last = subject.sizes.values, plan.steps[-1][1].proposal.variant
    before, after = (plan_of(one, subject.machine, values) for one in (subject.kernel, last))
    if before.costed is None or after.costed is None:
        return f"as modelled: {before.unknown or after.unknown}"
    gain = time_s(before.costed, values) / time_s(after.costed, values)
    return f"{gain:.2f}x of the built program" if gain >= WORTH else None
