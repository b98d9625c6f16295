"""What every format renders, and where the formats are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from advisor.finding import NOTHING_SEEN, Coverage, Finding, Remark, Verdict
from advisor.ir.rule import Rule
from advisor.ranking.compare import TRIED_TO
from advisor.ranking.findings import Judged
from advisor.report.style import Style
from costdb.crossovers import crossover
from costdb.evaluate import compare
from costdb.expr import ExprError, free_symbols
from costdb.records import dataclass

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
_FORMATS = {
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
FORMATS = tuple(_FORMATS)
SHOWS_DETAILS = frozenset(("full", "json", "json-lines", "markdown", "html"))
"""Formats that tell what findings rest on and where else they pay."""


def renderer(output_format: str) -> Renderer:
    """Return the function that renders a format of `FORMATS`."""
    module, _, function = _FORMATS[output_format].partition(":")
    render: Renderer = getattr(import_module(module), function)
    return render


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
