"""The report of a calibration as one page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from advisor.report.pages import of_calibration
from advisor.report.svg import WIDTH
from costdb.calibration.campaign import FittedSection, Made, Measured
from costdb.calibration.section import Fitted, Point, Quality, Skipped, Timing

PAIRS = tuple((10.0**power, 10.0**power * 1.1) for power in range(5))


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "line", "circle", "path", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("line", "circle", "path", "rect"):
            assert self.open.pop() == tag


def made(qualities, notes=()) -> Made:
    launches = ({"setting": {}, "visits": []},)
    run = Measured("2026-11-21T10:00:00.000+00:00 1", "quick", "0", (), launches)
    timing = Timing(Point("message", {"bytes": 8}), (((1.0, 2.0), (3.0,)),))
    section = FittedSection("messages", True, run, (timing,), Fitted({}, tuple(qualities)))
    document = {"name": "here", "title": "<made> & up", "library": "none", "date": "2026-11-21"}
    return Made({**document, "notes": list(notes)}, (section,), (Skipped("remote", "why"),))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(page)
    assert parser.open == []
    return parser.found


def test_every_operation_has_its_row_and_every_point_its_mark() -> None:
    both = [Quality("message.row", 0.1, PAIRS), Quality("message.column", 0.3, PAIRS)]
    page = of_calibration(made(both, ["a <note>"]))
    marks = [a for tag, a in elements(page) if tag == "circle"]
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
    assert sum(tag == "circle" for tag, _ in elements(page)) == 1
    assert "below zero" in page
