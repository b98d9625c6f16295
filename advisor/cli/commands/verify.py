"""``advise verify``: runs kernels, programs and rewrites; holds predictions against the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advisor.cli import options
from advisor.cli.common import (
    FINDINGS,
    JSON,
    TEXT,
    check_output,
    complain,
    parse_bindings,
    require_format,
    text_style,
    write_result,
)
from advisor.config.layer import CommandError, system_error, wrong_use
from advisor.config.machine import choose_machine

if TYPE_CHECKING:
    from advisor.verify.program_verdict import Circumstances, ProgramVerdict
    from advisor.verify.ranks import ProgramCase
    from advisor.verify.running import Case, Effort
    from advisor.verify.verdict import Verdict
    from costdb.machines import Machine


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "verify",
        help="RUN kernels, MPI programs and their rewrites; compare predicted with measured times.",
    )(_verify)


def _verify(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Annotated Python; folders with --all.")
    ],
    machine: options.ThisMachine = "here",
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME", help="Which kernel of a file.")
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", metavar="NAME=VALUE", help="Bind a size or an argument."),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Launches of each variant.")] = 2,
    everything: Annotated[
        bool, typer.Option("--all", help="Every kernel and program of every file in the folders.")
    ] = False,
    ranks: options.Ranks = 2,
    output_format: options.TextOrJson = TEXT,
    output: options.ResultFile = None,
) -> int:
    require_format(output_format)
    from advisor.verify.program_verdict import document_of, programs_in_words, programs_table
    from advisor.verify.running import Effort, measure
    from advisor.verify.verdict import Verdict, as_table, in_words
    from costdb.calibration.hardware import Bystanders
    from costdb.machines import load_machine

    check_output(output)
    given = parse_bindings(define or (), only_sizes=False)
    chosen = load_machine(choose_machine(machine))
    paths = _paths(files, everything)
    _tell_unused(paths, given)
    if not chosen.may_be_here:
        complain(
            f"advise: times are of this machine, predictions of {chosen.name}: "
            "nothing of this is kept as evidence"
        )
    complain(f"advise: running the code of {', '.join(paths)}")
    others = Bystanders()
    groups: list[list[Verdict]] = []
    for case in _cases(paths, kernel, given, chosen, everything=everything):
        complain(f"advise: {case.path}: {case.kernel}: {len(case.variants)} variants")
        measured = measure(case, Effort(launches=repeat))
        group = [Verdict(case, *pair) for pair in zip(case.variants, measured, strict=True)]
        if chosen.may_be_here:
            _keep(group, chosen)
        groups.append(group)
    # a kernel that was asked for is no program
    found = [] if kernel is not None else program_cases(paths, given, ranks or 2, chosen)
    programs = verify_programs(found, Effort(launches=repeat), chosen)
    if not groups and not programs:
        raise wrong_use("there is no kernel to verify, nor a program that communicates")
    where = _circumstances(chosen, others.busy_cores())
    document = document_of(groups, programs, where)
    if chosen.may_be_here:
        _keep_document(" ".join(files), document)
    if output_format == JSON:
        import json

        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
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


def _tell_unused(paths: Sequence[str], given: Mapping[str, int | float]) -> None:
    """Say which names of ``-D`` no file has, before anything runs with other sizes than meant."""
    from advisor.cli.common import names_in, tell_unused
    from advisor.cli.subjects import problems_in_one_line
    from advisor.files import read_source

    if not given:
        return
    known: set[str] = set()
    for path in paths:
        try:
            source = read_source(path).text
        except OSError as error:
            raise system_error(error, path) from error
        with problems_in_one_line():
            known |= names_in(path, source, arguments=True)
    tell_unused(given, known)


def _as_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _paths(files: list[str], everything: bool) -> list[str]:
    if not everything:
        return files
    from advisor.cli.checking.scope import python_files

    def refuse(error: CommandError) -> None:
        raise error

    return list(python_files(files, refuse))


def _cases(
    paths: list[str],
    name: str | None,
    given: Mapping[str, int | float],
    machine: Machine,
    *,
    everything: bool,
) -> list[Case]:
    """Return the kernels to run; of `everything`, those whose sizes have values."""
    from advisor.cli.subjects import problems_in_one_line, settings_of
    from advisor.files import read_source
    from advisor.frontend.kernels import read_kernels
    from advisor.observations import Observations
    from advisor.ranking.sizes import checked_sizes
    from advisor.ranking.subjects import heaviest
    from advisor.transform_registry import transforms
    from advisor.verify.running import case_of
    from costdb.expr import ExprError

    found: list[Case] = []
    runs = Observations(complain)
    for path in paths:
        try:
            source = read_source(path).text
            configured = settings_of(path).sizes
        except OSError as error:
            raise system_error(error, path) from error
        with problems_in_one_line():
            for kernel in read_kernels(path, source, heaviest(runs.of_file(path))):
                if name in (None, kernel.name):
                    bound = {**configured, **given}
                    sizes = checked_sizes(path, kernel, bound).values
                    try:
                        found.append(case_of(path, source, kernel, sizes, machine, transforms()))
                    except ExprError as error:
                        why = f"{path}: kernel `{kernel.name}`: {error}: pass -D NAME=VALUE"
                        if not everything:
                            raise wrong_use(why) from error
                        complain(f"advise: {why}; left out")
    return found


def _circumstances(machine: Machine, busy_cores: float | None) -> Circumstances:
    from datetime import UTC, datetime

    from advisor.ranking.findings import calibration_of
    from advisor.verify.program_verdict import Circumstances

    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Circumstances(machine.name, calibration_of(machine), now, busy_cores)


def _keep_document(subject: str, document: Mapping[str, Any]) -> None:
    """Store what was found, which ``advise machine show`` tells of."""
    from costdb.store.database import writing
    from costdb.store.place import store_path
    from costdb.store.results import Result, add_result

    with writing(store_path()) as connection:
        add_result(connection, Result(document["machine"], "verify", subject, document))


def _keep(group: list[Verdict], machine: Machine) -> None:
    """Store what was measured as evidence, so that later predictions can refer to it."""
    from advisor.verify.keep import Compared, keep, speed_up
    from costdb.evaluate import compare

    original = group[0]
    if original.variant.costed is None or original.measured.failure:
        return
    priced, found = original.variant.costed.priced, []
    for one in group[1:]:
        if one.variant.costed is None or not one.judged or not one.measured.equal:
            continue
        found.append(
            Compared(
                Path(original.case.path).name,
                one.case.kernel,
                one.variant.code,
                one.variant.title,
                dict(one.case.sizes),
                compare(priced, one.variant.costed.priced, one.case.sizes),
                speed_up(original.measured.times_s, one.measured.times_s),
                times_s=(original.measured.times_s, one.measured.times_s),
            )
        )
    keep(machine, 1, found)


# The part of ``advise verify`` that runs SPMD programs on ranks.


def program_cases(
    paths: Sequence[str], given: Mapping[str, int | float], ranks: int, machine: Machine
) -> list[ProgramCase]:
    """Return the SPMD programs among files.

    Raises
    ------
    CommandError
        A file cannot be read, or does not parse.
    """
    from advisor.cli.subjects import problems_in_one_line
    from advisor.files import read_source
    from advisor.transform_registry import program_transforms
    from advisor.verify.ranks import program_case

    found: list[ProgramCase] = []
    for path in paths:
        try:
            source = read_source(path).text
        except OSError as error:
            raise system_error(error, path) from error
        with problems_in_one_line():
            case = program_case(path, source, given, ranks, machine, program_transforms())
        if case is not None:
            found.append(case)
    return found


def verify_programs(
    cases: Sequence[ProgramCase], effort: Effort, machine: Machine
) -> list[list[ProgramVerdict]]:
    """Run programs with each of their rewrites, and keep what that shows as evidence.

    Where there are no ranks to be had, none is run, which is said.
    """
    from advisor.verify.program_verdict import ProgramVerdict
    from advisor.verify.ranks import measure_program
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
            _keep_of_verify_programs(group, machine)
        groups.append(group)
    return groups


def _keep_of_verify_programs(group: Sequence[ProgramVerdict], machine: Machine) -> None:
    from advisor.verify.keep import Compared, keep, speed_up

    found = []
    for one in group:
        rewrite, before, after = one.rewrite, one.turns.before, one.turns.after
        if rewrite is None or rewrite.change is None or one.result != "equal":
            continue
        measured = speed_up(before.times_s, after.times_s)
        found.append(
            Compared(
                Path(one.case.path).name,
                rewrite.function,
                rewrite.code,
                rewrite.title,
                dict(one.case.sizes),
                rewrite.change.ratio,
                measured,
                "the whole program",
            )
        )
    keep(machine, group[0].case.ranks, found)
