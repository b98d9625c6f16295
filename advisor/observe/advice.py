"""What is done with facts once a program has ended: advice on them, and keeping them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor import engine
from advisor.engine import FileResult
from advisor.files import read_source
from advisor.finding import Finding, Remark
from advisor.observed import Seen, to_document
from advisor.source import SourceProblem

Facts = Sequence[tuple[str, Seen]]
"""Functions that were seen, with their files."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is to say on functions that were seen.

    Attributes
    ----------
    machine : str
        The machines that it is for, by commas.
    results : tuple of FileResult
        Findings and remarks on those functions alone.
    problems : tuple of str
        One line for each file on which there is none, saying why.
    """

    machine: str
    results: tuple[FileResult, ...]
    problems: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the files."""
        return tuple(finding for result in self.results for finding in result.findings)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All remarks, in the order of the files."""
        return tuple(remark for result in self.results for remark in result.remarks)


def advise_on(facts: Facts, machine: str | None = None) -> Advice:
    """Return the advice on functions that were seen, by the configuration near their files.

    Parameters
    ----------
    facts : sequence of (str, Seen)
    machine : str, optional
        Goes over the configuration and ``ADVISE_MACHINE``.
    """
    from advisor.cli.common import CommandError
    from advisor.cli.effective import Resolver
    from advisor.config.find import configurations
    from advisor.config.layer import ConfigError, Layer
    from costdb.machines import MachineError

    chosen = machine or os.environ.get("ADVISE_MACHINE") or None
    results: list[FileResult] = []
    problems: list[str] = []
    machines: dict[str, None] = {}
    resolver: Resolver | None = None
    for file, seen in by_file(facts).items():
        shown = min(os.path.relpath(file), file, key=len)
        try:
            resolver = resolver or Resolver(configurations(Layer(machine=chosen)), None)
            options = replace(resolver.effective(file).options, observed=seen)
            machines[options.machine or ""] = None
            result = engine.check_source(shown, read_source(file).text, options)
        except (SourceProblem, MachineError, CommandError, ConfigError, OSError) as problem:
            problems.append(str(problem))
            continue
        results.append(_only(result, {one.function.rpartition(".")[2] for one in seen}))
    return Advice(", ".join(machines), tuple(results), tuple(dict.fromkeys(problems)))


def by_file(facts: Facts) -> Mapping[str, tuple[Seen, ...]]:
    """Return facts by the real path of their files."""
    found: dict[str, list[Seen]] = {}
    for file, seen in facts:
        found.setdefault(os.path.realpath(file), []).append(seen)
    return {file: tuple(many) for file, many in found.items()}


def _only(result: FileResult, names: Iterable[str]) -> FileResult:
    wanted = frozenset(names)
    return replace(
        result,
        findings=tuple(f for f in result.findings if f.kernel in wanted),
        remarks=tuple(r for r in result.remarks if r.kernel in wanted),
    )


def store(facts: Facts, program: str) -> int:
    """Keep facts for the next ``advise FILE`` and the editor; return how many there were.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    from advisor.observations import FUNCTION
    from costdb.store.database import writing
    from costdb.store.observations import Observation, add_observations
    from costdb.store.place import store_path

    rows = [
        Observation(file, FUNCTION, seen.function, to_document(seen), program)
        for file, many in by_file(facts).items()
        for seen in many
    ]
    if rows:
        with writing(store_path()) as connection:
            add_observations(connection, rows)
    return len(rows)
