"""The engine as the language server asks it: every outcome is a value, none ends the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from advisor import engine
from advisor.engine import FileResult, Options
from advisor.finding import Finding, Remark
from advisor.lsp.actions import suppression
from advisor.source import Edit, ParseProblem, SourceProblem

Check = Callable[[str, str, Options], FileResult]
Detailed = Callable[[str, str, Options, Finding], Finding]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one text gave.

    Attributes
    ----------
    findings, remarks : tuple
        Empty unless `understood`.
    problem : SourceProblem or None
        Why the text could not be understood.
    failure : str
        One line when no prediction is possible for any text, as without a machine.
    whole : bool
        Whether there is nothing to add that takes longer to find.
    """

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    problem: SourceProblem | None = None
    failure: str = ""
    whole: bool = True

    @property
    def understood(self) -> bool:
        """Whether the findings are about this text."""
        return self.problem is None and not self.failure

    @property
    def half_typed(self) -> bool:
        """Whether the text is no Python, which other tools tell the user."""
        return isinstance(self.problem, ParseProblem)


def analyse(
    path: str, source: str, options: Options, check: Check = engine.check_source
) -> Analysis:
    """Return what there is to say about a text, as `check` finds it."""
    from costdb.machines import MachineError

    if not options.observed and not engine.needs_reading(source, path):
        return Analysis()
    if not _is_text(source):
        return Analysis(problem=ParseProblem(path, 1, 0, "holds half of a character"))
    try:
        result = check(path, source, options)
    except SourceProblem as problem:
        return Analysis(problem=problem)
    except (MachineError, LookupError) as error:
        return Analysis(failure=str(error))
    return Analysis(result.findings, result.remarks, whole=result.whole)


def with_details(
    path: str, source: str, options: Options, findings: Iterable[Finding], detailed: Detailed
) -> list[Finding]:
    """Return findings of a text with all that they rest on, as `detailed` finds it."""
    found = list(findings)
    try:
        return [detailed(path, source, options, finding) for finding in found]
    except SourceProblem:
        # what the user then sees over them lacks some lines
        return found


def rewrite_edits(
    path: str, source: str, options: Options, finding: Finding
) -> tuple[Edit, ...] | None:
    """Return the edits of a finding's rewrite; None when the finding is not there."""
    found = _same(finding, analyse(path, source, replace(options, select=(finding.code,))))
    return None if found is None or found.fix is None else found.fix.edits


def suppression_edits(
    path: str, source: str, options: Options, finding: Finding
) -> tuple[Edit, ...] | None:
    """Return the edit that makes the engine leave a finding out; None when none does."""
    alone = replace(options, select=(finding.code,))

    def count(text: str) -> int | None:
        # not by fingerprint, which the comment on its line changes
        analysis = analyse(path, text, alone)
        alike = (_identity(found) == _identity(finding) for found in analysis.findings)
        return sum(alike) if analysis.understood else None

    before = count(source)
    if not before:
        return None

    def silenced(text: str) -> bool:
        after = count(text)
        return after is not None and after < before

    return suppression(source, finding, silenced)


def _same(finding: Finding, analysis: Analysis) -> Finding | None:
    return next(
        (
            found
            for found in analysis.findings
            if (found.fingerprint, found.span) == (finding.fingerprint, finding.span)
        ),
        None,
    )


def _identity(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.kernel, finding.message


def _is_text(source: str) -> bool:
    """Return whether `source` can be encoded; an editor may send half of a surrogate pair."""
    return source.isascii() or not any("\ud800" <= char <= "\udfff" for char in source)
