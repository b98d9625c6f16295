"""The program as a process: pipes, signals, full disks, encodings, and what it imports."""

import contextlib
import fcntl
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from advisor.cli.app import main

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, str(Path(__file__).with_name("marker_engine.py"))]


def environment(**more: str) -> Mapping[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key == "ADVISE_DATA_DIR" or not key.startswith("ADVISE_")
    }
    return {**kept, "PYTHONPATH": str(ROOT), "ADVISE_MACHINE": "t3e", **more}


def run(
    folder: Path,
    *arguments: str,
    limit: Callable[[], None] | None = None,
    stdout: int = subprocess.PIPE,
    **more: str,
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=environment(**more),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit,
        timeout=60,
        check=False,
    )


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text("kernel SLOW '\u00e9'\n", encoding="utf-8")
    return tmp_path


def test_a_write_that_fails_changes_nothing(kernel: Path) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))

    before = (kernel / "k.py").read_bytes()
    ended = run(kernel, "k.py", "--fix", "--no-cache", limit=no_room)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == ["advise: k.py: File too large", "0 fixed"]
    assert (kernel / "k.py").read_bytes() == before
    assert [path.name for path in kernel.iterdir()] == ["k.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize(("name", "mode"), [(".", 0o500), ("k.py", 0o400)])
def test_what_may_not_be_written_is_left_alone(kernel: Path, name: str, mode: int) -> None:
    (kernel / name).chmod(mode)
    try:
        ended = run(kernel, "k.py", "--fix")
    finally:
        (kernel / name).chmod(0o700)
    assert ended.returncode == 2
    assert "k.py: Permission denied" in ended.stderr
    assert "SLOW" in (kernel / "k.py").read_text()


def test_a_reader_that_leaves_early_is_no_error(kernel: Path) -> None:
    (kernel / "k.py").write_text("kernel SLOW\n" * 3000)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = run(kernel, "k.py", "--output-format", "concise", stdout=writer)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line(kernel: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = run(kernel, "k.py", stdout=full.fileno())
        helped = run(kernel, "check", "--help", stdout=full.fileno())
    for one in (ended, helped):
        assert one.returncode == 2
        assert one.stderr == "advise: standard output: No space left on device\n"


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_error(kernel: Path, closed: str) -> None:
    """A service may start a program without any of them."""

    def ended(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, *arguments],
            cwd=kernel, env=environment(), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    shown = ended("k.py", "--no-cache")
    assert shown.returncode == 1
    assert shown.stderr == "" and ("Analysed" in shown.stdout) == (">&-" not in closed.split())
    # what is chatter never comes among the results
    diff = ended("k.py", "--no-cache", "--diff")
    assert diff.returncode == 1
    assert all(line[0] in " -+@" for line in diff.stdout.splitlines())


def test_an_output_without_unicode_gets_escapes(kernel: Path) -> None:
    ended = run(kernel, "k.py", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert r"kernel SLOW '\xe9'" in ended.stdout


def test_an_interrupt_is_quiet(kernel: Path) -> None:
    os.mkfifo(kernel / "pipe")
    process = subprocess.Popen(
        [*PROGRAM, "pipe"], cwd=kernel, env=environment(), stderr=subprocess.PIPE, text=True,
        # whoever runs the tests in the background ignores interrupts, and hands that down
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    # Once the reading end is open, the program waits in its own code for text.
    with (kernel / "pipe").open("wb"):
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")


def test_a_bug_of_ours_shows_its_trace_and_ends_with_2(kernel: Path) -> None:
    (kernel / "other.py").write_text((kernel / "k.py").read_text())
    (kernel / "k.py").write_text("kernel CRASH\n")
    ended = run(kernel, "k.py", "other.py")
    assert ended.returncode == 2 and "other.py" in ended.stdout
    assert "ZeroDivisionError: a bug of the engine" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("advise: internal error in k.py")


def test_colours_can_be_forced_and_are_not_in_pipes_or_files(kernel: Path) -> None:
    assert "\x1b" not in run(kernel, "k.py").stdout
    assert "\x1b[" in run(kernel, "k.py", FORCE_COLOR="1").stdout
    run(kernel, "k.py", "-o", "out.txt", FORCE_COLOR="1")
    assert "\x1b" not in (kernel / "out.txt").read_text()


def on_terminal(folder: Path, columns: int, *command: str, **more: str) -> str:
    """Return what a program writes on a terminal of some width."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {key: value for key, value in environment(**more).items() if key != "COLUMNS"}
    process = subprocess.Popen(
        command, cwd=folder, env=kept, stdout=theirs, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # the system's way to say that nobody writes any more
        while data := os.read(ours, 65536):
            written += data
    os.close(ours)
    process.wait(timeout=60)
    return written.decode().replace("\r\n", "\n")


def test_a_report_is_as_wide_as_it_is_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("box_sum.py", "spectral.py"):
        shutil.copy(ROOT / "examples" / name, name)
    for columns in (60, 120):  # what is kept of the first run is not looked for again
        monkeypatch.setenv("COLUMNS", str(columns))
        main(["box_sum.py", "spectral.py", "--machine", "sp2"])
        lines = capsys.readouterr().out.split("\n")
        assert max(map(len, lines)) <= columns
        heads = [place for place, line in enumerate(lines) if re.match(r"\w+\.py:\d+  ADV", line)]
        assert len(heads) >= 2
        for head in heads:
            # the class stands first, then the statement with a mark, then the times
            assert re.search(r"(GAIN|UNCERTAIN|PLAN)$", lines[head])
            block = lines[head + 2 : head + 12]
            bar = next(place for place, line in enumerate(block) if re.match(r" +\| +\^+", line))
            assert re.match(r" +\d+ \| ", block[bar - 1])
            times = r"  time   [0-9.]+ (.?s )?-> [0-9.]+ .?s a call"
            assert any(re.match(times, one) for one in block)


def test_a_terminal_has_colours_unless_it_or_its_user_wants_none(kernel: Path) -> None:
    plain = run(kernel, "k.py", COLUMNS="88").stdout
    assert "\x1b[1m" in on_terminal(kernel, 88, *PROGRAM, "k.py", TERM="xterm")
    for unwanted in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        assert on_terminal(kernel, 88, *PROGRAM, "k.py", **unwanted) == plain
