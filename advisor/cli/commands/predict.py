"""``advise predict``: how long a program takes, and which parts of it take how long."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.common import JSON, TEXT, WRONG_USE, require_format, text_style, write_result
from advisor.config.layer import wrong_use


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
    measure: options.Measure = False,
    validate: Annotated[
        bool,
        typer.Option("--validate", help="Only say what is wrong with descriptions."),
    ] = False,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> None:
    require_format(output_format)
    if validate:
        _validate(files, output_format, output)
        return
    from advisor.cli.subjects import (
        cautions_of,
        formula_of,
        lacking,
        measurements,
        open_files,
        origins_of,
        parse_given,
        problems_in_one_line,
        with_configured,
        with_ranks,
    )
    from advisor.report.prediction import PredictionReport, as_json, as_text
    from costdb.choosing import predict
    from costdb.estimate import Missing

    given = with_ranks(parse_given(define or ()), ranks)
    with problems_in_one_line():
        opened = open_files(files, machine, kernel, given)
        given, configured = with_configured(opened, files[0], given)
        with measurements(opened, run=measure) as known:
            found = predict(opened.subject, given, known)
        formula = formula_of(opened)
        origins = (*configured, *origins_of(opened, given)) if files[0].endswith(".py") else ()
    if isinstance(found, Missing):
        raise lacking(found)
    name = None if opened.machine is None else opened.machine.name
    cautions = cautions_of(opened, found.bindings)
    report = PredictionReport(opened.title, name, formula, found, origins, cautions)
    as_json_wanted = output_format == JSON
    write_result(as_json(report) if as_json_wanted else as_text(report, text_style(output)), output)


def _validate(files: list[str], output_format: str, output: str | None) -> None:
    import json

    from advisor.cli.subjects import DESCRIPTION, problems_in_one_line
    from advisor.report.style import one_line
    from costdb.documents import description_problems

    problems: list[str] = []
    for file in files:
        if not file.endswith(DESCRIPTION):
            raise wrong_use(f"{file}: --validate is for descriptions ({DESCRIPTION})")
        with problems_in_one_line():
            problems += description_problems(file)
    if output_format == JSON:
        document = {"schema_version": 1, "files": files, "problems": problems}
        write_result(json.dumps(document, indent=2) + "\n", output)
    else:
        write_result("".join(f"{one_line(problem)}\n" for problem in problems), output)
    if problems:
        raise typer.Exit(WRONG_USE)
