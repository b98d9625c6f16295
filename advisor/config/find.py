"""Which configuration holds for a file: the nearest one above it, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from advisor.config.layer import Layer, Settings, settle
from advisor.config.read import Configuration, read_configuration

# Patterns of paths: ``*`` and ``?`` within a name, ``**`` across folders.

_PIECE = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_MEANING = {
    "**/": "(?:[^/]+/)*",
    "/**": "/.+",
    "**": ".*",
    "*": "[^/]*",
    "?": "[^/]",
}


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches `path` or a folder that it lies in.

    Parameters
    ----------
    path : str
        Relative to where the patterns are written, with forward slashes.
    patterns : iterable of str
        One without a slash matches names at any depth; one with a slash, the path from its
        start. A slash at the end changes nothing.
    """
    parts = path.split("/")
    prefixes = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    for pattern in patterns:
        stripped = pattern.removeprefix("./").rstrip("/")
        compiled = _compiled(stripped)
        if any(map(compiled.fullmatch, prefixes if "/" in stripped else parts)):
            return True
    return False


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = (_translated(piece) for piece in _PIECE.findall(pattern))
    return re.compile("".join(pieces), re.DOTALL)


def _translated(piece: str) -> str:
    if piece in _MEANING:
        return _MEANING[piece]
    if len(piece) > 1:
        inside = piece[1:-1].removeprefix("!")
        if not inside:
            return re.escape(piece)
        sign = "^/" if piece.startswith("[!") else ""
        return f"[{sign}{_class(inside)}]"
    return re.escape(piece)


def _class(inside: str) -> str:
    """Return the inside of a character class, its ranges kept where they are ranges."""
    ranges = re.findall(r".-.|.", inside, re.DOTALL)
    return "".join(
        f"{re.escape(one[0])}-{re.escape(one[2])}"
        if len(one) == 3 and one[0] <= one[2]
        else re.escape(one)
        for one in ranges
    )


FILE_NAME = "pyproject.toml"


@dataclass(slots=True)
class Configurations:
    """Looks configurations up, each folder once.

    Attributes
    ----------
    command_line : Layer
        Goes over every file's settings.
    fixed : Configuration or None
        Holds for all files instead of what is found near them.
    """

    command_line: Layer
    fixed: Configuration | None = None
    _resolved: dict[str, Path] = field(default_factory=dict)
    _by_name: dict[str, Configuration] = field(default_factory=dict)
    _by_folder: dict[Path, Configuration] = field(default_factory=dict)
    _settled: dict[tuple[str, tuple[int, ...]], Settings] = field(default_factory=dict)

    def of_folder(self, folder: str) -> Configuration:
        """Return the configuration for the files in a folder.

        Raises
        ------
        ConfigError
            The nearest file with a table ``[tool.advise]`` is wrong.
        """
        if self.fixed is not None:
            return self.fixed
        if folder in self._by_name:
            return self._by_name[folder]
        passed = []
        place = self._resolve(folder)
        while (found := self._by_folder.get(place)) is None:
            passed.append(place)
            file = place / FILE_NAME
            if file.is_file() and (read := read_configuration(str(file))) is not None:
                found = read
                break
            if place.parent == place:
                found = without_file()
                break
            place = place.parent
        for one in passed:
            self._by_folder[one] = found
        self._by_name[folder] = found
        return found

    def of_file(self, path: str) -> Settings:
        """Return the settings for a file, overrides by path and command line included."""
        configuration = self.of_folder(os.path.split(path)[0] or ".")
        matching: tuple[int, ...] = ()
        if configuration.overrides:
            below = self._below(path, configuration.root)
            matching = tuple(
                number
                for number, override in enumerate(configuration.overrides)
                if matches(below, override.paths)
            )
        key = (configuration.file, matching)
        if key not in self._settled:
            overrides = (configuration.overrides[number].layer for number in matching)
            self._settled[key] = settle((configuration.layer, *overrides, self.command_line))
        return self._settled[key]

    def excludes(self, path: str) -> bool:
        """Return whether the configuration for a file or folder leaves it out."""
        configuration = self.of_folder(os.path.split(path)[0] or ".")
        if not configuration.exclude:
            return False
        return matches(self._below(path, configuration.root), configuration.exclude)

    def _resolve(self, folder: str) -> Path:
        if folder not in self._resolved:
            self._resolved[folder] = Path(folder).resolve()
        return self._resolved[folder]

    def _below(self, path: str, root: str) -> str:
        """Return a path as seen from the folder of a configuration, with forward slashes."""
        whole = self._resolve(str(Path(path).parent)) / Path(path).name
        return os.path.relpath(whole, root).replace(os.sep, "/")


def without_file() -> Configuration:
    """Return the configuration that says nothing."""
    return Configuration("", str(Path.cwd()), Layer())


def configurations(
    command_line: Layer, *, file: str | None = None, isolated: bool = False
) -> Configurations:
    """Return what looks configurations up.

    Parameters
    ----------
    command_line : Layer
    file : str or None
        The one file to read, for all files.
    isolated : bool
        Whether to read none.

    Raises
    ------
    ConfigError
        `file` is wrong.
    """
    if isolated:
        return Configurations(command_line, without_file())
    if file is None:
        return Configurations(command_line)
    path = str(Path(file).resolve())
    return Configurations(command_line, read_configuration(path, required=True))
