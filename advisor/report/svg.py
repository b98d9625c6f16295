"""Plots as plain SVG: scales, axes and marks, each plot with a title, a description and a table.

Colours and sizes of letters are classes, which the page's style sheet knows: a plot follows the
reader's light or dark scheme, and its letters grow where the window is narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from advisor.report.model import Curve, reach
from advisor.report.style import duration, one_line, ratio
from costdb.records import dataclass

WIDTH = 480
_LEFT, _RIGHT, _TOP, _FOOT = 58, 14, 22, 48
_MOST_TICKS = 6
_NAME = 19
COLOURS = 7
"""Classes ``c0`` to ``c6``; what is more shares the last one."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with what it says in words and in numbers.

    Attributes
    ----------
    title : str
    drawing : str
        The SVG element.
    heads, rows : sequences
        The same numbers as a table.
    legend : tuple of (str, str)
        Class and text of each colour.
    """

    title: str
    drawing: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places in the drawing; values beyond the ends stay at them."""

    low: float
    high: float
    start: float
    end: float
    log: bool = True

    def at(self, value: float) -> float:
        """Return the place of a value."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Return round values between the ends, at most some."""
        if not self.log:
            return self._even_ticks()
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [f * 10.0**n for n in range(first, last + 1) for f in factors]
            found = [one for one in found if self.low <= one <= self.high]
            if len(found) <= _MOST_TICKS:
                break
        if len(found) < 2:
            return self._even_ticks()
        return found[:: math.ceil(len(found) / _MOST_TICKS)]

    def _even_ticks(self) -> list[float]:
        step = _round_up((self.high - self.low) / (_MOST_TICKS - 1))
        first = math.ceil(self.low / step)
        return [step * n for n in range(first, math.floor(self.high / step) + 1)][:_MOST_TICKS]


def _round_up(value: float) -> float:
    size = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= value * 0.999)


def log_scale(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale that shows all values that can be shown, with some air."""
    shown = [value for value in values if 0 < value < math.inf] or [1.0]
    low, high = min(shown), max(shown)
    air = max(high / low, 1.5) ** 0.05
    return Scale(low / air, high * air, start, end)


# Parts of drawings.


def text(x: float, y: float, said: str, kind: str = "", anchor: str = "middle") -> str:
    """Return words at a place; `kind` is their class."""
    looks = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{looks}>{_shown(said)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line of a class."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


def dot(x: float, y: float, kind: str, about: str) -> str:
    """Return a point that says on hovering what it is."""
    told = f"<title>{_shown(about)}</title>"
    return f'<circle cx="{x:g}" cy="{y:g}" r="3.5" class="{kind}">{told}</circle>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """Return a line through points, or an area where the class fills it."""
    return f'<path class="{kind}" d="M{"L".join(f"{x:g} {y:g}" for x, y in points)}"/>'


def drawing(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """Return the element with its text alternatives."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{_shown(title)}">'
        f"<title>{_shown(title)}</title><desc>{_shown(description)}</desc>"
        f"{''.join(parts)}</svg>"
    )


def markup(said: str) -> str:
    """Return text as markup that shows it, whatever it holds; what has no encoding becomes ?."""
    return escape(said).encode("utf-8", "replace").decode()


def _shown(said: str) -> str:
    return markup(one_line(said))


Shown = Callable[[float], str]


def _axis(across: Scale, bottom: float, top: float, shown: Shown, name: str) -> Iterator[str]:
    for value in across.ticks():
        x = across.at(value)
        yield line(x, bottom, x, top, "grid") + text(x, bottom + 17, shown(value))
    yield text((across.start + across.end) / 2, bottom + 38, name, "name")


def _axes(
    across: Scale, up: Scale, names: tuple[str, str], shown: tuple[Shown, Shown]
) -> Iterator[str]:
    """Yield the grid with its numbers, and what is along each axis."""
    yield from _axis(across, up.start, up.end, shown[0], names[0])
    for value in up.ticks():
        y = up.at(value)
        yield line(across.start, y, across.end, y, "grid")
        yield text(across.start - 7, y + 4, shown[1](value), anchor="end")
    yield text(2, up.end - 9, names[1], "name", "start")


def _whole(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:.0e}".replace("e+0", "e")


def _time(value: float) -> str:
    """Return a round time without the digits that tell nothing: ``1 ms``."""
    number, _, unit = duration(value).partition(" ")
    return f"{float(number):g} {unit}"


def curve(of: Curve, machine: str) -> Plot:
    """Return how the speed-up goes with one size: its middle, its interval, and where it turns."""
    height = 250
    across = log_scale((x for x, *_ in of.points), _LEFT, WIDTH - _RIGHT)
    ends = (end for _, low, middle, high in of.points for end in (low, middle, high))
    up = log_scale((*(one for one in ends), 1.0), height - _FOOT, _TOP)
    places = [(across.at(x), up.at(lo), up.at(mid), up.at(hi)) for x, lo, mid, hi in of.points]
    band = [(x, hi) for x, *_, hi in places] + [(x, lo) for x, lo, *_ in reversed(places)]
    parts = [path(band, "band"), path([(x, mid) for x, _, mid, _ in places], "curve")]
    parts.append(line(across.start, up.at(1), across.end, up.at(1), "even"))
    for flip in of.flips:
        x = across.at(flip)
        parts.append(line(x, up.start, x, up.end, "flip"))
        near = x > (across.start + across.end) / 2
        told = f"{of.variable} = {flip:g}"
        parts.append(
            text(x - 5 if near else x + 5, up.end + 12, told, "mark", "end" if near else "start")
        )
    told = ""
    for (x, _, mid, _), now in zip(places, of.points, strict=True):
        if now[0] == of.here:
            told = (
                f" At {of.variable} = {of.here:g} it is {ratio(now[2])}, {reach(now[1], now[3])}."
            )
            parts.append(dot(x, mid, "here", told))
    turns = ", ".join(f"{flip:g}" for flip in of.flips)
    description = (
        f"Speed-up over {of.variable} from {of.points[0][0]:g} to {of.points[-1][0]:g},"
        f" {'which turns at ' + turns if turns else 'without a turn'}; above 1x it is faster.{told}"
    )
    title = f"Speed-up over {of.variable} on {machine}"
    axes = _axes(across, up, (of.variable, "speed-up"), (_whole, "{:g}x".format))
    rows = [[f"{x:g}", ratio(mid), reach(lo, hi)] for x, lo, mid, hi in of.points]
    legend = (("curve", "predicted"), ("band", "could be"), ("here", "at the size at hand"))
    svg = drawing(title, description, height, [*axes, *parts])
    return Plot(title, svg, (of.variable, "speed-up", "could be"), rows, legend)


@dataclass(frozen=True, slots=True)
class Bar:
    """A name and the parts of its time, each a label and seconds."""

    name: str
    parts: tuple[tuple[str, float], ...]

    @property
    def seconds(self) -> float:
        """All parts together."""
        return sum(seconds for _, seconds in self.parts)


def bars(title: str, of: Sequence[Bar]) -> Plot:
    """Return times as bars, side by side, each made of the parts that its colours tell."""
    weights: dict[str, float] = {}
    for bar in of:
        for label, seconds in bar.parts:
            weights[label] = max(weights.get(label, 0.0), seconds)
    labels = sorted(weights, key=lambda label: -weights[label])
    colour = {label: f"c{min(place, COLOURS - 1)}" for place, label in enumerate(labels)}
    across = Scale(0, max(bar.seconds for bar in of) or 1.0, 64, WIDTH - 76, log=False)
    step, parts = 42, []
    for place, bar in enumerate(of):
        y, done = 8 + place * step, 0.0
        parts.append(text(56, y + 19, bar.name, anchor="end"))
        for label, seconds in sorted(bar.parts, key=lambda part: labels.index(part[0])):
            x, end = across.at(done), across.at(done + seconds)
            about = f"<title>{_shown(f'{bar.name}, {label}: {duration(seconds)}')}</title>"
            box = f'x="{x:g}" y="{y}" width="{max(end - x, 0):.1f}" height="28"'
            parts.append(f'<rect {box} class="{colour[label]}">{about}</rect>')
            done += seconds
        parts.append(text(across.at(done) + 6, y + 19, duration(bar.seconds), "mark", "start"))
    told = "; ".join(
        f"{bar.name} {duration(bar.seconds)}, most of it"
        f" {max(bar.parts, key=lambda part: part[1])[0] if bar.parts else 'nothing'}"
        for bar in of
    )
    rows = [[label, *(_part(bar, label) for bar in of)] for label in labels]
    svg = drawing(title, told, 8 + step * len(of), parts)
    legend = tuple((colour[label], label) for label in labels[:COLOURS])
    return Plot(title, svg, ("part", *(bar.name for bar in of)), rows, legend)


def _part(bar: Bar, label: str) -> str:
    found = dict(bar.parts).get(label)
    return "-" if found is None else duration(found)


@dataclass(frozen=True, slots=True)
class Dot:
    """A predicted time with the ends of its interval, and what was measured, in seconds."""

    name: str
    low: float
    middle: float
    high: float
    measured: float = 0.0

    @property
    def inside(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.measured <= self.high

    @property
    def cells(self) -> list[str]:
        """The name, the time and its ends, for a table."""
        return [self.name, duration(self.middle), f"{duration(self.low)} to {duration(self.high)}"]


_SQUARE = 400


def _diagonal(times: Sequence[float], name: str) -> tuple[list[str], Scale, Scale]:
    """Return axes of measured times and of others, with the line on which they are equal."""
    across = log_scale(times, _LEFT, WIDTH - _RIGHT)
    up = log_scale(times, _SQUARE - _FOOT, _TOP)
    axes = _axes(across, up, ("measured", name), (_time, _time))
    return [*axes, line(across.start, up.start, across.end, up.end, "even")], across, up


def scatter(title: str, of: Sequence[Dot]) -> Plot:
    """Return predicted over measured times; on the diagonal they are equal."""
    times = [time for one in of for time in (one.low, one.middle, one.high, one.measured)]
    axes, across, up = _diagonal(times, "predicted")
    parts = []
    for one in of:
        x, kind = across.at(one.measured), "inside" if one.inside else "outside"
        parts.append(line(x, up.at(one.low), x, up.at(one.high), f"{kind} reach"))
        told = f"measured {duration(one.measured)}, predicted {duration(one.middle)}"
        parts.append(dot(x, up.at(one.middle), kind, f"{one.name}: {told}"))
    held = sum(one.inside for one in of)
    told = f"{len(of)} predicted times over the measured ones; the interval holds {held} of them."
    rows = [[*one.cells, duration(one.measured), "yes" if one.inside else "no"] for one in of]
    svg = drawing(title, told, _SQUARE, [*axes, *parts])
    heads = ("variant", "predicted", "could be", "measured", "inside")
    legend = (("inside", "interval holds what was measured"), ("outside", "it does not"))
    return Plot(title, svg, heads, rows, legend)


def fits(title: str, of: Sequence[Dot]) -> Plot:
    """Return fitted over measured times, each operation in its colour."""
    names = list(dict.fromkeys(one.name for one in of))
    colour = {name: f"c{place % COLOURS}" for place, name in enumerate(names)}
    axes, across, up = _diagonal([t for one in of for t in (one.middle, one.measured)], "fitted")
    rows = [[one.name, duration(one.measured), duration(one.middle)] for one in of]
    parts = [
        dot(across.at(one.measured), up.at(one.middle), colour[one.name], ", ".join(row))
        for one, row in zip(of, rows, strict=True)
    ]
    told = f"{len(rows)} fitted times of {len(names)} operations over the measured ones."
    svg = drawing(title, told, _SQUARE, [*axes, *parts])
    legend = tuple((kind, name) for name, kind in colour.items())
    return Plot(title, svg, ("operation", "measured", "fitted"), rows, legend)


def ranges(title: str, of: Sequence[Dot]) -> Plot:
    """Return times with their intervals, one below the other."""
    step = 30
    bottom = _TOP + step * len(of)
    ends = [end for one in of for end in (one.low, one.middle, one.high)]
    across = log_scale(ends, 150, WIDTH - _RIGHT - 18)
    parts = [*_axis(across, bottom, _TOP - 6, _time, "predicted time")]
    for place, one in enumerate(of):
        y = _TOP + step * place + 12
        name = one.name if len(one.name) <= _NAME else f"{one.name[: _NAME - 3]}..."
        parts.append(text(142, y + 4, name, anchor="end"))
        parts.append(line(across.at(one.low), y, across.at(one.high), y, "inside reach"))
        parts.append(dot(across.at(one.middle), y, "inside", ": ".join(one.cells[:2])))
    best = min(of, key=lambda one: one.middle)
    told = f"{len(of)} predicted times; the least is {best.name}, {duration(best.middle)}."
    svg = drawing(title, told, bottom + _FOOT, parts)
    heads, legend = ("choice", "predicted", "could be"), (("inside", "predicted, and could be"),)
    return Plot(title, svg, heads, [one.cells for one in of], legend)
