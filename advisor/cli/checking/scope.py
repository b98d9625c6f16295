"""What a run of the linter works within: configurations, exclusions and the cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from advisor.cache.answers import Answers
from advisor.cache.store import FOLDER_NAME, Cache, ForeignFolderError
from advisor.config.effective import Resolver
from advisor.config.errors import CommandError, wrong_use
from advisor.config.find import Configurations, configurations
from advisor.config.globs import matches
from advisor.config.layer import ConfigError, Layer
from advisor.config.machine import choose_machine
from advisor.config.read import Configuration
from advisor.config.rules import split_codes
from advisor.observations import Observations


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
