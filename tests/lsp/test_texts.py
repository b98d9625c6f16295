"""Settings, hovers, hints, offers, suppressions and rule pages: what needs no protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lsp_session import KERNEL

from advisor.engine import Options, check_source
from advisor.finding import ONE_PROCESS, Applicability, Finding
from advisor.lsp.analyses import Document, analyse, rewrite_edits, suppression_edits, with_details
from advisor.lsp.protocol import (
    QUICK_FIX,
    REWRITE,
    OptionsOfFiles,
    SettingError,
    Settings,
    actions,
    hints,
    hover_markdown,
    hover_plain,
    machine_name,
    plain,
    read_settings,
    size,
    write_pages,
)
from advisor.report.full import block
from advisor.report.model import headline
from advisor.report.style import Style
from advisor.source import apply_edits
from advisor.transform_registry import rules

OPTIONS = Options("sp2", {}, (), (), 1.0)
DOCUMENT = Document("file:///a.py", "utf-16", 1, KERNEL)


@pytest.fixture(scope="module")
def finding() -> Finding:
    (found,) = check_source("a.py", KERNEL, OPTIONS).findings
    return found


def test_settings_of_an_editor() -> None:
    default = Settings(machine="t3e")
    assert read_settings(None, default) == (default, ())
    given = {"machine": "sp2", "sizes": {"N": 5, "b": 2.0}, "minSpeedup": 2, "inlayHints": True}
    wanted = Settings("sp2", {"N": 5, "b": 2}, 2.0, True)
    assert read_settings(given, default) == (wanted, ())
    assert read_settings({"advise": given}, default) == (wanted, ())
    # what VS Code sends when nothing is set, and settings of its own
    unset = {"machine": "", "sizes": {}, "minSpeedup": None, "server": {"command": ["advise"]}}
    assert read_settings(unset, default) == (default, ())


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ([], "must be an object"),
        ({"machine": 3}, "machine: must be a name"),
        ({"machine": "t3f"}, "t3f"),
        ({"sizes": [1]}, "sizes: must be an object"),
        ({"sizes": {"N": 0}}, "N = 0 is not a positive number"),
        ({"sizes": {"N": True}}, "N = True is not a positive number"),
        ({"sizes": {"N": float("inf")}}, "not a positive number"),
        ({"sizes": {"1N": 1}}, "'1N' is not a name"),
        ({"minSpeedup": "fast"}, "minSpeedup: 'fast'"),
        ({"inlayHints": 1}, "inlayHints: 1 is neither true nor false"),
        ({"hints": True}, "hints: unknown setting; known are machine, sizes"),
    ],
)
def test_a_wrong_setting_is_one_line_and_the_others_hold(given: object, part: str) -> None:
    settings, (problem,) = read_settings(given, Settings(machine="t3e"))
    assert settings == Settings(machine="t3e")
    assert part in problem
    assert "\n" not in problem


def test_choices_of_a_session_go_over_settings() -> None:
    settings = Settings("t3e", {"N": 1, "b": 2}, 1.5, True)
    assert settings.with_chosen(Settings("sp2", {"N": 3})) == Settings(
        "sp2", {"N": 3, "b": 2}, 1.5, True
    )
    assert settings.with_chosen(Settings()) == settings
    assert machine_name(None) is None
    assert size("message.alpha", 1e6) == ("message.alpha", 1_000_000)
    with pytest.raises(SettingError):
        size(3, 3)


def test_a_hover_holds_all_that_a_prediction_rests_on(finding: Finding) -> None:
    text = hover_markdown([finding], current=True)
    prediction, evidence = finding.prediction, finding.evidence
    assert text.startswith(f"**{plain(headline(finding))}**")
    assert f"{prediction.speedup:.2f}x" in text
    for term in evidence.terms:
        assert f"| {plain(term.label)} |" in text
    for line in (*evidence.facts, *evidence.remarks, *evidence.coefficients, finding.reason):
        assert plain(line) in text
    for alternative in finding.alternatives:
        assert plain(alternative.reason) in text
    for crossover in finding.crossovers:
        assert plain(str(crossover.values[0])) in text
    assert "N = 1000 (line 11)" in text
    assert "before the last edits" not in text
    assert "before the last edits" in hover_markdown([finding], current=False)
    assert text in hover_markdown([finding, finding], current=True)


def test_a_hover_without_markdown_is_the_report(finding: Finding) -> None:
    text = hover_plain([finding], current=True)
    assert text == "\n".join(block(finding, None, Style()))
    assert "Analysed" not in text
    assert hover_plain([finding], current=False).startswith(text)


def test_text_of_users_cannot_become_markdown() -> None:
    assert plain("a|b `c` *d* <e>\n[f](g)") == r"a\|b \`c\` \*d\* \<e\> \[f\](g)"


def test_hints_name_the_time_and_its_largest_part(finding: Finding) -> None:
    line = finding.span.start_line
    (hint,) = hints(DOCUMENT, [finding], 1, 100)
    assert hint.position == DOCUMENT.end_of_line(line)
    largest = max(finding.evidence.terms, key=lambda term: term.before_s or 0)
    share = 100 * (largest.before_s or 0) / finding.prediction.before_s
    label = str(hint.label)
    assert label.startswith("~ ") and label.endswith(f", {share:.0f} % {largest.label}")
    assert (
        hints(DOCUMENT, [finding], line + 1, 100) == hints(DOCUMENT, [finding], 1, line - 1) == []
    )
    more = replace(finding, saves_s=9.0, message="9x: more")
    assert [one.tooltip for one in hints(DOCUMENT, [finding, more], 1, 100)] == [headline(more)]
    timeless = replace(finding, evidence=replace(finding.evidence, terms=()))
    assert "%" not in str(hints(DOCUMENT, [timeless], 1, 100)[0].label)


def offered(
    finding: Finding, only: list[str] | None = None, *, here: bool = False, twice: int = 1
) -> list[tuple[str, str, bool | None]]:
    """Return the title, kind and preference of each action on a finding."""
    made = actions(DOCUMENT, [finding] * twice, only, lambda machine: here, {})
    return [(one.title.partition(" ")[0], str(one.kind), one.is_preferred) for one in made]


def test_which_actions_are_offered(finding: Finding) -> None:
    assert finding.fix is not None
    quick, rewrite = str(QUICK_FIX), str(REWRITE)
    ignore = ("Ignore", quick, None)
    both = [("PLAN", quick, True), ignore]
    for only in (None, [QUICK_FIX], [""]):
        assert offered(finding, only) == both
    assert offered(finding, ["refactor"]) == [("PLAN", rewrite, None)]
    for only in (["source.fixAll"], ["refact"]):
        assert offered(finding, only) == []
    unsafe = replace(finding, fix=replace(finding.fix, applicability=Applicability.UNSAFE))
    assert offered(unsafe) == [("PLAN", rewrite, None), ignore]
    assert offered(unsafe, [QUICK_FIX]) == [ignore]
    (first, *_) = actions(DOCUMENT, [unsafe], None, lambda machine: False, {})
    assert first.title == f"{headline(finding)} (unsafe: results may differ)"
    display = replace(finding, fix=replace(finding.fix, applicability=Applicability.DISPLAY))
    assert offered(display) == offered(replace(finding, fix=None)) == [ignore]
    one_process = replace(finding, priced_as=f"{ONE_PROCESS} here")
    measures = ("Measure", quick, None)
    assert offered(one_process, here=True, twice=2).count(measures) == 1
    assert measures not in offered(one_process)


SILENCED = {
    "plain": (KERNEL, "on=ranks)],  # advise: ignore[ADV101]\n"),
    "behind a comment": (
        KERNEL.replace("on=ranks)],", "on=ranks)],  # wide"),
        "on=ranks)],  # wide  # advise: ignore[ADV101]\n",
    ),
    "trailing blanks": (
        KERNEL.replace("on=ranks)],", "on=ranks)],   "),
        "on=ranks)],  # advise: ignore[ADV101]\n",
    ),
    "beside another": (
        KERNEL.replace("on=ranks)],", "on=ranks)],  # advise: ignore[ADV501]"),
        "# advise: ignore[ADV501]  # advise: ignore[ADV101]\n",
    ),
    "windows": (KERNEL.replace("\n", "\r\n"), "on=ranks)],  # advise: ignore[ADV101]\r\n"),
}


@pytest.mark.parametrize("name", SILENCED)
def test_ignore_here_silences_the_finding_and_nothing_else(name: str) -> None:
    text, wanted = SILENCED[name]
    (finding,) = analyse("a.py", text, OPTIONS).findings
    edits = suppression_edits("a.py", text, OPTIONS, finding)
    assert edits is not None
    changed = apply_edits(text, edits)
    assert wanted in changed
    assert analyse("a.py", changed, OPTIONS).findings == ()
    assert suppression_edits("a.py", changed, OPTIONS, finding) is None  # it is gone


def test_ignore_here_where_no_comment_fits_behind_the_line() -> None:
    array = 'Dist("N", "N", None, Block("rank"), on=ranks)'
    text = KERNEL.replace(array, "by_columns").replace(
        "@kernel", f"by_columns = \\\n    {array}\n\n\n@kernel", 1
    )
    (finding,) = analyse("a.py", text, OPTIONS).findings
    edits = suppression_edits("a.py", text, OPTIONS, finding)
    assert edits is not None
    assert analyse("a.py", apply_edits(text, edits), OPTIONS).findings == ()


def test_rewrites_are_made_by_the_engine(finding: Finding) -> None:
    edits = rewrite_edits("a.py", KERNEL, OPTIONS, finding)
    assert edits is not None
    assert finding.fix is not None
    assert edits == finding.fix.edits
    changed = apply_edits(KERNEL, edits)
    again = analyse("a.py", changed, OPTIONS)
    assert again.understood
    assert finding.message not in {found.message for found in again.findings}
    assert rewrite_edits("a.py", changed, OPTIONS, finding) is None


def test_what_somebody_looks_at_is_what_the_engine_says_with_all_details(finding: Finding) -> None:
    (brief,) = analyse("a.py", KERNEL, replace(OPTIONS, details=False)).findings
    assert brief != finding
    assert with_details("a.py", KERNEL, OPTIONS, [brief]) == [finding]
    # where it has moved to since, and where it is gone
    moved = replace(brief, span=replace(brief.span, end_line=99))
    (shown,) = with_details("a.py", KERNEL, OPTIONS, [moved])
    assert shown == replace(finding, span=moved.span)
    assert with_details("a.py", "", OPTIONS, [brief]) == [brief]


def test_what_cannot_be_analysed_is_a_value() -> None:
    assert analyse("a.py", "x = 1", Options(None, {}, (), (), None)).understood
    assert "nowhere" in analyse("a.py", KERNEL, replace(OPTIONS, machine="nowhere")).failure
    assert analyse("a.py", KERNEL + "(", OPTIONS).half_typed
    assert analyse("a.py", KERNEL + "# \ud83d", OPTIONS).half_typed
    wrong = analyse("a.py", KERNEL.replace("N=1000", "N=0"), OPTIONS)
    assert not wrong.half_typed
    assert wrong.problem is not None


def test_a_configuration_file_counts_and_the_editor_goes_over_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.advise]\nmachine = "sp2"\nexclude = ["old"]\n[tool.advise.sizes]\nN = 5\nM = 6\n'
    )
    options = OptionsOfFiles(Settings(sizes={"N": 7})).of(str(tmp_path / "a.py"))
    assert options is not None
    assert options.machine == "sp2"
    assert options.sizes == {"N": 7, "M": 6}
    assert options.size_origins["N"] == "editor"
    assert options.size_origins["M"] != "editor"
    assert OptionsOfFiles(Settings()).of(str(tmp_path / "old" / "a.py")) is None


def test_rule_pages_are_files(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "new" / "rules")
    assert set(pages) == {rule.code for rule in rules()}
    for code, uri in pages.items():
        assert uri.startswith("file:///")
        text = (tmp_path / "new" / "rules" / f"{code}.md").read_text()
        assert text.startswith(f"# {code} ")
        assert "**Why it costs.**" in text
    assert write_pages(tmp_path / "new" / "rules") == pages
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert write_pages(occupied / "rules") == {}
