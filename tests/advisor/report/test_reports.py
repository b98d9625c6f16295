"""Every format: one sample kept as text, and any report at all."""

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings

from advisor.edits import apply_edits, split_lines
from advisor.finding import Crossover
from advisor.report import statistics
from advisor.report.excerpt import excerpt
from advisor.report.model import FORMATS, Report, renderer
from advisor.report.style import Style, detect_style, display_width
from advisor.source import Edit, Span
from tests.advisor.report.report_samples import EMPTY, REPORTS, SAMPLE, SHIFTS, SOURCE

KEPT = Path(__file__).parents[2] / "data" / "reports"
SUFFIXES = {"json": "json", "gitlab": "json", "rdjson": "json", "sarif": "json", "junit": "xml"}
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
    assert kinds == ["finding"] * len(report.findings) + ["remark"] * len(report.remarks)


def test_empty_reports_are_valid() -> None:
    empty = json.loads(rendered("json", EMPTY))
    CHECK.validate(empty)
    assert empty == {"schema_version": 1, "machine": "t3e", "findings": [], "remarks": []}
    assert json.loads(rendered("gitlab", EMPTY)) == []
    assert json.loads(rendered("sarif", EMPTY))["runs"][0]["results"] == []
    assert json.loads(rendered("rdjson", EMPTY))["diagnostics"] == []
    assert ElementTree.fromstring(rendered("junit", EMPTY)).get("failures") == "0"
    assert rendered("github", EMPTY) == rendered("concise", EMPTY) == ""
    assert rendered("json-lines", EMPTY) == ""


def test_the_schema_refuses_what_is_not_a_finding() -> None:
    document = json.loads(rendered("json", SAMPLE))
    CHECK.validate(document)
    del document["findings"][0]["prediction"]["low"]
    assert not CHECK.is_valid(document)
    document = json.loads(rendered("json", SAMPLE))
    document["findings"][0]["location"]["column"] = 0
    assert not CHECK.is_valid(document)


def test_json_edits_can_be_applied_by_others() -> None:
    fix = json.loads(rendered("json", SAMPLE))["findings"][0]["fix"]
    edits = [
        Edit(
            Span(
                edit["location"]["row"],
                edit["location"]["column"] - 1,
                edit["location"]["end_row"],
                edit["location"]["end_column"] - 1,
            ),
            edit["replacement"],
        )
        for edit in fix["edits"]
    ]
    assert SHIFTS.fix is not None
    assert apply_edits(SOURCE, edits) == apply_edits(SOURCE, SHIFTS.fix.edits)


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_line_formats_give_one_line_each_whatever_the_text(report: Report) -> None:
    everything = len(report.findings) + len(report.remarks)
    assert rendered("concise", report).count("\n") == everything
    assert len(rendered("concise", report).splitlines()) == everything
    commands = rendered("github", report).split("\n")[:-1]
    assert len(commands) == len(report.findings)
    for command, finding in zip(commands, report.findings, strict=True):
        properties = command.removeprefix("::notice ").split("::")[0].split(",")
        names = [one.partition("=")[0] for one in properties]
        one_line = finding.span.start_line == finding.span.end_line
        assert ("col" in names) == one_line
        assert names[:4] == ["title", "file", "line", "endLine"]


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_other_formats_parse_whatever_the_text(report: Report) -> None:
    root = ElementTree.fromstring(rendered("junit", report).encode("utf-8"))
    assert len(root.findall(".//failure")) == len(report.findings)
    results = json.loads(rendered("sarif", report))["runs"][0]["results"]
    assert all(0 <= result["rank"] <= 100 for result in results)
    fingerprints = [issue["fingerprint"] for issue in json.loads(rendered("gitlab", report))]
    assert len(set(fingerprints)) == len(report.findings)
    assert len(json.loads(rendered("rdjson", report))["diagnostics"]) == len(report.findings)


@given(REPORTS)
@settings(max_examples=25, deadline=None)
def test_full_report_never_replays_control_characters(report: Report) -> None:
    shown = rendered("full", report, width=60)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    times = [finding for finding in report.findings if finding.prediction is not None]
    assert shown.count("predicted (") == len(times)


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
    assert rendered("concise", report).endswith("[*] 1.72x (1.41x..2.05x) sum by scans\n")


@pytest.mark.parametrize(
    "pays, shown",
    [
        ("b >= 3", "pays       from b = 3, all"),
        ("pays from b = 3", "pays       from b = 3, all"),
        ("b >= 3, searched to 4096", "pays       from b = 3, searched to 4096, all"),
        ("b in 3..9", "pays       b in 3..9, all"),
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
    start, end = marker.index("^"), marker.rindex("^") + 1
    assert end - start == len("f(y)")
    before = line[: line.index("f(y)")]
    assert display_width(before) == start
    assert display_width(line) <= 80


def test_a_long_statement_is_shortened_in_the_middle() -> None:
    source = "".join(f"line{n}\n" for n in range(1, 41))
    shown = excerpt(source, Span(3, 0, 38, 6), Style())
    assert [line.split()[-1] for line in shown] == [
        "line3", "line4", "line5", "line6", "...", "line38"
    ]  # fmt: skip
    assert excerpt(source, Span(99, 0, 99, 1), Style()) == []
    assert len(split_lines(source)) == 41


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
    "columns, width", [("50", 50), ("5", 40), ("4000", 110), ("0", 88), ("", 88), ("wide", 88)]
)
def test_a_pipe_has_a_width_of_its_own_unless_one_is_asked_for(columns: str, width: int) -> None:
    assert detect_style(_Stream(False), {"COLUMNS": columns}).width == width
    assert detect_style(None, {"COLUMNS": columns}).width == width
    assert detect_style(_Stream(False), {}).width == 88


def test_statistics_count_by_rule() -> None:
    report = Report("t3e", (*SAMPLE.findings, SHIFTS), (), {})
    document = json.loads(statistics.render(report, as_json=True))
    assert [(row["code"], row["count"], row["fixable"]) for row in document["statistics"]] == [
        ("ADV201", 2, 2),
        ("ADV101", 1, 0),
    ]
    saved = 2 * (SHIFTS.prediction.before_s - SHIFTS.prediction.after_s)
    assert document["statistics"][0]["saved_s"] == pytest.approx(saved)
    assert statistics.render(report, as_json=False).startswith("2  ADV201  repeated-shifts: 2 fix")
    assert statistics.render(EMPTY, as_json=False) == ""
