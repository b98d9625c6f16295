"""``advise explain``: everything behind the findings at one place."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated

import typer

from advisor.cli import completing
from advisor.cli.common import (
    CommandError,
    parse_bindings,
    system_error,
    write_out,
    wrong_use,
)
from advisor.cli.scope import make_scope
from advisor.config.layer import Layer

_PLACE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]{1,9})?", re.DOTALL)
_FORMATS = ("text", "json")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", help="Show what a finding is computed from.")(_explain)


def _explain(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A place as reports show it.")],
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME",
            envvar="ADVISE_MACHINE",
            show_envvar=True,
            autocompletion=completing.machines,
            help="Machine to predict for: a name or a profile.json.",
        ),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option(
            "-D",
            "--define",
            metavar="NAME=VALUE",
            envvar="ADVISE_DEFINE",
            show_envvar=True,
            help="Bind a size, as -D N=1000.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            envvar="ADVISE_CONFIG",
            show_envvar=True,
            help="Read [tool.advise] from this file instead of the nearest pyproject.toml.",
        ),
    ] = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Read no configuration file.")
    ] = False,
    output_format: Annotated[
        str, typer.Option("--output-format", metavar="FORMAT", help="text or json.")
    ] = "text",
) -> None:
    from advisor.explain import at_line, judged_in
    from advisor.files import read_source
    from advisor.report import explanation
    from advisor.report.style import detect_style
    from advisor.source import SourceProblem
    from costdb.machines import MachineError

    found = _PLACE.fullmatch(place)
    if found is None:
        raise wrong_use(f"{place}: expected FILE:LINE, such as kernel.py:35")
    if output_format not in _FORMATS:
        raise wrong_use(f"--output-format {output_format}: expected {' or '.join(_FORMATS)}")
    path, line = found[1], int(found[2])
    layer = Layer(machine=machine or None, sizes=parse_bindings(define or ()))
    scope = make_scope(layer, config=config, isolated=isolated, cache=None)
    options = scope.resolver.effective(path).options
    try:
        source = read_source(path).text
        judged = judged_in(path, source, options)
    except SourceProblem as problem:
        raise CommandError(str(problem)) from problem
    except MachineError as error:
        raise wrong_use(str(error)) from error
    except OSError as error:
        raise system_error(error, path) from error
    chosen = at_line(judged, line)
    if not chosen:
        lines = ", ".join(dict.fromkeys(str(one.finding.span.start_line) for one in judged))
        where = f"; there are some at {lines}" if lines else ", nor anywhere else in the file"
        raise wrong_use(f"{path}: no finding at line {line}{where}")
    if output_format == "json":
        write_out(explanation.as_json(chosen, options.machine or ""))
    else:
        write_out(explanation.text(chosen, source, detect_style(sys.stdout, os.environ)))
