"""``advise verify``: runs kernels, programs and rewrites; holds predictions against the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advisor.cli import options
from advisor.cli.common import (
    FINDINGS,
    JSON,
    NOTHING_TO_SAY,
    PAGES,
    TEXT,
    complain,
    parse_bindings,
    read_text,
    text_style,
    write_result,
)
from advisor.cli.options import option
from advisor.config.files import CommandError, choose_machine, wrong_use
from advisor.report.style import json_text
from costdb.wording import counted

if TYPE_CHECKING:
    from advisor.verify.cases import Case
    from advisor.verify.running import Effort
    from advisor.verify.verdict import Verdict
    from costdb.machines import Machine


def verify(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Annotated Python; folders with --all.")
    ],
    machine: options.Machine = None,
    kernel: options.Kernel = None,
    define: options.Arguments = None,
    repeat: Annotated[int, option("--repeat", "Launches of each variant.", min=1)] = 2,
    everything: Annotated[
        bool, option("--all", "Every kernel and program of every file in the folders.")
    ] = False,
    ranks: options.Ranks = None,
    output_format: options.TextJsonOrPage = TEXT,
    output: options.ResultFile = None,
) -> int:
    """RUN kernels, MPI programs and their rewrites; compare predicted with measured times."""
    from advisor.verify.running import Effort
    from advisor.verify.verdict import (
        as_table,
        document_of,
        in_words,
        programs_in_words,
        programs_table,
    )
    from costdb.calibration.section import Bystanders
    from costdb.machines import load_machine
    from costdb.store.records import keep_result

    given = parse_bindings(define or (), only_sizes=False)
    chosen = load_machine(choose_machine(machine))
    sources = {path: read_text(path) for path in _paths(files, everything)}
    _tell_unused(sources, given)
    if not chosen.may_be_here:
        complain(
            f"advise: times are of this machine, predictions of {chosen.name}: "
            "nothing of this is kept as evidence"
        )
    complain(f"advise: running the code of {', '.join(sources)}")
    others, effort = Bystanders(), Effort(launches=repeat)
    kernels = list(_cases(sources, kernel, given, chosen, everything=everything))
    groups = list(_ran(kernels, effort, chosen))
    if ranks is not None:
        groups += _ran(_built(sources, kernel, given, ranks, chosen), effort, chosen)
    # a kernel that was asked for is no program
    found = [] if kernel is not None else _programs(sources, given, ranks or 2, chosen)
    programs = list(_ran(found, effort, chosen))
    if not groups and not programs:
        raise wrong_use("there is no kernel to verify, nor a program that communicates")
    document = document_of(groups, programs, _circumstances(chosen, others.busy_cores()))
    if chosen.may_be_here:
        keep_result(chosen.name, "verify", " ".join(files), document)
    told = in_words(groups) if groups else []
    of_programs = programs_in_words(programs) if programs else []
    if output_format == JSON:
        text = json_text(document, ascii_only=False)
    elif output_format in PAGES:
        from advisor.report.pages import of_verification

        text = of_verification(document, [*told, *of_programs], output_format)
    else:
        style = text_style(output)
        text = as_table(groups, style) if groups else ""
        text += "".join(f"{line}\n" for line in told)
        if programs:
            text += "\n" * bool(groups) + programs_table(programs, style)
            text += "".join(f"{line}\n" for line in of_programs)
    write_result(text, output)
    sound = all(one.sound for group in (*groups, *programs) for one in group)
    return NOTHING_TO_SAY if sound else FINDINGS


def _tell_unused(sources: Mapping[str, str], given: Mapping[str, int | float]) -> None:
    """Say which names of ``-D`` no file has, before anything runs with other sizes than meant."""
    from advisor.cli.common import names_in, tell_unused

    if given:
        known = (names_in(path, text, arguments=True) for path, text in sources.items())
        tell_unused(given, frozenset[str]().union(*known))


def _paths(files: list[str], everything: bool) -> list[str]:
    if not everything:
        return files
    from advisor.cli.scope import python_files

    def refuse(error: CommandError) -> None:
        raise error

    return list(python_files(files, refuse))


def _cases(
    sources: Mapping[str, str],
    name: str | None,
    given: Mapping[str, int | float],
    machine: Machine,
    *,
    everything: bool,
) -> Iterator[Case]:
    """Yield the kernels to run; of `everything`, those whose sizes have values."""
    from advisor.cli.subjects import kernels_in
    from advisor.transform_registry import transforms
    from advisor.verify.cases import case_of
    from costdb.expr import ExprError

    for path, source in sources.items():
        for kernel, sizes in kernels_in(path, source, name, given):
            try:
                yield case_of(path, source, kernel, sizes, machine, transforms())
            except ExprError as error:
                why = f"{path}: kernel `{kernel.name}`: {error}: pass -D NAME=VALUE"
                if not everything:
                    raise wrong_use(why) from error
                complain(f"advise: {why}; left out")


def _built(
    sources: Mapping[str, str],
    name: str | None,
    given: Mapping[str, int | float],
    ranks: int,
    machine: Machine,
) -> Iterator[Case]:
    """Yield what is built of kernels, as written and as rules would have it.

    What cannot be built is said, with line and reason.
    """
    from advisor.build.text import NotBuiltError
    from advisor.cli.subjects import kernels_in
    from advisor.ranking.worth import is_distributed
    from advisor.transform_registry import transforms
    from advisor.verify.running import distributed_case

    for path, source in sources.items():
        for kernel, sizes in kernels_in(path, source, name, given):
            if not is_distributed(kernel):
                continue
            try:
                yield distributed_case(path, source, kernel, sizes, machine, transforms(), ranks)
            except NotBuiltError as error:
                line = error.span.start_line if error.span else kernel.span.start_line
                complain(f"advise: {path}:{line}: `{kernel.name}` is not built: {error.why}")


def _programs(
    sources: Mapping[str, str], given: Mapping[str, int | float], ranks: int, machine: Machine
) -> list[Case]:
    """Return the SPMD programs among files.

    Raises
    ------
    SourceProblem
        A file does not parse.
    """
    from advisor.transform_registry import program_transforms
    from advisor.verify.cases import program_case

    rules = program_transforms()
    cases = (
        program_case(path, source, given, ranks, machine, rules) for path, source in sources.items()
    )
    return [case for case in cases if case is not None]


def _ran(cases: Iterable[Case], effort: Effort, machine: Machine) -> Iterator[list[Verdict]]:
    """Yield what came of each case, and keep it as evidence.

    Where there are no ranks to be had, none is run, which is said.
    """
    from advisor.verify.running import measure
    from advisor.verify.verdict import Verdict
    from costdb.launch.processes import CannotRunError

    for case in cases:
        whose = f"{case.path}: {case.kernel}" if case.kernel else case.path
        on = f", on {case.ranks} ranks" if case.ranks > 1 else ""
        complain(f"advise: {whose}: {counted(len(case.variants), 'variant')}{on}")
        try:
            measured = measure(case, effort)
        except CannotRunError as error:
            complain(f"advise: {error}; what runs on ranks is left out")
            return
        group = [Verdict(case, *pair) for pair in zip(case.variants, measured, strict=True)]
        if machine.may_be_here:
            _keep(group, machine)
        yield group


def _circumstances(machine: Machine, busy_cores: float | None) -> dict[str, Any]:
    from datetime import UTC, datetime

    from advisor.ranking.findings import calibration_of

    return {
        "machine": machine.name,
        "calibration": calibration_of(machine),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "others_busy_cores": busy_cores,
    }


def _keep(group: Sequence[Verdict], machine: Machine) -> None:
    """Store what was measured as evidence, so that later predictions can refer to it."""
    from advisor.verify.running import keep

    case, original = group[0].case, group[0].measured
    ran = [(one.variant, one.measured) for one in group[1:] if not one.measured.failure]
    found = [
        replace(kept, equal=after.equal)
        for variant, after in ran
        if not original.failure and after.equal is not None
        if (kept := case.compared(variant, (after.beside or original).times_s, after.times_s))
    ]
    keep(machine, case.ranks, found)
