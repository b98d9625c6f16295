"""Completion, through the scripts that shells load."""

import fcntl
import os
import re
import select
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from advisor.cli.app import COMMANDS
from advisor.cli.options import codes, machines, name_command, rules

ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return an environment with the program on the path and a home of its own."""
    program = tmp_path / "bin" / "advise"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom advisor.cli.app import run\nrun()\n")
    program.chmod(0o755)
    (tmp_path / "home").mkdir()
    return {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }


pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


SHELLS = ("bash", "zsh", "fish")

_ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A person at a shell of their own."""

    def __init__(self, shell: str, environment: dict[str, str], folder: Path) -> None:
        self.ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (40, 200))
        self.shell = subprocess.Popen(
            [shell, "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
            env={**environment, "TERM": "dumb", "PS1": "> "}, start_new_session=True,
            # the terminal of that session, which fish insists on
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),
        )  # fmt: skip
        os.close(theirs)
        self.read = b""
        # some throw away what is typed before they have greeted
        self.wait_for(rb".")
        self.type("echo rea''dy\n")
        self.wait_for(rb"\nready\r")

    def completed(self, line: str) -> str:
        """Type a line and the tabulator key, and return the line that is there then."""
        self.read = b""
        # it is shown by another command, put before it
        self.type(line, "\t", "\x01echo '<\x05>'", "\n")
        return self.wait_for(rb"\n\r?<(.*)>\r")[1].decode().rstrip()

    def type(self, *keys: str) -> None:
        os.write(self.ours, "".join(keys).encode())

    def wait_for(self, pattern: bytes) -> re.Match[bytes]:
        while (found := re.search(pattern, _ESCAPE.sub(b"", self.read))) is None:
            ready, _, _ = select.select([self.ours], [], [], 60)
            assert ready, self.read
            self.read += os.read(self.ours, 4096)
        return found

    def leave(self) -> None:
        self.shell.kill()
        self.shell.wait()
        os.close(self.ours)


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(
            shell,
            marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is missing"),
        )
        for shell in SHELLS
    ],
)
def test_completion_that_was_installed_is_there_in_the_next_shell(
    shell: str, home: dict[str, str]
) -> None:
    # not the last command, or the shell would make room for the program, which looks for its shell
    ended = subprocess.run(
        [shell, "-c", "advise --install-completion; exit"],
        env=home, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    folder = Path(home["HOME"])
    (folder / "kernels.py").write_text("")
    terminal = Terminal(shell, home, folder)
    try:
        for typed, completed in (
            ("advise k.py --unsa", "advise k.py --unsafe-fixes"),
            ("advise --machine t3", "advise --machine t3e"),
            ("advise rule repeated-s", "advise rule repeated-shifts"),
            # files are the shell's own business
            ("advise ker", "advise kernels.py"),
        ):
            assert terminal.completed(typed) == completed
    finally:
        terminal.leave()


def test_the_shell_that_no_test_has_gets_its_script(home: dict[str, str]) -> None:
    ended = subprocess.run(
        ["advise"], env={**home, "_ADVISE_COMPLETE": "source_powershell"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "_ADVISE_COMPLETE" in ended.stdout


@pytest.mark.parametrize(
    "line, named, command",
    [
        ("advise ", "advise ", ""),
        ("advise che", "advise che", ""),
        ("advise rule ", "advise rule ", "rule"),
        ("advise k.py ", "advise check k.py ", "check"),
        ("advise --fi", "advise check --fi", "check"),
        ("advise k.py -m t", "advise check k.py -m t", "check"),
    ],
)
def test_the_default_command_is_put_in(line: str, named: str, command: str) -> None:
    bash = {"COMP_WORDS": line.replace(" ", "\n"), "COMP_CWORD": "7"}
    assert name_command(bash, COMMANDS, "check") == command
    place = "8" if named != line else "7"
    assert bash == {"COMP_WORDS": named.replace(" ", "\n"), "COMP_CWORD": place}
    other = {"_TYPER_COMPLETE_ARGS": line}
    assert name_command(other, COMMANDS, "check") == command
    assert other == {"_TYPER_COMPLETE_ARGS": named}


def test_values() -> None:
    assert machines("t3") == ["t3e"]
    assert "ADV101,ADV201" in codes("ADV101,ADV2")
    assert "repeated-shifts" in rules("rep")
