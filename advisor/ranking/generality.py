"""Whether an edit holds for every argument, not only for those that annotations and runs speak of.

Annotated sizes are usual values. So a kernel is read again with an extent of its own for every
dimension of every array that it is given: what a rule then offers, with its argument and its text,
holds whatever the shapes are. Element types that only comments and runs tell are tried in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.finding import OBSERVED, Applicability, Finding, Fix
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal, Transform
from advisor.source import Edit

ELEMENT_TYPES = ("bool", "uint8", "int64", "float32", "float64", "complex128")
"""One of each kind, and one that wraps around or rounds early."""

IF_AS = "if shapes and element types are as "
IF_NOT_EMPTY = "if no loop of it is empty"


def held(finding: Finding, rule: Transform, kernel: Kernel, proposal: Proposal) -> Finding:
    """Return a finding whose fix is safe only if it is for every argument.

    Parameters
    ----------
    finding : Finding
    rule : Transform
    kernel : Kernel
        As it was read for this finding.
    proposal : Proposal
        What the finding proposes.
    """
    fix = finding.fix
    inert = proposal.variant.body == kernel.body
    if fix is None or fix.applicability is Applicability.DISPLAY or inert:
        return finding
    ran = any(one.origin.startswith(OBSERVED) for one in finding.assumptions)
    if_as_told = IF_AS + ("in the run that was observed" if ran else "declared")
    general = _offered(rule, kernel, proposal, None)
    if general is None:
        told = _offered(rule, kernel, proposal, None, runs_through=True)
        edits, condition = (told[2], IF_NOT_EMPTY) if told else (fix.edits, if_as_told)
        unsafe = Fix(Applicability.UNSAFE, f"{fix.legality}, {condition}", edits)
        return replace(finding, fix=unsafe)
    applicability, argument, edits = general
    if applicability is Applicability.SAFE and fix.applicability is Applicability.SAFE:
        for told in _of_other_types(rule, kernel, proposal):
            if told is None or (told[0], told[2]) != (applicability, edits):
                applicability, argument = Applicability.UNSAFE, f"{fix.legality}, {if_as_told}"
                break
    return replace(finding, fix=Fix(applicability, argument, edits))


_Told = tuple[Applicability, str, tuple[Edit, ...]]


def _of_other_types(rule: Transform, kernel: Kernel, proposal: Proposal) -> Iterator[_Told | None]:
    if kernel.general is not None and kernel.types_are_usual:
        for dtype in ELEMENT_TYPES:
            yield _offered(rule, kernel, proposal, dtype)


def _offered(
    rule: Transform,
    kernel: Kernel,
    proposal: Proposal,
    dtype: str | None,
    *,
    runs_through: bool = False,
) -> _Told | None:
    """Return what a rule offers at the same place, whatever the shapes; None where it does not."""
    if kernel.general is None:
        legality = proposal.legality
        return legality.applicability, legality.argument, proposal.edits()
    general = replace(kernel.general(dtype), runs_through=runs_through)
    for other in rule.propose(general):
        if (other.span, other.title) == (proposal.span, proposal.title):
            edits = other.edits()
            if edits and other.legality.applicability is not Applicability.DISPLAY:
                return other.legality.applicability, other.legality.argument, edits
    return None
