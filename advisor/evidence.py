"""What runs showed of suggestions: stored evidence, put beside the predictions of findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.finding import Finding
from advisor.report.style import ratio
from costdb.store import StoredEvidence, StoreError, stored_evidence

if TYPE_CHECKING:
    from costdb.store.evidence import Evidence

MOST_LINES = 2


def known_of(machine: str) -> tuple[StoredEvidence, ...]:
    """Return the stored evidence on a machine, oldest first; none where the store has no use."""
    try:
        return stored_evidence(machine)
    except StoreError:
        return ()


def with_evidence(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with what was measured of them on their machine."""
    known: dict[str, tuple[StoredEvidence, ...]] = {}
    made = []
    for finding in findings:
        machine = finding.evidence.machine
        if machine not in known:
            known[machine] = known_of(machine)
        try:
            lines = _lines(finding, known[machine])
        except StoreError:
            lines = ()  # altered by somebody else: no reason to say nothing of the kernel
        evidence = replace(finding.evidence, measured=lines) if lines else finding.evidence
        made.append(replace(finding, evidence=evidence) if lines else finding)
    return tuple(made)


def _lines(finding: Finding, known: Sequence[StoredEvidence]) -> tuple[str, ...]:
    """Return the newest runs at the sizes of a finding; where there are none, at other sizes."""
    subject = finding.kernel, finding.code
    # of all others the numbers need not be read
    read = [one.read() for one in reversed(known) if one.subject == subject]
    own = [one for one in read if _is_about(one, finding)]
    same = [one for one in own if _same_sizes(one, finding)]
    if same:
        return tuple(map(_told, same[:MOST_LINES]))
    return tuple(f"at other sizes: {_told(one)}" for one in own[:1])


def _is_about(one: Evidence, finding: Finding) -> bool:
    file, title = (one.circumstances.get(name, "") for name in ("file", "title"))
    return (
        file in ("", Path(finding.path).name)
        # a rule may have several suggestions for one kernel
        and finding.message.endswith(title)
    )


def _same_sizes(one: Evidence, finding: Finding) -> bool:
    # how many ranks there are is no size of the data: what ran says on how many it did
    sizes = {a.name: a.value for a in finding.assumptions if a.name in one.bindings}
    return bool(sizes) and all(one.bindings[name] == value for name, value in sizes.items())


def _told(one: Evidence) -> str:
    sizes = ", ".join(f"{name} = {value:g}" for name, value in sorted(one.bindings.items()))
    ranks = one.circumstances.get("ranks", "")
    where = {"": "", "1": " on 1 process"}.get(ranks, f" on {ranks} ranks")
    # what changes is predicted by itself
    of = f" of {one.circumstances['of']}" if "of" in one.circumstances else ""
    date = one.circumstances.get("date", "")[:10]
    measured = one.measured
    return (
        f"on {one.machine} {date}{where}, {sizes}: {ratio(measured.mid)}{of}"
        f" ({ratio(measured.low)} .. {ratio(measured.high)}), predicted {ratio(one.predicted.mid)}"
    )
