"""What every format renders, where the formats are, and the texts that they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from shlex import quote
from typing import TYPE_CHECKING

from advisor.finding import (
    NOTHING_SEEN,
    OBSERVED,
    ONE_EACH_CORE,
    Applicability,
    Coverage,
    EvidenceTerm,
    Finding,
    Fix,
    NotUnderstood,
    Prediction,
    Remark,
    Verdict,
)
from advisor.frontend.prefilter import NO_ARRAYS, NO_RULE, NOT_CALLED, OUTSIDE, SIZES
from advisor.report.style import Style, change, duration, one_line, percent, ratio, shortened
from costdb.machines import SHIPPED
from costdb.records import SHOWN, counted, dataclass, grouped, some

if TYPE_CHECKING:
    from advisor.ir.kernel import Rule

# The page of a rule, as Markdown.


def page(rule: Rule) -> str:
    """Return the page of a rule as Markdown, headed by its code and name."""
    from inspect import cleandoc

    text = cleandoc(rule.documentation).strip()
    heading = "" if text.startswith("# ") else f"# {rule.code} {rule.name}\n\n"
    return f"{heading}{text}\n"


@dataclass(frozen=True, slots=True)
class Curve:
    """How a speed-up goes with one size, all others as they are.

    Attributes
    ----------
    variable : str
    here : float
        Its value at hand.
    points : tuple of (value, low, middle, high)
        In the order of the values; ends and middle of the speed-up there.
    flips : tuple of float
        Where the suggestion begins to pay, or ends.
    """

    variable: str
    here: float
    points: tuple[tuple[float, float, float, float], ...]
    flips: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one run.

    Attributes
    ----------
    machine : str
        Name of the profile that the predictions are for.
    findings, remarks : tuple
        In the order of the files given; within a file as ranked.
    sources : mapping of str to str
        Text of the files that findings are about, by path.
    failed : bool
        Something could not be read; what it is was said elsewhere.
    looked_into : int
        Files that may hold a kernel or a program, and were read.
    passed_over : int
        Files that hold neither.
    coverage : Coverage
        What was analysed of all files together, and what was not.
    fails : callable
        Whether a finding fails a build.
    curves : callable
        How the gain of a finding goes with sizes; asked by formats that draw.
    """

    machine: str
    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
    sources: Mapping[str, str]
    failed: bool = False
    looked_into: int = 0
    passed_over: int = 0
    coverage: Coverage = NOTHING_SEEN
    fails: Callable[[Finding], bool] = lambda finding: finding.verdict is Verdict.GAIN
    curves: Callable[[Finding], Sequence[Curve]] = lambda finding: ()


Renderer = Callable[[Report, Style], str]

# Imported when asked for: the listing for people must not pay for the others.
FORMATS = {
    "full": "advisor.report.full:render",
    "concise": "advisor.report.full:render_concise",
    "json": "advisor.report.continuous:render",
    "json-lines": "advisor.report.continuous:render_json_lines",
    "github": "advisor.report.continuous:render_github",
    "gitlab": "advisor.report.continuous:render_gitlab",
    "sarif": "advisor.report.continuous:render_sarif",
    "junit": "advisor.report.continuous:render_junit",
    "rdjson": "advisor.report.continuous:render_rdjson",
    "markdown": "advisor.report.pages:render",
    "html": "advisor.report.html:render",
}
SHOWS_DETAILS = frozenset(("full", "json", "json-lines", "markdown", "html"))
"""Formats that tell what findings rest on and where else they pay."""


def renderer(output_format: str) -> Renderer:
    """Return the function that renders a format of `FORMATS`."""
    module, _, function = FORMATS[output_format].partition(":")
    render: Renderer = getattr(import_module(module), function)
    return render


# What every format tells of a finding: its class, its gain, and a text for each question.

# What was analysed and what was not, as every format ends.

_TEXT = 48
_SUPPORTED = "numpy, mpi4py and numba are"
_UNREAD = (SIZES, NOT_CALLED)
"""Why a whole definition was not analysed."""


def coverage_lines(report: Report) -> list[str]:
    """Return what was not analysed and why, what is fine, and a line that sums up."""
    told = [*_not_analysed(report)]
    if report.findings and report.coverage.fine:
        told.append(f"fine: {some([one_line(name) for name in report.coverage.fine])}")
    # prices of a machine that the user did not choose
    if report.machine == SHIPPED and report.looked_into:
        told.append(f"prices of {SHIPPED}, a shipped profile; yours: advise calibrate")
    ends = told and not report.looked_into and not report.findings
    return told if ends else [*told, summary(report)]


def summary(report: Report) -> str:
    """Return how much was analysed, and what came of it; that nothing is to be gained only where
    everything was analysed and priced."""
    coverage, findings = report.coverage, report.findings
    if not report.looked_into and not findings:
        return _nothing_to_check(report)
    known = len(coverage.analysed)
    unread = sum(part.reason in _UNREAD for part in coverage.not_understood)
    kernels = known + len(coverage.incomplete) + unread
    files = counted(report.looked_into or 1, "file")
    text = f"Analysed {known} of {kernels} kernels in {files}"
    classes = Counter(finding.verdict for finding in findings)
    if findings:
        plans = [counted(classes[Verdict.PLAN], "plan")] if classes[Verdict.PLAN] else []
        gains = counted(classes[Verdict.GAIN], "clear gain")
        gaps = [counted(len(_gaps(report)), "place") + " not understood"] * bool(_gaps(report))
        counts = [gains, f"{classes[Verdict.UNCERTAIN]} uncertain", *plans, *gaps]
        return f"{text}: {', '.join(counts)}."
    if report.failed:
        return f"{text}. No finding in what could be read."
    if coverage.complete and not known:
        return f"{text}. Nothing was analysed."
    if coverage.complete and len(coverage.fine) == known:
        return f"{text}. Nothing to gain on {report.machine}."
    return f"{text}. No finding in what was analysed."


def not_analysed(part: NotUnderstood) -> str:
    """Return that a part was not analysed, and why."""
    return f"`{shortened(part.text, _TEXT)}` was not analysed: {one_line(part.reason)}"


def _not_analysed(report: Report) -> Iterator[str]:
    coverage = report.coverage
    if gaps := _gaps(report):
        yield f"not understood: {some([_told(part) for part in gaps])}"
    slow = [one for one in coverage.not_understood if one.reason.endswith(NO_RULE)]
    if slow:
        yield f"not fine: {some([_told(part) for part in slow])}"
    unsized = Counter(
        (part.path, part.reason) for part in coverage.not_understood if part.reason in _UNREAD
    )
    for (path, reason), count in list(unsized.items())[:SHOWN]:
        use, its, it = ("use", "their", "them") if count > 1 else ("uses", "its", "it")
        path = one_line(path)
        why = f"as no run that was observed called {it} with arrays"
        if reason == SIZES:
            tells = f"A run that calls {it} tells: advise run {quote(path)}"
            why = f"as the sizes of {its} arrays are not known. {tells}"
        yield f"{path}: {counted(count, 'definition')} {use} NumPy arrays; not analysed, {why}"
    if len(unsized) > SHOWN:
        yield f"and {counted(len(unsized) - SHOWN, 'file')} more with arrays of unknown sizes"
    drivers = [part for part in coverage.not_understood if part.reason == NO_ARRAYS]
    if drivers:
        places = some([f"{one_line(part.path)}:{part.line}" for part in drivers])
        are = "are" if len(drivers) > 1 else "is"
        yield f"{places} {are} given no arrays: only what is called there is analysed"
    outside = dict.fromkeys(p.path for p in coverage.not_understood if p.reason == OUTSIDE)
    if outside:
        first, *others = outside
        more = f" and of {counted(len(others), 'file')} more" if others else ""
        yield (
            f"{one_line(first)}{more}: statements outside of functions use NumPy arrays; not"
            f" analysed. They are timed by: advise measure {quote(one_line(first))}"
        )
    for used, whose in _by_end(coverage.unsupported, " uses ").items():
        use = used if len(whose) == 1 else used.replace(" uses ", " use ")
        yield f"{some(whose)}{use}, which is not supported ({_SUPPORTED}): not analysed"
    if coverage.unpriced:
        each = [f"{some(all_)}{why}" for why, all_ in _by_end(coverage.unpriced, ", ").items()]
        lacks = any(", no price: " not in one for one in each)
        more = ". Choose another machine, or: advise calibrate" if lacks else ""
        yield f"{'; '.join(each)}{more}"


def _gaps(report: Report) -> list[NotUnderstood]:
    """Return what is written in a way that nobody here understands."""
    parts = report.coverage.not_understood
    told = (*_UNREAD, NO_ARRAYS, OUTSIDE)
    return [one for one in parts if one.reason not in told and not one.reason.endswith(NO_RULE)]


def _by_end(texts: Sequence[str], between: str) -> dict[str, list[str]]:
    """Return what stands before `between`, by what stands from there on."""
    parts = (one_line(text).partition(between) for text in texts)
    return grouped((f"{between}{end}" if end else "", whose) for whose, _, end in parts)


def _told(part: NotUnderstood) -> str:
    if not part.text:
        return f"{one_line(part.path)} ({one_line(part.reason)})"
    text = shortened(part.text, _TEXT)
    return f"{one_line(part.path)}:{part.line} `{text}` ({one_line(part.reason)})"


def _nothing_to_check(report: Report) -> str:
    others = report.passed_over
    if report.failed and not others:
        return "Nothing could be read, so nothing was checked."
    if not others:
        return "Nothing to check: there is no Python file here that is not excluded."
    files = "what could be read" if report.failed else counted(others, "file")
    why = "no kernel is marked there, and there is no program for MPI or numba"
    return f"Nothing to check in {files}: {why}."


MAYBE_SLOWER = "uncertain: it may also be slower"

LOOKS = {
    Verdict.GAIN: ("bold", "green"),
    Verdict.UNCERTAIN: ("bold", "yellow"),
    Verdict.PLAN: ("bold", "cyan"),
}
"""How classes are painted: nothing but a clear gain is green."""


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by class, of each what saves most first."""
    return sorted(findings, key=lambda one: (list(LOOKS).index(one.verdict), one.order))


_LEAST = re.compile(r"^(\w+) >= (\d+)$")

_DISTRIBUTIONS = "ADV1"
UNSAFE_FIXES = "--unsafe-fixes"
"""The option that applies edits under the condition that each names."""
_OPTIONS = {Applicability.SAFE: "--fix", Applicability.UNSAFE: UNSAFE_FIXES}
_MARKS = {Applicability.SAFE: "[*]", Applicability.UNSAFE: "[+]"}
_ORIGINS = {
    "measured": "{} was measured",
    "published": "some numbers of {} are published ones",
    "derived": "some numbers of {} are derived",
    "estimated": "some numbers of {} are estimates",
}


def rows(finding: Finding) -> dict[str, str]:
    """Return a text for each question that a reader has, by its label, where there is one."""
    found = {
        "time": _time(finding),
        "why": _why(finding),
        "when": when(finding),
        "fix": _fix(finding.fix),
        "or": "; or ".join(map(one_line, finding.others)),
        "trust": _trust(finding),
        "build": _build(finding),
    }
    return {label: text for label, text in found.items() if text}


def figures(finding: Finding) -> tuple[str, str, str, str]:
    """Return gain, interval, what is saved and its share, such as ``1.25x``, ``0.61x to 2.25x``,
    ``5.12 ms`` and ``20 %``; empty where that is not known."""
    prediction, saves_s, share = finding.prediction, finding.saves_s, finding.share
    return (
        "" if prediction is None else speedup(prediction),
        "" if prediction is None else interval(prediction),
        "" if saves_s is None else duration(saves_s),
        "" if share is None else percent(share),
    )


def speedup(prediction: Prediction) -> str:
    """Return a speed-up, such as ``1.25x``; of what has a price where more runs on both sides."""
    return ratio(prediction.speedup) + " of known" * prediction.of_known


def headline(finding: Finding) -> str:
    """Return class, gain, interval, what is saved and for whom, then what to do."""
    gain, ends, saves, share = figures(finding)
    condition = finding.condition
    known = (
        gain and f"{gain} ({ends})",
        f"faster for {one_line(condition.text)}" if condition is not None else "",
        saves and f"saves {saves}",
        share,
        one_line(finding.priced_as),
    )
    told = ", ".join(filter(None, known))
    return f"{finding.verdict.upper()} {told}: {one_line(finding.title)}"


def full_message(finding: Finding) -> str:
    """Return the headline and the reason after it, as sentences."""
    return f"{headline(finding).rstrip()}. {sentence(finding.reason)}".rstrip()


def sentence(text: str) -> str:
    """Return a text that begins with a capital and ends with a full stop; code stays as it is."""
    text = one_line(text).rstrip(".")
    first, _, rest = text.partition(" ")
    is_word = first.isalpha() and not rest.startswith("=")
    return f"{text[:1].upper() if is_word else text[:1]}{text[1:]}{'.' * bool(text)}"


def fix_option(finding: Finding) -> str:
    """Return the option that applies a finding, or that it is to be done by hand."""
    fix = finding.fix
    return "by hand" if fix is None or not fix.edits else _OPTIONS.get(fix.applicability, "by hand")


def fix_mark(finding: Finding) -> str:
    """Return ``[*]`` for what ``--fix`` applies, ``[+]`` for ``--unsafe-fixes``, else nothing."""
    fix = finding.fix
    return "" if fix is None or not fix.edits else _MARKS.get(fix.applicability, "")


def interval(prediction: Prediction) -> str:
    """Return the ends of the speed-up; without an upper one, that there is none."""
    return reach(prediction.low, prediction.high)


def reach(low: float, high: float) -> str:
    """Return the ends of a speed-up."""
    return f"{ratio(low)} to {ratio(high)}" if math.isfinite(high) else f"{ratio(low)} or more"


def when(finding: Finding) -> str:
    """Return at which sizes the suggestion is the faster one."""
    if finding.condition is not None:
        return f"faster for {finding.condition.text}"
    found = [_from(crossover.pays) for crossover in finding.crossovers]
    return f"faster {'; '.join(found)}" if found else ""


def sizes(finding: Finding) -> str:
    """Return the sizes that a prediction is for, and which of them a run showed."""
    ends: dict[tuple[str, str], list[str]] = {}
    for one in finding.assumptions:
        before = f"{OBSERVED}: " if one.origin.startswith(OBSERVED) else ""
        behind = one.origin.removeprefix(OBSERVED) if before else ""
        if one.origin == ONE_EACH_CORE:
            behind = f", {ONE_EACH_CORE}"
        ends.setdefault((before, behind), []).append(f"{one.name}={one.value}")
    return "; ".join(
        f"{before}{', '.join(all_)}{behind}" for (before, behind), all_ in ends.items()
    )


def _from(pays: str) -> str:
    where, searched, end = pays.removeprefix("pays ").partition(", tried")
    text = _LEAST.sub(r"from \1 = \2 on", where)
    return f"{text}{searched}{end}" if text != where or text.startswith("from ") else f"for {pays}"


def _time(finding: Finding) -> str:
    prediction = finding.prediction
    if prediction is None:
        names = () if finding.condition is None else finding.condition.open_sizes
        if not names:
            return "no time is predicted: not all of it has a price here"
        given = " ".join(f"-D {name}=..." for name in names)
        return f"nothing binds {', '.join(names)}, so no time is predicted: pass {given}"
    # what runs once besides takes its time in both
    besides = not prediction.complete and all(one.once for one in prediction.omitted)
    least = "" if prediction.complete or besides else "at least "
    of = "of what is priced" if besides else "a call"
    about = "; ".join(filter(None, (sizes(finding), finding.priced_as.removeprefix("as "))))
    return (
        f"{least}{change(prediction.before_s, prediction.after_s)} {of},"
        f" {speedup(prediction)}, could be {interval(prediction)}"
    ) + (f"   ({about})" if about else "")


def _why(finding: Finding) -> str:
    *_, saves, share = figures(finding)
    saved = ", ".join(filter(None, (saves and f"saves {saves}", share)))
    terms = sorted(finding.evidence.terms, key=_saved)
    # what is saved most, and what is paid for it if anything is
    paid = terms[:1] if terms and _saved(terms[0]) < 0 else terms[-2:-1]
    least = max(map(abs, map(_saved, terms)), default=0.0) / 100
    told = [
        f"{one_line(term.label)} {change(*_ends(term))}"
        for term in (*terms[-1:], *paid)
        if abs(_saved(term)) >= least
    ]
    return ": ".join(filter(None, (saved, ", ".join(told))))


def _saved(term: EvidenceTerm) -> float:
    before, after = _ends(term)
    return before - after


def _ends(term: EvidenceTerm) -> tuple[float, float]:
    return term.before_s or 0.0, term.after_s or 0.0


def _fix(fix: Fix | None) -> str:
    option = _OPTIONS.get(fix.applicability) if fix is not None and fix.edits else None
    if fix is None or option is None:
        return f"by hand{f': {fix.legality}' if fix is not None else ''}"
    more = "" if fix.applicability is Applicability.SAFE else " --unsafe-fixes"
    return f"{option} (see it: --diff{more}): {fix.legality}"


def _build(finding: Finding) -> str:
    """Return how to have the program whose distribution a finding is about."""
    if not finding.code.startswith(_DISTRIBUTIONS):
        return ""
    return f"advise build {finding.path} --kernel {finding.kernel} --plan best"


def _trust(finding: Finding) -> str:
    evidence, prediction = finding.evidence, finding.prediction
    # a run says more than any model: it comes first, where lines are cut
    texts = [
        *evidence.measured,
        *(
            f"no price for `{one_line(one.text)}` (line {one.line}), {one.reason}"
            for one in (() if prediction is None else prediction.omitted)
        ),
    ]
    if prediction is not None and not prediction.in_range:
        texts.append("outside the range that the machine was calibrated for")
    texts.append(_ORIGINS.get(evidence.provenance, "{}").format(evidence.machine))
    texts += [] if evidence.measured else ["no run confirms it yet"]
    return "; ".join(texts)
