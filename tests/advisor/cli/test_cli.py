"""The command line: what it accepts, what it refuses, what it writes where, how it ends."""

import json
from pathlib import Path

import pytest

from advisor.config.effective import resolve, split_codes
from costdb.machines import SHIPPED
from tests.advisor.cli.commands import Advise, refused

NO_MARK = "no kernel is marked there, and there is no program for MPI or numba"

# --- what is accepted ---------------------------------------------------------------------


def test_check_need_not_be_named(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    short, named = advise("k.py"), advise("check", "k.py")
    assert short == named
    assert short.code == 1
    assert "2.00x" in short.out and "SLOW" in short.out


def test_a_file_with_the_name_of_a_command_is_reached_by_its_path(advise: Advise) -> None:
    Path("check").write_text("kernel SLOW\n")
    assert "check:1:8: ADV201" in advise("./check", "--output-format", "concise").out
    refused(advise("check"), "no path given")


def test_options_may_stand_before_the_path(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    assert advise("--output-format", "concise", "-D", "N=3", "k.py").code == 1


def test_exit_codes(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW3 UNKNOWN\n")
    assert advise("k.py").code == 1
    assert advise("k.py", "--exit-zero").code == 0
    assert advise("k.py", "--fail-above", "2.9").code == 1
    assert advise("k.py", "--fail-above", "3").code == 0
    assert advise("k.py", "--min-speedup", "3.5").code == 0
    Path("k.py").write_text("kernel UNKNOWN\n")
    assert advise("k.py").code == 0


def test_standard_input_has_a_name(advise: Advise) -> None:
    options = ("-", "--output-format", "concise")
    assert advise(*options, stdin=b"kernel SLOW").out.startswith("<stdin>:1:8:")
    named = advise(*options, "--stdin-filename", "src/k.py", stdin=b"kernel SLOW")
    assert named.out.startswith("src/k.py:1:8:")
    broken = advise(*options, "--stdin-filename", "k.py", stdin=b"kernel\nUNPARSED")
    assert (broken.code, broken.err) == (2, "k.py:2:1: invalid syntax\n")


def test_report_goes_to_a_file_when_asked(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    ended = advise("k.py", "--output-format", "json", "-o", "out.json")
    assert (ended.code, ended.out) == (1, "")
    assert len(json.loads(Path("out.json").read_text())["findings"]) == 1
    refused(advise("k.py", "-o", "no/such/dir/out.json"), "no/such/dir/out.json: No such file")


def test_statistics(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW RISKY3 MANUAL\n")
    assert advise("k.py", "--statistics").out == (
        "3  ADV201  repeated-shifts: 2 fixable, saves 4.00 s, best 3.00x\n"
    )


# --- directories --------------------------------------------------------------------------


def test_directories_are_walked_in_order_without_other_peoples_code(advise: Advise) -> None:
    wanted = ["d/a.py", "d/z.py", "d/b/c.py", "d/sub/x.py"]
    unwanted = [
        "d/.git/h.py", "d/.hidden.py", "d/venv/v.py", "d/env/lib/e.py", "d/node_modules/n.py",
        "d/lib/site-packages/s.py", "d/__pycache__/p.py", "d/notes.txt",
    ]  # fmt: skip
    for name in wanted + unwanted:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("kernel SLOW\n")
    Path("d/env/pyvenv.cfg").touch()
    Path("d/loop").symlink_to(".")
    Path("d/same.py").symlink_to("z.py")
    Path("d/broken.py").symlink_to("nowhere.py")
    *lines, _ = advise("d", "d/a.py", "--output-format", "concise").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "d/a.py", "d/same.py", "d/b/c.py", "d/sub/x.py"
    ]  # fmt: skip
    assert advise(".", "--output-format", "concise").out.startswith("d/a.py:1:8")


# --- what is refused ----------------------------------------------------------------------


def test_a_machine_that_is_named_is_known(advise: Advise) -> None:
    Path("k.py").write_text("kernel SLOW\n")
    whose = f"prices of {SHIPPED}, a shipped profile; yours: advise calibrate\n"
    assert whose in advise("k.py", machine=None).out
    assert "shipped" not in advise("k.py", machine="sp2").out
    refused(advise("missing.py", machine="t3"), "unknown machine")


def test_the_longer_prefix_decides() -> None:
    known = ("ADV101", "ADV201", "ADV202")
    assert resolve((), (), (), known) == ((), ())
    assert resolve(("ADV2",), (), ("ADV202",), known) == (("ADV201",), ("ADV101", "ADV202"))
    assert resolve(("ADV201",), (), ("ADV2",), known)[0] == ("ADV201",)
    assert resolve((), (), ("ADV2",), known) == ((), ("ADV201", "ADV202"))
    assert resolve((), ("ADV201",), ("ADV2",), known) == ((), ("ADV202",))
    assert resolve(("ADV1",), ("ADV202",), (), known)[0] == ("ADV101", "ADV202")
    assert resolve(("ADV2",), (), ("ADV2",), known)[1] == known
    assert split_codes(["ADV1, ADV2", "ADV1"]) == ("ADV1", "ADV2")


# --- fixes --------------------------------------------------------------------------------


def test_fix_applies_safe_fixes_until_nothing_changes(advise: Advise) -> None:
    path = Path("k.py")
    path.write_text("kernel SLOW SLOW3 RISKY # \t\n")
    path.chmod(0o640)
    ended = advise("k.py", "--fix", "--output-format", "concise")
    assert path.read_text() == "kernel FAST FAST RISKY # \t\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert (ended.code, ended.err) == (1, "2 fixed; 1 more with --unsafe-fixes\n")
    assert ended.out.count("\n") == 2 and "RISKY" in ended.out
    unsafe = advise("k.py", "--fix", "--unsafe-fixes")
    assert path.read_text() == "kernel FAST FAST CALM # \t\n"
    assert (unsafe.code, unsafe.err) == (0, "1 fixed\n")
    before = path.stat()
    again = advise("k.py", "--fix", "--unsafe-fixes")
    assert (again.code, again.err) == (0, "0 fixed\n")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_fixes_that_undo_each_other_come_to_an_end(advise: Advise) -> None:
    Path("k.py").write_text("kernel PING\n")
    ended = advise("k.py", "--fix")
    assert Path("k.py").read_text() == "kernel PONG\n"
    assert ended.err == "1 fixed\n"


@pytest.mark.parametrize(
    "data",
    [
        b"kernel SLOW\r\nb\r\n",
        b"kernel SLOW",
        b"\xef\xbb\xbfkernel SLOW\n",
        "# -*- coding: latin-1 -*-\n'\u00e9' kernel SLOW\n".encode("latin-1"),
        b"\tkernel SLOW\rb\r",
    ],
)
def test_fix_keeps_encoding_mark_and_line_ends(advise: Advise, data: bytes) -> None:
    Path("k.py").write_bytes(data)
    assert advise("k.py", "--fix").code == 0
    assert Path("k.py").read_bytes() == data.replace(b"SLOW", b"FAST")


def test_fix_follows_a_link_and_leaves_it_a_link(advise: Advise) -> None:
    Path("real").mkdir()
    Path("real/k.py").write_text("kernel SLOW\n")
    Path("k.py").symlink_to("real/k.py")
    assert advise("k.py", "--fix").code == 0
    assert Path("k.py").is_symlink()
    assert Path("real/k.py").read_text() == "kernel FAST\n"
    assert [path.name for path in Path("real").iterdir()] == ["k.py"]


def test_fix_of_standard_input_is_written_to_standard_output(advise: Advise) -> None:
    ended = advise("-", "--fix", "--output-format", "concise", stdin=b"kernel SLOW RISKY\r\n")
    assert ended.out == "kernel FAST RISKY\r\n"
    assert ended.err.endswith("1 fixed; 1 more with --unsafe-fixes\n") and "RISKY" in ended.err
    assert ended.code == 1
    plain = advise("-", "--fix", stdin=b"nothing\n")
    assert (plain.code, plain.out) == (0, "nothing\n")


def test_diff_shows_what_fix_would_do_and_writes_nothing(advise: Advise) -> None:
    path = Path("k.py")
    path.write_text("kernel SLOW RISKY\n")
    ended = advise("k.py", "--diff")
    assert (ended.code, ended.err) == (1, "1 would be fixed; 1 more with --unsafe-fixes\n")
    assert ended.out.splitlines()[2:] == [
        "@@ -1 +1 @@",
        "-kernel SLOW RISKY",
        "+kernel FAST RISKY",
    ]
    assert "+kernel FAST CALM" in advise("k.py", "--diff", "--unsafe-fixes").out
    assert path.read_text() == "kernel SLOW RISKY\n"
    path.write_text("kernel RISKY\n")
    assert advise("k.py", "--diff", "--fix").code == 0


@pytest.mark.parametrize("word", ["OVERLAP", "SPOILS"])
def test_a_broken_fix_leaves_the_file_alone(advise: Advise, word: str) -> None:
    Path("k.py").write_text(f"kernel SLOW3 {word}\n")
    ended = advise("k.py", "--fix")
    assert ended.code == 2
    assert Path("k.py").read_text() == f"kernel SLOW3 {word}\n"
    assert ended.err.startswith("k.py: the fix of ADV201")


# --- rules and version --------------------------------------------------------------------


def test_rules_are_listed_and_shown(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> None:
    from advisor.cli.commands import explain

    class Rule:
        code = "ADV777"
        name = "seven-sins"
        documentation = "\n    What it does.\n\n    Why.\n"

    monkeypatch.setattr(explain, "installed_rules", lambda: (Rule(),))
    assert advise("rule", machine=None).out == "ADV777  seven-sins: What it does\n"
    page = "# ADV777 seven-sins\n\nWhat it does.\n\nWhy.\n"
    assert advise("rule", "adv777", machine=None).out == page
    assert advise("rule", "seven-sins", machine=None).out == page
    refused(advise("rule", "ADV776", machine=None), "nearest is ADV777")
    listed = json.loads(advise("rule", "--output-format", "json", machine=None).out)
    assert listed["rules"][0]["code"] == "ADV777"


def test_version_and_help(advise: Advise) -> None:
    assert advise("--version", machine=None) == advise("version", machine=None)
    overview = advise("--help", machine=None)
    assert overview.code == 0
    assert all(word in overview.out for word in ("check", "rule", "version"))
    options = advise("check", "--help", machine=None).out
    assert all(word in options for word in ("--machine", "ADVISE_MACHINE", "--unsafe-fixes"))
    nothing = advise(machine=None)
    assert (nothing.code, nothing.out) == (2, overview.out)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("nofile.py",), 2, "Nothing could be read, so nothing was checked."),
        (("folder",), 2, "Nothing could be read, so nothing was checked."),
        (("empty.py",), 0, f"Nothing to check in 1 file: {NO_MARK}."),
        (("empty.py", "plain.py"), 0, f"Nothing to check in 2 files: {NO_MARK}."),
        (("empty.py", "nofile.py"), 2, f"Nothing to check in what could be read: {NO_MARK}."),
        (("k.py", "plain.py"), 0, "Analysed 1 of 1 kernels in 1 file. Nothing to gain on t3e."),
        (
            ("k.py", "nofile.py"),
            2,
            "Analysed 1 of 1 kernels in 1 file. No finding in what could be read.",
        ),
    ],
)
def test_the_last_line_says_what_was_looked_at(
    advise: Advise, arguments: tuple[str, ...], code: int, told: str
) -> None:
    Path("folder").mkdir()
    Path("empty.py").touch()
    Path("plain.py").write_text("import os\n\nprint(os.name)\n")
    Path("k.py").write_text("kernel\n")
    ended = advise(*arguments)
    assert (ended.code, " ".join(ended.out.split())) == (code, told)
    assert bool(ended.err) == (code == 2)
