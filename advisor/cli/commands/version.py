"""``advise version``: which release this is."""

from __future__ import annotations

import typer

from advisor.cli.common import write_out

DISTRIBUTION = "kernel-advisor"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("version", help="Show the version.")(_version)


def _version() -> None:
    write_out(version_line())


def version_line() -> str:
    """Return name and version of the installed distribution, with a line end."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version(DISTRIBUTION)
    except PackageNotFoundError:
        number = "(not installed)"
    return f"{DISTRIBUTION} {number}\n"
