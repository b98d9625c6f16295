"""Findings of one kernel: every proposal priced, the best of each rule kept with its rivals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from advisor.analysis.lower import Unpriced
from advisor.finding import (
    NOTHING_SEEN,
    Alternative,
    Applicability,
    Coverage,
    Finding,
    NotUnderstood,
    Remark,
    Untold,
)
from advisor.ir.concrete import at_sizes, symbols_of
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Proposal, Transform
from advisor.ir.statements import Choice, Loop, Statement, Threads, Unrolled
from advisor.ranking.compare import (
    WORTH,
    Costed,
    compared,
    cost,
    in_parts,
    omits_more,
    time_s,
)
from advisor.ranking.findings import Candidate, Place, rivals_of
from advisor.ranking.generality import held
from advisor.ranking.judged import Judged, Subject, judged_here, judged_in_full, over_sizes
from advisor.ranking.own_cores import ranks_of
from advisor.ranking.shortlist import shortlist
from advisor.ranking.sizes import Sizes, open_sizes
from advisor.ranking.worth import (
    Whole,
    is_distributed,
    offered,
    priced_as,
    redistributes,
    weighed,
)
from advisor.steps import Overtaken, ending_when
from costdb.estimate import Missing
from costdb.machines import Machine

# What predictions of loops leave out that threads share.

_ALONE = "and the times are those of one thread: nothing says what lines cost that threads fetch"


def about_threads(body: Iterable[Statement]) -> Iterator[str]:
    """Yield a line on each ``prange`` of a kernel, in the order of the source."""
    for statement in body:
        if isinstance(statement, Choice):
            yield from about_threads((*statement.then, *statement.orelse))
        if isinstance(statement, Unrolled):
            yield from dict.fromkeys(about_threads(statement.body))
        if not isinstance(statement, Loop):
            continue
        line = statement.span.start_line
        match statement.threads:
            case Threads.SHARED:
                yield f"the `prange` of line {line} became parallel, {_ALONE}"
            case Threads.ASKED:
                yield f"the `prange` of line {line} may run in parallel, {_ALONE}"
            case Threads.REFUSED:
                yield f"the `prange` of line {line} did not become parallel: priced as sequential"
            case Threads.NO:
                pass
        yield from about_threads(statement.body)


Worth = Callable[[str, float], bool]
"""Whether to report a rule's gain."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """What is to be said of one kernel.

    Attributes
    ----------
    judged, remarks, untold : tuple
    coverage : Coverage
    later : callable or None
        Returns what is still to be said, or None; it takes a search.
    """

    judged: tuple[Judged, ...]
    remarks: tuple[Remark, ...]
    untold: tuple[Untold, ...] = ()
    later: Callable[[], Remark | None] | None = None
    coverage: Coverage = NOTHING_SEEN

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings alone."""
        return tuple(one.finding for one in self.judged)


def always(code: str, speedup: float) -> bool:
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
    details: bool = True,
    plans: bool = True,
) -> Ranked:
    """Return the findings of a kernel, what saves most first.

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
    details : bool
        Whether findings tell what they rest on and where else they pay, which takes formulas over
        all sizes. Without, what is found and predicted is the same.
    plans : bool
        Whether to search now for a plan of several steps, also where that has to price something
        that was not priced of late.

    Returns
    -------
    Ranked
        One finding for each rule that has a proposal predicted to be faster, if that is worth
        telling; a second where the fastest has to be done by hand and a slower one, still worth
        telling, need not be. A remark instead where the kernel, or the machine, allows no
        prediction.

    Notes
    -----
    Where nothing binds some size, findings say for which of its values they pay.
    """
    ranked = _rank(
        path,
        kernel,
        machine,
        sizes,
        transforms,
        worth,
        formulas=formulas,
        details=details,
        plans=plans,
    )
    lines = tuple(about_threads(kernel.body))
    if lines:
        ranked = replace(ranked, judged=tuple(_cautioned(one, lines) for one in ranked.judged))
    if ranked.coverage == NOTHING_SEEN:
        seen = (kernel.name,)
        ranked = replace(ranked, coverage=Coverage(seen, () if ranked.judged else seen))
    return ranked


def _cautioned(judged: Judged, lines: tuple[str, ...]) -> Judged:
    """Return a finding that says more of what its prediction leaves out."""
    evidence = judged.finding.evidence
    evidence = replace(evidence, remarks=(*evidence.remarks, *lines))
    return replace(judged, finding=replace(judged.finding, evidence=evidence))


def _rank(
    path: str,
    kernel: Kernel,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[Transform],
    worth: Worth,
    *,
    formulas: bool,
    details: bool,
    plans: bool,
) -> Ranked:
    place = Place(path, kernel.name, kernel.context.source, ranks_of(kernel))
    # variants are compared at their sizes, where formulas are short; only what is told of gets
    # its formula in full
    concrete = at_sizes(kernel, sizes.values)
    if not symbols_of(concrete) <= sizes.values.keys():
        before = _as_written(path, kernel, machine)
        if isinstance(before, Ranked):
            return before
        if open_sizes(before, sizes):
            return _rank_open(place, kernel, machine, sizes, transforms, worth, before, formulas)
    try:
        here = cost(concrete, machine, closed=False)
    except Unpriced as unknown:
        whole = _as_written(path, kernel, machine)
        if isinstance(whole, Ranked):
            return whole
        # as where a shift reaches farther than the values allow
        return _not_understood(path, kernel, unknown, " at its sizes")
    if isinstance(here, Missing):
        whole = _as_written(path, kernel, machine)
        return whole if isinstance(whole, Ranked) else _missing(path, kernel, machine, here)
    subject = Subject(place, kernel, machine, sizes, here)
    now = time_s(here, sizes.values)
    around = Whole(now, not here.formula.omitted, 1.0, _priced_as(place, kernel, machine, sizes))
    judged: list[Judged] = []
    unpriced: list[Remark] = []
    untold: list[Untold] = []
    gains = 0
    fastest: list[tuple[str, Candidate[Proposal]]] = []
    for transform in transforms:
        candidates: list[Candidate[Proposal]] = []
        lost: list[Alternative] = []
        proposals = shortlist(transform.propose(kernel), machine, sizes.values)
        for proposal in proposals:
            tried = _tried(proposal, machine, sizes)
            if isinstance(tried, Alternative):
                lost.append(tried)
            elif without := omits_more(here, tried.costed):
                lost.append(Alternative(proposal.title, None, without))
            else:
                candidates.append(tried)
        # of equally fast ones the one proposed first, which its rule prefers
        candidates.sort(key=lambda candidate: candidate.time_s)
        _drop_without_parts(candidates, lost)
        if not candidates:
            # where no statement changes, it is the layout that a statement does not allow
            if lost and proposals[0].variant.body != kernel.body:
                unpriced.append(_unpriced(path, kernel, transform.code, proposals, lost))
            continue
        fastest.append((transform.code, candidates[0]))
        if candidates[0].time_s >= now:
            continue
        for number, chosen in enumerate(_to_tell(candidates, now)):
            try:
                found = compared(here, chosen.costed, sizes.values)
            except Unpriced:
                # it has a time, as a rival of the first one
                continue
            if found.ratio.mid <= 1:
                continue
            if found.ratio.mid >= WORTH and not number:
                gains += 1
            if not worth(transform.code, found.ratio.mid):
                untold.append(Untold(transform.code, chosen.proposal.span))
            else:
                others = [chosen, *(one for one in candidates if one is not chosen)]
                rivals = (*rivals_of(others, now, "the kernel"), *lost)
                given = subject, transform, chosen, found, rivals
                told = judged_in_full(*given, formulas=formulas) if details else judged_here(*given)
                judged.append(
                    replace(told, finding=_valued(told.finding, subject, transform, chosen, around))
                )
    judged.sort(key=lambda one: one.finding.order)
    ranked = Ranked(
        tuple(judged), tuple(unpriced), tuple(untold), coverage=_left_out(kernel, machine, here)
    )
    if gains < 2:
        return ranked
    search = partial(_plan, path, kernel, here, machine, sizes, transforms, fastest, worth)
    try:
        plan = search() if plans else _at_hand(search)
    except _NotAtHand:
        return replace(ranked, later=search)
    return ranked if plan is None else replace(ranked, remarks=(*unpriced, plan))


def _left_out(kernel: Kernel, machine: Machine, here: Costed) -> Coverage:
    """Return which parts have no price, so that nobody takes what is left for the whole."""
    parts = dict.fromkeys(f"{one.text}: {one.reason}" for one in here.formula.omitted)
    if not parts:
        return NOTHING_SEEN
    told = f"{kernel.name}, no price on {machine.name}: {', '.join(parts)}"
    return Coverage(unpriced=(told,), incomplete=(kernel.name,))


def _priced_as(place: Place, kernel: Kernel, machine: Machine, sizes: Sizes) -> str:
    distributed = is_distributed(kernel)
    return priced_as(machine, place.ranks, sizes.values, distributed=distributed)


def _valued(
    finding: Finding,
    subject: Subject,
    rule: Transform,
    chosen: Candidate[Proposal],
    whole: Whole,
) -> Finding:
    kernel, variant = subject.kernel, chosen.proposal.variant
    found = weighed(finding, whole, plan=redistributes(kernel, variant))
    found = held(found, rule, kernel, chosen.proposal)
    return offered(found, kernel, variant, subject.machine, subject.sizes.values)


def _plan(
    path: str,
    kernel: Kernel,
    before: Costed,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[Transform],
    singles: Sequence[tuple[str, Candidate[Proposal]]],
    worth: Worth,
) -> Remark | None:
    """Return the best plan of several steps, if there is one that is worth telling."""
    from advisor.ranking.joint import best_plan

    plan = best_plan(kernel, before, machine, sizes, transforms, singles)
    if plan is None or not worth("", plan.compared.ratio.mid):
        return None
    message = f"best plan for kernel `{kernel.name}`, {plan}"
    return Remark(path, kernel.name, kernel.span, message)


class _NotAtHand(Exception):
    """A search has to price something that was not priced of late."""


def _at_hand(search: Callable[[], Remark | None]) -> Remark | None:
    """Return what a search finds, if it need not begin any of the longer steps for that."""
    try:
        with ending_when(lambda: True):
            return search()
    except Overtaken:
        raise _NotAtHand from None


def _unpriced(
    path: str,
    kernel: Kernel,
    code: str,
    proposals: Sequence[Proposal],
    lost: Sequence[Alternative],
) -> Remark:
    """Return what is said of a rule that would change something nobody can price."""
    span = proposals[0].span
    message = f"kernel `{kernel.name}`: {code} could {lost[0].title}: {lost[0].reason}"
    return Remark(path, kernel.name, span, message)


def _drop_without_parts(candidates: list[Candidate[Proposal]], lost: list[Alternative]) -> None:
    """Let the first candidate be one whose price can be told in parts."""
    while candidates:
        try:
            in_parts(candidates[0].costed)
        except Unpriced as unknown:
            title = candidates.pop(0).proposal.title
            lost.append(Alternative(title, None, f"no prediction: {unknown.reason}"))
        else:
            return


def _to_tell(
    candidates: Sequence[Candidate[Proposal]], now: float
) -> Iterator[Candidate[Proposal]]:
    """Yield the fastest candidate, and where nobody writes it the fastest that can be applied."""
    yield candidates[0]
    if not _is_written(candidates[0].proposal):
        faster = (one for one in candidates[1:] if one.time_s < now)
        yield from islice((one for one in faster if _is_written(one.proposal)), 1)


def _is_written(proposal: Proposal) -> bool:
    return proposal.legality.applicability is not Applicability.DISPLAY and bool(proposal.edits())


def _rank_open(
    place: Place,
    kernel: Kernel,
    machine: Machine,
    sizes: Sizes,
    transforms: Sequence[Transform],
    worth: Worth,
    before: Costed,
    formulas: bool,
) -> Ranked:
    """Return findings that say where they pay, as nothing binds some size."""
    from advisor.ranking.open_sizes import finding_of_opened, opened

    judged: list[Judged] = []
    untold: list[Untold] = []
    for transform in transforms:
        best = opened(kernel, machine, sizes, transform, before)
        if best is None:
            continue
        if not worth(transform.code, best.gain):
            untold.append(Untold(transform.code, best.proposal.span))
            continue
        finding = finding_of_opened(place, machine, transform, before, best)
        sides = before, best.costed
        if formulas:
            before_closed = over_sizes(kernel, machine, closed=True)
            sides = before_closed, over_sizes(best.proposal.variant, machine, closed=True)
        whole = Whole(None, False, None, _priced_as(place, kernel, machine, sizes))
        plan = redistributes(kernel, best.proposal.variant)
        finding = weighed(finding, whole, plan=plan)
        finding = held(finding, transform, kernel, best.proposal)
        judged.append(Judged(finding, *(one.priced for one in sides)))
    judged.sort(key=lambda one: one.finding.code)
    if judged:
        return Ranked(tuple(judged), (), tuple(untold))
    names = ", ".join(open_sizes(before, sizes))
    first = names.partition(",")[0]
    message = (
        f"kernel `{kernel.name}`: nothing binds {names}; no suggestion pays for any value"
        f" searched: write `@kernel({first}=...)` or `# advise: kernel {first}=...`, or pass"
        f" -D {first}=..., for a prediction"
    )
    remark = Remark(place.path, kernel.name, kernel.span, message)
    return Ranked((), (remark,), tuple(untold))


def _as_written(path: str, kernel: Kernel, machine: Machine) -> Costed | Ranked:
    """Return the price of a kernel over all sizes, or what is said where it has none."""
    try:
        before = cost(kernel, machine, closed=False)
    except Unpriced as unknown:
        return _not_understood(path, kernel, unknown)
    if isinstance(before, Missing):
        return _missing(path, kernel, machine, before)
    return before


def _not_understood(path: str, kernel: Kernel, unknown: Unpriced, when: str = "") -> Ranked:
    message = f"no advice for kernel `{kernel.name}`{when}: {unknown.reason}"
    line = unknown.span.start_line
    text = kernel.context.lines[line - 1].strip()
    return Ranked(
        (),
        (Remark(path, kernel.name, unknown.span, message),),
        coverage=Coverage(
            not_understood=(NotUnderstood(path, line, text, unknown.reason),),
            incomplete=(kernel.name,),
        ),
    )


def _missing(path: str, kernel: Kernel, machine: Machine, missing: Missing) -> Ranked:
    message = f"no advice for kernel `{kernel.name}`: {missing.what}; {missing.remedy}"
    return Ranked(
        (),
        (Remark(path, kernel.name, kernel.span, message),),
        coverage=Coverage(
            unpriced=(f"{kernel.name}, no price on {machine.name}: {missing.what}",),
            incomplete=(kernel.name,),
        ),
    )


def _tried(
    proposal: Proposal,
    machine: Machine,
    sizes: Sizes,
) -> Candidate[Proposal] | Alternative:
    try:
        variant = at_sizes(proposal.variant, sizes.values)
        after = cost(variant, machine, closed=False, parts=False)
    except Unpriced as unknown:
        return Alternative(proposal.title, None, f"no prediction: {unknown.reason}")
    if isinstance(after, Missing):
        return Alternative(proposal.title, None, f"no prediction: {after.what}")
    if unbound := open_sizes(after, sizes):
        reason = f"no prediction: nothing binds {', '.join(unbound)}"
        return Alternative(proposal.title, None, reason)
    return Candidate(proposal, after, time_s(after, sizes.values))
