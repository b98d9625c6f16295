"""What the editor shows over a finding: the cost table, and all that it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.finding import Applicability, Finding, Prediction
from advisor.lsp.markdown import plain, table
from advisor.report.rows import MAYBE_SLOWER, headline, when
from advisor.report.units import Column, column_for, duration, ratio

_FIXES = {
    Applicability.SAFE: "Safe edit",
    Applicability.UNSAFE: "Unsafe edit",
    Applicability.DISPLAY: "To be done by hand",
}


def hover_markdown(findings: Iterable[Finding], *, current: bool) -> str:
    """Return the hover text of findings at one place.

    Parameters
    ----------
    findings : iterable of Finding
    current : bool
        False when they are about an earlier text, because the present one does not parse.
    """
    texts = ["\n\n".join(_sections(finding)) for finding in findings]
    if not current:
        texts.append("*As predicted before the last edits: the file cannot be read as it is.*")
    return "\n\n---\n\n".join(texts)


def hover_plain(findings: Iterable[Finding], *, current: bool) -> str:
    """Return the same for an editor that shows no Markdown."""
    from advisor.report.full import block
    from advisor.report.style import Style

    blocks = "\n\n".join("\n".join(block(one, None, Style())) for one in findings)
    return blocks if current else f"{blocks}\n\n(as predicted before the last edits)"


def _sections(finding: Finding) -> Iterator[str]:
    evidence = finding.evidence
    yield f"**{plain(headline(finding))}**"
    yield f"{finding.code} {plain(finding.name)}, kernel {plain(finding.kernel)}"
    if finding.prediction is not None:
        yield _costs(finding, finding.prediction)
    yield _list([finding.reason, *evidence.facts, *evidence.measured])
    if finding.alternatives:
        yield "**Rejected**"
        yield _list(
            f"{alternative.title}, {_time(alternative.time_s)}: {alternative.reason}"
            for alternative in finding.alternatives
        )
    if place := when(finding):
        yield plain(place[:1].upper() + place[1:])
    if finding.assumptions:
        sizes = ", ".join(f"{a.name} = {a.value} ({a.origin})" for a in finding.assumptions)
        yield f"**Rests on** {plain(sizes)}"
    calibration = f" ({evidence.calibration})" if evidence.calibration else ""
    yield f"**Machine** {plain(evidence.machine + calibration)}; {_trust(finding)}"
    cautions = list(_cautions(finding))
    if cautions:
        yield "**Caution**"
        yield _list(cautions)
    if finding.fix is not None:
        yield f"**{_FIXES[finding.fix.applicability]}** {plain(finding.fix.legality)}"
    if evidence.coefficients:
        yield "**Numbers of the machine**"
        yield _list(evidence.coefficients)


def _costs(finding: Finding, prediction: Prediction) -> str:
    times = column_for(prediction.before_s, prediction.after_s)
    rows = [
        (
            f"**predicted ({times.unit})**",
            f"**{times.number(prediction.before_s)}**",
            f"**{times.number(prediction.after_s)}**",
            f"**{ratio(prediction.speedup)}**",
        ),
        (
            "interval",
            f"{times.number(prediction.before_low_s)} .. {times.number(prediction.before_high_s)}",
            f"{times.number(prediction.after_low_s)} .. {times.number(prediction.after_high_s)}",
            f"{ratio(prediction.low)} .. {ratio(prediction.high)}",
        ),
        *(
            (
                plain(term.label),
                _cell(term.before_s, times),
                _cell(term.after_s, times),
                plain(term.model),
            )
            for term in finding.evidence.terms
        ),
    ]
    return table(("", "before", "after", "faster / model"), rows)


def _cell(seconds: float | None, times: Column) -> str:
    return "-" if seconds is None else plain(times.number(seconds))


def _time(seconds: float | None) -> str:
    return "not priced" if seconds is None else duration(seconds)


def _trust(finding: Finding) -> str:
    return f"least certain number: {plain(finding.evidence.provenance)}"


def _cautions(finding: Finding) -> Iterator[str]:
    prediction = finding.prediction
    if prediction is not None and prediction.low <= 1:
        yield MAYBE_SLOWER
    for one in () if prediction is None else prediction.omitted:
        yield f"no price for `{one.text}` (line {one.line}), {one.reason}: a lower bound"
    if prediction is not None and not prediction.in_range:
        yield "outside the range that the machine was calibrated for"
    yield from finding.evidence.remarks


def _list(texts: Iterable[str]) -> str:
    return "\n".join(f"- {plain(text)}" for text in texts if text)
