"""What was analysed and what was not, as every format ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from advisor.finding import NotUnderstood, Verdict
from advisor.report.model import Report
from advisor.report.style import one_line, shortened
from advisor.unread import SIZES

_SHOWN, _TEXT = 3, 48
_SUPPORTED = "numpy, mpi4py and numba are"


def coverage_lines(report: Report) -> list[str]:
    """Return what was not analysed and why, what is fine, and a line that sums up."""
    told = [*_not_analysed(report), *_fine(report)]
    ends = told and not report.looked_into and not report.findings
    return told if ends else [*told, summary(report)]


def summary(report: Report) -> str:
    """Return how much was analysed, and what came of it; that nothing is to be gained only where
    everything was analysed and priced."""
    coverage, findings = report.coverage, report.findings
    if not report.looked_into and not findings:
        return _nothing_to_check(report)
    known = len(coverage.analysed)
    kernels = known + len(coverage.incomplete)
    files = _counted(report.looked_into or 1, "file")
    text = f"Analysed {known} of {kernels} kernels in {files}"
    classes = Counter(finding.verdict for finding in findings)
    if findings:
        plans = [_counted(classes[Verdict.PLAN], "plan")] if classes[Verdict.PLAN] else []
        gains = _counted(classes[Verdict.GAIN], "clear gain")
        counts = [gains, f"{classes[Verdict.UNCERTAIN]} uncertain", *plans]
        return f"{text}: {', '.join(counts)}, {len(coverage.not_understood)} not understood."
    if report.failed:
        return f"{text}. No finding in what could be read."
    if coverage.complete and not known:
        return f"{text}. Nothing was analysed."
    if coverage.complete:
        return f"{text}. Nothing to gain on {report.machine}."
    return f"{text}. No finding in what was analysed."


def not_analysed(part: NotUnderstood) -> str:
    """Return that a part was not analysed, and why."""
    return f"`{shortened(part.text, _TEXT)}` was not analysed: {one_line(part.reason)}"


def _not_analysed(report: Report) -> Iterator[str]:
    coverage = report.coverage
    parts = [part for part in coverage.not_understood if part.reason != SIZES]
    if parts:
        yield f"not understood: {_some([_told(part) for part in parts])}"
    unsized = Counter(part.path for part in coverage.not_understood if part.reason == SIZES)
    for path, count in list(unsized.items())[:_SHOWN]:
        use, its = ("use", "their") if count > 1 else ("uses", "its")
        path = one_line(path)
        yield (
            f"{path}: {_counted(count, 'definition')} {use} NumPy arrays; not analysed, as the"
            f" sizes of {its} arrays are not known. They are remembered by: advise run {path}"
        )
    if len(unsized) > _SHOWN:
        yield f"and {_counted(len(unsized) - _SHOWN, 'file')} more with arrays of unknown sizes"
    for used in coverage.unsupported:
        yield f"{one_line(used)}, which is not supported ({_SUPPORTED}): not analysed"
    if coverage.unpriced:
        why = _some([one_line(text) for text in coverage.unpriced])
        yield f"{why}. Choose another machine, or: advise calibrate"


def _told(part: NotUnderstood) -> str:
    if not part.text:
        return f"{one_line(part.path)} ({one_line(part.reason)})"
    text = shortened(part.text, _TEXT)
    return f"{one_line(part.path)}:{part.line} `{text}` ({one_line(part.reason)})"


def _fine(report: Report) -> Iterator[str]:
    if report.findings and report.coverage.fine:
        yield f"fine: {_some([one_line(name) for name in report.coverage.fine])}"


def _nothing_to_check(report: Report) -> str:
    others = report.passed_over
    if report.failed and not others:
        return "Nothing could be read, so nothing was checked."
    if not others:
        return "Nothing to check: there is no Python file here that is not excluded."
    files = "what could be read" if report.failed else _counted(others, "file")
    why = "no kernel is marked there, and there is no program for MPI or numba"
    return f"Nothing to check in {files}: {why}."


def _some(texts: Sequence[str]) -> str:
    more = [f"and {len(texts) - _SHOWN} more"] * (len(texts) > _SHOWN)
    return ", ".join([*texts[:_SHOWN], *more])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
