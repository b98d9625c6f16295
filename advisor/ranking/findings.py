"""A finding made of a proposal and two prices."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from advisor.analysis.lower import Unpriced
from advisor.analysis.processes import transfers
from advisor.files import lasting_name
from advisor.finding import (
    MODULE,
    Alternative,
    Applicability,
    Condition,
    Crossover,
    Evidence,
    EvidenceTerm,
    Finding,
    Fix,
    Prediction,
)
from advisor.ir.kernel import Kernel, Legality, Proposal, Rule, Transform, symbols_of
from advisor.ir.one_by_one import Kind, OneByOne
from advisor.ranking.compare import Compared, Costed, Sizes, about_cores, cost, where_it_pays
from advisor.source import Edit, Span, span_of, split_lines
from costdb.evaluate import Missing, Priced
from costdb.expr import Expr, ExprError, num, sym
from costdb.expr.nodes import ZERO
from costdb.machines import Machine
from costdb.quantity import Omission, Provenance, Quantity
from costdb.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Place:
    """What a finding is about: a kernel or function by file, name, whole source and ranks."""

    path: str
    name: str
    source: str
    ranks: Expr


if TYPE_CHECKING:
    from advisor.ir.same_calls import Again
    from advisor.ir.spmd.program import ProgramProposal

AnyProposal: TypeAlias = "Proposal | ProgramProposal"
Offered = TypeVar("Offered", bound="AnyProposal", covariant=True)


@dataclass(frozen=True, slots=True)
class Offer:
    """What is only shown, and has no price."""

    title: str
    reason: str
    span: Span

    def edits(self) -> tuple[Edit, ...]:
        """Return none."""
        return ()


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Offered]):
    """A proposal with its price and its time at the sizes at hand."""

    proposal: Offered
    costed: Costed
    time_s: float


Price = Callable[[Offered], Costed | Missing]


def with_prices(
    proposals: Iterable[Offered], before: Costed, price: Price[Offered]
) -> tuple[list[tuple[Offered, Costed]], list[Alternative]]:
    """Return proposals with what they would cost, and why others have no price to compare.

    A lower bound is never ranked above a price that is complete.
    """
    candidates: list[tuple[Offered, Costed]] = []
    lost: list[Alternative] = []
    known, now = set(before.priced.omitted), before.priced.microseconds
    for proposal in proposals:
        try:
            after = price(proposal)
        except Unpriced as unknown:
            reason = unknown.reason
        else:
            if isinstance(after, Missing):
                reason = after.what
            elif more := [one for one in after.priced.omitted if one not in known]:
                reason = f"line {more[0].line}: {more[0].reason}"
            elif after.priced.omitted and after.priced.microseconds == ZERO != now:
                # all that is known of its time goes: nobody knows how much that is of it
                reason = f"line {after.priced.omitted[0].line}: {after.priced.omitted[0].reason}"
            else:
                candidates.append((proposal, after))
                continue
        lost.append(Alternative(proposal.title, None, f"no prediction: {reason}"))
    return candidates, lost


def finding_of(
    place: Place,
    machine: Machine,
    sizes: Sizes,
    rule: Rule,
    before: Costed,
    best: Candidate[AnyProposal],
    found: Compared,
    rivals: tuple[Alternative, ...],
    *,
    details: bool = True,
) -> Finding:
    """Return the finding that a proposal is worth making.

    Without `details` it lacks its facts and its crossovers, names all sizes that are bound, and
    prices need not hold for other sizes.
    """
    proposal, after = best.proposal, best.costed
    prediction = _prediction(found, split_lines(place.source))
    # a price for these sizes alone does not say which of them it depends on
    used = before.sizes | after.sizes if details else frozenset(sizes.values)
    sides = (("as written", before), ("as proposed", after)) if details else ()
    facts = tuple(
        f"{side}, {transfer}"
        for side, costed in sides
        for transfer in transfers(costed.process, sizes.values, machine.cache_line_bytes)
    )
    cores = about_cores(machine, place.ranks, sizes.values)
    evidence = replace(
        unpredicted(machine, before, after),
        provenance=_worst((found.before.provenance, found.after.provenance)),
        terms=tuple(_terms(found)),
        facts=facts,
        remarks=tuple(dict.fromkeys((*found.before.remarks, *found.after.remarks, *cores))),
    )
    known = ", of what is known" * prediction.of_known
    gain = f"{prediction.speedup:.2f}x faster on {machine.name}{known}"
    return replace(
        finding_about(place, rule, proposal, gain, proposal.legality, evidence, rivals),
        prediction=prediction,
        assumptions=sizes.assumptions(used),
        crossovers=tuple(_crossovers(place, before, after, sizes, used)) if details else (),
    )


def finding_about(
    place: Place,
    rule: Rule,
    proposal: AnyProposal | Offer,
    gain: str,
    legality: Legality,
    evidence: Evidence,
    rivals: tuple[Alternative, ...],
) -> Finding:
    """Return what every finding says of a proposal; with neither a prediction nor a condition.

    Parameters
    ----------
    place : Place
    rule : Rule
    proposal : Offer
    gain : str
        How the message starts.
    legality : Legality
        Of the edits, as they may be applied here.
    evidence : Evidence
    rivals : tuple of Alternative
    """
    edits = proposal.edits()
    return Finding(
        code=rule.code,
        name=rule.name,
        path=place.path,
        kernel=place.name,
        span=proposal.span,
        message=f"{gain}: {proposal.title}",
        reason=proposal.reason,
        prediction=None,
        assumptions=(),
        evidence=evidence,
        alternatives=rivals,
        crossovers=(),
        fix=Fix(legality.applicability, legality.argument, edits) if edits else None,
        fingerprint=_fingerprint_of(place, rule.code, proposal),
    )


def finding_of_repeated(
    path: str, source: str, machine: Machine, rule: Rule, again: Again
) -> Finding:
    """Return the finding that calls compute something again, which has no price."""
    lines, first = split_lines(source), again.found[0]
    shown = _listed(again.texts[:2])
    shown = shown if len(again.texts) < 3 and len(shown) < 80 else "what stays the same"
    if again.each:
        shown += f" of each {_listed(sorted(again.each))}"
    loop, how = f"the loop of line {again.line}", "iteration of"
    where = f", before {loop}" if again.line else ""
    if again.calls:
        where, how = ", not in each call", "call in"
    each = f"each {how} {loop} computes it" if again.line else "it is computed more than once"
    why = f"{each} from the same operands"
    if again.each:
        why += ", if what is kept for all of these fits in memory"
    offer = Offer(f"compute {shown} once{where}", why, span_of(first, lines))
    times = f"every {how.partition(' ')[0] if again.line else 'time'} but the first"
    place = Place(path, again.function, source, num(1))
    when = Condition(times, (), None, always=True)
    legality, gain = Legality(Applicability.DISPLAY, ""), "pays from the second time on"
    return finding_unpriced(place, machine, rule, offer, gain, legality, when)


def finding_of_one(path: str, source: str, machine: Machine, rule: Rule, one: OneByOne) -> Finding:
    """Return the finding that a loop does for one after another what has no price."""
    place = Place(path, one.function or MODULE, source, num(1))
    title, reason, right_for = words(one)
    offer = Offer(title, reason, span_of(one.place, split_lines(source)))
    when = Condition(right_for, (), None, always=True)
    legality = Legality(Applicability.DISPLAY, "")
    return finding_unpriced(place, machine, rule, offer, f"pays for {right_for}", legality, when)


def words(one: OneByOne) -> tuple[str, str, str]:
    """Return what is better than one after another, why, and what it is right for."""
    match one.kind, one.parts:
        case Kind.PASSED, (name, numbers):
            return (
                f"call `{name}` once, with an array of all {numbers}",
                "each number costs a call of Python; in NumPy's words one call takes all of them",
                f"functions `{name}` that take arrays (`np.exp`, not `math.exp`)",
            )
        case Kind.CALLED, (name, kind, given, *each):
            once = f"once for each {_listed(each)}" if each else "once"
            many = {"point": "an array of points", "row": "`axis=` and an array"}
            return (
                f"call `{name}` {once}, with {many.get(kind, 'an array')} of all {given}",
                f"each {kind} costs a call of Python; one call takes all of them",
                f"{kind}s {given}",
            )
        case (Kind.DRAWN | Kind.REDRAWN) as drawn, draws:
            others = ", where other random numbers do" if drawn is Kind.REDRAWN else ""
            shown = _listed([*dict.fromkeys(draws)][:2])
            return (
                f"draw the numbers of {shown} of all iterations at once, with a size",
                "each number costs a call of Python; one call with a size fills an array",
                f"loops of ten iterations and more{others}",
            )
        case Kind.SOUGHT, (sought, by, text):
            return (
                f"look `{sought}` up in {by} of `{text}`, made once before the loop",
                "each search goes through the list from its beginning",
                f"lists `{text}` of more than ten elements, all hashable",
            )
        case Kind.COMPARED, (sought, by, text):
            return (
                f"look `{sought}` up in {by} of `{text}.tolist()`, made once before the loop",
                "each search compares all elements",
                f"arrays `{text}` of more than ten elements, and numbers `{sought}`",
            )
        case Kind.GROWN, arrays:
            lists = "lists, and join them once" if len(arrays) > 1 else "a list, and join it once"
            grow = "grow" if len(arrays) > 1 else "grows"
            return (
                f"collect what {_listed(arrays)} {grow} by in {lists} behind the loop",
                "each iteration copies all that is there",
                "loops that join ten pieces and more",
            )
        case Kind.FACTORED, (matrix, by, larger):
            return (
                f"factorise `{matrix}` once, before the loop, by `{by}`",
                "each iteration factorises it again, which takes by far the most of solving",
                larger,
            )
        case Kind.SYMMETRIC, (matrix, by):
            return (
                f"take `{by}`: `{matrix}` is symmetric",
                "it takes half of the time or less, and gives real values in ascending order",
                "real matrices of ten rows and more",
            )
        case Kind.HALVED, (called, by):
            return (
                f"take the values alone, by `{by.removeprefix('.')}`",
                f"`{called}` computes vectors, too, which takes longer, and nothing uses them",
                "matrices of 30 rows and more",
            )
    (taken,) = one.parts
    return (
        f"take `{taken}` of all groups at once, by one sort or `np.bincount`",
        "each iteration compares all elements with what it goes through",
        "hundreds of groups",
    )


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"`{one}`" for one in names)


def finding_unpriced(
    place: Place,
    machine: Machine,
    rule: Rule,
    proposal: AnyProposal | Offer,
    gain: str,
    legality: Legality,
    condition: Condition,
    rivals: tuple[Alternative, ...] = (),
) -> Finding:
    """Return a finding that has no price, and says when it pays."""
    evidence = Evidence(machine.name, calibration_of(machine), Provenance.DERIVED, ())
    found = finding_about(place, rule, proposal, gain, legality, evidence, rivals)
    return replace(found, condition=condition)


def _prediction(found: Compared, lines: Sequence[str]) -> Prediction:
    before, after = found.before, found.after
    ends = ((one.low, one.mid, one.high) for one in (before, after, found.ratio))
    omitted = with_text(dict.fromkeys((*before.omitted, *after.omitted)), lines)
    return Prediction.of(*ends, in_range=before.in_range and after.in_range, omitted=omitted)


def with_text(omitted: Iterable[Omission], lines: Sequence[str]) -> tuple[Omission, ...]:
    """Return what a price leaves out with what is written there."""
    return tuple(
        replace(one, text=one.text or (lines[one.line - 1].strip() if one.line else ""))
        for one in omitted
    )


def rivals_of(
    candidates: Sequence[Candidate[AnyProposal]], now: float, subject: str
) -> Iterator[Alternative]:
    """Yield all candidates but the first as alternatives, with the reason that each lost."""
    best = candidates[0].time_s
    for candidate in candidates[1:]:
        time = candidate.time_s
        if time > now:
            reason = f"slower than {subject} as written"
        elif time == now:
            reason = f"as slow as {subject} as written"
        elif time > best:
            reason = f"{time / best:.2f} times the time of the suggestion"
        elif time == best:
            reason = "as fast as the suggestion"
        else:
            reason = "faster than the suggestion, but to be done by hand"
        yield Alternative(candidate.proposal.title, time, reason)


def unpredicted(machine: Machine, before: Costed, after: Costed) -> Evidence:
    """Return where the numbers come from that a comparison without times used."""
    used = {**before.priced.coefficients, **after.priced.coefficients}
    known = tuple(_described(name, quantity) for name, quantity in sorted(used.items()))
    worst = _worst({quantity.provenance for quantity in used.values()} or {Provenance.DERIVED})
    return Evidence(machine.name, calibration_of(machine), worst, (), coefficients=known)


def _worst(several: Iterable[Provenance]) -> Provenance:
    return max(several, key=list(Provenance).index)


def calibration_of(machine: Machine) -> str:
    """Return what is known of where and with which library a machine was measured."""
    return f"{machine.title}; {machine.library}" if machine.library else machine.title


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
    place: Place, before: Costed, after: Costed, sizes: Sizes, used: frozenset[str]
) -> Iterator[Crossover]:
    for variable in sorted(used):
        try:
            found = where_it_pays(
                before, after, variable, sizes.values, of_ranks=place.ranks == sym(variable)
            )
        except ExprError:
            # some values of it make no program, such as more columns of ranks than ranks
            continue
        if found is not None:
            yield Crossover(variable, *found)


def _fingerprint_of(place: Place, code: str, proposal: AnyProposal | Offer) -> str:
    """Return what names a finding after its lines have moved, on any machine, from any folder."""
    line = split_lines(place.source)[proposal.span.start_line - 1]
    text = " ".join(line.split())
    parts = (lasting_name(place.path), code, place.name, text)
    whole = "\0".join(parts)
    # the system's file names are bytes, not all of them text
    return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:24]


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
    """

    place: Place
    kernel: Kernel
    machine: Machine
    sizes: Sizes


def judged(
    subject: Subject,
    rule: Transform,
    here: Costed,
    chosen: Candidate[Proposal],
    found: Compared,
    rivals: tuple[Alternative, ...],
    *,
    details: bool,
) -> Judged:
    """Return what is told of a proposal at the sizes at hand.

    With details also what it rests on and where else it pays, by the prices over all sizes.
    """
    before, best, lacking = here, chosen, ""
    if details:
        variant = chosen.proposal.variant
        try:
            before, after = (_over_sizes(one, subject.machine) for one in (subject.kernel, variant))
            best = replace(chosen, costed=after)
        except Unpriced as unknown:
            lacking = unknown.reason
    about = subject.place, subject.machine, subject.sizes, rule
    shown = details and not lacking
    finding = finding_of(*about, before, best, found, rivals, details=shown)
    if lacking:
        finding = _only_here(finding, subject, chosen.proposal.variant, lacking)
    return Judged(finding, before.priced, best.costed.priced)


def _over_sizes(kernel: Kernel, machine: Machine) -> Costed:
    """Return the price of a kernel with its formula over all sizes.

    Raises
    ------
    Unpriced
        There is none.
    """
    costed = cost(kernel, machine)
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
