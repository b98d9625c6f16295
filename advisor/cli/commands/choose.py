"""``advise choose``: which mesh, algorithm or distribution is fastest, by ranking them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import options
from advisor.cli.common import JSON, TEXT, complain, require_format, text_style, write_result
from advisor.config.layer import wrong_use
from costdb.wording import read_number

if TYPE_CHECKING:
    from costdb.choosing import Choice
    from costdb.subject import Chosen


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("choose", help="Rank choices of parameters, fastest first.")(_choose)


def _choose(
    files: options.Subjects,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="NAMES",
            help="What to choose: PX,PY or algorithm=TH,DH or P=1..64; may be given again.",
        ),
    ] = None,
    machine: options.MachineOfSubject = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", metavar="NAME=VALUE", help="Bind another parameter."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="EXPR", help='Only these, as "PX*PY == 64 and PX <= 8".'),
    ] = None,
    best_per: Annotated[
        str | None,
        typer.Option("--best-per", metavar="NAME", help="Only the best for each value of NAME."),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", metavar="K", min=1, help="Only the K best.")
    ] = None,
    ranks: options.Ranks = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="NAME",
            help="Which kernel of a Python file, or which functions of it, by commas.",
        ),
    ] = None,
    measure: options.Measure = False,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> None:
    require_format(output_format)
    from advisor.cli.common import watched
    from advisor.cli.subjects import (
        lacking,
        measurements,
        open_files,
        parse_given,
        parse_over,
        parse_where,
        problems_in_one_line,
        with_configured,
        with_ranks,
    )
    from advisor.report.prediction import ChoicesReport, choices_as_json, choices_as_text
    from costdb.choosing import rank
    from costdb.estimate import Missing

    given = with_ranks(parse_given(define or ()), ranks)
    alternatives = (len(files) > 1 and files[0].endswith(".py")) or "," in (kernel or "")
    # what is to be chosen among several programs need not be said
    names = parse_over(over or (["program"] if alternatives else ()))
    if not names:
        raise wrong_use("--over is missing: name the parameters to choose, as --over PX,PY")
    if best_per is not None and best_per not in names:
        raise wrong_use(f"--best-per {best_per}: not among those of --over ({', '.join(names)})")
    condition = parse_where(where)
    with problems_in_one_line():
        opened = open_files(files, machine, kernel, given)
        given, _ = with_configured(opened, files[0], given, names)
        with measurements(opened, run=measure) as known:
            ranked = rank(opened.subject, names, given, condition, watched, _left_out, known)
    if isinstance(ranked, Missing):
        raise lacking(ranked)
    chosen = ranked if best_per is None else _best_per(best_per, ranked)
    report = ChoicesReport(
        title=opened.title,
        machine=None if opened.machine is None else opened.machine.name,
        given={name: _as_read(value) for name, value in given.items()},
        choices=chosen[:top],
        considered=len(ranked),
    )
    as_json_wanted = output_format == JSON
    text = (
        choices_as_json(report) if as_json_wanted else choices_as_text(report, text_style(output))
    )
    write_result(text, output)


def _left_out(why: str) -> None:
    complain(f"advise: {why}")


def _as_read(value: str) -> Chosen:
    number = read_number(value)
    return value if number is None else number


def _best_per(name: str, ranked: Sequence[Choice]) -> Sequence[Choice]:
    best: dict[object, Choice] = {}
    for choice in ranked:
        best.setdefault(choice.bindings[name], choice)
    return tuple(best.values())
