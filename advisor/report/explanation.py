"""A finding in full depth: its report, and the formulas and numbers behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.finding import Crossover, EvidenceTerm, Finding
from advisor.ranking.judged import Judged
from advisor.report.formula import Shared, share, wrapped
from advisor.report.full import block, labelled
from advisor.report.json_report import SCHEMA_VERSION, finding_document
from advisor.report.results import how_well
from advisor.report.style import Style, one_line
from advisor.report.units import duration
from costdb.estimate import Priced
from costdb.expr import Expr, to_text
from costdb.quantity import Quantity

if TYPE_CHECKING:
    from costdb.store.results import Result

_AGREES = 1e-6
_WRITTEN, _PROPOSED = "as written", "as proposed"


def text(
    judged: Sequence[Judged], source: str, style: Style, results: Sequence[Result] = ()
) -> str:
    """Return the findings one after another, each with formulas, coefficients and crossovers.

    Parameters
    ----------
    judged : sequence of Judged
    source : str
    style : Style
    results : sequence of Result
        How far predictions on their machine were found to hold.
    """
    return "\n\n".join("\n".join(_lines(one, source, style, results)) for one in judged) + "\n"


def as_json(judged: Sequence[Judged], machine: str, results: Sequence[Result] = ()) -> str:
    """Return the findings as in the JSON report, with what `text` shows beside."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine,
        "findings": [
            {
                **finding_document(one.finding),
                "formulas": {"before": _formulas(one.before), "after": _formulas(one.after)},
                "coefficients": [
                    _coefficient(name, quantity) for name, quantity in _coefficients(one)
                ],
                "how_well": how_well(results, _models(one)),
            }
            for one in judged
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _lines(judged: Judged, source: str, style: Style, results: Sequence[Result]) -> Iterator[str]:
    finding = judged.finding
    yield from block(finding, source, style)
    sizes = ", ".join(f"{one.name} = {one.value}" for one in finding.assumptions)
    if finding.condition is not None:
        # a formula holds for all values of what is open
        sizes = ""
    before, after = judged.before, judged.after
    wholes = _adds_up(judged, written=True), _adds_up(judged, written=False)
    formulas = [*_parts(before, wholes[0]), *_parts(after, wholes[1])]
    shared = share(formulas)
    count = len(_parts(before, wholes[0]))
    yield ""
    yield style.paint(f"  formulas, in microseconds{f', at {sizes}' if sizes else ''}", "bold")
    yield from _side(_WRITTEN, before, shared.formulas[:count], finding, style)
    yield from _side(_PROPOSED, after, shared.formulas[count:], finding, style)
    if shared.definitions:
        yield from _definitions(shared, style)
    yield ""
    yield style.paint("  coefficients", "bold")
    yield from labelled("", finding.evidence.coefficients, style)
    yield ""
    yield style.paint("  crossovers", "bold")
    crossovers = [_crossover(crossover) for crossover in finding.crossovers]
    none = "none: the choice is the same at every size searched"
    yield from labelled("", crossovers or [none], style)
    known = how_well(results, _models(judged))
    if known:
        yield ""
        yield style.paint(f"  how well predictions hold on {finding.evidence.machine}", "bold")
        yield from labelled("", known, style)


def _models(judged: Judged) -> frozenset[str]:
    return frozenset(term.model for side in (judged.before, judged.after) for term in side.terms)


def _parts(priced: Priced, adds_up: bool) -> list[Expr]:
    """Return the formulas to show: the terms, and the whole where it is not their sum."""
    return [term.microseconds for term in priced.terms] + [priced.microseconds] * (not adds_up)


def _adds_up(judged: Judged, *, written: bool) -> bool:
    """Return whether the terms add up to the whole; they do not where parts run side by side."""
    prediction = judged.finding.prediction
    if prediction is None:
        return bool((judged.before if written else judged.after).terms)
    whole = prediction.before_s if written else prediction.after_s
    times = (_time(term, written=written) or 0.0 for term in judged.finding.evidence.terms)
    return abs(sum(times) - whole) <= _AGREES * whole


def _side(
    title: str, priced: Priced, formulas: Sequence[Expr], finding: Finding, style: Style
) -> Iterator[str]:
    times = {(t.label, t.model): t for t in finding.evidence.terms}
    written = title == _WRITTEN
    prediction, count = finding.prediction, len(priced.terms)
    head = title
    if prediction is not None:
        head += f": {duration(prediction.before_s if written else prediction.after_s)}"
    yield f"    {style.paint(head, 'cyan')}"
    for term, formula in zip(priced.terms, formulas[:count], strict=True):
        time = _time(times.get((term.label, term.model)), written=written)
        shown = "" if time is None else f" [{duration(time)}]"
        yield from wrapped(f"{one_line(term.label)}{shown}", formula, style.width, 6)
    for formula in formulas[count:]:
        yield from wrapped("altogether, side by side", formula, style.width, 6)


def _time(term: EvidenceTerm | None, *, written: bool) -> float | None:
    if term is None:
        return None
    return term.before_s if written else term.after_s


def _definitions(shared: Shared, style: Style) -> Iterator[str]:
    yield f"    {style.paint('where', 'cyan')}"
    for name, formula in shared.definitions:
        yield from wrapped(name, formula, style.width, 6)


def _crossover(crossover: Crossover) -> str:
    values = ", ".join(map(str, crossover.values))
    flips = f"flips at {values}" if values else "no flip found"
    return f"{crossover.variable}: {flips}; pays for {crossover.pays}, all else equal"


def _formulas(priced: Priced) -> Mapping[str, Any]:
    return {
        "microseconds": to_text(priced.microseconds),
        "terms": [
            {"label": t.label, "model": t.model, "microseconds": to_text(t.microseconds)}
            for t in priced.terms
        ],
    }


def _coefficients(judged: Judged) -> list[tuple[str, Quantity]]:
    return sorted({**judged.before.coefficients, **judged.after.coefficients}.items())


def _coefficient(name: str, quantity: Quantity) -> Mapping[str, Any]:
    return {
        "name": name,
        "value": quantity.value,
        "low": quantity.low,
        "high": quantity.high,
        "unit": quantity.unit,
        "provenance": quantity.provenance.value,
        "source": quantity.source,
        "fitted_to": quantity.fitted_to or None,
    }
