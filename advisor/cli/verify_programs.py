"""The part of ``advise verify`` that runs SPMD programs on ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.common import complain
from advisor.config.errors import system_error

if TYPE_CHECKING:
    from advisor.verify.program_verdict import ProgramVerdict
    from advisor.verify.programs import ProgramCase
    from advisor.verify.running import Effort
    from costdb.machines import Machine


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
    from advisor.verify.programs import program_case

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
    from advisor.verify.ranks import CannotRunError, measure_program

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
            _keep(group, machine)
        groups.append(group)
    return groups


def _keep(group: Sequence[ProgramVerdict], machine: Machine) -> None:
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
