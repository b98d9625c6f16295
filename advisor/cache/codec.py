"""Findings as JSON values and back, without any loss.

Lists in the order of the fields, because only this module reads them; `VERSION` changes with
the fields. Pickles would do the same, but reading one runs what it says, and a cache lies in a
folder that others may have filled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.finding import (
    Alternative,
    Applicability,
    Assumption,
    Condition,
    Confidence,
    Crossover,
    Evidence,
    EvidenceTerm,
    Finding,
    Fix,
    Prediction,
    Remark,
)
from advisor.source import Edit, Span

VERSION = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found in a file, and to which names in it a value can be given."""

    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
    names: frozenset[str] = frozenset()


def encode(answer: Answer) -> Any:
    """Return JSON values; infinities and NaN stay Python's spelling of them."""
    return [
        [_encode_finding(finding) for finding in answer.findings],
        [[r.path, r.kernel, _encode_span(r.span), r.message] for r in answer.remarks],
        sorted(answer.names),
    ]


def decode(values: Any) -> Answer:
    """Return what `encode` was given; raises ValueError or TypeError for anything else."""
    findings, remarks, names = values
    if not all(isinstance(name, str) for name in names):
        raise TypeError("names are text")
    return Answer(
        tuple(_decode_finding(*one) for one in findings),
        tuple(Remark(path, kernel, Span(*span), text) for path, kernel, span, text in remarks),
        frozenset(names),
    )


def _encode_span(span: Span) -> list[int]:
    return [span.start_line, span.start_column, span.end_line, span.end_column]


def _encode_finding(finding: Finding) -> list[Any]:
    prediction, evidence, fix = finding.prediction, finding.evidence, finding.fix
    condition = finding.condition
    return [
        finding.code,
        finding.name,
        finding.path,
        finding.kernel,
        _encode_span(finding.span),
        finding.message,
        finding.reason,
        None if prediction is None else _encode_prediction(prediction),
        [[a.name, a.value, a.origin] for a in finding.assumptions],
        [
            evidence.machine,
            evidence.calibration,
            evidence.provenance,
            [[t.label, t.model, t.before_s, t.after_s] for t in evidence.terms],
            list(evidence.facts),
            list(evidence.coefficients),
            list(evidence.remarks),
            list(evidence.measured),
        ],
        [[a.title, a.time_s, a.reason] for a in finding.alternatives],
        [[c.variable, list(c.values), c.pays] for c in finding.crossovers],
        None
        if fix is None
        else [
            fix.applicability.value,
            fix.legality,
            [[_encode_span(edit.span), edit.replacement] for edit in fix.edits],
        ],
        finding.fingerprint,
        None
        if condition is None
        else [condition.text, list(condition.open_sizes), condition.pays_from, condition.always],
    ]


def _encode_prediction(prediction: Prediction) -> list[Any]:
    return [
        prediction.before_s,
        prediction.after_s,
        prediction.speedup,
        prediction.low,
        prediction.high,
        prediction.before_low_s,
        prediction.before_high_s,
        prediction.after_low_s,
        prediction.after_high_s,
        prediction.confidence.value,
        prediction.in_range,
    ]


def _decode_finding(
    code: str,
    name: str,
    path: str,
    kernel: str,
    span: list[int],
    message: str,
    reason: str,
    prediction: list[Any] | None,
    assumptions: list[list[Any]],
    evidence: list[Any],
    alternatives: list[list[Any]],
    crossovers: list[list[Any]],
    fix: list[Any] | None,
    fingerprint: str,
    condition: list[Any] | None,
) -> Finding:
    machine, calibration, provenance, terms, facts, coefficients, remarks, measured = evidence
    return Finding(
        code=code,
        name=name,
        path=path,
        kernel=kernel,
        span=Span(*span),
        message=message,
        reason=reason,
        prediction=None if prediction is None else _decode_prediction(*prediction),
        assumptions=tuple(Assumption(*one) for one in assumptions),
        evidence=Evidence(
            machine,
            calibration,
            provenance,
            tuple(EvidenceTerm(*one) for one in terms),
            tuple(facts),
            tuple(coefficients),
            tuple(remarks),
            tuple(measured),
        ),
        alternatives=tuple(Alternative(*one) for one in alternatives),
        crossovers=tuple(
            Crossover(variable, tuple(values), pays) for variable, values, pays in crossovers
        ),
        fix=None if fix is None else _decode_fix(*fix),
        fingerprint=fingerprint,
        condition=None if condition is None else _decode_condition(*condition),
    )


def _decode_prediction(*values: Any) -> Prediction:
    before, after, speedup, low, high, *ends, confidence, in_range = values
    before_low, before_high, after_low, after_high = ends
    return Prediction(
        before,
        after,
        speedup,
        low,
        high,
        before_low,
        before_high,
        after_low,
        after_high,
        Confidence(confidence),
        in_range,
    )


def _decode_condition(
    text: str, open_sizes: list[str], pays_from: int | None, always: bool
) -> Condition:
    return Condition(text, tuple(open_sizes), pays_from, always)


def _decode_fix(applicability: str, legality: str, edits: list[list[Any]]) -> Fix:
    return Fix(
        Applicability(applicability),
        legality,
        tuple(Edit(Span(*span), replacement) for span, replacement in edits),
    )
