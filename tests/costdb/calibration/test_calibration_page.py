"""The report of a calibration as one page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from costdb.calibration.page import page_of
from costdb.calibration.profile import FittedSection, Made
from costdb.calibration.section import Fitted, Point, Quality, Skipped, Timing
from costdb.store.records import Launch, Run

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
    run = Run("2026-11-21T10:00:00.000+00:00 1", "here", "quick", 2, "0", ("messages",))
    launches = (Launch(run.id, "messages", 1, {}, True),)
    timing = Timing(Point("message", {"bytes": 8}), (((1.0, 2.0), (3.0,)),))
    section = FittedSection(
        "messages", True, run, launches, (timing,), Fitted({}, tuple(qualities))
    )
    document = {"name": "here", "title": "<made> & up", "library": "none", "date": "2026-11-21"}
    return Made({**document, "notes": list(notes)}, (section,), (Skipped("remote", "why"),))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(page)
    assert parser.open == []
    return parser.found


def begun(path: dict[str, str | None]) -> tuple[str, str]:
    """Where the drawing of a mark begins."""
    place = re.match(r"M([-.0-9]+) ([-.0-9]+)", path["d"] or "")
    assert place is not None
    return place[1], place[2]


def test_every_model_has_its_row_and_every_point_its_marks() -> None:
    ours = Quality("message", "M1 in pieces", 0.01, 0.1, 5, True, PAIRS)
    standard = Quality("message", "S1", 0.5, 0.3, 5, False, PAIRS)
    page = page_of(made([ours, standard], ["a <note>"]))
    found = elements(page)
    marks = [begun(a) for tag, a in found if tag == "path"]
    assert len(marks) == 2 * len(PAIRS) + 2  # of both models, with the keys of the legend
    for across, up in marks:
        assert 0 <= float(across or "") <= 376
        assert 0 <= float(up or "") <= 260
    assert [a.get("class") for tag, a in found if tag == "tr"] == [None, "chosen", None]
    assert "M1 in pieces" in page
    assert "&lt;made&gt; &amp; up" in page
    assert "a &lt;note&gt;" in page
    assert "1 point, 3 samples in 1 launch, begun" in page


def test_the_page_needs_nothing_else() -> None:
    page = page_of(made([Quality("message", "S1", 0.5, 0.3, 5, True, PAIRS)]))
    assert not re.search(r"https?:|<script|<link|\bsrc=|@import|url\(", page)


def test_models_without_points_or_with_odd_ones_have_a_row_only() -> None:
    page = page_of(
        made(
            [
                Quality("message", "none", 0.5, 0.3, 0, True),
                Quality("message", "below zero", 0.5, 0.3, 1, False, ((1.0, -2.0),)),
                Quality("scan", "one", 0.5, 0.3, 1, True, ((1.0, 1.0),)),
            ]
        )
    )
    found = elements(page)
    # the one point, and its key
    assert sum(tag == "path" for tag, _ in found) == 2
    assert "below zero" in page
