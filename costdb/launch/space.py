"""Two import spaces in one process: a user's program's, and this tool's.

A program finds under each name what it would find without us, so what we loaded under a name that
is another file to the program steps aside. Our own code runs inside :func:`ours`: there our
packages come from where this file is, and the program's files stand for nothing but themselves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType

ROOMS = ("advisor", "costdb", "transforms", "machine_profiles")
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # quick
_ROOT = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120

_lock = RLock()
_aside: dict[str, ModuleType] = {}
_folders: list[str] = []
_started: set[str] = set()
_inside: list[bool] = []


class OwnRooms:
    """The finder of this tool's packages: beside this one, whatever else is called so."""

    @staticmethod
    def find_spec(
        name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of the packages; None for all other names."""
        return PathFinder.find_spec(name, [_ROOT]) if name in ROOMS else None


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that starts ``module.main(arguments)`` of ours in a new process.

    Neither the current folder nor ``PYTHONPATH`` decides which module that is.
    """
    start = os.path.join(_HERE, "start.py")  # noqa: PTH118
    return [sys.executable, start, module, *arguments]


def pin() -> None:
    """Find our packages in their own place from here on: this process is ours."""
    if OwnRooms not in sys.meta_path:
        sys.meta_path.insert(0, OwnRooms)


def begin(started: Collection[str]) -> None:
    """Take this process, in which Python has loaded nothing but what is `started`, for us."""
    _started.update(_tops(started))
    pin()


def give_way(folder: str) -> None:
    """Leave imports to a program: what it has files for steps aside.

    Parameters
    ----------
    folder : str
        The program's, which comes first on its path.
    """
    with _lock:
        if OwnRooms in sys.meta_path:
            sys.meta_path.remove(OwnRooms)
        _folders[:] = [os.path.realpath(folder)]
        sys.path.insert(0, folder)
        _aside.update(_taken(_hidden_from_program(_tops(sys.modules) - _started)))


@contextmanager
def ours() -> Iterator[None]:
    """Import as this tool does within the block, in a process that runs a user's program."""
    with _lock:
        if _inside or OwnRooms in sys.meta_path:
            yield
            return
        path, theirs = list(sys.path), _taken(_clashing())
        before = _tops(sys.modules) - {*ROOMS}
        sys.modules.update(_aside)
        folders = _folders_of_program()
        sys.path[:] = [place for place in path if os.path.realpath(place) not in folders]
        sys.meta_path.insert(0, OwnRooms)
        _inside.append(True)
        try:
            yield
        finally:
            _inside.clear()
            sys.meta_path.remove(OwnRooms)
            sys.path[:] = path
            loaded = _hidden_from_program(_tops(sys.modules) - before - _tops(_aside))
            stepping = loaded | _tops(_aside) | _tops(theirs)
            _aside.clear()
            _aside.update(_taken(stepping))
            sys.modules.update(theirs)


def _tops(names: Collection[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def _taken(tops: Collection[str]) -> dict[str, ModuleType]:
    """Take modules and all that is in them out of those that imports find."""
    names = [name for name in sys.modules if name.partition(".")[0] in tops]
    return {name: sys.modules.pop(name) for name in names}


def _hidden_from_program(tops: Collection[str]) -> set[str]:
    """Return which loaded modules are not what the program would import under their names."""
    found = set()
    for name in tops:
        origin = _origin(sys.modules.get(name))
        spec = PathFinder.find_spec(name) if origin else None
        theirs = os.path.realpath(spec.origin) if spec is not None and spec.origin else ""
        if theirs and theirs != os.path.realpath(origin):
            found.add(name)
    return found


def _clashing() -> set[str]:
    """Return which of the program's modules have names that this tool imports otherwise."""
    folders = _folders_of_program()
    elsewhere = [place for place in sys.path if os.path.realpath(place) not in folders]
    found = set()
    for name, module in list(sys.modules.items()):
        if "." in name or name == "__main__":
            continue
        origin = os.path.realpath(_origin(module))
        if name in ROOMS:
            if not origin.startswith(os.path.join(_ROOT, name, "")):  # noqa: PTH118
                found.add(name)
        elif _folder_of(origin) in folders and PathFinder.find_spec(name, elsewhere) is not None:
            found.add(name)
    return found


def _folders_of_program() -> Collection[str]:
    if _folders:
        return _folders
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    first = sys.path[0] if sys.path else ""
    return [os.path.realpath(first), *([_folder_of(os.path.realpath(file))] if file else [])]


def _folder_of(file: str) -> str:
    """Return where a module lies, of a package where its folder does."""
    folder, name = os.path.split(file)
    return os.path.dirname(folder) if name == "__init__.py" else folder  # noqa: PTH120


def _origin(module: ModuleType | None) -> str:
    """Return a module's file; empty for what is part of Python itself, or has none."""
    spec = getattr(module, "__spec__", None)
    origin = getattr(spec, "origin", None) if spec is not None else None
    return origin if isinstance(origin, str) and origin not in ("built-in", "frozen") else ""
