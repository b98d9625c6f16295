"""``advise machine``: the machines that are known, in and out, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import options
from advisor.cli.common import (
    JSON,
    NOTHING_TO_SAY,
    TEXT,
    WRONG_USE,
    Bar,
    check_output,
    complain,
    note,
    text_style,
    write_out,
    write_problems,
    write_result,
    write_shown,
)
from advisor.cli.options import option
from advisor.config.files import choose_machine, wrong_use
from advisor.report.style import json_text

_Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name, or a profile.json.",
        autocompletion=options.machines,
    ),
]
_File = Annotated[str, typer.Argument(metavar="FILE", help="A profile as JSON.")]


machine = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode=None,
    help="List, show, check, import, remove and export machines.",
)


@machine.command("list")
def _list(output_format: options.TextOrJson = TEXT) -> None:
    """List all machines: built-in and imported."""
    from advisor.report.prediction import list_as_json, list_as_text
    from costdb.machines import Machine, MachineError, load_machine, machine_names

    machines: list[Machine] = []
    broken = False
    for name in machine_names():
        try:
            machines.append(load_machine(name))
        except MachineError as error:
            broken = True
            complain(f"advise: {error}")
    write_shown(machines, list_as_text, list_as_json, output_format)
    if broken:
        raise typer.Exit(WRONG_USE)


@machine.command("show")
def _show(name: _Name, output_format: options.TextOrJson = TEXT) -> None:
    """Show every number of a machine, and where it is from."""
    from advisor.report.prediction import machine_as_json, machine_as_text
    from costdb.machines import load_machine
    from costdb.store.database import newest_results, reading

    machine = load_machine(name)
    with reading() as connection:
        found = newest_results(connection, machine.name)
    as_json, style = output_format == JSON, text_style(None)
    write_out(
        machine_as_json(machine, found) if as_json else machine_as_text(machine, style, found)
    )


@machine.command("validate")
def _validate(file: _File, output_format: options.TextOrJson = TEXT) -> int:
    """Say all that is wrong with a profile."""
    from costdb.documents import check_profile
    from costdb.machines import read_document

    problems = check_profile(read_document(Path(file)), file)
    return write_problems(problems, {"file": file}, output_format, None)


@machine.command("import")
def _import(
    file: _File,
    replace: Annotated[
        bool, option("--replace", "Replace a machine that was imported before.")
    ] = False,
    output_format: options.TextOrJson = TEXT,
) -> None:
    """Check a profile and keep it as a machine of your own."""
    from costdb.documents import import_profile
    from costdb.store.place import store_path

    machine = import_profile(Path(file), replace=replace)
    if output_format == JSON:
        stored = {"imported": machine.name, "store": str(store_path())}
        write_out(json_text({"schema_version": 1, **stored}))
    else:
        note(f"imported {machine.name} into {store_path()}")


@machine.command("remove")
def _remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name.", autocompletion=options.machines)
    ],
) -> None:
    """Forget a machine that was imported or calibrated."""
    from costdb.documents import remove_profile
    from costdb.machines import built_in_names, load_machine
    from costdb.store.place import store_path

    if name in built_in_names():
        raise wrong_use(f'"{name}" is a built-in machine, which cannot be removed')
    if not remove_profile(name):
        load_machine(name)  # says what is like it
        raise wrong_use(f"{name}: a file, which no store holds")
    note(f"removed {name} from {store_path()}")


@machine.command("export")
def _export(
    name: _Name,
    output: Annotated[str | None, options.output_file_option("profile")] = None,
    output_format: options.Json = "json",
) -> None:
    """Write the profile of a machine as JSON."""
    from costdb.machines import load_machine

    write_result(json_text(dict(load_machine(name).document), ascii_only=False), output)
    if output is not None and output.endswith(".json"):
        note(f'machine = "{output}" in [tool.advise] of pyproject.toml beside it makes all use it')


# --- calibrate ------------------------------------------------------------------------------------
# ``advise calibrate``: measure this machine, and keep what was found as a profile.


if TYPE_CHECKING:
    from advisor.validation.experiments import Section
    from costdb.calibration.campaign import Made, Request


def calibrate(
    name: Annotated[str, option("--name", "Name of the machine in the store.", "NAME")] = "here",
    quick: Annotated[
        bool, option("--quick", "A first idea within half a minute; else three.")
    ] = False,
    only: options.Sections = None,
    ranks: Annotated[
        int, option("-P --ranks -n", "MPI ranks to start; one for each core where 0.", "K", min=0)
    ] = 0,
    report: Annotated[
        str | None, option("--report", "Write a page with all fits as HTML.", "FILE")
    ] = None,
) -> None:
    """Measure this machine and store its profile."""
    from advisor.report.pages import of_calibration
    from costdb.calibration.campaign import Request, disturbances
    from costdb.calibration.section import CalibrationError, Effort, check_names
    from costdb.machines import CALIBRATED
    from costdb.store.place import store_path

    effort = Effort.QUICK if quick else Effort.FULL
    watcher = _Progress()
    request = Request(name, effort, tuple(only or ()), ranks)
    check_output(report)
    try:
        check_names(request.only)
        made = _calibrated(request, watcher)
    except CalibrationError as error:
        raise wrong_use(str(error)) from error
    except KeyboardInterrupt:
        watcher.clear()
        complain("interrupted: sections that were measured to their end are kept")
        raise
    finally:
        watcher.clear()
    if made is None:
        return
    if report is not None:
        write_result(of_calibration(made), report)
    for section in made.sections:
        for said in disturbances(section):
            complain(f"{section.name}: {said}")
    for left_out in made.skipped:
        complain(f"skipped {left_out.name}: {left_out.reason}")
    if any(left_out.reason.endswith(" missing") for left_out in made.skipped):
        complain("pip install 'kernel-advisor[calibrate]' brings what is missing")
    use = "it is the default now" if name == CALIBRATED else f"use it with --machine {name}"
    note(f"stored machine {name} in {store_path()}; {use}")
    note(_next_step(name, quick=quick))


def _next_step(name: str, *, quick: bool) -> str:
    from costdb.machines import CALIBRATED

    machine = "" if name == CALIBRATED else f" --machine {name}"
    told = f"advise validate{machine} tells how far its predictions hold"
    if not quick:
        return f"next: {told}"
    again = "advise calibrate" if name == CALIBRATED else f"advise calibrate --name {name}"
    return f"next: {told}; {again} in three minutes measures more sizes and element types"


def _calibrated(request: Request, watcher: _Progress) -> Made | None:
    """Calibrate, with the ranks of a launcher where one started this; None on all but the first."""
    from costdb.calibration import campaign
    from costdb.calibration.section import this_host
    from costdb.calibration.worker import launched_ranks

    if launched_ranks() == 1:
        return campaign.calibrate(request, watcher, this_host())
    from costdb.calibration.worker import Team

    team = Team()
    if not team.leads:
        team.assist()
        return None
    try:
        return campaign.calibrate(request, watcher, this_host(), team.start)
    finally:
        team.dismiss()


class _Progress(Bar):
    """What is measured, beside a bar where a person watches; elsewhere a line for each launch."""

    def measuring(self, title: str, launch: int, launches: int) -> None:
        self.show(f"measuring {title} ({launch} of {launches})", 0.0)

    def progress(self, share: float) -> None:
        self.show(self.title, share)

    def failed(self, reason: str) -> None:
        self.clear()
        complain(f"advise: {reason}")


# ``advise validate``: the papers' experiments on this machine, with the papers' figures beside.


def validate(
    machine: options.ThisMachine = "here",
    only: options.Sections = None,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> int:
    """Repeat the papers' experiments on this machine and compare."""
    from datetime import UTC, datetime

    from advisor.ranking.findings import calibration_of
    from advisor.validation.experiments import (
        SECTIONS,
        ValidationReport,
        as_json,
        as_text,
        section_document,
    )
    from advisor.validation.figures import make_sections
    from costdb.machines import load_machine
    from costdb.store.database import keep_result

    for name in only or ():
        if name not in SECTIONS and not name.endswith(".json"):
            known = ", ".join(SECTIONS)
            raise wrong_use(f"--only {name}: a validation has no such section, only {known}")
    chosen = load_machine(choose_machine(machine))
    made: list[Section] = []
    bar = Bar()
    try:
        for section in make_sections(tuple(only or ()), chosen, bar.show):
            bar.clear()
            made.append(section)
            if chosen.may_be_here and section.rows:
                keep_result(chosen.name, "validate", section.name, section_document(section))
            if section.skipped:
                complain(f"advise: {section.name}: skipped: {section.skipped}")
    finally:
        bar.clear()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = ValidationReport(chosen.name, calibration_of(chosen), now, made)
    write_shown(report, as_text, as_json, output_format, output)
    return NOTHING_TO_SAY if any(section.rows for section in made) else WRONG_USE
