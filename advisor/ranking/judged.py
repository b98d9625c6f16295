"""A proposal that is worth telling of, as a finding with the two prices that it compares.

Whoever looks at a finding is told where else it pays, by formulas over all sizes. They take many
times as long as prices at the sizes at hand, and are made only then. Some kernels have a price at
their sizes and no formula: the finding is the same, and says why it tells of no other sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.analysis.lower import Unpriced
from advisor.finding import Alternative, Finding
from advisor.ir.concrete import symbols_of
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal, Transform
from advisor.ranking.compare import Compared, Costed, cost
from advisor.ranking.findings import Candidate, Place, finding_of
from advisor.ranking.sizes import Sizes
from costdb.estimate import Missing, Priced
from costdb.machines import Machine


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with the two prices that it compares."""

    finding: Finding
    before: Priced
    after: Priced


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel that is ranked at its sizes.

    Attributes
    ----------
    place : Place
    kernel : Kernel
    machine : Machine
    sizes : Sizes
    here : Costed
        The kernel as written, at its sizes.
    """

    place: Place
    kernel: Kernel
    machine: Machine
    sizes: Sizes
    here: Costed


def judged_here(
    subject: Subject,
    rule: Transform,
    chosen: Candidate[Proposal],
    found: Compared,
    rivals: tuple[Alternative, ...],
) -> Judged:
    """Return what is told of a proposal at the sizes at hand."""
    finding = finding_of(
        subject.place,
        subject.machine,
        subject.sizes,
        rule,
        subject.here,
        chosen,
        found,
        rivals,
        details=False,
    )
    return Judged(finding, subject.here.priced, chosen.costed.priced)


def judged_in_full(
    subject: Subject,
    rule: Transform,
    chosen: Candidate[Proposal],
    found: Compared,
    rivals: tuple[Alternative, ...],
    *,
    formulas: bool,
) -> Judged:
    """Return the same with what it rests on and where else it pays.

    Parameters
    ----------
    subject : Subject
    rule : Transform
    chosen : Candidate
    found : Compared
    rivals : tuple of Alternative
    formulas : bool
        Whether prices are to be shown, and so need closed forms.
    """
    kernel, variant, machine = subject.kernel, chosen.proposal.variant, subject.machine
    try:
        before, after = (over_sizes(one, machine) for one in (kernel, variant))
        shown = [over_sizes(one, machine, closed=formulas).priced for one in (kernel, variant)]
    except Unpriced as unknown:
        at_hand = judged_here(subject, rule, chosen, found, rivals)
        finding = _only_here(at_hand.finding, subject, variant, unknown.reason)
        return replace(at_hand, finding=finding)
    best = replace(chosen, costed=after)
    finding = finding_of(subject.place, machine, subject.sizes, rule, before, best, found, rivals)
    return Judged(finding, *shown)


def over_sizes(kernel: Kernel, machine: Machine, *, closed: bool = False) -> Costed:
    """Return the price of a kernel with its formula over all sizes.

    Raises
    ------
    Unpriced
        There is none.
    """
    costed = cost(kernel, machine, closed=closed)
    if isinstance(costed, Missing):
        raise Unpriced(f"{costed.what}; {costed.remedy}", kernel.span)
    return costed


def _only_here(finding: Finding, subject: Subject, variant: Kernel, reason: str) -> Finding:
    sizes, evidence = subject.sizes, finding.evidence
    names = (symbols_of(subject.kernel) | symbols_of(variant)) & sizes.values.keys()
    remark = f"for other sizes there is no prediction: {reason}"
    return replace(
        finding,
        assumptions=sizes.assumptions(names),
        evidence=replace(evidence, remarks=(*evidence.remarks, remark)),
    )
