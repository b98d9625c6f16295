"""Configuration, exclusion, baselines and the cache, as a run of the program shows them."""

from pathlib import Path

import pytest

from advisor import engine
from advisor.cache import FOLDER_NAME
from tests.advisor.cli import marker_engine
from tests.advisor.cli.commands import Advise, refused


def configure(text: str, folder: str = ".") -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "pyproject.toml").write_text(f"[tool.advise]\n{text}\n")


def concise(advise: Advise, *arguments: str, machine: str | None = None) -> list[str]:
    ended = advise(*arguments, "--output-format", "concise", machine=machine)
    assert ended.err == ""
    return [line for line in ended.out.splitlines() if not line.startswith("Analysed ")]


# --- configuration ------------------------------------------------------------------------


def test_options_of_a_rule_reach_that_rule(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW2\n")
    configure('machine = "t3e"\n[tool.advise.rules.repeated-shifts]\nmin-speedup = 3.0')
    assert concise(advise, "k.py") == []
    assert len(concise(advise, "k.py", "--min-speedup", "1.5")) == 1
    configure('machine = "t3e"\n[tool.advise.rules.ADV201]\nfail-above = 2.5')
    assert advise("k.py", machine=None).code == 0
    configure('machine = "t3e"\nfail-above = 9.0\n[tool.advise.rules.ADV201]\nfail-above = 1.5')
    assert advise("k.py", machine=None).code == 1
    assert advise("k.py", "--fail-above", "9", machine=None).code == 0


def test_standard_input_is_configured_by_its_name(advise: Advise) -> None:
    configure('machine = "t3e"\nexclude = ["k.py"]', "inner")
    named = ("-", "--stdin-filename", "inner/k.py", "--output-format", "concise")
    assert advise(*named, stdin=b"kernel SLOW", machine=None).code == 1
    excluded = advise(*named, "--force-exclude", stdin=b"kernel SLOW", machine=None)
    assert (excluded.code, excluded.out[:16]) == (0, "Nothing to check")
    fixed = advise(*named, "--force-exclude", "--fix", stdin=b"kernel SLOW", machine=None)
    assert (fixed.code, fixed.out) == (0, "kernel SLOW")


def test_options_that_contradict_each_other(advise: Advise) -> None:
    Path("k.py").touch()
    refused(advise("k.py", "--config", "x.toml", "--isolated"), "exclude each other")
    refused(advise("k.py", "--config", "x.toml"), "x.toml", "No such file")
    refused(advise("k.py", "--baseline", "a", "--write-baseline", "b"), "exclude each other")
    refused(advise("k.py", "--jobs", "0"), "jobs")


# --- exclusion ----------------------------------------------------------------------------


def test_excluded_files_are_left_out_unless_they_are_named(advise: Advise) -> None:
    configure('machine = "t3e"\nexclude = ["gen", "*_old.py"]')
    for path in ("k.py", "gen/deep/k.py", "a_old.py", "keep/gen.py"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("kernel SLOW\n")

    def seen(*arguments: str) -> list[str]:
        return [line.partition(":")[0] for line in concise(advise, *arguments)]

    assert seen(".") == ["k.py", "keep/gen.py"]
    assert seen(".", "--exclude", "keep,x") == ["k.py"]
    assert seen("a_old.py", "gen") == ["a_old.py"]
    assert seen("a_old.py", "gen/deep/k.py", "k.py") == ["a_old.py", "gen/deep/k.py", "k.py"]
    assert seen("a_old.py", "gen/deep/k.py", "gen", "k.py", "--force-exclude") == ["k.py"]
    ended = advise("gen", "a_old.py", "--force-exclude", machine=None)
    assert (ended.code, ended.err) == (0, "")


def test_a_run_over_nothing_says_so(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    ended = advise(".", "--exclude", "*.py")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "Nothing to check: there is no Python file here that is not excluded.\n"


# --- baselines ----------------------------------------------------------------------------


def test_a_baseline_accepts_what_is_there_and_no_more(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\nRISKY SLOW\n")
    written = advise("k.py", "--write-baseline", "known.json")
    assert (written.code, written.out, written.err) == (0, "", "3 accepted in known.json\n")
    known = ("k.py", "--baseline", "known.json")
    assert advise(*known, "--output-format", "concise").out.startswith("Analysed 1 of 1")
    assert advise(*known).code == 0
    Path("k.py").write_text("# moved\n\n\n\nkernel SLOW\n\nRISKY SLOW SLOW\nMANUAL\n")
    more = advise(*known, "--output-format", "concise")
    assert more.code == 1
    # one more of the same kind is new too: an entry accepts one finding
    assert [line.split(":")[1] for line in more.out.splitlines()[:-1]] == ["7", "8"]
    assert "2 " in advise(*known, "--statistics").out


def test_entries_that_are_no_longer_found_are_stale(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW RISKY\n")
    Path("other.py").write_text("kernel SLOW\n")
    advise("k.py", "other.py", "--write-baseline", "known.json")
    Path("k.py").write_text("kernel SLOW\n")
    ended = advise("k.py", "--baseline", "known.json", "--output-format", "concise")
    assert ended.code == 0
    # nothing is said of the file that was not checked
    assert ended.err.count("\n") == 1
    assert "known.json: stale: ADV201" in ended.err and "k.py" in ended.err
    advise("k.py", "other.py", "--write-baseline", "known.json")
    assert advise("k.py", "--baseline", "known.json").err == ""


@pytest.mark.parametrize(
    "text, part",
    [
        ("{", "known.json: not JSON: "),
        ("[]", "known.json: /: expected a table"),
        ('{"schema_version": 1}', "/schema_version: expected 2"),
        ('{"schema_version": 2, "findings": {}}', "/findings: expected an array"),
        ('{"schema_version": 2, "findings": [{"path": "k.py"}]}', '/findings/0: "code" is missing'),
        ("\xff", "not JSON"),
    ],
)
def test_a_broken_baseline_is_refused(advise: Advise, text: str, part: str) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    Path("known.json").write_text(text, encoding="latin-1")
    ended = advise("k.py", "--baseline", "known.json")
    assert (ended.code, ended.out) == (2, "")
    assert part in ended.err and ended.err.count("\n") == 1
    refused(advise("k.py", "--baseline", "no.json"), "no.json: No such file")


def test_no_baseline_is_written_over_files_that_were_not_understood(advise: Advise) -> None:
    Path("k.py").write_text("kernel UNPARSED\n")
    ended = advise("k.py", "--write-baseline", "known.json")
    assert ended.code == 2
    assert "not written" in ended.err
    assert not Path("known.json").exists()


# --- the cache ----------------------------------------------------------------------------


@pytest.fixture
def asked(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the paths that the engine is asked about; it grows."""
    paths: list[str] = []

    def counted(path: str, source: str, options: engine.Options) -> engine.FileResult:
        paths.append(path)
        return marker_engine.check_source(path, source, options)

    monkeypatch.setattr(engine, "check_source", counted)
    return paths


@pytest.mark.parametrize(
    "arguments",
    [
        ("-D", "N=3"),
        ("--min-speedup", "1.5"),
        ("--ignore", "ADV901"),
        ("--machine", "sp2"),
        ("--output-format", "concise"),
    ],
)
def test_other_options_are_other_questions(
    advise: Advise, asked: list[str], arguments: tuple[str, ...]
) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    advise("k.py", "--machine", "t3e", machine=None)
    advise("k.py", "--machine", "t3e", *arguments, machine=None)
    assert asked == ["k.py"] * 2
    advise("k.py", "--machine", "t3e", machine=None)
    advise("k.py", "--machine", "t3e", *arguments, machine=None)
    assert asked == ["k.py"] * 2


def test_the_cache_can_be_elsewhere_absent_or_cleaned(advise: Advise, asked: list[str]) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    advise("k.py", "--no-cache")
    assert not Path(FOLDER_NAME).exists()
    advise("k.py", "--cache-dir", "elsewhere/deep")
    advise("k.py", "--cache-dir", "elsewhere/deep")
    assert len(asked) == 2 and not Path(FOLDER_NAME).exists()
    cleaned = advise("clean", "--cache-dir", "elsewhere/deep", machine=None)
    assert (cleaned.code, cleaned.err) == (0, "1 answers removed\n")
    assert not Path("elsewhere/deep").exists()
    assert advise("clean", machine=None).err == "0 answers removed\n"


def test_a_folder_with_other_things_is_no_cache(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    refused(advise("k.py", "--cache-dir", "."), "not a cache")
    refused(advise("clean", "--cache-dir", ".", machine=None), "not a cache")
    assert Path("k.py").exists() and not Path(".gitignore").exists()
