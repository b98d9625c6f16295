"""Shell sessions in pages: the page has the commands, the build runs them and adds the output.

A page says what to do in a comment before a code block:

``<!-- run exit=1 shows="from b = 3" lacks="caution" matches="on (\\d+) to \\1" -->``
    Run the commands after ``$`` in the block below and put their output there. The last must end
    with that exit code (0 when none is given), the others with 0. The block, its white space
    taken as single blanks, must contain every ``shows`` and something for every regular expression
    in ``matches``; nothing printed may contain a ``lacks``. With ``from`` and ``to`` only those
    lines are shown.
``<!-- write compare.py -->``
    Write the block below to that file.
``<!-- show from="why" to="pays" -->``
    Fill the block with those lines of the last output, or of ``file=...``: from the first line
    that contains the one text to the next that contains the other; with ``until`` for ``to``, to
    the line before it.

So prose may rest on what ``shows`` and ``matches`` hold: the build fails when it is no longer so.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from generators.markdown import fence

_DIRECTIVE = re.compile(
    r"^<!-- (?P<verb>run|show|write) ?(?P<options>.*?)-->\n"
    r"(?P<ticks>`{3,})(?P<language>\w*)\n(?P<body>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
_PROGRAMS = frozenset(("cp", "cat", "diff", "ls"))
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV")
_LONGEST_RUN_S = 120
_HOME = ".home"
_LONGEST_QUOTE = 500
_CONTINUATION = "\\\n"


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
            case [program, *_] if program in _PROGRAMS:
                arguments = words
            case _:
                raise SessionError(f"pages do not run {command!r}")
        try:
            done = subprocess.run(
                arguments,
                cwd=self.folder,
                env=self._environment(),
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

    def _environment(self) -> dict[str, str]:
        # The reader's settings and calibrations must not show.
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        home = str(self.folder / _HOME)
        return {
            **kept,
            "HOME": home,
            "XDG_DATA_HOME": home,
            "XDG_CACHE_HOME": home,
            "XDG_CONFIG_HOME": home,
            "PYTHONPATH": str(self.root),
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
        yield Workshop(root, folder)


def has_sessions(markdown: str) -> bool:
    """Whether a page has anything to run."""
    return _DIRECTIVE.search(markdown) is not None


def with_output(markdown: str, shop: Workshop) -> str:
    """Return a page with its sessions carried out, in order.

    Raises
    ------
    SessionError
        When a command ends or prints otherwise than the page says.
    """
    last = ""

    def carried_out(match: re.Match[str]) -> str:
        nonlocal last
        verb, body, language = match["verb"], match["body"], match["language"]
        options = shlex.split(match["options"])
        if verb == "write":
            (name,) = options
            (shop.folder / name).write_text(body, encoding="utf-8")
            return match[0]
        if verb == "show":
            return fence(_lines_between(last, options, shop), language)
        shown, last = _run_all(body, options, shop)
        # As text: the lexers of shells colour words of the output at random.
        return fence(shown, "text")

    return _DIRECTIVE.sub(carried_out, markdown)


def _run_all(body: str, options: list[str], shop: Workshop) -> tuple[str, str]:
    """Run the commands of a block; return the block to show and the last command's output."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE)
    if not commands:
        raise SessionError(f"no command in the block {body!r}")
    wanted = {"exit": ["0"], "shows": [], "lacks": [], "matches": [], **_by_name(options)}
    shown: list[str] = []
    outcome = Outcome("", 0)
    for place, command in enumerate(commands):
        outcome = shop.run(command)
        expected = int(wanted["exit"][0]) if place == len(commands) - 1 else 0
        if outcome.exit_code != expected:
            raise SessionError(
                f"`{command}` ended with {outcome.exit_code}, not {expected}: "
                f"{outcome.output[-_LONGEST_QUOTE:]!r}"
            )
        shown.append(f"$ {command}\n{outcome.output}")
    printed = " ".join("".join(shown).split())
    if "from" in wanted:
        shown[-1] = f"$ {commands[-1]}\n...\n{_between(outcome.output, wanted)}\n...\n"
    everything = " ".join("".join(shown).split())
    for text in wanted["shows"]:
        if " ".join(text.split()) not in everything:
            raise SessionError(f"`{commands[-1]}` does not print {text!r}: {everything!r}")
    for text in wanted["lacks"]:
        # in all that was printed: what is merely not shown is not lacking
        if " ".join(text.split()) in printed:
            raise SessionError(f"`{commands[-1]}` prints {text!r}: {everything!r}")
    for pattern in wanted["matches"]:
        if not re.search(pattern, everything):
            raise SessionError(
                f"`{commands[-1]}` prints nothing that matches {pattern!r}: {everything!r}"
            )
    return "".join(shown), outcome.output


def _by_name(options: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise SessionError(f"expected name=value, got {option!r}")
        found.setdefault(name, []).append(value)
    return found


def _lines_between(last: str, options: list[str], shop: Workshop) -> str:
    wanted = _by_name(options)
    if "file" in wanted:
        last = (shop.folder / wanted["file"][0]).read_text(encoding="utf-8")
    return _between(last, wanted)


def _between(text: str, wanted: dict[str, list[str]]) -> str:
    lines = text.splitlines()
    (start_text,) = wanted["from"]
    (end_text,) = wanted.get("until") or wanted["to"]
    start = _line_with(start_text, lines, 0)
    end = _line_with(end_text, lines, start)
    return "\n".join(lines[start : end if "until" in wanted else end + 1])


def _line_with(text: str, lines: list[str], first: int) -> int:
    """Return the place of the first line at or after `first` that contains a text."""
    for place, line in enumerate(lines[first:], first):
        if text in line:
            return place
    raise SessionError(f"no line has {text!r} in {lines[first:]!r}")
