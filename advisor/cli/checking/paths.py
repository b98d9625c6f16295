"""Which files the paths of a command line stand for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from advisor.config.errors import CommandError, system_error, wrong_use

# Other people's code, caches and copies; hidden directories are left out as well.
_SKIPPED = frozenset(("venv", "site-packages", "node_modules", "__pycache__"))
_ENVIRONMENT_MARK = "pyvenv.cfg"
_SUFFIX = ".py"

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
    that loops do no harm.

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
        walked = sorted(name for name in subfolders if _is_walked(folder, name))
        subfolders[:] = [name for name in walked if not excluded(str(Path(folder, name)))]
        empty = empty and len(subfolders) == len(walked)
        for name in sorted(files):
            if name.endswith(_SUFFIX) and not name.startswith("."):
                empty = False
                path = name if shown == "." else f"{shown.rstrip('/')}/{name}"
                if not excluded(path):
                    yield path
    for error in refusals:
        complain(system_error(error, str(error.filename)))
    if empty and not refusals:
        complain(wrong_use(f"{root}: no Python files in this directory"))


def _is_walked(folder: str, name: str) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    return not Path(folder, name, _ENVIRONMENT_MARK).exists()
