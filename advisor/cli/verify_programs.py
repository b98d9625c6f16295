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
    import platform
    from datetime import UTC, datetime
    from importlib.metadata import version

    from costdb.estimate import Ratio
    from costdb.store import store_path
    from costdb.store.database import writing
    from costdb.store.evidence import Evidence, add_evidence

    with writing(store_path()) as connection:
        for one in group:
            rewrite, before, after = one.rewrite, one.turns.before, one.turns.after
            if rewrite is None or rewrite.change is None or one.result != "equal":
                continue
            measured = Ratio(
                before.low_s / after.high_s,
                before.seconds / after.seconds,
                before.high_s / after.low_s,
            )
            circumstances = {
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "library": f"mpi4py {version('mpi4py')}",
                "python": platform.python_version(),
                "ranks": str(one.case.ranks),
                "file": Path(one.case.path).name,
                "clock": "slowest rank, wall",
                "of": "the whole program",
                "title": rewrite.title,
            }
            found = Evidence(
                machine.name,
                rewrite.function,
                rewrite.code,
                dict(one.case.sizes),
                rewrite.change.ratio,
                measured,
                circumstances,
            )
            add_evidence(connection, found)
