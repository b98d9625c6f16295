"""Which files the paths of a command line stand for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from advisor.config.layer import CommandError, system_error, wrong_use
from advisor.files import project_root
from advisor.notebook import SUFFIX
from costdb.records import dataclass

# Other people's code, caches and copies; hidden directories are left out as well.
_SKIPPED = frozenset(("venv", "site-packages", "node_modules", "__pycache__"))
_ENVIRONMENT_MARK = "pyvenv.cfg"
_SUFFIXES = (".py", SUFFIX)

Complain = Callable[[CommandError], None]
Excluded = Callable[[str], bool]


def python_files(
    paths: Sequence[str],
    complain: Complain,
    excluded: Excluded = lambda path: False,
    *,
    force: bool = False,
) -> Iterator[str]:
    """Yield the files that `paths` name, directories walked, each file once.

    The order depends on the names alone. Symbolic links to directories are not followed, so
    that loops do no harm. What git ignores in a directory is left out.

    Parameters
    ----------
    paths : sequence of str
    complain : callable
        Is given what cannot be read, which is left out.
    excluded : callable
        Whether a file or folder found in a folder is to be left out.
    force : bool
        Whether `excluded` is asked about `paths` too.
    """
    seen: set[str] = set()
    folders: dict[str, str] = {}
    for path in paths:
        if force and excluded(path):
            continue
        folder = Path(path).is_dir()
        found = _files_under(path, complain, excluded) if folder else iter((path,))
        for file in found:
            identity = _identity(file, folders)
            if identity not in seen:
                seen.add(identity)
                yield file


def _identity(file: str, folders: dict[str, str]) -> str:
    """Return the path of a file without symbolic links; those of its folder resolved once."""
    # making a Path of every file would cost as much as reading it
    if os.path.islink(file):  # noqa: PTH114
        return os.path.realpath(file)
    folder, name = os.path.split(file)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    return f"{folders[folder]}{os.sep}{name}"


def _files_under(root: str, complain: Complain, excluded: Excluded) -> Iterator[str]:
    refusals: list[OSError] = []
    empty = True
    for folder, subfolders, files in os.walk(root, onerror=refusals.append):
        shown = Path(folder).as_posix()
        rules = _rules_for(os.path.realpath(folder))
        walked = sorted(name for name in subfolders if _is_walked(folder, name))
        subfolders[:] = [
            name
            for name in walked
            if not _is_ignored(rules, f"{name}/") and not excluded(str(Path(folder, name)))
        ]
        empty = empty and len(subfolders) == len(walked)
        for name in sorted(files):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                empty = False
                path = name if shown == "." else f"{shown.rstrip('/')}/{name}"
                if not _is_ignored(rules, name) and not excluded(path):
                    yield path
    for error in refusals:
        complain(system_error(error, str(error.filename)))
    if empty and not refusals:
        complain(wrong_use(f"{root}: no Python files or notebooks in this directory"))


def _is_walked(folder: str, name: str) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    return not Path(folder, name, _ENVIRONMENT_MARK).exists()


# What git ignores: the last pattern that fits decides, those of inner folders come last.


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of a ``.gitignore``, and the way from there to the folder that is looked at."""

    pattern: re.Pattern[str]
    ignores: bool
    below: str


def _is_ignored(rules: Sequence[_Rule], name: str) -> bool:
    """Return whether git ignores a file, or a folder with a slash behind its name."""
    return next(
        (rule.ignores for rule in reversed(rules) if rule.pattern.fullmatch(rule.below + name)),
        False,
    )


def _rules_for(folder: str) -> tuple[_Rule, ...]:
    root = project_root(folder)
    if root is None or not os.path.lexists(f"{root}/.git"):
        return ()
    inner = os.path.relpath(folder, root).replace(os.sep, "/")
    parts = [] if inner == "." else inner.split("/")
    found: list[_Rule] = []
    for depth in range(len(parts) + 1):
        below = "".join(f"{part}/" for part in parts[depth:])
        place = "/".join((root, *parts[:depth]))
        files = (".git/info/exclude", ".gitignore") if depth == 0 else (".gitignore",)
        for file in files:
            found += [_Rule(one, no, below) for one, no in _patterns(f"{place}/{file}")]
    return tuple(found)


@cache
def _patterns(file: str) -> tuple[tuple[re.Pattern[str], bool], ...]:
    try:
        lines = Path(file).read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        text = re.sub(r"(?<!\\) +$", "", line)
        ignores = not text.startswith("!")
        text = text if ignores else text[1:]
        if text.strip("/") and not text.startswith("#"):
            try:
                found.append((re.compile(_expression(text)), ignores))
            except re.error:
                continue  # git takes no notice of it either
    return tuple(found)


_PARTS = re.compile(
    r"(?P<any>\*\*/)|(?P<rest>/\*\*$)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<no>[!^])?(?P<set>\]?[^\]]*)\]|\\(?P<plain>.)|.",
    re.DOTALL,
)


def _expression(text: str) -> str:
    """Return a pattern of git's as a regular expression over paths, folders with a last slash."""
    anchored = "/" in text.rstrip("/")
    made = "" if anchored else "(?:.*/)?"
    for part in _PARTS.finditer(text.strip("/")):
        match part.lastgroup:
            case "any":
                made += "(?:.*/)?"
            case "rest":
                made += "/.+"
            case "stars":
                # no name is empty
                made += "(?=[^/])[^/]*" if not made or made[-1] in "/?" else "[^/]*"
            case "one":
                made += "[^/]"
            case "set":
                made += f"[{'^' if part['no'] else ''}{part['set'].replace(chr(92), chr(92) * 2)}]"
            case _:
                made += re.escape(part["plain"] or part[0])
    return made + ("/" if text.endswith("/") else "/?")
