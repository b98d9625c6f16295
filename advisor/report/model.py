"""What every format renders, and where the formats are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from advisor.finding import NOTHING_SEEN, Coverage, Finding, Remark, Verdict
from advisor.ir.rule import Rule
from advisor.report.style import Style
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
