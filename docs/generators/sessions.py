"""Shell sessions in pages: a page has commands with their output, and the build runs them again.

A comment before a code block says what the block is; blanks and quotes are a shell's:

``<!-- run exit=1 shows="from b = 3" lacks="caution" matches="on (\\d+) to \\1" -->``
    What the commands after ``$`` print, the same on every machine. The last ends with that exit
    code (0 when none is given), the others with 0. The block, its white space taken as single
    blanks, contains every ``shows`` and something for every regular expression in ``matches``;
    nothing that was printed contains a ``lacks``. With ``from`` and ``to`` (or ``until``, which
    leaves its line out) only those lines are shown.
``<!-- recorded exit=1 shows="measured" -->``
    Likewise, of commands that measure: the block keeps what they printed on the day that its first
    line names, until it is recorded again. What it ``shows`` and ``matches`` holds every time.
``<!-- write compare.py -->``
    A file, written to where the commands run.
``<!-- show file=box_sum.py from="why" to="pays" -->``
    Those lines of a file, or of what was printed last.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

_DIRECTIVE = re.compile(
    r"^<!-- (?P<verb>run|recorded|show|write)(?P<options> .*?)-->\n"
    r"(?P<ticks>`{3,})(?P<language>\w*)\n(?P<body>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
_PROGRAMS = frozenset(("cp", "cat", "diff", "ls"))
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV")
_LONGEST_RUN_S = 300
_HOME = ".home"
_LONGEST_QUOTE = 500
_CONTINUATION = "\\\n"
SOURCE = "kernel-advisor"
"""Under this name a page finds the project's own directory, to install it from."""


class SessionError(Exception):
    """A session that did not go as its page says; one line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command printed, and its exit code."""

    output: str
    exit_code: int


@dataclass(slots=True)
class Workshop:
    """A directory with a copy of the examples, in which a page's commands run.

    Attributes
    ----------
    root : Path
        The project's directory; it is not written to.
    folder : Path
        Where commands run.
    """

    root: Path
    folder: Path

    def run(self, command: str) -> Outcome:
        """Run a command line without a shell.

        Raises
        ------
        SessionError
            When it is none of the programs that pages may run, or takes too long.
        """
        words = shlex.split(command.replace(_CONTINUATION, " "))
        match words:
            case ["advise", *rest]:
                arguments = [sys.executable, "-m", "advisor", *rest]
            case ["python", *rest]:
                arguments = [sys.executable, *rest]
            case ["python3", "-m", "venv", ".venv"]:
                arguments = [sys.executable, "-m", "venv", ".venv"]
            case [program, *_] if program in _PROGRAMS or program.startswith(".venv/bin/"):
                arguments = words
            case _:
                raise SessionError(f"pages do not run {command!r}")
        try:
            done = subprocess.run(
                arguments,
                cwd=self.folder,
                env=self._environment(installed=words[0].startswith(".venv/")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                timeout=_LONGEST_RUN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SessionError(f"`{command}` took more than {_LONGEST_RUN_S} s") from error
        return Outcome(self._without_folder(done.stdout), done.returncode)

    def _without_folder(self, output: str) -> str:
        """Return output that is the same wherever the workshop is."""
        home = str(self.folder / _HOME)
        return output.replace(home, "~").replace(f"{self.folder}{os.sep}", "")

    def _environment(self, *, installed: bool) -> dict[str, str]:
        # The reader's settings and calibrations must not show; where to install from must.
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in _KEPT or (installed and name.startswith("PIP_"))
        }
        home = str(self.folder / _HOME)
        return {
            **kept,
            "HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_CACHE_HOME": home,
            "XDG_CONFIG_HOME": home,
            **({} if installed else {"PYTHONPATH": str(self.root)}),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
            "COLUMNS": "88",
            "NO_COLOR": "1",
        }


@contextmanager
def workshop(root: Path) -> Iterator[Workshop]:
    """Open a workshop and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="advise-docs-") as name:
        folder = Path(name)
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(root / "examples", folder / "examples", ignore=ignored)
        (folder / SOURCE).symlink_to(root)
        yield Workshop(root, folder)


def host() -> str:
    """Return the day and the machine, as the first line of what is recorded says them."""
    names = re.findall(r"^model name\s*: (.*)$", _cpuinfo(), re.MULTILINE)
    processor = names[0].strip() if names else "an unnamed processor"
    return f"{date.today().isoformat()} on {os.cpu_count()} cores of {processor}"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def has_sessions(markdown: str) -> bool:
    """Whether a page has anything to run."""
    return _DIRECTIVE.search(markdown) is not None


def with_output(markdown: str, shop: Workshop, *, again: bool = True, record: bool = False) -> str:
    """Return a page with its sessions carried out, in order.

    Parameters
    ----------
    markdown : str
        The page.
    shop : Workshop
        Where its commands run.
    again : bool
        Whether commands that measure run; if not, what was recorded is held to what it shows.
    record : bool
        Whether what they print now takes the place of what was recorded.

    Raises
    ------
    SessionError
        When a command ends or prints otherwise than the page says.
    """
    last = ""

    def carried_out(match: re.Match[str]) -> str:
        nonlocal last
        verb, body = match["verb"], match["body"]
        options = shlex.split(match["options"])
        if verb == "write":
            (name,) = options
            (shop.folder / name).write_text(body, encoding="utf-8")
            return match[0]
        wanted = _by_name(options)
        if verb == "show":
            if "file" in wanted:
                last = (shop.folder / wanted["file"][0]).read_text(encoding="utf-8")
            shown = _between(last, wanted)
        elif verb == "recorded" and not again:
            shown = last = body
            _hold(body, wanted, shown=body, printed=body)
        else:
            shown, last = _run_all(body, wanted, shop)
            if verb == "recorded":
                shown = f"# recorded {host()}\n{shown}" if record else body
        ticks, start = match["ticks"], match.start("ticks") - match.start()
        return f"{match[0][:start]}{ticks}{match['language']}\n{shown.rstrip()}\n{ticks}"

    return _DIRECTIVE.sub(carried_out, markdown)


def _run_all(body: str, wanted: Mapping[str, Sequence[str]], shop: Workshop) -> tuple[str, str]:
    """Run the commands of a block; return the block to show and the last command's output."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE)
    if not commands:
        raise SessionError(f"no command in the block {body!r}")
    shown: list[str] = []
    outcome = Outcome("", 0)
    for place, command in enumerate(commands):
        outcome = shop.run(command)
        expected = int(wanted.get("exit", ["0"])[0]) if place == len(commands) - 1 else 0
        if outcome.exit_code != expected:
            raise SessionError(
                f"`{command}` ended with {outcome.exit_code}, not {expected}: "
                f"{outcome.output[-_LONGEST_QUOTE:]!r}"
            )
        shown.append(f"$ {command}\n{outcome.output.rstrip()}".rstrip() + "\n")
    printed = "".join(shown)
    if "from" in wanted:
        shown[-1] = f"$ {commands[-1]}\n...\n{_between(outcome.output, wanted)}\n...\n"
    _hold(commands[-1], wanted, shown="".join(shown), printed=printed)
    return "".join(shown), outcome.output


def _hold(name: str, wanted: Mapping[str, Sequence[str]], *, shown: str, printed: str) -> None:
    """Compare what is shown, and all that was printed, with what the page says of it."""
    everything = " ".join(shown.split())
    for text in wanted.get("shows", ()):
        if " ".join(text.split()) not in everything:
            raise SessionError(f"`{name}` does not print {text!r}: {everything!r}")
    for text in wanted.get("lacks", ()):
        # in all that was printed: what is merely not shown is not lacking
        if " ".join(text.split()) in " ".join(printed.split()):
            raise SessionError(f"`{name}` prints {text!r}: {everything!r}")
    for pattern in wanted.get("matches", ()):
        if not re.search(pattern, everything):
            raise SessionError(f"`{name}` prints nothing that matches {pattern!r}: {everything!r}")


def _by_name(options: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise SessionError(f"expected name=value, got {option!r}")
        found.setdefault(name, []).append(value)
    return found


def _between(text: str, wanted: Mapping[str, Sequence[str]]) -> str:
    lines = text.splitlines()
    (start_text,) = wanted["from"]
    (end_text,) = wanted.get("until") or wanted["to"]
    start = _line_with(start_text, lines, 0)
    end = _line_with(end_text, lines, start)
    return "\n".join(lines[start : end if "until" in wanted else end + 1])


def _line_with(text: str, lines: Sequence[str], first: int) -> int:
    """Return the place of the first line at or after `first` that contains a text."""
    for place, line in enumerate(lines[first:], first):
        if text in line:
            return place
    raise SessionError(f"no line has {text!r} in {lines[first:]!r}")
