"""``advise predict``: how long a program takes, and which parts of it take how long."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.common import write_result
from advisor.cli.formats import JSON, TEXT, require_format, text_style


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", help="Predict the run time of a model, a description or a kernel.")(
        _predict
    )


def _predict(
    files: options.Subjects,
    machine: options.MachineOfSubject = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", metavar="NAME=VALUE", help="Bind a parameter."),
    ] = None,
    ranks: options.Ranks = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="NAME",
            help="Which kernel, or function of an MPI program, of a Python file.",
        ),
    ] = None,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> None:
    require_format(output_format)
    from advisor.cli.bindings import parse_given
    from advisor.cli.subjects import (
        formula_of,
        lacking,
        open_files,
        origins_of,
        problems_in_one_line,
        with_configured,
        with_ranks,
    )
    from advisor.report.prediction import PredictionReport, as_json, as_text
    from costdb.choosing import predict
    from costdb.estimate import Missing

    given = with_ranks(parse_given(define or ()), ranks)
    with problems_in_one_line():
        opened = open_files(files, machine, kernel)
        given, configured = with_configured(opened, files[0], given)
        found = predict(opened.subject, given)
        formula = formula_of(opened)
        origins = (*configured, *origins_of(opened, given)) if files[0].endswith(".py") else ()
    if isinstance(found, Missing):
        raise lacking(found)
    name = None if opened.machine is None else opened.machine.name
    report = PredictionReport(opened.title, name, formula, found, opened.left_out, origins)
    as_json_wanted = output_format == JSON
    write_result(as_json(report) if as_json_wanted else as_text(report, text_style(output)), output)
