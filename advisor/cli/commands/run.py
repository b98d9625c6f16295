"""``advise run``: run a program once, and keep the sizes, layouts and messages that it had."""

import sys
from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.common import note, write_result
from advisor.cli.options import option
from advisor.config.layer import choose_machine, wrong_use
from advisor.report.model import FORMATS

NO_REPORT = "none"


def run(
    program: Annotated[
        str | None,
        typer.Argument(metavar="PROGRAM", help="A file, or with --module a module."),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="For the program.")
    ] = None,
    as_module: Annotated[
        bool, option("--module", "PROGRAM is a module, as after python -m.")
    ] = False,
    machine: options.Machine = None,
    output_format: Annotated[str, options.report_format_option(NO_REPORT)] = "concise",
    output: options.ReportFile = None,
    no_store: Annotated[
        bool, option("--no-store", "Keep nothing for later runs of advise.")
    ] = False,
) -> None:
    """Run a program of yours once, and advise with the sizes it had."""
    from pathlib import Path

    if program is None:
        raise wrong_use("no program given: name a file, or a module by --module NAME")
    if output_format not in (NO_REPORT, *FORMATS):
        known = ", ".join((NO_REPORT, *FORMATS))
        raise wrong_use(f"--output-format {output_format}: expected one of {known}")
    if not as_module and not Path(program).is_file():
        raise wrong_use(f"{program}: no such file; a module is run by --module {program}")
    if machine is not None:
        choose_machine(machine)
    from advisor.observe.outcome import observe

    note(f"advise: running {program}")
    ended = observe(program, arguments or (), module=as_module)
    if ended.record is not None:
        from advisor.observe.outcome import conclude

        shown, text = conclude(
            ended.record, program, machine=machine, output_format=output_format, keep=not no_store
        )
        for line in shown:
            note(line)
        if output is not None:
            write_result(text, output)
        elif text:
            # standard output is the program's
            sys.stderr.write(text)
    raise typer.Exit(ended.code)
