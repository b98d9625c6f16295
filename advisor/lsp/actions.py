"""Code actions: which edits are offered for which findings, and how "ignore here" is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from advisor.edits import apply_edits, split_lines
from advisor.finding import Applicability, Finding
from advisor.report.rows import headline
from advisor.source import Edit, Span


class Purpose(StrEnum):
    """What an action does."""

    REWRITE = "rewrite"
    IGNORE = "ignore"


QUICK_FIX = "quickfix"
REWRITE = "refactor.rewrite"
KINDS = (QUICK_FIX, REWRITE)


@dataclass(frozen=True, slots=True)
class Offer:
    """An action on a finding, without its edit: that is made when the user picks it.

    Attributes
    ----------
    title : str
        Starts with the class and the gain, for a rewrite.
    kind : str
        One of `KINDS`.
    preferred : bool
        Whether an editor may apply it without asking which.
    """

    purpose: Purpose
    title: str
    kind: str
    preferred: bool
    finding: Finding


def offers(findings: Iterable[Finding], only: Sequence[str] | None) -> Iterator[Offer]:
    """Yield the actions on findings, rewrites before suppressions.

    A safe rewrite is a quick fix. An unsafe one is a refactoring, which nobody applies without
    looking; an editor that asks for refactorings only gets the safe ones as such too.

    Parameters
    ----------
    findings : iterable of Finding
    only : sequence of str or None
        The kinds that the editor asks for, each with those below it; None for all.
    """
    chosen = tuple(findings)
    quick, refactoring = _asked(QUICK_FIX, only), _asked(REWRITE, only)
    for finding in chosen:
        applicability = _applicability(finding)
        if applicability is Applicability.SAFE and quick:
            yield Offer(Purpose.REWRITE, headline(finding), QUICK_FIX, True, finding)
        elif applicability is Applicability.SAFE and refactoring:
            yield Offer(Purpose.REWRITE, headline(finding), REWRITE, False, finding)
        elif applicability is Applicability.UNSAFE and refactoring:
            title = f"{headline(finding)} (unsafe: results may differ)"
            yield Offer(Purpose.REWRITE, title, REWRITE, False, finding)
    if quick:
        for finding in chosen:
            title = f"Ignore {finding.code} ({finding.name}) here"
            yield Offer(Purpose.IGNORE, title, QUICK_FIX, False, finding)


def suppression(
    source: str, finding: Finding, silenced: Callable[[str], bool]
) -> tuple[Edit, ...] | None:
    """Return the edit that adds ``# advise: ignore[CODE]`` for a finding.

    Behind its first line, or above it where that line goes on behind a backslash or within a
    string. None when neither silences it.

    Parameters
    ----------
    source : str
    finding : Finding
    silenced : callable
        Whether a changed text no longer has the finding.
    """
    comment = f"# advise: ignore[{finding.code}]"
    number = finding.span.start_line
    line = split_lines(source)[number - 1].rstrip("\r\n")
    indent = line[: len(line) - len(line.lstrip())]
    end = len(line.rstrip())
    behind = Edit(Span(number, end, number, len(line)), f"  {comment}")
    above = Edit(Span(number, 0, number, 0), f"{indent}{comment}\n")
    for edit in (behind, above):
        if silenced(apply_edits(source, (edit,))):
            return (edit,)
    return None


def _applicability(finding: Finding) -> Applicability | None:
    fix = finding.fix
    return fix.applicability if fix is not None and fix.edits else None


def _asked(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(
        kind == asked or kind.startswith(f"{asked}.") or asked == "" for asked in only
    )
