"""Findings of one kernel: every proposal priced, the best of each rule kept with its rivals."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from math import inf

from advisor.analysis.lower import Unpriced
from advisor.finding import (
    NOTHING_SEEN,
    REPORTED_FROM,
    Alternative,
    Applicability,
    Coverage,
    NotUnderstood,
    Ranked,
    Remark,
    Untold,
)
from advisor.frontend.prefilter import NO_RULE
from advisor.ir.kernel import (
    ALWAYS,
    Kernel,
    Proposal,
    Transform,
    at_sizes,
    once,
    proposals_of,
    symbols_of,
)
from advisor.ir.statements import (
    NO_PRICE,
    UNTOLD,
    Loop,
    Statement,
    Threads,
    walk,
)
from advisor.ir.waiting import what_waits
from advisor.ranking.compare import (
    WORTH,
    WORTH_S,
    Costed,
    Sizes,
    bindable,
    compared,
    cost,
    cost_at,
    open_sizes,
    ranks_of,
    time_s,
)
from advisor.ranking.findings import (
    Candidate,
    Judged,
    Place,
    Subject,
    rivals_of,
    with_prices,
    with_text,
)
from advisor.ranking.findings import judged as judged_of
from advisor.ranking.worth import (
    Whole,
    as_given,
    held,
    is_distributed,
    offered,
    priced_as,
    redistributes,
    weighed,
)
from advisor.source import Span
from costdb.evaluate import Missing, at_once, fixed_part
from costdb.expr import ExprError
from costdb.machines import Machine
from costdb.records import dataclass, replace, some

_MILLISECOND = 1e-3
# What predictions of loops leave out that threads share.

_ALONE = "and the times are those of one thread: nothing says what lines cost that threads fetch"


_THREADS = {
    Threads.SHARED: f"became parallel, {_ALONE}",
    Threads.ASKED: f"may run in parallel, {_ALONE}",
    Threads.REFUSED: "did not become parallel: priced as sequential",
}


def about_threads(body: tuple[Statement, ...]) -> Iterable[str]:
    """Return a line on each ``prange`` of a kernel, in the order of the source."""
    loops = (one for one in walk(body) if isinstance(one, Loop) and one.threads in _THREADS)
    return dict.fromkeys(
        f"the `prange` of line {one.span.start_line} {_THREADS[one.threads]}" for one in loops
    )


Worth = Callable[[str, float], bool]
"""Whether to report a rule's gain."""


def _told(
    judged: Sequence[Judged] = (),
    remarks: Iterable[Remark] = (),
    untold: Iterable[Untold] = (),
    coverage: Coverage = NOTHING_SEEN,
) -> Ranked:
    findings = tuple(one.finding for one in judged)
    return Ranked(findings, tuple(remarks), tuple(untold), coverage, judged=tuple(judged))


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
    details : bool
        Whether findings tell what they rest on and where else they pay, which takes formulas over
        all sizes. Without, what is found and predicted is the same.
    plans : bool
        Whether to search for a plan of several steps.

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
    place = Place(path, kernel.name, kernel.context.source, ranks_of(kernel))
    subject = Subject(place, kernel, machine, sizes)
    ranked = _Ranking(subject, transforms, worth, details, plans).ranked()
    lines = (*about_threads(kernel.body), *_assumed(kernel))
    if lines:
        judged = [_cautioned(one, lines) for one in ranked.judged]
        ranked = _told(judged, ranked.remarks, ranked.untold, ranked.coverage)
    if ranked.coverage == NOTHING_SEEN:
        seen = (kernel.name,)
        # with other dimensions than the assumed ones there may be more
        fine = () if ranked.judged or any(_assumed(kernel)) else seen
        ranked = replace(ranked, coverage=Coverage(seen, fine))
    return replace(ranked, names=bindable(kernel))


def _assumed(kernel: Kernel) -> Iterator[str]:
    """Yield what is taken of arguments of which nothing tells."""
    for dtype in dict.fromkeys(one.dtype for one in kernel.arrays.values() if kernel.assumed):
        names = [name for name, array in kernel.arrays.items() if array.dtype == dtype]
        given = as_given(kernel, frozenset(names))
        yield f"nothing tells what it is given; assumed: {given}, {dtype}"


def _cautioned(judged: Judged, lines: tuple[str, ...]) -> Judged:
    """Return a finding that says more of what its prediction leaves out."""
    evidence = judged.finding.evidence
    evidence = replace(evidence, remarks=(*lines, *evidence.remarks))
    return replace(judged, finding=replace(judged.finding, evidence=evidence))


@dataclass(frozen=True, slots=True)
class _Ranking:
    """A kernel, the rules that look at it, and what is wanted; see :func:`rank`."""

    subject: Subject
    transforms: Sequence[Transform]
    worth: Worth
    details: bool
    plans: bool

    def ranked(self) -> Ranked:
        """Return what is to be said of the kernel, at its sizes or over those that are open."""
        kernel, machine, sizes = self.subject.kernel, self.subject.machine, self.subject.sizes
        # variants are compared at their sizes, where formulas are short; only what is told of gets
        # its formula in full
        concrete = at_sizes(kernel, sizes.values)
        if not symbols_of(concrete) <= sizes.values.keys():
            before = self._as_written()
            if isinstance(before, Ranked):
                return before
            if open_sizes(before, sizes):
                return self._open(before)
        try:
            here = cost(concrete, machine)
        except Unpriced as unknown:
            # as where a shift reaches farther than the values allow
            nothing = _not_understood(self.subject, unknown, " at its sizes")
        else:
            if isinstance(here, Costed):
                return self._at_sizes(here)
            nothing = _missing(self.subject, here)
        whole = self._as_written()
        return whole if isinstance(whole, Ranked) else nothing

    def _proposed(self) -> Iterator[tuple[Transform, list[Proposal]]]:
        """Yield what each rule proposes for one place, so that the best is told of each."""
        for transform in self.transforms:
            yield from ((transform, one) for one in _by_place(self.subject.kernel, transform))

    def _as_written(self) -> Costed | Ranked:
        """Return the price of a kernel over all sizes, or what is said where it has none."""
        try:
            before = cost(self.subject.kernel, self.subject.machine)
        except Unpriced as unknown:
            return _not_understood(self.subject, unknown)
        return _missing(self.subject, before) if isinstance(before, Missing) else before

    def _at_sizes(self, here: Costed) -> Ranked:
        """Return findings at the sizes at hand."""
        subject, kernel = self.subject, self.subject.kernel
        values = at_once(subject.sizes.values)
        now = time_s(here, values)
        around = Whole(now, False, 1.0, self._priced_as())
        judged: list[Judged] = []
        unpriced: list[Remark] = []
        untold: list[Untold] = []
        gains = 0
        fastest: list[tuple[str, Candidate[Proposal]]] = []
        for transform, proposals in self._proposed():
            candidates, lost = self._candidates(proposals, here)
            if not candidates:
                # where no statement changes, it is the layout that a statement does not allow;
                # what only much is worth a word of is worth none without a price
                named = lost and proposals[0].least == ALWAYS
                if named and proposals[0].variant.body != kernel.body:
                    why = f"{transform.code} could {lost[0].title}: {lost[0].reason}"
                    unpriced.append(
                        _remark(subject, f"kernel `{kernel.name}`: {why}", proposals[0].span)
                    )
                continue
            fastest.append((transform.code, candidates[0]))
            if candidates[0].time_s >= now:
                continue
            for number, chosen in enumerate(_to_tell(candidates, now)):
                found = compared(here, chosen.costed, values)
                speedup, saved_s = chosen.proposal.least
                rest = self._rest(chosen.proposal)
                alone = found.ratio.mid if speedup == 1 else self._alone(chosen, now, rest)
                saved = (now - chosen.time_s) * kernel.calls
                if here.priced.omitted and not kernel.asked:
                    # of nobody knows how much time
                    saved_s = max(saved_s, WORTH_S)
                if alone <= speedup or saved < saved_s:
                    continue
                gains += found.ratio.mid >= WORTH and not number
                if not self.worth(transform.code, found.ratio.mid):
                    untold.append(Untold(transform.code, chosen.proposal.span))
                    continue
                others = [chosen, *(one for one in candidates if one is not chosen)]
                chosen = replace(chosen, proposal=self._named(chosen.proposal, here, now, rest))
                rivals = (*rivals_of(others, now, "the kernel"), *lost)
                given = subject, transform, here, chosen, found, rivals
                told = judged_of(*given, details=self.details)
                whole = replace(around, complete=self._is_known(here, told.finding.span))
                judged.append(self._valued(told, transform, chosen.proposal, whole))
        judged.sort(key=lambda one: one.finding.order)
        coverage = _left_out(subject, here)
        if coverage == NOTHING_SEEN and not gains:
            coverage = _left_interpreted(subject, here, now)
        ranked = _told(judged, unpriced, untold, coverage)
        if gains < 2 or not self.plans:
            return ranked
        plan = self._plan(here, fastest)
        return ranked if plan is None else replace(ranked, remarks=(*unpriced, plan))

    def _is_known(self, here: Costed, place: Span) -> bool:
        """Return whether all has a price, but how often loops around a place run.

        The more often they do, the larger is the share of what they hold.
        """
        loops = [one.span for one in walk(self.subject.kernel.body) if isinstance(one, Loop)]
        return all(
            one.reason == UNTOLD
            and any(span.start_line == one.line and span.contains(place) for span in loops)
            for one in here.priced.omitted
        )

    def _candidates(
        self, proposals: Sequence[Proposal], here: Costed
    ) -> tuple[list[Candidate[Proposal]], list[Alternative]]:
        """Return the proposals that have a price, the fastest first, and why others have none.

        Of equally fast ones the one proposed first, which its rule prefers, comes first.
        """
        machine, sizes = self.subject.machine, self.subject.sizes
        priced, lost = with_prices(
            proposals, here, lambda one: cost_at(one.variant, machine, sizes.values)
        )
        candidates: list[Candidate[Proposal]] = []
        for proposal, after in priced:
            if unbound := open_sizes(after, sizes):
                why = f"no prediction: nothing binds {', '.join(unbound)}"
                lost.append(Alternative(proposal.title, None, why))
            else:
                candidates.append(Candidate(proposal, after, time_s(after, sizes.values)))
        candidates.sort(key=lambda candidate: candidate.time_s)
        return candidates, lost

    def _rest(self, proposal: Proposal) -> tuple[float, float]:
        """Return how long all else takes, and how much of it is calls and steps."""
        machine, values = self.subject.machine, self.subject.sizes.values
        with suppress(Unpriced, ExprError):
            rest = None if proposal.rest is None else cost_at(proposal.rest, machine, values)
            if isinstance(rest, Costed):
                return time_s(rest, values), fixed_part(rest.priced, values)
        return 0.0, 0.0

    def _alone(self, chosen: Candidate[Proposal], now: float, rest: tuple[float, float]) -> float:
        """Return how many times as fast what a proposal changes is by itself."""
        # what is left of it may be less than nothing where prices are rounded
        left = chosen.time_s - rest[0]
        return (now - rest[0]) / left if left > 0 else inf

    def _named(
        self, proposal: Proposal, here: Costed, now: float, rest: tuple[float, float]
    ) -> Proposal:
        """Return a proposal as it is told: array statements save calls, and nothing else."""
        if proposal.computing is None:
            return proposal
        fixed = fixed_part(here.priced, self.subject.sizes.values) - rest[1]
        if fixed >= (now - rest[0]) / 2:
            return proposal
        title, reason = proposal.computing
        return replace(proposal, title=title, reason=reason)

    def _priced_as(self) -> str:
        subject = self.subject
        distributed = is_distributed(subject.kernel)
        values, ranks = subject.sizes.values, subject.place.ranks
        return priced_as(subject.machine, ranks, values, distributed=distributed)

    def _valued(self, judged: Judged, rule: Transform, proposal: Proposal, whole: Whole) -> Judged:
        """Return a finding with what it is worth, and to whom its edits are offered."""
        subject, kernel, variant = self.subject, self.subject.kernel, proposal.variant
        found = weighed(judged.finding, whole, plan=redistributes(kernel, variant))
        found = held(found, rule, kernel, proposal)
        if found.prediction is not None:
            found = offered(found, kernel, variant, subject.machine, subject.sizes.values)
        return replace(judged, finding=found)

    def _plan(
        self, before: Costed, singles: Sequence[tuple[str, Candidate[Proposal]]]
    ) -> Remark | None:
        """Return the plan of several steps that beats every single one, if there is one."""
        from advisor.ranking.built import Plan, best_plan, built_cost, plan_of

        subject, kernel, machine = self.subject, self.subject.kernel, self.subject.machine
        values = subject.sizes.values
        code, one = min(singles, key=lambda single: single[1].time_s)
        first = Plan(((code, one.proposal.title),), one.proposal.variant, one.costed)
        rules = self.transforms
        plan = best_plan(first, lambda kernel: cost_at(kernel, machine, values), values, rules)
        if plan is first or plan.costed is None:
            return None
        ratio = compared(before, plan.costed, values).ratio
        if not self.worth("", ratio.mid):
            return None
        gain = f"{ratio.mid:.2f}x faster ({ratio.low:.2f}x to {ratio.high:.2f}x)"
        text = f"best plan for kernel `{kernel.name}`, {gain}: {plan.told}"
        if is_distributed(kernel):
            # what is modelled is worth a word only where the program that is built gains as well
            own, made = (
                plan_of(one, lambda kernel: built_cost(kernel, machine, values))
                for one in (kernel, plan.kernel)
            )
            if own.costed is None or made.costed is None:
                text += f" (as modelled: {own.unknown or made.unknown})"
            elif (gain_built := time_s(own.costed, values) / time_s(made.costed, values)) < WORTH:
                return None
            else:
                text += f" ({gain_built:.2f}x of the built program)"
        return _remark(subject, text)

    def _open(self, before: Costed) -> Ranked:
        """Return findings that say where they pay, as nothing binds some size."""
        from advisor.ranking.open_sizes import finding_of_opened, opened

        subject, machine = self.subject, self.subject.machine
        whole = Whole(None, False, None, self._priced_as())
        judged: list[Judged] = []
        untold: list[Untold] = []
        for transform, proposals in self._proposed():
            # what stays where it is is computed as often as the rest: it has to be some of it
            enough = REPORTED_FROM if getattr(transform, "moves", False) else 1.0
            best = opened(subject.kernel, machine, subject.sizes, proposals, before, enough)
            if best is None:
                continue
            if not self.worth(transform.code, best.gain):
                untold.append(Untold(transform.code, best.proposal.span))
                continue
            finding = finding_of_opened(subject.place, machine, transform, before, best)
            told = Judged(finding, before.priced, best.costed.priced)
            told = self._valued(told, transform, best.proposal, whole)
            judged.append(replace(told, finding=best.offered(told.finding)))
        judged.sort(key=lambda one: one.finding.code)
        left = _left_out(subject, before)
        if left == NOTHING_SEEN:
            # that nothing pays at the values tried says little of others
            left = Coverage((subject.kernel.name,))
        if judged:
            return _told(judged, (), untold, left)
        names = ", ".join(open_sizes(before, subject.sizes))
        first = names.partition(",")[0]
        message = (
            f"kernel `{subject.kernel.name}`: nothing binds {names}; no suggestion is worth a"
            f" word at the values searched: write `@kernel({first}=...)` or `# advise: kernel"
            f" {first}=...`, or pass -D {first}=..., for a prediction"
        )
        return _told((), [_remark(subject, message)], untold, left)


@once
def _by_place(kernel: Kernel, rule: Transform) -> list[list[Proposal]]:
    """Return proposals in groups: those that change the same, and all that place arrays anew."""
    groups: list[tuple[frozenset[Span | None], list[Proposal]]] = []
    for proposal in proposals_of(kernel, rule.propose):
        changed, found = _changed(kernel, proposal), [proposal]
        for group in [one for one in groups if one[0] & changed]:
            groups.remove(group)
            changed, found = changed | group[0], [*group[1], *found]
        groups.append((changed, found))
    return [found for _, found in groups]


def _changed(kernel: Kernel, proposal: Proposal) -> frozenset[Span | None]:
    """Return the places of statements that a proposal changes, or that are in its loop."""
    if proposal.variant.arrays != kernel.arrays:
        return frozenset({None})
    made = list(walk(proposal.variant.body))
    kept = set(map(id, made))
    found = {proposal.span}
    for one in walk(kernel.body):
        if isinstance(one, Loop):
            # a proposal is shown at the head of its loop
            if one.span.start == proposal.span.start:
                found |= {inner.span for inner in walk((one,))}
        elif id(one) not in kept and one not in made:
            found.add(one.span)
    return frozenset(found)


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


def _left_out(subject: Subject, here: Costed) -> Coverage:
    """Return which parts have no price, so that nobody takes what is left for the whole."""
    omitted, name = here.priced.omitted, subject.kernel.name
    if not omitted:
        return NOTHING_SEEN
    gaps = tuple(
        NotUnderstood(subject.place.path, one.line, one.text, one.reason)
        for one in with_text(omitted, subject.kernel.context.lines)
        if one.line and not one.reason.endswith(NO_PRICE)
    )
    gaps = tuple({(gap.line, gap.reason): gap for gap in gaps}.values())
    parts = dict.fromkeys(f"{one.text}: {one.reason}" for one in omitted if not one.line)
    known = (one for one in omitted if one.line and one.reason.endswith(NO_PRICE))
    calls = tuple(dict.fromkeys(one.reason.removesuffix(f" {NO_PRICE}") for one in known))
    told = {f"no price on {subject.machine.name}": tuple(parts), "no price": calls}
    unpriced = tuple(f"{name}, {of}: {some(each)}" for of, each in told.items() if each)
    return Coverage(not_understood=gaps, unpriced=unpriced, incomplete=(name,))


def _left_interpreted(subject: Subject, here: Costed, now: float) -> Coverage:
    """Return a loop of many small steps and calls: that no rule found more is not that there is
    no more. Without a loop, it may be what calls it that can do better: it is only analysed.
    """
    kernel = subject.kernel
    if kernel.context.is_compiled:
        return NOTHING_SEEN
    # most kernels hold nothing that the module prices
    from costdb.pricing import SECTION as INTERPRETER

    if not subject.machine.section(INTERPRETER):
        return NOTHING_SEEN
    if fixed_part(here.priced, subject.sizes.values) < now / 2:
        return NOTHING_SEEN
    loop = next((one for one in walk(kernel.body) if isinstance(one, Loop)), None)
    if loop is None:
        return Coverage((kernel.name,))
    line = loop.span.start_line
    text = kernel.context.lines[line - 1].strip()
    took = f"{1e3 * now:.3g} ms" if now >= _MILLISECOND else f"{1e6 * now:.3g} us"
    waits = _what_waits(line, kernel) + "as assumed, " * any(_assumed(kernel))
    why = f"{took} a call, mostly steps and calls on little data; {waits}{NO_RULE}"
    gap = NotUnderstood(subject.place.path, line, text, why)
    return Coverage(analysed=(kernel.name,), not_understood=(gap,))


def _what_waits(line: int, kernel: Kernel) -> str:
    """Return why iterations of a loop wait for one another; empty where nobody sees that."""
    from advisor.ir.functions import names_around

    names = names_around(kernel.context.source, line)
    loops = (one for one in names.nodes if isinstance(one, ast.For) and one.lineno == line)
    waits = next((what_waits(one, names) for one in loops), "")
    return f"{waits}, so a scan or a compiler is what helps; " if waits else ""


def _remark(subject: Subject, message: str, span: Span | None = None) -> Remark:
    return Remark(subject.place.path, subject.kernel.name, span or subject.kernel.span, message)


def _not_understood(subject: Subject, unknown: Unpriced, when: str = "") -> Ranked:
    kernel, line = subject.kernel, unknown.span.start_line
    message = f"no advice for kernel `{kernel.name}`{when}: {unknown.reason}"
    text = kernel.context.lines[line - 1].strip()
    gap = NotUnderstood(subject.place.path, line, text, unknown.reason)
    coverage = Coverage(not_understood=(gap,), incomplete=(kernel.name,))
    return _told(remarks=[_remark(subject, message, unknown.span)], coverage=coverage)


def _missing(subject: Subject, missing: Missing) -> Ranked:
    name = subject.kernel.name
    message = f"no advice for kernel `{name}`: {missing.what}; {missing.remedy}"
    told = f"{name}, no price on {subject.machine.name}: {missing.what}"
    coverage = Coverage(unpriced=(told,), incomplete=(name,))
    return _told(remarks=[_remark(subject, message)], coverage=coverage)
