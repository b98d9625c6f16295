"""What was measured of two ways to do one thing, stored as evidence for later findings."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from advisor.evidence import AFTER, BEFORE, DIFFER, RESULTS, Times
from costdb.estimate import Ratio
from costdb.machines import Machine
from costdb.records import dataclass
from costdb.store.database import writing
from costdb.store.evidence import Evidence, add_evidence
from costdb.store.extract import store_path


@dataclass(frozen=True, slots=True)
class Compared:
    """A kernel or program and a rewrite of it: predicted and measured speed-up.

    Attributes
    ----------
    file, kernel, code, title : str
        By which findings are known again.
    sizes : mapping of str to number
    predicted, measured : Ratio
    of : str
        What was measured, where that is more than the kernel.
    times_s : (Times, Times) or None
        What both sides took, where that is the kernel itself as one process.
    equal : bool or None
        Whether both gave the same results; None where nobody compared them.
    """

    file: str
    kernel: str
    code: str
    title: str
    sizes: Mapping[str, int | float]
    predicted: Ratio
    measured: Ratio
    of: str = ""
    times_s: tuple[Times, Times] | None = None
    equal: bool | None = None


def speed_up(before: Times, after: Times) -> Ratio:
    """Return how many times faster one is than the other, as sure as their samples make it."""
    (low, mid, high), (then_low, then_mid, then_high) = before, after
    return Ratio(low / then_high, mid / then_mid, high / then_low)


def keep(machine: Machine, ranks: int, found: Iterable[Compared], clock: str = "") -> None:
    """Store comparisons with the circumstances of this process, if it runs on that machine.

    `clock` says how times were taken, where that is not by running what is compared.
    """
    if not machine.may_be_here:
        return
    library, usual = (
        ("numpy", "process time, one thread") if ranks == 1 else ("mpi4py", "slowest rank, wall")
    )
    circumstances = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "library": f"{library} {version(library)}",
        "python": platform.python_version(),
        "ranks": str(ranks),
        "clock": clock or usual,
    }
    with writing(store_path()) as connection:
        for one in found:
            evidence = Evidence(
                machine.name,
                one.kernel,
                one.code,
                dict(one.sizes),
                one.predicted if _is_finite(one.predicted) else None,
                one.measured,
                {
                    **circumstances,
                    "file": one.file,
                    "title": one.title,
                    **({"of": one.of} if one.of else {}),
                    **({} if one.equal is None else {RESULTS: "equal" if one.equal else DIFFER}),
                    **_times(one),
                },
            )
            add_evidence(connection, evidence)


def _is_finite(predicted: Ratio) -> bool:
    return all(map(math.isfinite, (predicted.low, predicted.mid, predicted.high)))


def _times(one: Compared) -> dict[str, str]:
    if one.times_s is None:
        return {}
    texts = (" ".join(map(repr, times)) for times in one.times_s)
    return dict(zip((BEFORE, AFTER), texts, strict=True))
