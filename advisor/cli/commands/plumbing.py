"""What people seldom type: ``advise lsp``, ``advise clean`` and ``advise version``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cache import Cache, ForeignFolderError
from advisor.cli import options
from advisor.cli.common import note, write_out
from advisor.cli.options import option
from advisor.cli.scope import make_scope, usual_cache_folder
from advisor.config.files import Layer, system_error, wrong_use

DISTRIBUTION = "kernel-advisor"


def lsp(
    machine: Annotated[
        str | None,
        options.machine_option("Machine to predict for until the editor's settings say another."),
    ] = None,
    log_file: Annotated[
        str | None, option("--log-file", "Log there, not to standard error.", "FILE")
    ] = None,
    stdio: Annotated[
        bool, option("--stdio", "Accepted because editors pass it.", hidden=True)
    ] = False,
) -> None:
    """Serve an editor as its language server."""
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise wrong_use("the language server needs: pip install 'kernel-advisor[lsp]'")
    from advisor.lsp.protocol import SettingError, machine_name

    try:
        chosen = machine_name(machine)
    except SettingError as problem:
        raise wrong_use(f"--{problem}") from problem
    from advisor.lsp.server import serve

    try:
        raise typer.Exit(serve(chosen, log_file, version_line().split()[1]))
    except OSError as error:
        raise wrong_use(f"{log_file}: {error.strerror or error}") from error


def clean(
    cache_dir: options.CacheFolder = None,
    observed: Annotated[
        bool, option("--observed", "Instead, forget the sizes that advise run has kept.")
    ] = False,
) -> None:
    """Remove the answers kept from earlier runs."""
    if observed:
        note(f"{_forgotten()} observations removed")
        return
    if cache_dir:
        folder = Path(cache_dir)
    else:
        scope = make_scope(Layer(), config=None, isolated=False, cache=None)
        folder = usual_cache_folder(scope.configuration)
    try:
        count = Cache(folder).clean()
    except ForeignFolderError as error:
        raise wrong_use(str(error)) from error
    except OSError as error:
        raise system_error(error, str(error.filename or folder)) from error
    note(f"{count} answers removed")


def _forgotten() -> int:
    """Forget what runs of programs showed, and return how many things that were."""
    from costdb.store.database import forget_observations, writing
    from costdb.store.place import store_path

    if not store_path().is_file():
        return 0
    with writing() as connection:
        return forget_observations(connection)


def version() -> None:
    """Show the version."""
    write_out(version_line())


def version_line() -> str:
    """Return name and version of the installed distribution, with a line end."""
    from importlib import metadata

    try:
        number = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        number = "(not installed)"
    return f"{DISTRIBUTION} {number}\n"
