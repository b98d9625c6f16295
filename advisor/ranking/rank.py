"""Findings of one kernel: every proposal priced, the best of each rule kept with its rivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from advisor.analysis.lower import Unpriced
from advisor.finding import Alternative, Finding, Remark
from advisor.ir.concrete import at_sizes
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal, Transform
from advisor.ranking.compare import WORTH, Costed, compared, cost, time_s
from advisor.ranking.findings import Candidate, Place, finding_of, rivals_of
from advisor.ranking.shortlist import shortlist
from advisor.ranking.sizes import Sizes, require
from costdb.estimate import Missing, Priced
from costdb.machines import Machine

Worth = Callable[[str, float, float], bool]
"""Whether to tell of a rule's gain, by its middle and the low end of its interval."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with the two prices that it compares."""

    finding: Finding
    before: Priced
    after: Priced


@dataclass(frozen=True, slots=True)
class Ranked:
    """What is to be said of one kernel."""

    judged: tuple[Judged, ...]
    remarks: tuple[Remark, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings alone."""
        return tuple(one.finding for one in self.judged)


def always(code: str, speedup: float, low: float) -> bool:
    """Tell of every gain."""
    return True


def rank(
    path: str,
    kernel: Kernel,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[Transform],
    worth: Worth = always,
    *,
    formulas: bool = False,
) -> Ranked:
    """Return the findings of a kernel, greatest gain first.

    Parameters
    ----------
    path : str
    kernel : Kernel
    machine : Machine
    sizes : Sizes
    transforms : sequence of Transform
        The rules to try.
    worth : callable
        Which gains to make findings of; the others cost little more than their prices.
    formulas : bool
        Whether prices are to be shown, and so need closed forms.

    Returns
    -------
    Ranked
        One finding for each rule that has a proposal predicted to be faster, if that is worth
        telling; a remark instead where the kernel, or the machine, allows no prediction.

    Raises
    ------
    SourceProblem
        When a size has no value.
    """
    try:
        before = cost(kernel, machine, closed=False)
    except Unpriced as unknown:
        message = f"no advice for kernel `{kernel.name}`: {unknown.reason}"
        return Ranked((), (Remark(path, kernel.name, unknown.span, message),))
    if isinstance(before, Missing):
        return Ranked((), (_missing(path, kernel, before),))
    require(kernel, before.sizes, sizes, path)
    # variants are compared at their sizes, where formulas are short; only what is told of gets
    # its formula in full
    here = cost(at_sizes(kernel, sizes.values), machine, closed=False)
    assert isinstance(here, Costed)
    now = time_s(here, sizes.values)
    place = Place(path, kernel.name, kernel.context.source)
    judged: list[Judged] = []
    remarks: list[Remark] = []
    gains = 0
    for transform in transforms:
        candidates: list[Candidate[Proposal]] = []
        lost: list[Alternative] = []
        for proposal in shortlist(transform.propose(kernel), machine, sizes.values):
            tried = _tried(proposal, machine, sizes, kernel, path)
            if isinstance(tried, Candidate):
                candidates.append(tried)
            else:
                lost.append(tried)
        # of equally fast ones the one proposed first, which its rule prefers
        candidates.sort(key=lambda candidate: candidate.time_s)
        if not candidates or candidates[0].time_s >= now:
            continue
        best = _in_full(candidates[0], machine)
        found = compared(before, best.costed, sizes.values)
        if found.ratio.mid <= 1:
            continue
        if found.ratio.mid >= WORTH:
            gains += 1
        if worth(transform.code, found.ratio.mid, found.ratio.low):
            rivals = (*rivals_of(candidates, now, "the kernel"), *lost)
            finding = finding_of(place, machine, sizes, transform, before, best, found, rivals)
            shown = before, best.costed
            if formulas:
                shown = (
                    _costed(kernel, machine, True),
                    _costed(best.proposal.variant, machine, True),
                )
            judged.append(Judged(finding, shown[0].priced, shown[1].priced))
    judged.sort(key=lambda one: (-one.finding.prediction.speedup, one.finding.code))
    if gains > 1:
        from advisor.ranking.joint import best_plan

        plan = best_plan(kernel, before, machine, sizes, transforms)
        if plan is not None:
            message = f"best plan for kernel `{kernel.name}`, {plan}"
            remarks.append(Remark(path, kernel.name, kernel.span, message))
    return Ranked(tuple(judged), tuple(remarks))


def _missing(path: str, kernel: Kernel, missing: Missing) -> Remark:
    message = f"no advice for kernel `{kernel.name}`: {missing.what}; {missing.remedy}"
    return Remark(path, kernel.name, kernel.span, message)


def _tried(
    proposal: Proposal,
    machine: Machine,
    sizes: Sizes,
    kernel: Kernel,
    path: str,
) -> Candidate[Proposal] | Alternative:
    try:
        after = cost(at_sizes(proposal.variant, sizes.values), machine, closed=False)
    except Unpriced as unknown:
        return Alternative(proposal.title, None, f"no prediction: {unknown.reason}")
    if isinstance(after, Missing):
        return Alternative(proposal.title, None, f"no prediction: {after.what}")
    require(kernel, after.sizes, sizes, path)
    return Candidate(proposal, after, time_s(after, sizes.values))


def _in_full(candidate: Candidate[Proposal], machine: Machine) -> Candidate[Proposal]:
    """Return a candidate with its formula over all sizes."""
    costed = _costed(candidate.proposal.variant, machine, False)
    return Candidate(candidate.proposal, costed, candidate.time_s)


def _costed(kernel: Kernel, machine: Machine, closed: bool) -> Costed:
    costed = cost(kernel, machine, closed=closed)
    # the same work was priced before, so nothing is missing
    assert isinstance(costed, Costed)
    return costed
