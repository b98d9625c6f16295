"""Which findings of a file are told, and which with another: a heading for each change."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from advisor.finding import (
    ALSO,
    MODULE,
    ONE_PROCESS,
    Alternative,
    Applicability,
    Finding,
    Verdict,
)
from advisor.ir.changes import OWN, Loop
from advisor.ir.functions import File, file_of
from advisor.ir.kernel import Kernel
from advisor.ir.one_by_one import Kind
from advisor.source import every, walked
from costdb.records import replace

AGAIN, GROWN = "ADV506", "ADV507"
_BY_ELEMENT, _ALGEBRA, _LISTS = "ADV401", "ADV505", "ADV508"
TELLING = {
    **dict.fromkeys(Kind, _BY_ELEMENT),
    **{Kind.SOUGHT: AGAIN, Kind.COMPARED: AGAIN, Kind.GROWN: GROWN, Kind.FACTORED: _ALGEBRA},
    **dict.fromkeys((Kind.HALVED, Kind.SYMMETRIC), _ALGEBRA),
}
"""The rules that tell also of what has no kernel, and so no price."""
RAISING = frozenset({_BY_ELEMENT, "ADV504", _ALGEBRA, _LISTS})
"""The rules that have another remedy for the same loop."""
_LESS = {AGAIN, _LISTS}
"""Those that leave the loop what it is."""
SENDING = "ADV6"
"""How the codes of rules begin that have another remedy for the same call."""
OF_A_RUN_S = 3e-5
"""Time saved once in a run below which no run shows it: Python and NumPy take 0.1 s to start."""
_REPEATED = Loop | OWN


def by_change(
    findings: Sequence[Finding],
    kernels: Sequence[Kernel],
    source: str,
    *,
    sends: bool = False,
    everything: bool = False,
) -> tuple[Finding, ...]:
    """Return the findings to be told, other remedies for a place with the best one.

    What a function and its callers both tell of one place is told once, and what stands in a loop
    with what a better remedy does to all of the loop. What saves little in what runs once is left,
    and what pays for small sizes only where nothing is sent, unless everything is to be told.

    Parameters
    ----------
    findings : sequence of Finding
    kernels : sequence of Kernel
    source : str
    sends : bool
        Whether it is a program for MPI: what its loops save is then a share of all of it.
    everything : bool
    """
    if not findings:
        return ()
    file = file_of(source, reduces=True)
    asked = {one.name for one in kernels if one.asked}
    once = {name for name in {one.kernel for one in findings} - asked if _runs_once(name, file)}
    if not sends:
        if not everything:
            findings = [one for one in findings if one.kernel in asked or not _is_of_small(one)]
        alone = once - {MODULE}
        findings = [_of_one_run(one) if one.kernel in alone else one for one in findings]
    small = (one.kernel not in asked and _is_lost(one, once) for one in findings)
    left = [one for one, lost in zip(findings, small, strict=True) if everything or not lost]
    loops = {one.lineno: one for one in every(Loop, file.tree)}

    def lines(finding: Finding) -> range:
        """Return the lines of a loop, if one begins there, or of the place."""
        first, last = finding.span.start_line, finding.span.last_line
        return range(first, 1 + ((loops[first].end_lineno or 0) if first in loops else last))

    def worth(finding: Finding) -> tuple[bool, bool, bool, float]:
        around = [one for one in kernels if finding.span.start_line in one.lines]
        holder = min((len(one.lines), one.name) for one in around)[1] if around else finding.kernel
        known = finding.prediction is not None
        return _is_offered(finding), known, finding.kernel == holder, finding.saves_s or 0.0

    def is_under(one: Finding, other: Finding) -> bool:
        """Return whether `one` needs no heading beside `other`."""
        codes, first = {one.code, other.code}, one.span.start_line
        if one.kernel != other.kernel:
            same = len(codes) == 1 or codes <= RAISING
            return (
                same
                and (first in lines(other) or other.span.start_line in lines(one))
                and worth(one) < worth(other)
            )
        if all(code.startswith(SENDING) for code in codes):
            return first == other.span.start_line and _is_better(other, one)
        # what is only compiled goes on computing again
        kept = one.code in RAISING or (one.code == AGAIN and other.fix is not None)
        raised = other.code in RAISING and kept
        return raised and first in lines(other) and _is_better(other, one)

    leads = [one for one in left if not any(is_under(one, other) for other in left)]
    under: dict[Finding, dict[str, None]] = {one: {} for one in leads}
    for one in (one for one in left if one not in under):
        best = next((x for x in leads if x.kernel == one.kernel and is_under(one, x)), None)
        if best is not None and best.title != one.title:
            under[best][one.title] = None
    return tuple(
        replace(
            one, alternatives=(*one.alternatives, *(Alternative(t, None, ALSO) for t in titles))
        )
        for one, titles in under.items()
    )


def _is_offered(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is not Applicability.DISPLAY


def _is_better(one: Finding, other: Finding) -> bool:
    """Return whether a remedy is the one to tell of two for a place."""
    if _is_offered(one) != _is_offered(other):
        # an edit that can be made at once is told beside a greater gain by hand
        return _is_offered(one) and (one.saves_s or 0.0) > (other.saves_s or 0.0)
    if (one.saves_s is None) != (other.saves_s is None):
        return other.saves_s is None
    return (one.code in _LESS, one.order) < (other.code in _LESS, other.order)


def _is_lost(finding: Finding, once: Collection[str]) -> bool:
    """Return whether all that a finding saves in a run is less than anybody sees."""
    whole = finding.kernel in once or not finding.priced_as.startswith(ONE_PROCESS)
    known = finding.prediction is not None and finding.prediction.complete
    return whole and known and (finding.saves_s or 0.0) < OF_A_RUN_S


def _is_of_small(finding: Finding) -> bool:
    """Return whether something pays for small sizes only, where nothing tells the sizes."""
    when = finding.condition
    return when is not None and when.pays_from is None and not when.always


def _of_one_run(finding: Finding) -> Finding:
    """Return a finding of a function that runs once: its own time is no whole to be a share of."""
    alone = replace(finding, share=None)
    gain = finding.verdict is Verdict.GAIN and not alone.is_gain
    return replace(alone, verdict=Verdict.UNCERTAIN) if gain else alone


def _runs_once(name: str, file: File) -> bool:
    """Return whether a run of a file comes to a function once, by the calls in the file."""
    named = (one for one in file.scopes[1:] if file.name_of(one) == name)
    return name == MODULE or any(_is_called_once(one, file, ()) for one in named)


def _is_called_once(node: ast.AST, file: File, within: tuple[ast.AST, ...]) -> bool:
    if node is file.tree or node in within:
        return node is file.tree
    calls = file.calls_of(node)
    if len(calls) != 1 or not file.is_all_called(node):
        return False
    (call, scope), *_ = calls
    again = (one for one in file.names_of(scope).nodes if isinstance(one, _REPEATED))
    return not any(call in walked(one) for one in again) and _is_called_once(
        scope, file, (*within, node)
    )
