"""Findings of one kernel: every proposal priced, the best of each rule kept with its rivals."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from advisor.analysis.lower import Unpriced
from advisor.analysis.messages import transfers
from advisor.edits import split_lines
from advisor.files import relative_path
from advisor.finding import (
    Alternative,
    Confidence,
    Crossover,
    Evidence,
    EvidenceTerm,
    Finding,
    Fix,
    Prediction,
    Remark,
)
from advisor.ir.concrete import at_sizes
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal, Transform
from advisor.ranking.compare import WORTH, Compared, Costed, compared, cost, time_s, where_it_pays
from advisor.ranking.shortlist import shortlist
from advisor.ranking.sizes import Sizes, require
from costdb.estimate import Missing, Priced
from costdb.machines import Machine
from costdb.quantity import Provenance, Quantity

Worth = Callable[[str, float, float], bool]
"""Whether to tell of a rule's gain, by its middle and the low end of its interval."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    proposal: Proposal
    costed: Costed
    time_s: float


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
    judged: list[Judged] = []
    remarks: list[Remark] = []
    gains = 0
    for transform in transforms:
        candidates: list[_Candidate] = []
        lost: list[Alternative] = []
        for proposal in shortlist(transform.propose(kernel), machine, sizes.values):
            tried = _tried(proposal, machine, sizes, kernel, path)
            if isinstance(tried, _Candidate):
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
            rivals = (*_rivals(candidates, now), *lost)
            finding = _finding(path, kernel, machine, sizes, transform, before, best, found, rivals)
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
) -> _Candidate | Alternative:
    try:
        after = cost(at_sizes(proposal.variant, sizes.values), machine, closed=False)
    except Unpriced as unknown:
        return Alternative(proposal.title, None, f"no prediction: {unknown.reason}")
    if isinstance(after, Missing):
        return Alternative(proposal.title, None, f"no prediction: {after.what}")
    require(kernel, after.sizes, sizes, path)
    return _Candidate(proposal, after, time_s(after, sizes.values))


def _in_full(candidate: _Candidate, machine: Machine) -> _Candidate:
    """Return a candidate with its formula over all sizes."""
    costed = _costed(candidate.proposal.variant, machine, False)
    return _Candidate(candidate.proposal, costed, candidate.time_s)


def _costed(kernel: Kernel, machine: Machine, closed: bool) -> Costed:
    costed = cost(kernel, machine, closed=closed)
    # the same work was priced before, so nothing is missing
    assert isinstance(costed, Costed)
    return costed


def _finding(
    path: str,
    kernel: Kernel,
    machine: Machine,
    sizes: Sizes,
    transform: Transform,
    before: Costed,
    best: _Candidate,
    found: Compared,
    rivals: tuple[Alternative, ...],
) -> Finding:
    proposal = best.proposal
    prediction = _prediction(found)
    used = before.sizes | best.costed.sizes
    edits = proposal.edits()
    legality = proposal.legality
    return Finding(
        code=transform.code,
        name=transform.name,
        path=path,
        kernel=kernel.name,
        span=proposal.span,
        message=f"{prediction.speedup:.2f}x faster on {machine.name}: {proposal.title}",
        reason=proposal.reason,
        prediction=prediction,
        assumptions=sizes.assumptions(used),
        evidence=_evidence(machine, sizes, before, best, found),
        alternatives=rivals,
        crossovers=tuple(_crossovers(before, best.costed, sizes, used)),
        fix=Fix(legality.applicability, legality.argument, edits) if edits else None,
        fingerprint=_fingerprint(path, kernel, transform.code, proposal),
    )


def _prediction(found: Compared) -> Prediction:
    before, after, ratio = found.before, found.after, found.ratio
    return Prediction(
        before_s=before.mid,
        after_s=after.mid,
        speedup=ratio.mid,
        low=ratio.low,
        high=ratio.high,
        before_low_s=before.low,
        before_high_s=before.high,
        after_low_s=after.low,
        after_high_s=after.high,
        confidence=Confidence.HIGH if ratio.low > 1 else Confidence.LOW,
        in_range=before.in_range and after.in_range,
    )


def _rivals(candidates: Sequence[_Candidate], now: float) -> Iterator[Alternative]:
    best = candidates[0].time_s
    for candidate in candidates[1:]:
        time = candidate.time_s
        if time > now:
            reason = "slower than the kernel as written"
        elif time == now:
            reason = "as slow as the kernel as written"
        elif time > best:
            reason = f"{time / best:.2f} times the time of the suggestion"
        else:
            reason = "as fast as the suggestion"
        yield Alternative(candidate.proposal.title, time, reason)


def _evidence(
    machine: Machine, sizes: Sizes, before: Costed, best: _Candidate, found: Compared
) -> Evidence:
    worst = max((found.before.provenance, found.after.provenance), key=list(Provenance).index)
    facts = [
        f"{side}, {transfer}"
        for side, costed in (("as written", before), ("as proposed", best.costed))
        for transfer in transfers(costed.process, sizes.values, machine.cache_line_bytes)
    ]
    coefficients = {**before.priced.coefficients, **best.costed.priced.coefficients}
    return Evidence(
        machine=machine.name,
        calibration=f"{machine.title}; {machine.library}" if machine.library else machine.title,
        provenance=worst,
        terms=tuple(_terms(found)),
        facts=tuple(facts),
        coefficients=tuple(_described(name, q) for name, q in sorted(coefficients.items())),
        remarks=tuple(dict.fromkeys((*found.before.remarks, *found.after.remarks))),
    )


def _terms(found: Compared) -> Iterator[EvidenceTerm]:
    before = {(t.label, t.model): t.mid for t in found.before.terms}
    after = {(t.label, t.model): t.mid for t in found.after.terms}
    for label, model in dict.fromkeys((*before, *after)):
        key = (label, model)
        yield EvidenceTerm(label, model, before.get(key), after.get(key))


def _described(name: str, quantity: Quantity) -> str:
    interval = f" ({quantity.low:g} to {quantity.high:g})" if quantity.low != quantity.high else ""
    fitted = f"; fitted to {quantity.fitted_to}" if quantity.fitted_to else ""
    unit = "" if quantity.unit == "1" else f" {quantity.unit}"
    return (
        f"{name} = {quantity.value:g}{unit}{interval}, {quantity.provenance}:"
        f" {quantity.source}{fitted}"
    )


def _crossovers(
    before: Costed, after: Costed, sizes: Sizes, used: frozenset[str]
) -> Iterator[Crossover]:
    for variable in sorted(used):
        found = where_it_pays(before, after, variable, sizes.values)
        if found is not None:
            yield Crossover(variable, *found)


def _fingerprint(path: str, kernel: Kernel, code: str, proposal: Proposal) -> str:
    line = split_lines(kernel.context.source)[proposal.span.start_line - 1]
    text = " ".join(line.split())
    parts = (relative_path(path), code, kernel.name, text)
    whole = "\0".join(parts)
    return hashlib.sha256(whole.encode()).hexdigest()[:24]
