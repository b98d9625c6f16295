"""What a finding is computed from: its parts, sizes and numbers; on request its formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count as numbers
from typing import TYPE_CHECKING, Any

from advisor.finding import ALSO, Alternative, Assumption, Crossover, Finding, Prediction
from advisor.ranking.findings import Judged
from advisor.report.continuous import SCHEMA_VERSION, finding_document, values
from advisor.report.full import block
from advisor.report.model import MAYBE_SLOWER
from advisor.report.prediction import how_well
from advisor.report.style import (
    Column,
    Style,
    column_for,
    duration,
    json_text,
    labelled,
    one_line,
    ratio,
    shortened,
    table,
    wrapped,
)
from costdb.evaluate import Priced
from costdb.expr import Expr, free_symbols, sym, to_text
from costdb.expr.functions import Reduction
from costdb.quantity import Quantity

if TYPE_CHECKING:
    from costdb.store.database import Result


# Long formulas in readable form: what occurs again gets a name.

_SHORTEST_NAMED = 14
"""Parts with fewer characters are read as quickly as a name is looked up."""


Definition = tuple[str, Expr]


def share(formulas: Sequence[Expr]) -> tuple[tuple[Expr, ...], list[Definition]]:
    """Name the parts that occur more than once in formulas taken together.

    Returns
    -------
    (tuple of Expr, list of (str, Expr))
        The formulas over names for their common parts, and these parts, each over the sizes, the
        coefficients and earlier names. Names are q1, q2 ...; those that formulas use are passed
        over.
    """
    uses, bound = Counter[Expr](), set[str]()
    definitions: list[Definition] = []

    def count(expr: Expr) -> None:
        uses[expr] += 1
        if uses[expr] == 1:
            if isinstance(expr, Reduction):
                bound.add(expr.index)
            for child in expr.children:
                count(child)

    @cache
    def shortened(expr: Expr) -> Expr:
        if not expr.children:
            return expr
        short = expr.rebuild(tuple(map(shortened, expr.children)))
        # what holds the index of a reduction means nothing outside it
        if uses[expr] < 2 or free_symbols(expr) & bound or len(to_text(short)) < _SHORTEST_NAMED:
            return short
        name = next(names)
        definitions.append((name, short))
        return sym(name)

    for formula in formulas:
        count(formula)
    taken = bound.union(*map(free_symbols, formulas))
    names = (name for number in numbers(1) if (name := f"q{number}") not in taken)
    return tuple(map(shortened, formulas)), definitions


MOST_LINES = 60
"""Of all that is said of one place, unless formulas are asked for."""

_MANY = ("messages", "numbers")
"""What has many texts: a line each has to do."""

_AGREES = 1e-6


def text(
    judged: Sequence[Judged],
    source: str,
    style: Style,
    results: Sequence[Result] = (),
    *,
    formulas: bool = False,
) -> str:
    """Return the findings one after another, in at most `MOST_LINES`; all of it with formulas.

    Parameters
    ----------
    judged : sequence of Judged
    source : str
    style : Style
    results : sequence of Result
        How far predictions on their machine were found to hold.
    formulas : bool
    """
    least = MOST_LINES // max(len(judged), 1) - 1
    blocks = []
    for one in judged:
        parts = list(_parts_of(one, source, style, results, whole=formulas))
        if formulas:
            parts.append(list(_formulas_of(one, style)))
        else:
            cut_short(parts, least)
        blocks.append("\n".join(line for part in parts for line in part))
    return "\n\n".join(blocks) + "\n"


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
                    {"name": name, **values(quantity)} for name, quantity in _coefficients(one)
                ],
                "how_well": how_well(results, _models(one)),
            }
            for one in judged
        ],
    }
    return json_text(document)


def cut_short(parts: list[list[str]], most: int) -> None:
    """Take lines from the end of the longest parts until there are not too many, and say so."""
    if sum(map(len, parts)) <= most:
        return
    while sum(map(len, parts)) >= most:
        max(parts[1:] if any(parts[1:]) else parts, key=len).pop()
    parts.append(["  ... cut short: --formulas shows all of it"])


def _parts_of(
    judged: Judged, source: str, style: Style, results: Sequence[Result], *, whole: bool
) -> Iterator[list[str]]:
    finding = judged.finding
    yield block(finding, source, style)
    heads, rows = times_of(finding)
    shown = table(heads, rows, 1, style).splitlines() if rows else []
    yield ["", *(f"  {line}" for line in shown), *([""] * bool(rows))]
    for label, texts in (*sections(finding), ("found here", how_well(results, _models(judged)))):
        if label in _MANY and not whole:
            texts = [shortened(one, style.width - 13) for one in texts]
        yield labelled(label, texts, style)


def sections(finding: Finding) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what a finding rests on, each a label and texts, beside the parts of its times."""
    evidence = finding.evidence
    yield "why", [finding.reason]
    yield "messages", evidence.facts
    yield "rejected", list(map(_alternative, finding.alternatives))
    yield "when", list(map(_crossover, finding.crossovers))
    yield "rests on", [", ".join(map(_size, finding.assumptions))]
    yield "measured", evidence.measured
    yield "caution", [*_doubts(finding.prediction), *evidence.remarks]
    yield "fix", [finding.fix.legality if finding.fix is not None else ""]
    yield "machine", [f"{evidence.machine} ({evidence.calibration})"]
    yield "numbers", evidence.coefficients


def times_of(finding: Finding) -> tuple[list[str], list[list[str]]]:
    """Return the predicted times, their intervals and their parts as a head and rows."""
    p = finding.prediction
    if p is None:
        return [], []
    times = column_for(p.before_s, p.after_s)
    rows = [
        ["predicted", times.number(p.before_s), times.number(p.after_s), ratio(p.speedup)],
        ["low", times.number(p.before_low_s), times.number(p.after_low_s), ratio(p.low)],
        ["high", times.number(p.before_high_s), times.number(p.after_high_s), ratio(p.high)],
    ]
    rows += [
        [t.label, _number(t.before_s, times), _number(t.after_s, times), f"  {t.model}"]
        for t in finding.evidence.terms
    ]
    return [f"parts of the time ({times.unit})", "before", "after", ""], rows


def _number(seconds: float | None, times: Column) -> str:
    return "-" if seconds is None else times.number(seconds)


def _size(one: Assumption) -> str:
    return f"{one.name} = {one.value} ({one.origin})"


def _alternative(one: Alternative) -> str:
    time = ", not priced" if one.time_s is None else f", {duration(one.time_s)}"
    return f"{one.title}{time * (one.reason != ALSO)}: {one.reason}"


def _doubts(prediction: Prediction | None) -> Iterator[str]:
    if prediction is not None and prediction.low <= 1:
        yield MAYBE_SLOWER
    for one in () if prediction is None else prediction.omitted:
        yield f"no price for `{one.text}` (line {one.line}), {one.reason}: a lower bound"
    if prediction is not None and not prediction.in_range:
        yield "outside the range that the machine was calibrated for"


def _formulas_of(judged: Judged, style: Style) -> Iterator[str]:
    finding, prediction = judged.finding, judged.finding.prediction
    at = ", ".join(f"{one.name} = {one.value}" for one in finding.assumptions)
    # a formula holds for all values of what is open
    at = f", at {at}" if at and finding.condition is None else ""
    sides = [_named(judged, written) for written in (True, False)]
    shown, definitions = share([formula for named in sides for _, formula in named])
    formulas = iter(shown)
    yield ""
    yield style.paint(f"  formulas, in microseconds{at}", "bold")
    heads = ["as written", "as proposed"]
    if prediction is not None:
        times = duration(prediction.before_s), duration(prediction.after_s)
        heads = [f"{head}: {time}" for head, time in zip(heads, times, strict=True)]
    for head, named in zip(heads, sides, strict=True):
        yield f"    {style.paint(head, 'cyan')}"
        for name, _ in named:
            yield from equation(name, next(formulas), style)
    if definitions:
        yield f"    {style.paint('where', 'cyan')}"
    for name, formula in definitions:
        yield from equation(name, formula, style)


def equation(name: str, formula: Expr, style: Style) -> list[str]:
    """Return lines ``name = formula``, broken at blanks, the later ones indented further."""
    return wrapped(f"{name} = {to_text(formula)}", style, " " * 6, " " * 10)


def _named(judged: Judged, written: bool) -> list[tuple[str, Expr]]:
    """Return the formulas of one side: its terms, and the whole where it is not their sum."""
    priced = judged.before if written else judged.after
    known = judged.finding.evidence.terms
    times = {(t.label, t.model): t.before_s if written else t.after_s for t in known}
    found = []
    for term in priced.terms:
        time = times.get((term.label, term.model))
        name = one_line(term.label) + ("" if time is None else f" [{duration(time)}]")
        found.append((name, term.microseconds))
    prediction = judged.finding.prediction
    if prediction is not None:
        whole = prediction.before_s if written else prediction.after_s
        adds_up = abs(sum(filter(None, times.values())) - whole) <= _AGREES * whole
    else:
        adds_up = bool(found)
    return found if adds_up else [*found, ("altogether, side by side", priced.microseconds)]


def _models(judged: Judged) -> frozenset[str]:
    return frozenset(term.model for side in (judged.before, judged.after) for term in side.terms)


def _crossover(crossover: Crossover) -> str:
    values = ", ".join(map(str, crossover.values))
    flips = f"flips at {values}" if values else "no flip found"
    return f"{crossover.variable}: {flips}; faster for {crossover.pays}, all else equal"


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
