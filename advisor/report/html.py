"""A page that holds all it needs: findings with their source and pictures, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources

from advisor.finding import Finding, Remark, Verdict
from advisor.ranking.compare import TRIED_TO
from advisor.ranking.findings import Judged
from advisor.report.explanation import sections
from advisor.report.full import HEADS
from advisor.report.model import (
    Curve,
    Report,
    coverage_lines,
    figures,
    fix_option,
    headline,
    ordered,
    rows,
    sentence,
)
from advisor.report.style import Style, one_line, printable
from advisor.report.svg import Bar, Plot, bars, curve, markup
from advisor.source import apply_edits, split_lines, unified_diff
from costdb.choosing import crossover
from costdb.evaluate import compare
from costdb.expr import ExprError, free_symbols

_AROUND = 2
"""Lines of the source shown before and after those that a finding is about."""
_MOST_LINES = 14
_QUOTED = re.compile("`([^`]+)`")


def render(report: Report, style: Style) -> str:
    """Return the page of a run: a table of all findings, one part for each, then coverage."""
    findings = ordered(report.findings)
    *told, last = coverage_lines(report)
    body = [_overview(findings)] if findings else []
    body += [_article(report, number, one) for number, one in enumerate(findings, 1)]
    if report.remarks:
        body.append(
            heading(2, "Notes") + bullets(f"{_place(one)}: {one.message}" for one in report.remarks)
        )
    if told:
        body.append(heading(2, "Coverage") + bullets(told))
    return page(f"What advise found, on {report.machine}", [last], body)


def page(title: str, leads: Iterable[str], body: Iterable[str]) -> str:
    """Return a whole document; `body` is markup, all else is text."""
    looks = resources.files("advisor.report").joinpath("page.css").read_text("utf-8")
    lead = "".join(f'<p class="lead">{_text(one)}</p>' for one in leads)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>\n{looks}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{_text(title)}</h1>\n{lead}\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def figure(plot: Plot) -> str:
    """Return a picture with its legend, and its numbers beneath."""
    legend = "".join(f"<li>{_sample(kind)}{_text(said)}</li>" for kind, said in plot.legend)
    return (
        f"<figure><figcaption>{_text(plot.title)}</figcaption>{plot.drawing}"
        f'<ul class="legend">{legend}</ul>'
        f"{_folded('Numbers', table(plot.heads, plot.rows))}</figure>"
    )


def table(heads: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, which scrolls by itself where it is too wide."""
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    lines = ("".join(f"<td>{_text(one)}</td>" for one in row) for row in cells)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _text(said: str) -> str:
    """Return text of a user's program as markup that shows it, whatever it holds."""
    return _QUOTED.sub(r"<code>\1</code>", markup(one_line(said)))


def _sample(kind: str) -> str:
    shape = '<circle cx="7" cy="5" r="3.5"' if kind in ("here", "inside", "outside") else ""
    shape = shape or ('<path d="M0 5H14"' if kind == "curve" else '<rect width="14" height="10"')
    return f'<svg viewBox="0 0 14 10" aria-hidden="true">{shape} class="{kind}"/></svg>'


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{inner}</details>"


def heading(level: int, said: str) -> str:
    """Return a heading."""
    return f"<h{level}>{_text(said)}</h{level}>"


def bullets(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return '<ul class="told">' + "".join(f"<li>{_text(one)}</li>" for one in texts) + "</ul>"


def _place(one: Finding | Remark) -> str:
    return f"{one.path}:{one.span.start_line}"


def _overview(findings: Sequence[Finding]) -> str:
    lines = []
    heads = "".join(f"<th>{one}</th>" for one in ("", *HEADS))
    for number, one in enumerate(findings, 1):
        gain, *others = figures(one)
        cells = "".join(f"<td>{_text(said)}</td>" for said in (gain or "?", *others))
        where = f'<a href="#finding-{number}">{_text(_place(one))} {_text(one.kernel)}</a>'
        lines.append(
            f"<tr><td>{_class(one.verdict)}</td>{cells}<td>{where}</td>"
            f'<td class="text">{_text(sentence(one.title))}</td><td>{fix_option(one)}</td></tr>'
        )
    return f'<div class="wide"><table class="all"><tr>{heads}</tr>{"".join(lines)}</table></div>'


def _class(verdict: Verdict) -> str:
    return f'<span class="class {verdict}">{verdict.upper()}</span>'


def _article(report: Report, number: int, finding: Finding) -> str:
    source = report.sources.get(finding.path, "")
    told = "".join(f"<dt>{name}</dt><dd>{_text(said)}</dd>" for name, said in rows(finding).items())
    plots = [*_before_and_after(finding)]
    plots += [curve(one, finding.evidence.machine) for one in report.curves(finding)]
    drawn = "".join(map(figure, plots))
    return (
        f'<article id="finding-{number}"><header><h2>{_text(sentence(finding.title))}</h2>'
        f"{_class(finding.verdict)}</header>"
        f'<p class="place">{_text(_place(finding))} in {_text(finding.kernel)}:'
        f" {_text(finding.code)} {_text(finding.name)}</p>"
        f"{_excerpt(finding, source)}<p>{_text(sentence(finding.reason))}</p><dl>{told}</dl>"
        f'<div class="plots">{drawn}</div>{_diff(finding, source)}{_evidence(finding)}</article>'
    )


def _before_and_after(finding: Finding) -> Iterable[Plot]:
    terms = finding.evidence.terms
    if not terms or finding.prediction is None:
        return
    sides = {
        "before": tuple((term.label, term.before_s) for term in terms if term.before_s),
        "after": tuple((term.label, term.after_s) for term in terms if term.after_s),
    }
    yield bars(
        f"Where the time goes on {finding.evidence.machine}",
        [Bar(name, parts) for name, parts in sides.items()],
    )


def _excerpt(finding: Finding, source: str) -> str:
    lines, span = split_lines(source), finding.span
    if not source or not 1 <= span.start_line <= len(lines):
        return ""
    first = max(span.start_line - _AROUND, 1)
    last = min(span.last_line + _AROUND, len(lines), first + _MOST_LINES)
    shown = (
        f"<span{' class=at' * (span.start_line <= at <= span.last_line)}><i>{at:>4}</i> "
        f"{_code(lines[at - 1])}</span>"
        for at in range(first, last + 1)
    )
    return f"<pre><code>{''.join(shown)}</code></pre>"


def _code(written: str) -> str:
    return markup(printable(written.rstrip("\r\n").expandtabs(8))) or " "


def diff_of(finding: Finding, source: str) -> list[str]:
    """Return what the fix of a finding changes, as lines of a unified diff."""
    if finding.fix is None or not finding.fix.edits or not source:
        return []
    try:
        after = apply_edits(source, dict.fromkeys(finding.fix.edits))
    except ValueError:
        return []  # it is about another text, such as that before --fix
    return unified_diff(one_line(finding.path), source, after).splitlines()


def _diff(finding: Finding, source: str) -> str:
    kinds = {"-": "minus", "+": "plus"}
    lines = (
        f"<span class={kinds.get(line[:1], 'same')}>{_code(line)}</span>"
        for line in diff_of(finding, source)
    )
    shown = "".join(lines)
    return (
        _folded(f"The change ({fix_option(finding)})", f"<pre><code>{shown}</code></pre>")
        if shown
        else ""
    )


def _evidence(finding: Finding) -> str:
    parts = "".join(
        f"<dt>{label}</dt><dd>{'<br>'.join(_text(one) for one in texts)}</dd>"
        for label, texts in sections(finding)
        if label not in ("why", "fix") and any(texts)
    )
    return _folded("What this rests on", f"<p>{_text(headline(finding))}</p><dl>{parts}</dl>")


# How the gain of a finding goes with the sizes that it hangs on, with its interval.

_POINTS, _MOST = 32, 2
_CHANGES = 1.1


def curves_of(judged: Judged) -> tuple[Curve, ...]:
    """Return the speed-up over sizes, those first at which a choice changes, at most two.

    Parameters
    ----------
    judged : Judged
        A finding whose two prices hold for all sizes; others have no curve.
    """
    finding = judged.finding
    sizes = {
        one.name: one.value for one in finding.assumptions if isinstance(one.value, int | float)
    }
    turning = {one.variable: one.values for one in finding.crossovers}
    used = free_symbols(judged.before.microseconds) | free_symbols(judged.after.microseconds)
    curves: list[Curve] = []
    for name in sorted(used & sizes.keys(), key=lambda name: (name not in turning, name)):
        if len(curves) == _MOST or (finding.condition and name not in finding.condition.open_sizes):
            continue
        try:
            found = _curve(judged, name, sizes, turning.get(name, ()))
        except (ExprError, ArithmeticError):
            continue  # some values of it make no program
        middles = [middle for _, _, middle, _ in found.points]
        if turning.get(name) or max(middles) > _CHANGES * min(middles):
            curves.append(found)
    return tuple(curves)


def _curve(
    judged: Judged, name: str, sizes: dict[str, int | float], flips: tuple[int, ...]
) -> Curve:
    here, before, after = int(sizes[name]), judged.before, judged.after
    least = 2 if name == "P" else 1
    found = crossover(before, after, name, sizes, least, max(TRIED_TO, 4 * here))
    tried = [value for value, _ in found.samples]
    # as many a decade everywhere: those that are dense at the beginning would hide the rest
    steps = (found.high / found.low) ** (1 / _POINTS)
    wanted = [found.low * steps**place for place in range(_POINTS + 1)]
    chosen = {min(tried, key=lambda value: abs(value - one)) for one in wanted} | {here, *flips}
    points = []
    for value in sorted(chosen):
        ratio = compare(before, after, {**sizes, name: value})
        if ratio.mid > 0:
            points.append((float(value), ratio.low, ratio.mid, ratio.high))
    return Curve(name, float(here), tuple(points), tuple(map(float, flips)))
