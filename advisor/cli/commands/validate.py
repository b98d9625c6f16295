"""``advise validate``: the papers' experiments on this machine, with the papers' figures beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.cli import options
from advisor.cli.common import (
    JSON,
    NOTHING_TO_SAY,
    TEXT,
    WRONG_USE,
    complain,
    text_style,
    write_result,
)
from advisor.config.layer import choose_machine, wrong_use

if TYPE_CHECKING:
    from advisor.validation.results import Section


def validate(
    machine: options.ThisMachine = "here",
    only: options.Sections = None,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> int:
    """Repeat the papers' experiments on this machine and compare."""
    from datetime import UTC, datetime

    from advisor.cli.common import Bar
    from advisor.ranking.findings import calibration_of
    from advisor.validation.results import ValidationReport, as_json, as_text
    from advisor.validation.runner import Context, make_sections
    from costdb.machines import load_machine

    names = _names(only or ())
    chosen = load_machine(choose_machine(machine))
    made: list[Section] = []
    bar = Bar()
    try:
        for section in make_sections(names, Context(chosen, bar.show)):
            bar.clear()
            made.append(section)
            if chosen.may_be_here:
                _keep(chosen.name, section)
            if section.skipped:
                complain(f"advise: {section.name}: skipped: {section.skipped}")
    finally:
        bar.clear()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = ValidationReport(chosen.name, calibration_of(chosen), now, made)
    text = as_json(report) if output_format == JSON else as_text(report, text_style(output))
    write_result(text, output)
    return NOTHING_TO_SAY if any(section.rows for section in made) else WRONG_USE


def _keep(machine: str, section: Section) -> None:
    """Store what was found, which ``advise machine show`` tells of."""
    from advisor.validation.results import section_document
    from costdb.store.database import writing
    from costdb.store.place import store_path
    from costdb.store.results import Result, add_result

    if section.rows:
        with writing(store_path()) as connection:
            found = Result(machine, "validate", section.name, section_document(section))
            add_result(connection, found)


def _names(only: Sequence[str]) -> tuple[str, ...]:
    from advisor.validation.experiments import SECTIONS

    for name in only:
        if name not in SECTIONS and not name.endswith(".json"):
            raise wrong_use(
                f"--only {name}: a validation has no such section, only {', '.join(SECTIONS)}"
            )
    return tuple(only)
