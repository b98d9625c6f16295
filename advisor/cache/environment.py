"""What an answer depends on besides its file: this tool, its Python, and installed transforms."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

_ROOMS = ("advisor", "costdb", "transforms", "machine_profiles")
_METADATA = (".dist-info", ".egg-info", ".egg-link")


def tool_digest() -> str:
    """Return a digest that changes with the tool, its Python and what is installed beside it.

    Installed distributions are told by the names of their metadata folders, which hold the
    version, and by the time of their installation: to import ``importlib.metadata`` would cost
    more than the rest of an answer from the cache. The tool's own files enter by size and time
    of change, so that its developers never see old answers.
    """
    digest = sha256(repr((sys.version, sys.platform)).encode())
    for fact in (*_distributions(), *_own_files()):
        digest.update(repr(fact).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _distributions() -> Iterator[tuple[str, int]]:
    for place in sys.path:
        path = Path(place or ".")
        if path.is_file():  # an archive of modules
            status = path.stat()
            yield f"{path}:{status.st_size}", status.st_mtime_ns
            continue
        try:
            with os.scandir(path) as entries:
                yield from sorted(
                    (entry.name, entry.stat().st_mtime_ns)
                    for entry in entries
                    if entry.name.endswith(_METADATA)
                )
        except OSError:
            continue  # places on the path need not exist


def _own_files() -> Iterator[tuple[str, int, int]]:
    root = Path(__file__).parents[2]
    for room in _ROOMS:
        folder = root / room
        if folder.is_dir():
            yield from _files_below(str(folder))


def _files_below(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of change; plain text instead of `Path`, for speed."""
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files_below(entry.path)
        else:
            status = entry.stat()
            yield entry.path, status.st_size, status.st_mtime_ns
