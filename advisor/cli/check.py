"""``advise check``: what could be faster in these files, and by how much."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from advisor.cli.common import (
    STANDARD_STREAM,
    choose_machine,
    parse_bindings,
    positive_number,
    wrong_use,
)
from advisor.cli.rules import installed_rules, resolve, split_codes
from advisor.cli.session import Request, run
from advisor.engine import Options
from advisor.report.model import FORMATS
from advisor.suppress import UNUSED_SUPPRESSION


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", help="Say what could be faster in Python files, and by how much.")(_check)


def _check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Files, directories, or - for standard input."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME",
            envvar="ADVISE_MACHINE",
            show_envvar=True,
            help="Machine to predict for: a name or a profile.json.",
        ),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", metavar="NAME=VALUE", help="Bind a size, as -D N=1000."),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="CODES",
            envvar="ADVISE_SELECT",
            show_envvar=True,
            help="Only these rules: codes or prefixes, by commas.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="CODES",
            envvar="ADVISE_IGNORE",
            show_envvar=True,
            help="Not these rules.",
        ),
    ] = None,
    extend_select: Annotated[
        list[str] | None,
        typer.Option("--extend-select", metavar="CODES", help="Also these rules."),
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the safe fixes.")] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option("--unsafe-fixes", help="With --fix or --diff: the unsafe fixes as well."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change, and change nothing.")
    ] = False,
    output_format: Annotated[
        str,
        typer.Option(
            "--output-format",
            metavar="FORMAT",
            envvar="ADVISE_OUTPUT_FORMAT",
            show_envvar=True,
            help=f"One of {', '.join(FORMATS)}.",
        ),
    ] = "full",
    output: Annotated[
        str | None,
        typer.Option("-o", "--output-file", metavar="FILE", help="Write the report to a file."),
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Count findings by rule instead of showing them.")
    ] = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 even when there are findings.")
    ] = False,
    fail_above: Annotated[
        str | None,
        typer.Option(
            "--fail-above",
            metavar="SPEEDUP",
            envvar="ADVISE_FAIL_ABOVE",
            show_envvar=True,
            help="Exit with 1 only for a predicted speed-up above this.",
        ),
    ] = None,
    min_speedup: Annotated[
        str,
        typer.Option(
            "--min-speedup",
            metavar="SPEEDUP",
            envvar="ADVISE_MIN_SPEEDUP",
            show_envvar=True,
            help="Leave out smaller predicted gains.",
        ),
    ] = "1.05",
    stdin_filename: Annotated[
        str | None,
        typer.Option("--stdin-filename", metavar="PATH", help="Name to report for -."),
    ] = None,
) -> None:
    given = tuple(paths or ())
    if not given:
        raise wrong_use("no path given: name a file or a directory, or - for standard input")
    if STANDARD_STREAM in given and len(given) > 1:
        raise wrong_use("- (standard input) cannot be combined with other paths")
    if unsafe_fixes and not (fix or diff):
        raise wrong_use("--unsafe-fixes changes nothing by itself: add --fix or --diff")
    if output_format not in FORMATS:
        raise wrong_use(f"--output-format {output_format}: expected one of {', '.join(FORMATS)}")
    if statistics and output_format not in ("full", "concise", "json"):
        raise wrong_use(f"--statistics has no {output_format} form: use full, concise or json")
    threshold = None if fail_above is None else float(positive_number(fail_above, "--fail-above"))
    selected, ignored = _rules(select, extend_select, ignore)
    options = Options(
        sizes=parse_bindings(define or ()),
        select=selected,
        ignore=ignored,
        min_speedup=float(positive_number(min_speedup, "--min-speedup")),
        machine=choose_machine(machine),
    )
    request = Request(
        paths=given,
        options=options,
        fix=fix and not diff,
        diff=diff,
        unsafe_fixes=unsafe_fixes,
        output_format=output_format,
        output=output,
        statistics=statistics,
        exit_zero=exit_zero,
        fail_above=threshold,
        stdin_filename=stdin_filename or "<stdin>",
    )
    raise typer.Exit(run(request, sys.stdout, os.environ))


def _rules(
    select: list[str] | None, extend: list[str] | None, ignore: list[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    chosen, extended, left_out = (split_codes(codes or ()) for codes in (select, extend, ignore))
    if not (chosen or extended or left_out):
        return (), ()
    known = sorted({*(rule.code for rule in installed_rules()), UNUSED_SUPPRESSION})
    return resolve(chosen, extended, left_out, known)
