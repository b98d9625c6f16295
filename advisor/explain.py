"""The findings at one place with the prices that they compare."""

from __future__ import annotations

from dataclasses import replace

from advisor.engine import Options, needs_reading, seen_functions
from advisor.finding import Finding
from advisor.ranking.findings import Judged


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
    from advisor.frontend.kernels import read_kernels
    from advisor.frontend.spmd.reader import read_program
    from advisor.ranking.programs import bind_program, rank_program
    from advisor.ranking.rank import rank
    from advisor.ranking.seen_messages import as_observed
    from advisor.ranking.sizes import checked_sizes
    from advisor.transform_registry import program_transforms, transforms
    from costdb.machines import load_machine

    if not options.observed and not needs_reading(source, path):
        return ()
    machine = load_machine(options.machine or "")
    found: list[Judged] = []
    for kernel in read_kernels(path, source, seen_functions(path, source, options)):
        sizes = checked_sizes(path, kernel, options.sizes, options.size_origins)
        found += rank(path, kernel, machine, sizes, transforms(), formulas=True).judged
    program = read_program(path, source)
    if program is not None:
        program = as_observed(program, options.messages)
        sizes = bind_program(program, options.sizes, options.size_origins)
        found += rank_program(program, machine, sizes, program_transforms()).judged
    found.sort(key=lambda one: (one.finding.span, one.finding.code))
    findings = with_evidence(one.finding for one in found)
    return tuple(replace(one, finding=f) for one, f in zip(found, findings, strict=True))


def at_line(judged: tuple[Judged, ...], line: int) -> tuple[Judged, ...]:
    """Return those whose statement covers a line, from 1."""
    return tuple(one for one in judged if covers(one.finding, line))


def covers(finding: Finding, line: int) -> bool:
    """Return whether the statement of a finding covers a line, from 1."""
    return finding.span.start_line <= line <= finding.span.last_line
