"""Completion, through the scripts that shells load."""

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli.app import COMMANDS
from advisor.cli.completing import codes, machines, name_command, rules, words

ROOT = Path(__file__).parents[2]


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


def complete(home: dict[str, str], line: str) -> list[str]:
    """Return what bash offers at the end of a line, through its own completion machinery."""
    script = """
        source <(_ADVISE_COMPLETE=source_bash advise)
        read -ra COMP_WORDS <<< "$LINE"
        [[ $LINE == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        _advise_completion advise
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    ended = subprocess.run(
        ["bash", "--norc", "-c", script], env={**home, "LINE": line},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert ended.stderr == ""
    return [word for word in ended.stdout.splitlines() if word]


pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def test_bash_offers_commands_options_and_values(home: dict[str, str]) -> None:
    assert set(complete(home, "advise ")) == set(COMMANDS)
    assert complete(home, "advise check k.py --unsa") == ["--unsafe-fixes"]
    # without naming the command as well, also behind a path
    assert complete(home, "advise k.py --output-format gi") == ["github", "gitlab"]
    assert complete(home, "advise --fai") == ["--fail-above"]
    for line in (
        "advise -m sp",
        "advise explain k.py:3 --machine sp",
        "advise predict k.py -m sp",
        "advise choose k.py -m sp",
        "advise verify k.py -m sp",
        "advise machine show sp",
    ):
        assert complete(home, line) == ["sp2"], line
    assert complete(home, "advise predict k.py --output-format j") == ["json"]
    # files are the shell's own business
    assert complete(home, "advise check ker") == []


def test_a_person_at_bash_presses_tab(home: dict[str, str], tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path / "home",
        env={**home, "TERM": "dumb", "PS1": "> "}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    read = b""

    def wait_for(text: bytes) -> None:
        nonlocal read
        while text not in read:
            ready, _, _ = select.select([ours], [], [], 60)
            assert ready, read
            read += os.read(ours, 4096)

    try:
        os.write(ours, b"bind 'set enable-bracketed-paste off'; bind 'set bell-style none'\n")
        os.write(ours, b'source <(_ADVISE_COMPLETE=source_bash advise); echo re""ady\n')
        wait_for(b"ready\r\n")
        for typed, completed in (
            (b"advise k.py --unsa\t", b"advise k.py --unsafe-fixes"),
            (b"advise --machine t3\t", b"advise --machine t3e"),
            (b"advise expl\t", b"advise explain"),
        ):
            read = b""
            # what was completed is shown by another command, put before it
            os.write(ours, typed)
            wait_for(completed)
            read = b""
            os.write(ours, b"\x01echo [\x05]\n")
            wait_for(b"\r\n[" + completed + b" ]\r\n")
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def test_installing_completion_writes_to_the_users_home(home: dict[str, str]) -> None:
    # not the last command, or bash would make room for the program, which looks for its shell
    ended = subprocess.run(
        ["bash", "--norc", "-c", "advise --install-completion; exit $?"],
        env=home, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    installed = [path for path in Path(home["HOME"]).rglob("*") if path.is_file()]
    assert any("_advise_completion" in path.read_text() for path in installed)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_has_its_script(home: dict[str, str], shell: str) -> None:
    ended = subprocess.run(
        ["advise"], env={**home, "_ADVISE_COMPLETE": f"source_{shell}"},
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
    assert words("text", "json")("j") == ["json"]
    assert "ADV101,ADV201" in codes("ADV101,ADV2")
    assert "repeated-shifts" in rules("rep")
