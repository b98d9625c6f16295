"""Every format: one sample kept as text, and any report at all."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.finding import NOTHING_SEEN, Crossover, Finding, Verdict
from advisor.report.full import MOST_LINES, block, excerpt, render_statistics
from advisor.report.model import FORMATS, Report, coverage_lines, interval, renderer
from advisor.report.style import Style, detect_style, display_width
from advisor.source import Span
from costdb.quantity import Omission
from tests.advisor.report.report_samples import (
    CALM,
    COLUMN,
    COVERAGE,
    EMPTY,
    FINDINGS,
    REPORTS,
    SAMPLE,
    SHIFTS,
    SOURCE,
    TEXT,
)

KEPT = Path(__file__).parents[2] / "data" / "reports"
SUFFIXES = {
    **dict.fromkeys(("json", "gitlab", "rdjson", "sarif"), "json"),
    **{"junit": "xml", "markdown": "md", "html": "html"},
}
SCHEMA = json.loads(
    resources.files("advisor.report").joinpath("findings.schema.json").read_text("utf-8")
)
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def rendered(output_format: str, report: Report, **style: object) -> str:
    return renderer(output_format)(report, Style(**style))


@pytest.mark.parametrize("output_format", FORMATS)
def test_sample_looks_as_kept(
    output_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    # the pages of the rules, which SARIF holds, are kept with the rules
    monkeypatch.setattr("advisor.transform_registry.rules", tuple)
    kept = KEPT / f"{output_format}.{SUFFIXES.get(output_format, 'txt')}"
    text = rendered(output_format, SAMPLE).replace(tmp_path.resolve().as_uri(), "file:///project")
    assert text == kept.read_text("utf-8")


def test_colours_only_add_escapes() -> None:
    for output_format in ("full", "concise"):
        painted = rendered(output_format, SAMPLE, color=True)
        assert "\x1b[1m" in painted or "\x1b[1;" in painted
        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == rendered(output_format, SAMPLE)


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_json_follows_its_schema(report: Report) -> None:
    document = json.loads(rendered("json", report))
    CHECK.validate(document)
    assert len(document["findings"]) == len(report.findings)
    lines = rendered("json-lines", report).splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    told = ["finding"] * len(report.findings) + ["remark"] * len(report.remarks)
    assert kinds == [*told, "coverage"]
    assert document["coverage"]["complete"] is report.coverage.complete
    for prediction in (one["prediction"] for one in document["findings"]):
        assert prediction is None or prediction["complete"] is (prediction["missing"] == [])


def test_empty_reports_are_valid() -> None:
    names = ("analysed", "fine", "not_understood", "unsupported", "unpriced", "incomplete")
    coverage = {"complete": True, **{name: [] for name in names}}
    assert json.loads(rendered("json", EMPTY)) == {
        "schema_version": 2, "machine": "t3e", "findings": [], "remarks": [], "coverage": coverage
    }  # fmt: skip
    for output_format in ("github", "concise", "json-lines"):
        assert rendered(output_format, EMPTY).count("\n") == 1


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_line_formats_give_one_line_each_whatever_the_text(report: Report) -> None:
    everything = len(report.findings) + len(report.remarks)
    everything += len(coverage_lines(report))
    assert rendered("concise", report).count("\n") == everything
    assert len(rendered("concise", report).splitlines()) == everything


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_full_report_never_replays_control_characters(report: Report) -> None:
    shown = rendered("full", report, width=60)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)


@given(FINDINGS, TEXT, st.integers(80, 120))
@settings(max_examples=60, deadline=None)
def test_no_finding_takes_more_lines_than_twelve(finding: Finding, source: str, width: int) -> None:
    for text in (source, SOURCE, None):
        lines = block(finding, text, Style(width=width))
        assert len(lines) <= MOST_LINES
        assert all("\n" not in line for line in lines)
        assert lines[0].endswith(finding.verdict.upper())
        shown = " ".join(" ".join(lines).split())
        if finding.prediction is not None:
            assert f"could be {interval(finding.prediction)}" in shown


@given(FINDINGS)
@settings(max_examples=40, deadline=None)
def test_every_format_has_class_and_interval(finding: Finding) -> None:
    finding = replace(finding, path="a.py")  # some formats take names of files to pieces
    for count, output_format in ((n, f) for f in FORMATS for n in (1, 4)):
        text = rendered(output_format, Report("t3e", (finding,) * count, (), {}), width=120)
        if SUFFIXES.get(output_format) == "json" or "json" in output_format:
            values = list(_strings(list(map(json.loads, _documents(output_format, text)))))
            text = "\n".join(map(str, values))
        elif output_format == "junit":
            root = ElementTree.fromstring(text.encode("utf-8"))
            text = "\n".join(one.text or "" for one in root.iter())
        assert finding.verdict in text.lower()
        prediction = finding.prediction
        if prediction is not None and output_format not in ("json", "json-lines"):
            text = " ".join(text.replace("%25", "%").split())
            assert interval(prediction) in text, output_format


def _documents(output_format: str, text: str) -> list[str]:
    return text.splitlines() if output_format == "json-lines" else [text]


def _strings(value: object) -> Iterator[object]:
    match value:
        case dict():
            for one in value.values():
                yield from _strings(one)
        case list():
            for one in value:
                yield from _strings(one)
        case _:
            yield value


@pytest.mark.parametrize("count", [1, 3, 4, 10])
def test_many_findings_are_one_table(count: int) -> None:
    verdicts = list(Verdict)
    findings = tuple(
        replace(SHIFTS, span=Span(n, 0, n, 4), verdict=verdicts[n % 3], saves_s=n * 1e-3)
        for n in range(1, count + 1)
    )
    text = rendered("full", replace(SAMPLE, findings=findings, remarks=()), width=100)
    table = text.startswith("gain ")
    assert table == (count > 3)
    if not table:
        return
    head, *rows, whose = text.split("\n\n")[0].splitlines()
    assert whose == "times: as 16 ranks of t3e"
    assert head.split() == ["gain", "could", "be", "saves", "share", "where", "what", "fix"]
    classes = [row for row in rows if row.isupper()]
    assert classes == [verdict.upper() for verdict in verdicts]
    assert len(rows) == count + len(classes)
    assert all(display_width(row) <= 100 for row in rows)
    of_class: list[int] = []
    for row in rows:  # within a class what saves most comes first
        if row in classes:
            of_class = []
            continue
        found = re.search(r"box.py:([0-9]+)", row)
        assert found is not None
        of_class.append(int(found[1]))
        assert of_class == sorted(of_class, reverse=True)


def test_what_may_be_slower_is_never_green() -> None:
    for verdict, colour in ((Verdict.GAIN, "32"), (Verdict.UNCERTAIN, "33"), (Verdict.PLAN, "36")):
        for count, output_format in ((1, "full"), (1, "concise"), (4, "full")):
            findings = (replace(SHIFTS, verdict=verdict),) * count
            shown = rendered(output_format, Report("t3e", findings, (), {}), color=True)
            assert f"\x1b[1;{colour}m{verdict.upper()}\x1b[0m" in shown
            assert ("32m" in shown) == (verdict is Verdict.GAIN)


def test_nothing_to_gain_is_said_only_where_all_was_analysed() -> None:
    parts = ("not_understood", "unsupported", "unpriced", "incomplete")
    partial = [replace(NOTHING_SEEN, **{name: getattr(COVERAGE, name)}) for name in parts]
    for output_format in ("full", "concise", "github", "junit", "sarif"):
        assert "Nothing to gain" in rendered(output_format, CALM)
        for coverage in partial:
            text = rendered(output_format, replace(CALM, coverage=coverage))
            assert "othing to gain" not in text
            assert "No finding in what was analysed" in text
        assert "othing to gain" not in rendered(output_format, replace(CALM, failed=True))
    for output_format in set(FORMATS) - {"gitlab"}:
        for report in (SAMPLE, replace(CALM, coverage=COVERAGE)):
            assert "np.append(out, x)" in rendered(output_format, report), output_format


def test_a_time_without_an_upper_end_is_told_as_one() -> None:
    assert SHIFTS.prediction is not None
    omitted = (Omission(12, "np.fft.fft2(x)", "no price"),)
    lower = replace(SHIFTS.prediction, low=0.9, high=math.inf, omitted=omitted)
    finding = replace(SHIFTS, prediction=lower, verdict=Verdict.UNCERTAIN)
    report = Report("t3e", (finding,), (), {})
    shown = rendered("full", report)
    assert "at least 3.12 -> 1.82 ms a call, 1.72x, could be 0.90x or more" in shown
    assert "no price for `np.fft.fft2(x)` (line 12)" in " ".join(shown.split())
    partly = replace(SHIFTS, prediction=replace(SHIFTS.prediction, omitted=omitted))
    assert "1.72x of known" in rendered("full", Report("t3e", (partly,), (), {}))
    document = json.loads(rendered("json", report))["findings"][0]["prediction"]
    assert document["high"] is None
    assert document["complete"] is False
    assert document["missing"] == [
        {"line": 12, "text": "np.fft.fft2(x)", "reason": "no price", "once": False}
    ]


def test_the_best_gains_of_kernels_are_added_up() -> None:
    other = replace(SHIFTS, kernel="other")
    less = replace(COLUMN, verdict=Verdict.GAIN)
    text = rendered("full", replace(SAMPLE, findings=(SHIFTS, other)))
    assert "each called once: 6.25 ms -> 3.63 ms." in " ".join(text.split())
    same = rendered("full", replace(SAMPLE, findings=(SHIFTS, other, replace(less, priced_as=""))))
    assert "called once" not in same, "priced for another machine"
    alone = rendered("full", replace(SAMPLE, findings=(SHIFTS, replace(SHIFTS, fix=None))))
    assert "called once" not in alone


@pytest.mark.parametrize(
    "message",
    [
        "1.25x faster on t3e: sum by scans",
        "12.5x faster (1.10x to 31x): sum by scans",
        "1.25x: sum by scans",
        "sum by scans",
    ],
)
def test_concise_says_the_gain_once(message: str) -> None:
    report = Report("t3e", (replace(SHIFTS, message=message),), (), {})
    assert rendered("concise", report).startswith(
        "kernels/box.py:6:5: ADV201 [*] GAIN 1.72x (1.41x to 2.05x), saves 1.31 ms, 42 %,"
        " as 16 ranks of t3e: sum by scans\n"
    )


@pytest.mark.parametrize(
    "pays, shown",
    [
        ("b >= 3", "when   faster from b = 3 on\n"),
        ("pays from b = 3", "when   faster from b = 3\n"),
        ("b >= 3, tried to 4096", "when   faster from b = 3 on, tried to 4096\n"),
        ("b in 3..9", "when   faster for b in 3..9\n"),
    ],
)
def test_the_crossover_reads_as_a_sentence(pays: str, shown: str) -> None:
    finding = replace(SHIFTS, crossovers=(Crossover("b", (3,), pays),))
    assert shown in rendered("full", Report("t3e", (finding,), (), {}))


def test_rdjson_counts_bytes() -> None:
    source = "é = '🐍' + x\n"
    finding = replace(SHIFTS, span=Span(1, 10, 1, 11), fix=None)
    report = Report("t3e", (finding,), (), {finding.path: source})
    place = json.loads(rendered("rdjson", report))["diagnostics"][0]["location"]["range"]
    assert place["start"] == {"line": 1, "column": source.encode().index(b"x") + 1}


@pytest.mark.parametrize(
    "source, span",
    [
        ("\tx = f(y)\n", Span(1, 5, 1, 9)),
        ("s = '漢字', f(y)\n", Span(1, 10, 1, 14)),
        ("plain = f(y)", Span(1, 8, 1, 12)),
        (f"s = '{'a' * 300}', f(y), '{'b' * 300}'\n", Span(1, 308, 1, 312)),
    ],
)
def test_the_marker_stands_under_the_place(source: str, span: Span) -> None:
    line, marker = excerpt(source, span, Style(width=80))
    reasoned = excerpt(source, span, Style(width=80), "each call copies; that takes time")
    assert reasoned[:1] == [line]
    assert reasoned[1] == f"{marker} each call copies"
    start, end = marker.index("^"), marker.rindex("^") + 1
    assert end - start == len("f(y)")
    before = line[: line.index("f(y)")]
    assert display_width(before) == start
    assert display_width(line) <= 80


def test_of_a_long_statement_the_first_line_is_shown() -> None:
    source = "".join(f"line{n}\n" for n in range(1, 41))
    shown = excerpt(source, Span(3, 0, 38, 6), Style(), "slow.")
    assert shown == ["    3 | line3", "      | ^^^^^ (to line 38) slow"]
    assert excerpt(source, Span(99, 0, 99, 1), Style()) == []


class _Stream:
    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    "terminal, environment, color",
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_conventions(
    terminal: bool, environment: dict[str, str], color: bool
) -> None:
    assert detect_style(_Stream(terminal), environment).color is color


@pytest.mark.parametrize(
    "columns, width", [("50", 50), ("5", 40), ("4000", 120), ("0", 100), ("", 100), ("wide", 100)]
)
def test_a_pipe_has_a_width_of_its_own_unless_one_is_asked_for(columns: str, width: int) -> None:
    assert detect_style(_Stream(False), {"COLUMNS": columns}).width == width
    assert detect_style(None, {"COLUMNS": columns}).width == width
    assert detect_style(_Stream(False), {}).width == 100


def test_statistics_count_by_rule() -> None:
    report = Report("t3e", (*SAMPLE.findings, SHIFTS), (), {})
    document = json.loads(render_statistics(report, as_json=True))
    assert [(row["code"], row["count"], row["fixable"]) for row in document["statistics"]] == [
        ("ADV201", 2, 2),
        ("ADV101", 1, 0),
    ]
    saved = 2 * (SHIFTS.prediction.before_s - SHIFTS.prediction.after_s)
    assert document["statistics"][0]["saved_s"] == pytest.approx(saved)
    assert render_statistics(report, as_json=False).startswith("2  ADV201  repeated-shifts: 2 fix")
    assert render_statistics(EMPTY, as_json=False) == ""
