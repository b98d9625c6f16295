"""``advise lsp``: serve an editor on standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli import options
from advisor.config.layer import wrong_use


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lsp", help="Serve an editor: the language server, on standard input and output.")(
        _lsp
    )


def _lsp(
    machine: Annotated[
        str | None,
        options.machine_option("Machine to predict for until the editor's settings say another."),
    ] = None,
    log_file: Annotated[
        str | None,
        typer.Option("--log-file", metavar="FILE", help="Log there, not to standard error."),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Accepted because editors pass it.", hidden=True)
    ] = False,
) -> None:
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise wrong_use("the language server needs: pip install 'kernel-advisor[lsp]'")
    from advisor.lsp.settings import SettingError, machine_name

    try:
        chosen = machine_name(machine)
    except SettingError as problem:
        raise wrong_use(f"--{problem}") from problem
    from advisor.lsp.server import serve

    try:
        raise typer.Exit(serve(chosen, log_file))
    except OSError as error:
        raise wrong_use(f"{log_file}: {error.strerror or error}") from error
