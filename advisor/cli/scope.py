"""What a run of the linter works within: configurations, exclusions and the cache; all shown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from advisor.cache import FOLDER_NAME, Answers, Cache, ForeignFolderError
from advisor.cli.common import STANDARD_STREAM, complain, write_out
from advisor.cli.paths import python_files
from advisor.config.effective import Resolver, split_codes
from advisor.config.files import Configuration, configurations, matches
from advisor.config.layer import (
    Layer,
    Settings,
    choose_machine,
    shown_path,
    wrong_use,
)
from advisor.observed import Observations
from costdb.records import dataclass


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
    answers = None
    if cache is not None:
        folder = Path(cache) if cache else usual_cache_folder(here)
        answers = Answers(Cache(folder))
        try:
            answers.cache.check()
        except (ForeignFolderError, OSError) as error:
            raise wrong_use(f"cache: {error}") from error
    if cache:
        _tell_unwritable(Path(cache))
    observations = None if isolated else Observations()
    return Scope(Resolver(found, answers, observations), here, split_codes(exclude), force)


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
    settings = scope.resolver.settings(path)
    scope.resolver.effective(path)  # refuses unknown machines and rules
    lines = _lines(path, settings, scope, output_format)
    write_out("".join(f"{line}\n" for line in lines))


def _lines(path: str, settings: Settings, scope: Scope, output_format: str) -> Iterator[str]:
    configuration = scope.resolver.configurations.of_folder(str(Path(path).parent))
    source = shown_path(configuration.file) if configuration.file else "no configuration file"
    yield f"# {path}: {source}, environment and command line"
    yield "[tool.advise]"
    if settings.machine is not None:
        yield f"machine = {_text(settings.machine)}"
    for name, codes in (
        ("select", settings.select),
        ("ignore", settings.ignore),
        ("extend-select", settings.extend_select),
        ("exclude", (*configuration.exclude, *scope.patterns)),
    ):
        yield f"{name} = {_array(codes)}"
    if settings.min_speedup is not None:
        yield f"min-speedup = {settings.min_speedup!r}"
    if settings.fail_above is not None:
        yield f"fail-above = {settings.fail_above!r}"
    yield f"output-format = {_text(output_format)}"
    if settings.sizes:
        yield ""
        yield "[tool.advise.sizes]"
        for name, size in settings.sizes.items():
            key = _text(name) if "." in name else name  # a bare dot would mean a table
            yield f"{key} = {size!r}  # {settings.size_origins[name]}"
    for rule, options in settings.rules.items():
        limits: Mapping[str, float | None] = {
            "min-speedup": options.min_speedup,
            "fail-above": options.fail_above,
        }
        yield ""
        yield f"[tool.advise.rules.{rule}]"
        yield from (f"{name} = {limit!r}" for name, limit in limits.items() if limit is not None)


def _array(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """Return a TOML string; JSON's escapes are among TOML's."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
