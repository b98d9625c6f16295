"""Pages and comments: they hold no markup but ours, whatever users write, and every number."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.cli.commands.explain import judged_in
from advisor.engine import Options
from advisor.report.html import curves_of, figure
from advisor.report.model import Curve, Report, figures, renderer, rows
from advisor.report.pages import of_calibration
from advisor.report.style import Style, one_line
from advisor.report.svg import WIDTH, Bar, Dot, Scale, bars, curve, log_scale, ranges, scatter
from costdb.calibration.campaign import FittedSection, Made, Measured
from costdb.calibration.section import Fitted, Point, Quality, Skipped, Timing
from costdb.evaluate import compare
from tests.advisor.cli.commands import EXAMPLES
from tests.advisor.report.report_samples import REPORTS, SAMPLE, SHIFTS, TEXT

OURS = frozenset(
    (
        *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div"),
        *("table", "tr", "th", "td", "span", "a", "article", "header", "pre", "code", "i"),
        *("dl", "dt", "dd", "figure", "figcaption", "ul", "li", "details", "summary", "br"),
        *("svg", "text", "line", "circle", "path", "rect", "desc"),
    )
)
HOSTILE = '<script>alert(1)</script> onload="x" `\'</td></svg> | @someone [a](b)'


class Seen(HTMLParser):
    """The tags, attributes and texts of a page; every tag that is opened must be closed."""

    EMPTY = frozenset(("meta", "br"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def shown(output_format: str, report: Report) -> str:
    return renderer(output_format)(report, Style())


def hostile(report: Report) -> Report:
    one = replace(
        SHIFTS, path=f"{HOSTILE}.py", kernel=HOSTILE, reason=HOSTILE, message=f"x: {HOSTILE}"
    )
    source = report.sources["kernels/box.py"].replace("import numpy", f"# {HOSTILE}\nimport numpy")
    return replace(report, findings=(one,), sources={one.path: source})


@given(REPORTS)
@example(hostile(SAMPLE))
def test_a_page_holds_no_tag_of_others(report: Report) -> None:
    seen = Seen(shown("html", report))
    assert seen.tags <= OURS
    names = {name for _, attributes in seen.elements for name in attributes}
    assert not any(name.startswith("on") or name in ("src", "style") for name in names)


def test_a_page_says_what_the_report_says() -> None:
    text = Seen(shown("html", SAMPLE)).text
    for finding in SAMPLE.findings:
        for told in (*rows(finding).values(), *figures(finding), finding.verdict.upper()):
            assert one_line(told).replace("`", "") in text
    assert "@media (prefers-color-scheme: dark)" in shown("html", SAMPLE)


@given(REPORTS)
@example(hostile(SAMPLE))
def test_a_comment_holds_no_markup_of_others(report: Report) -> None:
    text = shown("markdown", report)
    # what is fenced is shown as it is
    fence = re.compile(r"^(`{3,})(?:text|diff)\n.*?^\1$", re.MULTILINE | re.DOTALL)
    outside = fence.sub("", text)
    tags = re.findall(r"(?<!\\)<[^>]*>", outside)
    assert set(tags) <= {"<details>", "</details>", "<summary>", "</summary>"}
    assert tags.count("</details>") == len(report.findings)
    assert not re.search(r"@\w", outside)
    table = [line for line in outside.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) <= 1


@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=9), st.floats(1e-9, 1e6))
def test_scales_keep_the_order_and_stay_inside(values: list[float], value: float) -> None:
    for scale in (log_scale(values, 10, 200), Scale(0, max(values), 10, 200, log=False)):
        places = [scale.at(one) for one in sorted([*values, value])]
        assert places == sorted(places)
        assert 10 <= places[0] <= places[-1] <= 200
        assert all(10 <= scale.at(tick) <= 200 for tick in scale.ticks())
        assert len(scale.ticks()) <= 6


@given(TEXT, TEXT)
def test_every_plot_has_its_words_and_its_numbers(name: str, other: str) -> None:
    points = ((1.0, 0.5, 0.9, 1.2), (10.0, 0.8, 1.5, float("inf")))
    plots = (
        curve(Curve(name, 10.0, points, (4.0,)), other),
        bars(name, [Bar(name, ((other, 0.5), ("x", 0.25))), Bar("after", ())]),
        scatter(name, [Dot(other, 1.0, 2.0, 3.0, 4.0), Dot(name, 1.0, 2.0, 3.0, 2.0)]),
        ranges(name, [Dot(other, 1.0, 2.0, 3.0)]),
    )
    for plot in plots:
        seen = Seen(figure(plot))
        assert seen.tags <= OURS
        assert {"title", "desc", "table"} <= seen.tags
        assert plot.rows
        assert all(len(row) == len(plot.heads) for row in plot.rows)


@pytest.mark.parametrize("name", ["box_sum.py", "adi.py"])
def test_curves_are_the_prices_of_the_finding(name: str) -> None:
    path = str(EXAMPLES / name)
    drawn = 0
    for one in judged_in(path, (EXAMPLES / name).read_text(), Options("t3e", {}, (), (), None)):
        prediction = one.finding.prediction
        assert prediction is not None
        sizes = {a.name: a.value for a in one.finding.assumptions if not isinstance(a.value, str)}
        for found in curves_of(one):
            drawn += 1
            here = {x: ends for x, *ends in found.points}[found.here]
            assert here == pytest.approx([prediction.low, prediction.speedup, prediction.high])
            value, *ends = found.points[-1]
            ratio = compare(one.before, one.after, {**sizes, found.variable: int(value)})
            assert ends == [ratio.low, ratio.mid, ratio.high]
            assert [x for x, *_ in found.points] == sorted({x for x, *_ in found.points})
    assert drawn


# The report of a calibration.

PAIRS = tuple((10.0**power, 10.0**power * 1.1) for power in range(5))


def made(qualities: list[Quality], notes: tuple[str, ...] = ()) -> Made:
    launches = ({"setting": {}, "visits": []},)
    run = Measured("2026-11-21T10:00:00.000+00:00 1", "quick", "0", (), launches)
    timing = Timing(Point("message", {"bytes": 8}), (((1.0, 2.0), (3.0,)),))
    section = FittedSection("messages", True, run, (timing,), Fitted({}, tuple(qualities)))
    document = {"name": "here", "title": "<made> & up", "library": "none", "date": "2026-11-21"}
    return Made({**document, "notes": list(notes)}, (section,), (Skipped("remote", "why"),))


def test_every_operation_has_its_row_and_every_point_its_mark() -> None:
    both = [Quality("message.row", 0.1, PAIRS), Quality("message.column", 0.3, PAIRS)]
    page = of_calibration(made(both, ("a <note>",)))
    marks = [a for tag, a in Seen(page).elements if tag == "circle"]
    assert [a["class"] for a in marks] == ["c0"] * len(PAIRS) + ["c1"] * len(PAIRS)
    for mark in marks:
        assert 0 <= float(mark["cx"] or "") <= WIDTH
        assert 0 <= float(mark["cy"] or "") <= 400
    assert "<td>message.row</td><td>10.0 %</td><td>5</td>" in page
    assert "&lt;made&gt; &amp; up" in page
    assert "a &lt;note&gt;" in page
    assert "1 point, 3 samples in 1 launch, begun" in page
    # the page needs nothing else
    assert not re.search(r"https?:|<script|<link|\bsrc=|@import|url\(", page)


def test_operations_without_points_or_with_odd_ones_have_a_row_only() -> None:
    odd = Quality("below zero", 0.3, ((1.0, -2.0),))
    page = of_calibration(made([Quality("none", 0.3), odd, Quality("one", 0.3, ((1.0, 1.0),))]))
    assert sum(tag == "circle" for tag, _ in Seen(page).elements) == 1
    assert "below zero" in page
