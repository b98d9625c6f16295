"""Files beside a program that belong to it: the modules it imports, and those that import it.

Only names and plain text are looked at here; nothing is parsed, and nothing imported.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from time import monotonic

from advisor.frontend.syntax import prefilter

LARGEST_BYTES = 1_000_000
"""Larger files beside a program are not looked into."""

MOST_FILES = 500
"""In a folder with more files than these nobody is looked for."""

MOST_CALLERS = 4
"""Programs that import a module are followed up to this number."""

SUFFIXES = (".py", ".json")
"""Of the files that a program may rest on."""

STALE_S = 2
"""How long what was found in a folder counts, which an editor changes while it is asked."""

_SENDING = re.compile(rf"\.[ \t]*(?:{prefilter.PICKLING_METHOD})\(".encode())
_RECEIVER = re.compile(rb"([A-Za-z_\x80-\xff][\w.\x80-\xff]*)[ \t]*$")
_PARAMETERS = re.compile(rb"^[ \t]*def[ \t]+[^\s(]+[ \t]*\(([^)]*)", re.MULTILINE)
_NAME = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_LONGEST_NAME = 80
_IMPORTED = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)
_MPI = re.compile(rb"\bmpi4py\b")


def sibling_file(path: str, module: str) -> Path | None:
    """Return the file beside `path` that ``import module`` means there; None where there is none.

    A module of the package that the folder is counts as well.
    """
    folder = Path(path).parent
    *packages, name = module.split(".")
    if not name.isidentifier() or (packages and packages != [folder.resolve().name]):
        return None
    file = folder / f"{name}.py"
    return file if _is_plain(file) and file.name != Path(path).name else None


def _is_plain(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size <= LARGEST_BYTES
    except OSError:
        return False


def may_be_given_communicator(
    path: str, data: bytes, words: Collection[bytes] | None = None
) -> bool:
    """Return whether a file may send with a communicator that a program beside it passes.

    Parameters
    ----------
    path : str
    data : bytes
    words : collection of bytes or None
        What :func:`~advisor.frontend.syntax.prefilter.words_in` finds in it, where that is known.
    """
    if words is None:
        words = prefilter.words_in(data)
    if not prefilter.may_send(words) or prefilter.may_mention_mpi(data, words):
        return False
    return sends_by_parameter(data) and bool(callers_of(path))


def sends_by_parameter(data: bytes) -> bool:
    """Return whether what sends may be a parameter, or an attribute that one was stored in."""
    receivers = {
        found[1]
        for sent in _SENDING.finditer(data)
        if (found := _RECEIVER.search(data, max(0, sent.start() - _LONGEST_NAME), sent.start()))
    }
    if not receivers:
        return False
    parameters = {name for given in _PARAMETERS.finditer(data) for name in _NAME.findall(given[1])}
    # what is an attribute was a parameter before, under whatever name
    return bool(parameters) and any(b"." in name or name in parameters for name in receivers)


def callers_of(path: str) -> tuple[str, ...]:
    """Return the files beside `path` that mention mpi4py and import it by its name."""
    name = Path(path).stem
    if not name.isidentifier():
        return ()
    # names may hold letters that are no bytes of ASCII, where a word boundary knows none
    inside = rb"[\w\x80-\xff]"
    named = rb"(?<!" + inside + rb")" + name.encode() + rb"(?!" + inside + rb")"
    imports = re.compile(rb"^[ \t]*(?:from|import)\b[^\n]*" + named, re.M)
    found = [
        str(file)
        for file, text in _programs_in(str(Path(path).parent), int(monotonic() // STALE_S))
        if file.name != Path(path).name and imports.search(text)
    ]
    return tuple(found[:MOST_CALLERS])


def surroundings(path: str, source: str) -> str:
    """Return what changes whenever a file beside `path` changes that its program may rest on.

    Empty where it rests on none: it imports nothing from there, reads no sidecar file, and
    nothing there imports it.
    """
    imported = any(
        sibling_file(path, name.lstrip(".")) for name in _IMPORTED.findall(source) if name != "."
    )
    if not imported and ".json" not in source and not callers_of(path):
        return ""
    states: list[str] = []
    try:
        for file in sorted(Path(path).parent.iterdir()):
            if file.suffix in SUFFIXES and _is_plain(file):
                state = file.stat()
                states.append(f"{file.name} {state.st_mtime_ns} {state.st_size}")
    except OSError:
        return ""
    return "\n".join(states)


def forget() -> None:
    """Look into folders anew, because files in them have changed."""
    _programs_in.cache_clear()


@lru_cache(maxsize=64)
def _programs_in(folder: str, period: int) -> tuple[tuple[Path, bytes], ...]:
    """Return the files of a folder that mention mpi4py, with their content."""
    try:
        files = [f for f in Path(folder).iterdir() if f.suffix == ".py" and _is_plain(f)]
    except OSError:
        return ()
    if len(files) > MOST_FILES:
        return ()
    found: list[tuple[Path, bytes]] = []
    for file in sorted(files):
        try:
            data = file.read_bytes()
        except OSError:
            continue
        if _MPI.search(data):
            found.append((file, data))
    return tuple(found)
