"""Files beside a program that belong to it: the modules it imports, and those that import it.

Only names and plain text are looked at here; nothing is parsed, and nothing imported.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

LARGEST_BYTES = 1_000_000
"""Larger files beside a program are not looked into."""

MOST_FILES = 500
"""In a folder with more files than these nobody is looked for."""

MOST_CALLERS = 4
"""Programs that import a module are followed up to this number."""

_SENDING = re.compile(
    rb"\.\s*(?:[isb]?send|i?recv|sendrecv|bcast|(?:all)?gather|scatter|(?:all)?reduce|alltoall"
    rb"|barrier)\s*\("
)
_TAKEN = re.compile(rb"^[ \t]*def\s+\w+\s*\([^)]*\w", re.MULTILINE)
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


def may_be_given_communicator(path: str, data: bytes) -> bool:
    """Return whether a file may send with a communicator that a program beside it passes."""
    if _SENDING.search(data) is None or _TAKEN.search(data) is None or _MPI.search(data):
        return False
    return bool(callers_of(path))


def callers_of(path: str) -> tuple[str, ...]:
    """Return the files beside `path` that mention mpi4py and import it by its name."""
    name = Path(path).stem
    if not name.isidentifier():
        return ()
    imports = re.compile(rb"^[ \t]*(?:from|import)\b[^\n]*\b" + name.encode() + rb"\b", re.M)
    found = [
        str(file)
        for file, text in _programs_in(str(Path(path).parent), _stamp(Path(path).parent))
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
            if file.suffix in (".py", ".json") and _is_plain(file):
                state = file.stat()
                states.append(f"{file.name} {state.st_mtime_ns} {state.st_size}")
    except OSError:
        return ""
    return "\n".join(states)


def _stamp(folder: Path) -> int:
    """Return the last change of a folder or of a Python file in it."""
    try:
        with os.scandir(folder) as entries:
            changes = [e.stat().st_mtime_ns for e in entries if e.name.endswith(".py")]
        return max((folder.stat().st_mtime_ns, *changes))
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _programs_in(folder: str, stamp: int) -> tuple[tuple[Path, bytes], ...]:
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
