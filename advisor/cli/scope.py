"""What a run of the linter works within: configurations, exclusions and the cache; all shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from advisor.cache import FOLDER_NAME, Cache, ForeignFolderError
from advisor.cli.common import STANDARD_STREAM, complain, write_out
from advisor.config.effective import Resolver, split_codes
from advisor.config.files import (
    CommandError,
    Configuration,
    Layer,
    Settings,
    choose_machine,
    configurations,
    matches,
    shown_path,
    system_error,
    wrong_use,
)
from advisor.files import project_root
from advisor.observed import Observations
from advisor.source import NOTEBOOK
from costdb.records import dataclass

# Which files the paths of a command line stand for.


# Other people's code, caches and copies; hidden directories are left out as well.
_SKIPPED = frozenset(("venv", "site-packages", "node_modules", "__pycache__"))
_ENVIRONMENT_MARK = "pyvenv.cfg"
_SUFFIXES = (".py", NOTEBOOK)

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
    ignored = _ignored_by_git(root)
    for folder, subfolders, files in os.walk(root, onerror=refusals.append):
        shown = Path(folder).as_posix()
        below = "" if folder == root else f"{Path(folder).relative_to(root).as_posix()}/"
        walked = sorted(name for name in subfolders if _is_walked(folder, name))
        subfolders[:] = [
            name
            for name in walked
            if f"{below}{name}/" not in ignored and not excluded(str(Path(folder, name)))
        ]
        empty = empty and len(subfolders) == len(walked)
        for name in sorted(files):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                empty = False
                path = name if shown == "." else f"{shown.rstrip('/')}/{name}"
                if f"{below}{name}" not in ignored and not excluded(path):
                    yield path
    for error in refusals:
        complain(system_error(error, str(error.filename)))
    if empty and not refusals:
        complain(wrong_use(f"{root}: no Python files or notebooks in this directory"))


def _is_walked(folder: str, name: str) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    return not Path(folder, name, _ENVIRONMENT_MARK).exists()


def _ignored_by_git(folder: str) -> frozenset[str]:
    """Return what git ignores below a folder, as seen from there, folders with a last slash.

    Nothing of a configuration that a repository brings along is run for that.
    """
    root = project_root(folder)
    if root is None or not os.path.lexists(f"{root}/.git"):
        return frozenset()
    import subprocess

    ask = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
    environment = {key: text for key, text in os.environ.items() if not key.startswith("GIT_")}
    try:
        told = subprocess.run(
            ["git", "-C", folder, "-c", "core.fsmonitor=false", *ask],
            env=environment,
            capture_output=True,
        ).stdout
    except OSError:
        return frozenset()  # who has no git has no use for what it ignores
    return frozenset(os.fsdecode(told).split("\0"))


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
    force : bool
        Whether what is excluded is left out even when it is named.
    """

    resolver: Resolver
    configuration: Configuration
    patterns: tuple[str, ...]
    force: bool = False

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
        return self.resolver.configurations.excludes(path)


def make_scope(
    command_line: Layer,
    *,
    config: str | None,
    isolated: bool,
    exclude: Iterable[str] = (),
    force: bool = False,
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
    force : bool
        Whether they hold for what is named, too.
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
    found = configurations(command_line, file=config, isolated=isolated)
    here = found.of_folder(".")
    kept = None
    if cache is not None:
        kept = Cache(Path(cache) if cache else usual_cache_folder(here))
        try:
            kept.check()
        except (ForeignFolderError, OSError) as error:
            raise wrong_use(f"cache: {error}") from error
    if cache:
        _tell_unwritable(Path(cache))
    observations = None if isolated else Observations()
    return Scope(Resolver(found, kept, observations), here, split_codes(exclude), force)


def _tell_unwritable(folder: Path) -> None:
    """Say that a folder which was named for the cache cannot be one; nothing fails for that."""
    there = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    if not os.access(there, os.W_OK):
        complain(f"advise: {folder}: cannot be written to: no answers are kept; name another")


def usual_cache_folder(configuration: Configuration) -> Path:
    """Return the folder beside a configuration file, or in the current folder."""
    return Path(configuration.root, FOLDER_NAME)


def show(paths: Sequence[str], scope: Scope, output_format: str, stdin_filename: str) -> None:
    """Write the settings of the first of some files to standard output.

    Raises
    ------
    CommandError
        There is no file, or a setting is wrong.
    """
    complaints: list[Exception] = []
    if tuple(paths) == (STANDARD_STREAM,):
        path: str | None = stdin_filename
    else:
        path = next(python_files(paths, complaints.append, scope.excluded, force=scope.force), None)
    if path is None:
        raise complaints[0] if complaints else wrong_use("every file is excluded")
    settings = scope.resolver.configurations.of_file(path)
    scope.resolver.effective(path)  # refuses unknown machines and rules
    lines = _lines(path, settings, scope, output_format)
    write_out("".join(f"{line}\n" for line in lines))


def _lines(path: str, settings: Settings, scope: Scope, output_format: str) -> Iterator[str]:
    configuration = scope.resolver.configurations.of_folder(str(Path(path).parent))
    source = shown_path(configuration.file) if configuration.file else "no configuration file"
    yield f"# {path}: {source}, environment and command line"
    yield from _table(
        "tool.advise",
        {
            "machine": settings.machine,
            "select": settings.select,
            "ignore": settings.ignore,
            "extend-select": settings.extend_select,
            "exclude": (*configuration.exclude, *scope.patterns),
            "min-speedup": settings.min_speedup,
            "fail-above": settings.fail_above,
            "output-format": output_format,
        },
    )
    if settings.sizes:
        yield ""
        yield "[tool.advise.sizes]"
        for name, size in settings.sizes.items():
            key = _toml(name) if "." in name else name  # a bare dot would mean a table
            yield f"{key} = {size!r}  # {settings.size_origins[name]}"
    for rule, limits in settings.rules.items():
        yield ""
        stated = {"min-speedup": limits.min_speedup, "fail-above": limits.fail_above}
        yield from _table(f"tool.advise.rules.{rule}", stated)


def _table(name: str, values: Mapping[str, object]) -> Iterator[str]:
    yield f"[{name}]"
    yield from (f"{key} = {_toml(value)}" for key, value in values.items() if value is not None)


def _toml(value: object) -> str:
    """Return a value of TOML; JSON's escapes are among its own."""
    import json

    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
