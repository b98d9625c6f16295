"""Options that several commands share, so that one name means the same in all of them.

Each is a type for a parameter of a command. A parameter with another default or another meaning
makes its own option, by the functions here where they fit.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from advisor.cli import completing
from advisor.cli.common import SIZES_VARIABLE
from advisor.config.machine import MACHINE_VARIABLE
from advisor.report.model import FORMATS


def machine_option(help_text: str, short: str = "-m") -> Any:
    """Return ``--machine``, for which the environment may speak."""
    return typer.Option(
        "--machine",
        short,
        metavar="NAME",
        envvar=MACHINE_VARIABLE,
        show_envvar=True,
        autocompletion=completing.machines,
        help=help_text,
    )


def report_format_option(*more: str) -> Any:
    """Return ``--output-format`` of a command that reports findings.

    Parameters
    ----------
    *more : str
        Words that it takes beside the formats.
    """
    return typer.Option(
        "--output-format",
        metavar="FORMAT",
        envvar="ADVISE_OUTPUT_FORMAT",
        show_envvar=True,
        autocompletion=completing.words(*more, *FORMATS),
        help=f"One of {', '.join((*more, *FORMATS))}.",
    )


def codes_option(name: str, help_text: str) -> Any:
    """Return an option that names rules."""
    return typer.Option(
        f"--{name}",
        metavar="CODES",
        envvar=f"ADVISE_{name.replace('-', '_').upper()}",
        show_envvar=True,
        autocompletion=completing.codes,
        help=help_text,
    )


def output_file_option(what: str) -> Any:
    """Return ``-o`` for a report or a result."""
    return typer.Option("-o", "--output-file", metavar="FILE", help=f"Write the {what} to a file.")


Machine = Annotated[str | None, machine_option("Machine to predict for: a name or a profile.json.")]
MachineOfSubject = Annotated[
    str | None,
    machine_option("Machine to predict for: a name or a profile.json. A .pam needs none."),
]
ThisMachine = Annotated[str, machine_option("This machine's name.")]

Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "-D",
        "--define",
        metavar="NAME=VALUE",
        envvar=SIZES_VARIABLE,
        show_envvar=True,
        help="Bind a size, as -D N=1000.",
    ),
]

ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="ADVISE_CONFIG",
        show_envvar=True,
        help="Read [tool.advise] from this file instead of the nearest pyproject.toml.",
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no configuration file.")]

ReportFile = Annotated[str | None, output_file_option("report")]
ResultFile = Annotated[str | None, output_file_option("result")]
TextOrJson = Annotated[
    str,
    typer.Option(
        "--output-format",
        metavar="FORMAT",
        autocompletion=completing.words("text", "json"),
        help="text or json.",
    ),
]

CacheFolder = Annotated[
    str | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        envvar="ADVISE_CACHE_DIR",
        show_envvar=True,
        help="Where answers are kept; .advise_cache beside the configuration otherwise.",
    ),
]

Subjects = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A process model (.pam; several make one), a description (.toml), or Python.",
    ),
]
Ranks = Annotated[
    int | None,
    typer.Option("-P", "--ranks", metavar="P", min=1, help="Ranks that run the program."),
]
Sections = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="SECTION", help="Only this section; may be repeated."),
]
