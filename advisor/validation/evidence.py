"""What a validation measured of two ways, stored as evidence for later findings."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from costdb.estimate import Ratio
from costdb.machines import Machine
from costdb.store import store_path
from costdb.store.database import writing
from costdb.store.evidence import Evidence, add_evidence


@dataclass(frozen=True, slots=True)
class Compared:
    """A kernel and a rewrite of it, by file, rule and title: predicted and measured speed-up."""

    file: str
    kernel: str
    code: str
    title: str
    sizes: Mapping[str, int | float]
    predicted: Ratio
    measured: Ratio


def keep(machine: Machine, ranks: int, found: Iterable[Compared]) -> None:
    """Store comparisons with the circumstances of this process, if it runs on that machine."""
    if not machine.may_be_here:
        return
    circumstances = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "library": f"NumPy {version('numpy')}",
        "python": platform.python_version(),
        "ranks": str(ranks),
        "clock": "process time, one thread" if ranks == 1 else "slowest rank, from a barrier on",
    }
    with writing(store_path()) as connection:
        for one in found:
            evidence = Evidence(
                machine.name,
                one.kernel,
                one.code,
                dict(one.sizes),
                one.predicted,
                one.measured,
                {**circumstances, "file": one.file, "title": one.title},
            )
            add_evidence(connection, evidence)
