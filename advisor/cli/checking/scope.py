"""What a run of the linter works within: configurations, exclusions and the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.cache.answers import Answers
from advisor.cache.store import FOLDER_NAME, Cache, ForeignFolderError
from advisor.config.effective import Resolver, split_codes
from advisor.config.find import Configurations, configurations, matches
from advisor.config.layer import CommandError, ConfigError, Layer, system_error, wrong_use
from advisor.config.machine import choose_machine
from advisor.config.read import Configuration
from advisor.observations import Observations

# Which files the paths of a command line stand for.

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


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds for a whole run.

    Attributes
    ----------
    resolver : Resolver
    configuration : Configuration
        The one for the current folder; the run's own settings come from it.
    patterns : tuple of str
        Of ``--exclude``; they count from the current folder.
    """

    resolver: Resolver
    configuration: Configuration
    patterns: tuple[str, ...]

    @property
    def output_format(self) -> str | None:
        """What the configuration for the current folder asks for."""
        return self.configuration.output_format

    def excluded(self, path: str) -> bool:
        """Return whether ``--exclude`` or the configuration nearby leaves a path out.

        Raises
        ------
        CommandError
            That configuration is wrong.
        """
        if self.patterns:
            below = os.path.relpath(path).replace(os.sep, "/")
            if matches(below, self.patterns):
                return True
        try:
            return self.resolver.configurations.excludes(path)
        except ConfigError as error:
            raise CommandError(str(error)) from error


def make_scope(
    command_line: Layer,
    *,
    config: str | None,
    isolated: bool,
    exclude: Iterable[str] = (),
    cache: str | None = "",
) -> Scope:
    """Return what a run works within.

    Parameters
    ----------
    command_line : Layer
        Goes over all configurations; its machine must be known.
    config : str or None
        The one configuration file to read.
    isolated : bool
        Whether to read none, and to leave out what runs of the program showed.
    exclude : iterable of str
        Patterns, several in one by commas.
    cache : str or None
        Folder of the cache; empty: the usual one; None: no cache.

    Raises
    ------
    CommandError
        A configuration is wrong, the machine unknown, or the folder not a cache.
    """
    if config is not None and isolated:
        raise wrong_use("--config and --isolated exclude each other")
    if command_line.machine is not None:
        choose_machine(command_line.machine)
    found, here = _configurations(command_line, config, isolated)
    answers = None
    if cache is not None:
        folder = Path(cache) if cache else usual_cache_folder(here)
        answers = Answers(Cache(folder))
        try:
            answers.cache.check()
        except (ForeignFolderError, OSError) as error:
            raise wrong_use(f"cache: {error}") from error
    observations = None if isolated else Observations()
    return Scope(Resolver(found, answers, observations), here, split_codes(exclude))


def _configurations(
    command_line: Layer, config: str | None, isolated: bool
) -> tuple[Configurations, Configuration]:
    try:
        found = configurations(command_line, file=config, isolated=isolated)
        return found, found.of_folder(".")
    except ConfigError as error:
        raise CommandError(str(error)) from error


def usual_cache_folder(configuration: Configuration) -> Path:
    """Return the folder beside a configuration file, or in the current folder."""
    return Path(configuration.root, FOLDER_NAME)
