"""``advise explain``: everything behind the findings at one place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import options
from advisor.cli.common import (
    JSON,
    TEXT,
    names_in,
    parse_bindings,
    read_text,
    tell_unused,
    text_style,
    write_out,
)
from advisor.cli.options import option
from advisor.cli.scope import make_scope
from advisor.config.effective import installed_rules
from advisor.config.files import Layer, wrong_use
from advisor.engine import (
    Options,
    as_written,
    needs_reading,
    rank_kernel,
    rank_program,
    read_file,
    repeated,
)
from advisor.finding import Finding, Ranked
from advisor.ir.kernel import Rule
from advisor.ranking.findings import Judged
from advisor.report.model import page
from advisor.report.style import json_text
from advisor.source import NOTEBOOK, cell_line, cells_of, placed, text_line
from costdb.evaluate import Priced
from costdb.expr.nodes import ZERO
from costdb.records import nearest

if TYPE_CHECKING:
    from costdb.store.database import Result


_PLACE = re.compile(r"(.+?)(?::cell ([0-9]{1,9}))?:([0-9]{1,9})(?::[0-9]{1,9})?", re.DOTALL)


def explain(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A place as reports show it.")],
    machine: options.Machine = None,
    define: options.Sizes = None,
    ranks: options.Ranks = None,
    config: options.ConfigFile = None,
    isolated: options.Isolated = False,
    formulas: Annotated[
        bool, option("--formulas", "Show also the formulas, and cut nothing short.")
    ] = False,
    output_format: options.TextOrJson = TEXT,
) -> None:
    """Show what a finding is computed from."""
    from advisor.report import explanation

    found = _PLACE.fullmatch(place)
    if found is None:
        raise wrong_use(f"{place}: expected FILE:LINE, such as kernel.py:35")
    path, cell, line = found[1], found[2], int(found[3])
    given = parse_bindings(define or (), ranks=ranks)
    layer = Layer(machine=machine or None, sizes=given)
    scope = make_scope(layer, config=config, isolated=isolated, cache=None)
    asked = scope.resolver.effective(path).options
    source = read_text(path, notebooks=True)
    where = f"cell {cell}, line {line}" if cell else f"line {line}"
    line = text_line(source, int(cell), line) if cell else line
    judged = judged_in(path, source, asked)
    if given:
        tell_unused(given, names_in(path, source))
    chosen = [
        one for one in judged if one.finding.span.start_line <= line <= one.finding.span.last_line
    ]
    if not chosen:
        lines = ", ".join(dict.fromkeys(_place(one.finding, source) for one in judged))
        others = f"; there are some at {lines}" if lines else ", nor anywhere else in the file"
        raise wrong_use(f"{path}: no finding at {where}{others}")
    if path.endswith(NOTEBOOK):
        chosen = [replace(one, finding=placed(one.finding, source)) for one in chosen]
        source = cells_of(source)[cell_line(source, line)[0]]
    found_there = _results(chosen[0].finding.evidence.machine)
    if output_format == JSON:
        write_out(explanation.as_json(chosen, asked.machine or "", found_there))
    else:
        style = text_style(None)
        write_out(explanation.text(chosen, source, style, found_there, formulas=formulas))


def _place(finding: Finding, source: str) -> str:
    """Return the line of a finding; in a notebook the cell as well."""
    line = finding.span.start_line
    if not finding.path.endswith(NOTEBOOK):
        return str(line)
    return "cell {}:{}".format(*cell_line(source, line))


def _results(machine: str) -> tuple[Result, ...]:
    """Return how far predictions on a machine were found to hold; none where nobody looked."""
    from costdb.store.database import newest_results, reading
    from costdb.store.place import StoreError

    try:
        with reading() as connection:
            return newest_results(connection, machine)
    except StoreError:
        return ()  # the finding is explained without


def judged_in(path: str, source: str, options: Options) -> tuple[Judged, ...]:
    """Return every finding of a file with its prices, in the order of the lines.

    Neither suppressions nor limits leave any out: whoever asks about a place wants to know.

    Raises
    ------
    SourceProblem
        The file does not parse, an annotation cannot be right, or a size has no value.
    MachineError
        The machine is unknown or its profile is wrong.
    """
    from advisor.evidence import with_evidence

    if not options.observed and not needs_reading(source, path):
        return ()
    every = replace(options, select=(), ignore=(), min_speedup=0.0, rule_min_speedup={})
    read = read_file(path, source, every)
    ranked = [rank_kernel(path, kernel, every) for kernel in read.kernels]
    if read.program is not None:
        ranked.append(rank_program(read.program, every, {}))
    whole, nothing = reduce(Ranked.and_also, ranked, Ranked()), Priced(ZERO)
    found = list(whole.judged)
    found += [Judged(one, nothing, nothing) for one in repeated(read, whole, every)]
    found.sort(key=lambda one: (one.finding.span, one.finding.code))
    findings = as_written(with_evidence(one.finding for one in found), source)
    return tuple(replace(one, finding=f) for one, f in zip(found, findings, strict=True))


# ``advise rule``: what a rule does, why, and when its fix is safe.


def rule(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            help="Code or name, such as ADV201; none: list all.",
            autocompletion=options.rules,
        ),
    ] = None,
    output_format: options.TextOrJson = TEXT,
) -> None:
    """List the rules, or show the page of one."""
    rules = installed_rules()
    chosen = rules if name is None else (_find(name, rules),)
    if output_format == JSON:
        write_out(_as_json(chosen))
    elif name is None:
        write_out("".join(f"{one.code}  {one.name}: {_headline(one)}\n" for one in chosen))
    else:
        write_out(page(chosen[0]))


def _find(word: str, rules: Sequence[Rule]) -> Rule:
    for rule in rules:
        if word.upper() == rule.code or word.lower() == rule.name:
            return rule
    known = [word for rule in rules for word in (rule.code, rule.name)]
    raise wrong_use(f"unknown rule {word!r}{nearest(word, known)}")


def _headline(rule: Rule) -> str:
    """Return the first sentence of the page, without a lead such as ``**What it does.**``."""
    from inspect import cleandoc

    paragraphs = cleandoc(rule.documentation).split("\n\n")
    text = next((" ".join(p.split()) for p in paragraphs if p and not p.startswith("#")), "")
    sentence = re.sub(r"^\*\*[^*]*\*\* *", "", text).partition(". ")[0]
    return sentence.rstrip(".")


def _as_json(rules: Sequence[Rule]) -> str:
    told = [
        {"code": rule.code, "name": rule.name, "documentation": rule.documentation.strip()}
        for rule in rules
    ]
    return json_text({"schema_version": 1, "rules": told})
