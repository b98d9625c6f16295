"""Which files the paths of a command line stand for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from advisor.cli.common import CommandError, system_error, wrong_use

# Other people's code, caches and copies; hidden directories are left out as well.
_SKIPPED = frozenset(("venv", "site-packages", "node_modules", "__pycache__"))
_ENVIRONMENT_MARK = "pyvenv.cfg"
_SUFFIX = ".py"

Complain = Callable[[CommandError], None]


def python_files(paths: Sequence[str], complain: Complain) -> Iterator[str]:
    """Yield the files that `paths` name, directories walked, each file once.

    The order depends on the names alone. Symbolic links to directories are not followed, so
    that loops do no harm. What cannot be read is given to `complain` and left out.
    """
    seen: set[str] = set()
    for path in paths:
        found = _files_under(path, complain) if Path(path).is_dir() else iter((path,))
        for file in found:
            identity = os.path.realpath(file)
            if identity not in seen:
                seen.add(identity)
                yield file


def _files_under(root: str, complain: Complain) -> Iterator[str]:
    refusals: list[OSError] = []
    empty = True
    for folder, subfolders, files in os.walk(root, onerror=refusals.append):
        subfolders[:] = sorted(name for name in subfolders if _is_walked(folder, name))
        for name in sorted(files):
            path = Path(folder, name)
            if name.endswith(_SUFFIX) and not name.startswith(".") and path.is_file():
                empty = False
                yield path.as_posix()
    for error in refusals:
        complain(system_error(error, str(error.filename)))
    if empty and not refusals:
        complain(wrong_use(f"{root}: no Python files in this directory"))


def _is_walked(folder: str, name: str) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    return not Path(folder, name, _ENVIRONMENT_MARK).exists()
