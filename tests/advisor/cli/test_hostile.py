"""Files that no person wrote: one clear line each, and the rest of the run is as without them."""

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.files import read_bytes
from advisor.frontend.trees import (
    MOST_BRACKETS,
    MOST_CHAINED,
    MOST_LEVELS,
    check_parseable,
    parse,
)
from advisor.source import ParseProblem

ROOT = Path(__file__).parents[3]
MARK = "# advise: kernel N=8\n"
GOOD = (ROOT / "examples" / "box_sum.py").read_text()


def ended(folder: Path, *command: str) -> tuple[int, str, list[str]]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ADVISE_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.splitlines()


def advise(folder: Path, *arguments: str) -> tuple[int, str, list[str]]:
    options = ("--machine", "t3e", "--no-cache")
    return ended(folder, sys.executable, "-m", "advisor", *arguments, *options)


BRACKETS = f"more than {MOST_BRACKETS} open brackets"
CHAINED = f"more than {MOST_CHAINED} operators, calls and conditions depend on one another"
HOSTILE = {
    "attributes.py": ("x = a" + ".b" * 100_000, "2:2006", CHAINED),
    "brackets.py": ("x = " + "(" * 5000 + ")" * 5000, "2:205", BRACKETS),
    "calls.py": ("x = a" + "()" * 100_000, "2:2006", CHAINED),
    "chain.py": ("x = " + "1+" * 30_000 + "1", "2:2006", CHAINED),
    "comparison.py": ("x = " + "1<" * 30_000 + "1", "2:2006", CHAINED),
    "conditions.py": (
        "if 1: pass\n" + "elif 1: pass\n" * 5000,
        "1003:1",
        "more than 1000 branches",
    ),
    "field.py": ('x = f"{' + "(" * 3000 + "1" + ")" * 3000 + '}"', "2:207", BRACKETS),
    "lambdas.py": ("x = " + "lambda: " * 5000 + "1", "2:8005", CHAINED),
    "latin.py": ("x = '\udce9'", "2:6", "byte 0xe9 is not utf-8"),
    "levels.py": (
        "".join(" " * n + "if 1:\n" for n in range(5000)) + " " * 5000 + "pass",
        "103:102",
        f"more than {MOST_LEVELS} levels of indentation",
    ),
    "line.py": ("x = [" + "1," * 5_000_000 + "]", "2:200003", "too large to be parsed"),
    "mixed.py": ("if 1:\n        x = 1\n\ty = 2", "4:1", "inconsistent mixing of tabs and spaces"),
    "negations.py": ("x = " + "-" * 50_000 + "1", "2:1005", CHAINED),
    "null.py": ("x = '\0'", "2:6", "null byte: this is not Python source"),
    "old.py": ('print "hello"', "2:13", "does not parse as Python 3: this looks like Python 2"),
    "powers.py": ("x = " + "1**" * 5000 + "1", "2:3006", CHAINED),
    "statements.py": ("x=1;" * 200_000, "2:399999", "too large to be parsed"),
    "strings.py": ("x = (" + '"a"\n' * 5000 + ")", "1001:1", CHAINED),
    "unended.py": ("x = (1\ny = 2", "3:2", "does not parse as Python 3"),
    "unseen.py": ("x = 1\nna\u200bme = 2", "3:3", "is not a valid identifier"),
}


def test_every_hostile_file_costs_its_line_and_no_more(tmp_path: Path) -> None:
    for name, (text, _, _) in HOSTILE.items():
        (tmp_path / name).write_bytes(f"{MARK}{text}\n".encode("utf-8", "surrogateescape"))
    (tmp_path / "box.py").write_text(GOOD)
    (tmp_path / "string.py").write_text(f"{MARK}x = '{'a' * 10_000_000}'\n")
    (tmp_path / "zz_self.py").symlink_to("zz_self.py")
    (tmp_path / "zz_nowhere.py").symlink_to("not there")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "folder.py" / "inside.py").write_text(GOOD)
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe.py")
    # modules that import each other are files like any other: nothing is imported
    (tmp_path / "cycle_a.py").write_text(f"{MARK}import cycle_b\n")
    (tmp_path / "cycle_b.py").write_text(f"{MARK}import cycle_a\nraise SystemExit\n")
    code, out, errors = advise(tmp_path, ".", "--output-format", "concise", "-j", "1")
    assert code == 2
    expected = [(f"{name}:{place}: ", message) for name, (_, place, message) in HOSTILE.items()]
    expected += [
        ("advise: zz_nowhere.py: ", "No such file"),
        ("advise: zz_self.py: ", "Too many levels of symbolic links"),
    ]
    assert len(errors) == len(expected), "\n".join(errors)
    for line, (start, message) in zip(errors, expected, strict=True):
        assert line.startswith(start), line
        assert message in line
        assert len(line) < 200
    alone = advise(tmp_path, "box.py", "folder.py", "--output-format", "concise")
    assert (alone[0], alone[2]) == (1, [])
    # marks above no function are told, of files that can be read
    told = [line for line in out.splitlines() if " note: this marks no kernel" not in line]
    *told, _ = told
    *lines, _ = alone[1].splitlines()
    assert told == lines
    assert {line.partition(":")[0] for line in told} == {"box.py", "folder.py/inside.py"}


def test_a_file_whose_name_is_no_text_is_checked_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(GOOD)
    (tmp_path / os.fsdecode(b"b\xffx.py")).write_text(GOOD)
    code, out, errors = advise(tmp_path, ".", "--output-format", "concise", "-j", "1")
    odd, plain = sorted(out.splitlines()[:-1])
    assert (code, errors) == (1, [])
    assert plain.partition(":")[2] == odd.partition(":")[2]


def test_a_current_folder_that_is_gone_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(GOOD)
    (tmp_path / "gone").mkdir()
    leaving = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh"]
    program = [sys.executable, "-m", "advisor", str(tmp_path / "box.py"), "--machine", "t3e"]
    code, _, errors = ended(tmp_path, *leaving, *program)
    assert (code, errors) == (2, ["advise: the current folder does not exist any more"])


def test_unreadable_files_are_told_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(GOOD)
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "huge.py").touch()
    os.truncate(tmp_path / "huge.py", 1 << 40)
    locked = tmp_path / "locked.py"
    locked.write_text(GOOD)
    locked.chmod(0)
    readable = os.access(locked, os.R_OK)  # root may read everything
    code, out, errors = advise(
        tmp_path, "box.py", "/dev/zero", "pipe.py", "huge.py", "locked.py", "./", "-j", "1"
    )
    assert code == 2
    told = ["advise: /dev/zero: Not a regular file", "advise: huge.py: File too large"]
    assert errors == told + ([] if readable else ["advise: locked.py: Permission denied"])
    assert "box.py:" in out


def test_a_pipe_with_a_writer_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = b"x" * 300_000  # more than a pipe holds: its writer has to wait for the reader
    # Open before anybody reads, and for both: a writer of its own could come while a reader leaves
    # who found none, and would then write to nobody.
    end = os.open(pipe, os.O_RDWR)

    def write() -> None:
        with os.fdopen(end, "wb") as opened:
            opened.write(text)

    writer = threading.Thread(target=write)
    writer.start()
    found = read_bytes(str(pipe))
    writer.join()
    assert found == text


def test_a_file_that_changes_between_reading_and_fixing_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(GOOD)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from advisor import engine\n"
        "from advisor.cli.app import main\n"
        "check = engine.check_source\n"
        "def meanwhile(path, source, options):\n"
        "    Path(path).write_text('somebody = 1\\n')\n"
        "    return check(path, source, options)\n"
        "engine.check_source = meanwhile\n"
        "sys.exit(main(['box.py', '-m', 't3e', '--fix', '--unsafe-fixes', '--no-cache']))\n"
    )
    code, _, errors = ended(tmp_path, sys.executable, "-c", program)
    assert code == 2
    assert "advise: box.py: has changed since it was read; not fixed" in errors
    assert (tmp_path / "box.py").read_text() == "somebody = 1\n"


def test_a_file_that_changes_all_the_time_is_read_as_one_of_its_texts(tmp_path: Path) -> None:
    file, other = tmp_path / "box.py", tmp_path / "next"
    texts = [text.encode() for text in (GOOD, GOOD[: len(GOOD) // 2] + "\n(", "x = 1\n")]
    file.write_bytes(texts[0])
    done = threading.Event()

    def change() -> None:
        for turn in itertools.takewhile(lambda _: not done.is_set(), itertools.count()):
            other.write_bytes(texts[turn % len(texts)])
            other.replace(file)

    writer = threading.Thread(target=change)
    writer.start()
    try:
        seen = {read_bytes(str(file)) for _ in range(2000)}
    finally:
        done.set()
        writer.join()
    assert seen <= set(texts)


def test_nothing_of_the_scanned_folder_is_imported(tmp_path: Path) -> None:
    touch = "from pathlib import Path\nPath(__file__).with_suffix('.imported').touch()\n"
    names = ("string", "random", "signal", "email", "libcst", "multiprocessing", "mpi4py", "numpy")
    for name in names:
        (tmp_path / f"{name}.py").write_text(MARK + touch)
    for number in range(16):  # enough for other processes
        (tmp_path / f"plain{number}.py").write_text(f"{MARK}import string, random\n")
    code, _, errors = advise(tmp_path, ".", "-j", "2")
    assert (code, errors) == (0, [])
    assert list(tmp_path.glob("*.imported")) == []


# --- the guard ------------------------------------------------------------------------------

AT_THE_LIMIT = (
    "x = " + "(" * MOST_BRACKETS + ")" * MOST_BRACKETS,
    "x = " + "[" * MOST_BRACKETS + "]" * MOST_BRACKETS,
    "x = " + "a.b(" * (MOST_BRACKETS - 1) + ")" * (MOST_BRACKETS - 1),
    "x = " + "1 + " * (MOST_CHAINED - 1) + "1",
    "x = a" + ".b" * MOST_CHAINED,
    "x = " + "lambda: " * MOST_CHAINED + "1",
    "x = " + "- " * MOST_CHAINED + "1",
    "x = " + "1 if 1 else " * (MOST_CHAINED // 2) + "1",
    "if 1: pass\n" + "elif 1: pass\n" * MOST_CHAINED,
    "".join(" " * n + "if 1:\n" for n in range(99)) + " " * 99 + "pass",
)


def test_what_the_guard_lets_through_the_parser_survives(tmp_path: Path) -> None:
    for number, text in enumerate(AT_THE_LIMIT):
        check_parseable("x.py", text)
        (tmp_path / f"x{number}.py").write_text(f"{MARK}{text}\n")
    code, _, errors = advise(tmp_path, ".", "-j", "1")
    assert (code, errors) == (0, [])


@pytest.mark.parametrize(
    "text",
    [
        "x = [" + "-1.5e-3, " * 5000 + "]",
        "x = 1 + 2\n" * 5000,
        "x = (\n" + "# ((((((((((\n" * 500 + "1)",
        "x = '" + "(" * 5000 + "'",
        'x = """' + '"(\n' * 5000 + '"""',
        "x = f'" + "{{(" * 5000 + "'",
        "if 1: pass\nelif 2: pass\n" * 3000,
        "x = {" + "a.b: c(d)[e], " * 2000 + "}",
        "x = '\\'' + " + '"(" \\\n + ' * 300 + "1",
    ],
)
def test_long_is_not_deep(text: str) -> None:
    check_parseable("x.py", text)
    parse("x.py", text)


def test_the_guard_lets_real_code_through() -> None:
    folders: Sequence[str] = ("advisor", "costdb", "transforms", "tests", "examples")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    standard = Path(os.__file__).parent
    files += [*standard.glob("*.py"), *(standard / "asyncio").glob("*.py")]
    assert len(files) > 300
    for path in files:
        check_parseable(str(path), path.read_text("utf-8", "replace"))


def test_places_count_code_points_and_every_kind_of_line_end() -> None:
    with pytest.raises(ParseProblem, match=r"^x\.py:4:205: nested too deeply") as caught:
        check_parseable("x.py", "a\r\nb\rc\né = " + "(" * (MOST_BRACKETS + 1))
    assert (caught.value.line, caught.value.column) == (4, 4 + MOST_BRACKETS)
