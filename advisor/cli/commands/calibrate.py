"""``advise calibrate``: measure this machine, and keep what was found as a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
    write_result,
)
from advisor.cli.options import option
from advisor.config.files import choose_machine, wrong_use

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
    from costdb.store.records import keep_result

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
    text = as_json(report) if output_format == JSON else as_text(report, text_style(output))
    write_result(text, output)
    return NOTHING_TO_SAY if any(section.rows for section in made) else WRONG_USE
