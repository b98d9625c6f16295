"""``advise explain``: everything behind the findings at one place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import options
from advisor.cli.checking.scope import make_scope
from advisor.cli.common import (
    JSON,
    TEXT,
    names_in,
    parse_bindings,
    require_format,
    tell_unused,
    text_style,
    write_out,
)
from advisor.config.layer import CommandError, Layer, system_error, wrong_use

if TYPE_CHECKING:
    from costdb.store.results import Result

_PLACE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]{1,9})?", re.DOTALL)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", help="Show what a finding is computed from.")(_explain)


def _explain(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A place as reports show it.")],
    machine: options.Machine = None,
    define: options.Sizes = None,
    config: options.ConfigFile = None,
    isolated: options.Isolated = False,
    formulas: Annotated[
        bool, typer.Option("--formulas", help="Show also the formulas, and cut nothing short.")
    ] = False,
    output_format: options.TextOrJson = TEXT,
) -> None:
    from advisor.explain import at_line, judged_in
    from advisor.files import read_source
    from advisor.report import explanation
    from advisor.source import SourceProblem
    from costdb.machines import MachineError

    found = _PLACE.fullmatch(place)
    if found is None:
        raise wrong_use(f"{place}: expected FILE:LINE, such as kernel.py:35")
    require_format(output_format)
    path, line = found[1], int(found[2])
    given = parse_bindings(define or ())
    layer = Layer(machine=machine or None, sizes=given)
    scope = make_scope(layer, config=config, isolated=isolated, cache=None)
    asked = scope.resolver.effective(path).options
    try:
        source = read_source(path).text
        judged = judged_in(path, source, asked)
    except SourceProblem as problem:
        raise CommandError(str(problem)) from problem
    except MachineError as error:
        raise wrong_use(str(error)) from error
    except OSError as error:
        raise system_error(error, path) from error
    if given:
        tell_unused(given, names_in(path, source))
    chosen = at_line(judged, line)
    if not chosen:
        lines = ", ".join(dict.fromkeys(str(one.finding.span.start_line) for one in judged))
        where = f"; there are some at {lines}" if lines else ", nor anywhere else in the file"
        raise wrong_use(f"{path}: no finding at line {line}{where}")
    found_there = _results(chosen[0].finding.evidence.machine)
    if output_format == JSON:
        write_out(explanation.as_json(chosen, asked.machine or "", found_there))
    else:
        style = text_style(None)
        write_out(explanation.text(chosen, source, style, found_there, formulas=formulas))


def _results(machine: str) -> tuple[Result, ...]:
    """Return how far predictions on a machine were found to hold; none where nobody looked."""
    from costdb.store.database import reading
    from costdb.store.place import StoreError, store_path
    from costdb.store.results import newest_results

    try:
        with reading(store_path()) as connection:
            return newest_results(connection, machine)
    except StoreError:
        return ()  # the finding is explained without
