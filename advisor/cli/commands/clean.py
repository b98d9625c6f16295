"""``advise clean``: remove the answers of earlier runs, or what runs of programs showed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cache.store import Cache, ForeignFolderError
from advisor.cli import options
from advisor.cli.checking.scope import make_scope, usual_cache_folder
from advisor.cli.common import complain
from advisor.config.layer import Layer, system_error, wrong_use


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("clean", help="Remove the answers kept from earlier runs.")(_clean)


def _clean(
    cache_dir: options.CacheFolder = None,
    observed: Annotated[
        bool,
        typer.Option("--observed", help="Instead, forget the sizes that advise run has kept."),
    ] = False,
) -> None:
    if observed:
        complain(f"{_forgotten()} observations removed")
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
    complain(f"{count} answers removed")


def _forgotten() -> int:
    """Forget what runs of programs showed, and return how many things that were."""
    from costdb.store.database import writing
    from costdb.store.place import StoreError, store_path
    from costdb.store.results import forget_observations

    if not store_path().is_file():
        return 0
    try:
        with writing(store_path()) as connection:
            return forget_observations(connection)
    except StoreError as error:
        raise wrong_use(str(error)) from error
