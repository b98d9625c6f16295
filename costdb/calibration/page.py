"""The report of a calibration: one HTML page that needs nothing else, with charts as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from costdb.calibration.profile import FittedSection, Made
from costdb.calibration.section import Quality
from costdb.wording import counted

_WIDTH, _HEIGHT, _MARGIN, _RIGHT = 376, 260, 46, 26
_COLOURS = ("#1b6ca8", "#b0651d", "#5a8f3c", "#8a4fa3", "#a33b4f", "#6b7280", "#2f8f8a")
# circle, square, each drawn from its middle
_SHAPES = ("m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z", "m-2.3 -2.3h4.6v4.6h-4.6z")

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2330; background: #fff; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #d5dae3; }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; font-variant-numeric: tabular-nums; }
td.n, th.n { text-align: right; }
tr.chosen { font-weight: 600; }
figure { display: inline-block; max-width: 376px; margin: 0 1rem 1rem 0; vertical-align: top; }
figcaption { color: #566074; font-size: .85rem; }
svg.key { width: .7rem; height: .7rem; }
svg text { font-size: 11px; fill: #566074; }
"""


def page_of(made: Made) -> str:
    """Return the page: for each section its models' errors, and measured against fitted."""
    document = made.document
    title = f"Calibration of {document['name']}"
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{_text(title)}</h1>",
        f"<p>{_text(document['title'])}; {_text(document['library'])}; "
        f"{_text(document['date'])}.</p>",
        "<p>Every point shown was kept from the fits. R2 is the residual sum of squares over that "
        "around the mean: 0 is perfect, 1 no better than the mean. The model in bold is the one "
        "that predictions use.</p>",
    ]
    for section in made.sections:
        parts += _section(section)
    parts.append("<h2>Notes</h2><ul>")
    notes = document.get("notes")
    parts += [f"<li>{_text(note)}</li>" for note in (notes if isinstance(notes, list) else [])]
    parts.append("</ul></body></html>")
    return "\n".join(parts) + "\n"


def _section(section: FittedSection) -> Iterator[str]:
    launches = len(section.launches)
    samples = sum(len(timing.samples_us) for timing in section.timings)
    yield f"<h2>{_text(section.name)}</h2>"
    yield (
        f"<p>{counted(len(section.timings), 'point')}, {counted(samples, 'sample')} in "
        f"{counted(launches, 'launch', 'launches')}, "
        f"begun {_text(section.run.id.split('.')[0])} UTC.</p>"
    )
    by_operation: dict[str, list[Quality]] = {}
    for quality in section.fitted.qualities:
        by_operation.setdefault(quality.operation, []).append(quality)
    for operation, qualities in by_operation.items():
        yield f"<h3>{_text(operation)}</h3>"
        yield from _table(qualities)
        shown = [quality for quality in qualities if _usable(quality)]
        if shown:
            yield _chart(shown)


def _table(qualities: Sequence[Quality]) -> Iterator[str]:
    yield '<table><tr><th>model</th><th class="n">R2</th><th class="n">median error</th>'
    yield '<th class="n">points</th></tr>'
    for quality in qualities:
        mark = ' class="chosen"' if quality.chosen else ""
        yield (
            f"<tr{mark}><td>{_text(quality.model)}</td>"
            f'<td class="n">{quality.r2:.4g}</td>'
            f'<td class="n">{100 * quality.median_error:.1f} %</td>'
            f'<td class="n">{quality.points}</td></tr>'
        )
    yield "</table>"


def _usable(quality: Quality) -> bool:
    return bool(quality.pairs) and all(min(pair) > 0 for pair in quality.pairs)


def _chart(qualities: Sequence[Quality]) -> str:
    numbers = [number for quality in qualities for pair in quality.pairs for number in pair]
    axis = _Decades(min(numbers), max(numbers))
    marks = [
        f'<line x1="{axis.across(axis.low):.1f}" y1="{axis.up(axis.low):.1f}" '
        f'x2="{axis.across(axis.high):.1f}" y2="{axis.up(axis.high):.1f}" stroke="#9aa3b2"/>'
    ]
    legend = []
    # the chosen model last, over the others
    for number, quality in sorted(enumerate(qualities), key=lambda one: one[1].chosen):
        style = _style(number, filled=quality.chosen)
        marks += [
            f'<path d="{_outline(number, axis.across(taken), axis.up(fitted))}" {style}/>'
            for taken, fitted in quality.pairs
        ]
        key = f'<path d="{_outline(number, 5, 5)}" {style}/>'
        legend.append(
            f'<span><svg class="key" viewBox="0 0 10 10">{key}</svg> {_text(quality.model)}</span>'
        )
    caption = "fitted over measured microseconds: " + ", ".join(legend)
    drawn = "".join((*axis.grid(), *marks))
    return (
        f'<figure><svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img">{drawn}</svg><figcaption>{caption}</figcaption></figure>'
    )


def _style(number: int, *, filled: bool) -> str:
    colour = _COLOURS[number % len(_COLOURS)]
    return f'fill="{colour if filled else "none"}" stroke="{colour}"'


def _outline(number: int, x: float, y: float) -> str:
    """Return the mark of a model: after the last colour they begin anew with another shape."""
    shape = _SHAPES[number // len(_COLOURS) % len(_SHAPES)]
    return f"M{x:.1f} {y:.1f}{shape}"


class _Decades:
    """A logarithmic axis, the same across and up."""

    def __init__(self, low: float, high: float) -> None:
        self._first, self._last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        if self._first == self._last:
            self._last += 1
        self.low, self.high = 10.0**self._first, 10.0**self._last

    def across(self, value: float) -> float:
        return _MARGIN + self._share(value) * (_WIDTH - _RIGHT - _MARGIN)

    def up(self, value: float) -> float:
        return _HEIGHT - 26 - self._share(value) * (_HEIGHT - 36)

    def _share(self, value: float) -> float:
        return (math.log10(value) - self._first) / (self._last - self._first)

    def grid(self) -> Iterator[str]:
        for power in range(self._first, self._last + 1):
            x, y = self.across(10.0**power), self.up(10.0**power)
            label = f"{10.0**power:g}"
            yield (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{_HEIGHT - 26}" stroke="#e3e7ee"/>'
                f'<text x="{x:.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{label}</text>'
            )
            yield (
                f'<line x1="{_MARGIN}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="#e3e7ee"/><text x="4" y="{y + 4:.1f}">{label}</text>'
            )


def _text(value: object) -> str:
    return escape(str(value))
