"""``advise verify``: runs kernels, programs and rewrites; holds predictions against the clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advisor.cli import options
from advisor.cli.common import (
    FINDINGS,
    JSON,
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

if TYPE_CHECKING:
    from advisor.verify.cases import Case, ProgramCase
    from advisor.verify.running import Effort
    from advisor.verify.verdict import ProgramVerdict, Verdict
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
    from advisor.verify.running import Effort, measure
    from advisor.verify.verdict import (
        Verdict,
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
    others = Bystanders()
    groups: list[list[Verdict]] = []
    for case in list(_cases(sources, kernel, given, chosen, everything=everything)):
        complain(f"advise: {case.path}: {case.kernel}: {len(case.variants)} variants")
        measured = measure(case, Effort(launches=repeat))
        group = [Verdict(case, *pair) for pair in zip(case.variants, measured, strict=True)]
        if chosen.may_be_here:
            _keep(group, chosen)
        groups.append(group)
    if ranks is not None:
        groups += _verify_built(sources, kernel, given, ranks, Effort(launches=repeat), chosen)
    # a kernel that was asked for is no program
    found = [] if kernel is not None else _program_cases(sources, given, ranks or 2, chosen)
    programs = _verify_programs(found, Effort(launches=repeat), chosen)
    if not groups and not programs:
        raise wrong_use("there is no kernel to verify, nor a program that communicates")
    where = _circumstances(chosen, others.busy_cores())
    document = document_of(groups, programs, where)
    if chosen.may_be_here:
        keep_result(chosen.name, "verify", " ".join(files), document)
    if output_format == JSON:
        import json

        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    elif output_format in PAGES:
        from advisor.report.pages import of_verification

        told = in_words(groups) if groups else []
        told += programs_in_words(programs) if programs else []
        text = of_verification(document, told, output_format)
    else:
        style = text_style(output)
        lines = in_words(groups) if groups else []
        text = as_table(groups, style) if groups else ""
        if programs:
            text += f"{_as_lines(lines)}\n{programs_table(programs, style)}"
            lines = programs_in_words(programs)
        text += _as_lines(lines)
    write_result(text, output)
    sound = all(one.measured.equal for group in groups for one in group)
    sound = sound and all(one.sound for group in programs for one in group)
    return 0 if sound else FINDINGS


def _tell_unused(sources: Mapping[str, str], given: Mapping[str, int | float]) -> None:
    """Say which names of ``-D`` no file has, before anything runs with other sizes than meant."""
    from advisor.cli.common import names_in, tell_unused

    if given:
        known = (names_in(path, text, arguments=True) for path, text in sources.items())
        tell_unused(given, frozenset[str]().union(*known))


def _as_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


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


def _verify_built(
    sources: Mapping[str, str],
    name: str | None,
    given: Mapping[str, int | float],
    ranks: int,
    effort: Effort,
    machine: Machine,
) -> list[list[Verdict]]:
    """Run what is built of kernels on ranks, as written and as rules would have it.

    What cannot be built is said, with line and reason; where there are no ranks, that is.
    """
    from advisor.build.text import NotBuiltError
    from advisor.cli.subjects import kernels_in
    from advisor.ranking.worth import is_distributed
    from advisor.transform_registry import transforms
    from advisor.verify.running import distributed_case, measure_built
    from advisor.verify.verdict import Verdict
    from costdb.launch.processes import CannotRunError

    groups: list[list[Verdict]] = []
    for path, source in sources.items():
        for kernel, sizes in kernels_in(path, source, name, given):
            if not is_distributed(kernel):
                continue
            try:
                case = distributed_case(path, kernel, sizes, machine, transforms(), ranks)
                complain(
                    f"advise: {path}: {case.kernel}: {len(case.variants)} built, {ranks} ranks"
                )
                measured = measure_built(source, case, effort)
            except NotBuiltError as error:
                line = error.span.start_line if error.span else kernel.span.start_line
                complain(f"advise: {path}:{line}: `{kernel.name}` is not built: {error.why}")
                continue
            except CannotRunError as error:
                complain(f"advise: {error}; built programs left out")
                return groups
            group = [Verdict(case, *pair) for pair in zip(case.variants, measured, strict=True)]
            if machine.may_be_here:
                _keep(group, machine)
            groups.append(group)
    return groups


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

    original = group[0].measured
    if original.failure:
        return
    found = [
        replace(kept, equal=one.measured.equal)
        for one in group[1:]
        if not one.measured.failure
        if (kept := one.case.compared(one.variant, original.times_s, one.measured.times_s))
    ]
    keep(machine, group[0].case.ranks, found)


def _program_cases(
    sources: Mapping[str, str], given: Mapping[str, int | float], ranks: int, machine: Machine
) -> list[ProgramCase]:
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


def _verify_programs(
    cases: Sequence[ProgramCase], effort: Effort, machine: Machine
) -> list[list[ProgramVerdict]]:
    """Run programs with each of their rewrites, and keep what that shows as evidence.

    Where there are no ranks to be had, none is run, which is said.
    """
    from advisor.verify.running import keep, measure_program
    from advisor.verify.verdict import ProgramVerdict
    from costdb.launch.processes import CannotRunError

    groups: list[list[ProgramVerdict]] = []
    for case in cases:
        complain(f"advise: {case.path}: {len(case.rewrites)} rewrites, on {case.ranks} ranks")
        try:
            measured = measure_program(case, effort)
        except CannotRunError as error:
            complain(f"advise: {error}; programs left out")
            return groups
        rewrites = case.rewrites or (None,)
        group = [ProgramVerdict(case, *pair) for pair in zip(rewrites, measured, strict=True)]
        if machine.may_be_here:
            found = [
                replace(kept, equal=one.turns.after.equal)
                for one in group
                if one.rewrite is not None and one.turns.compared and not one.failure
                if (kept := case.compared(one.rewrite, *one.turns.times_s))
            ]
            keep(machine, case.ranks, found)
        groups.append(group)
    return groups
