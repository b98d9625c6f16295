"""What a profile says of other guests that computed on the same cores while it was measured."""

from __future__ import annotations

from costdb.calibration.host.neighbours import NOTICEABLE_SHARE, Sharing, State
from costdb.machines import Machine
from costdb.machines.documents import Json
from costdb.machines.stated import measured

SHARED = "cores_shared"
"""The quantity of ``hardware`` that says for which part of the time a core was shared."""

NOTICEABLE_DIFFERENCE = 0.2
"""Between two times' shares: less makes no operation differ by more than a seventh."""

_ALONE_LIMIT = 1.25
"""Over what the sentinel takes where it never met another guest."""


def limit_us_of(machine: Machine) -> float | None:
    """Return up to which time one thread's sentinel is alone on its core; None where unknown."""
    limit = machine.quantity("hardware", "sentinel_p1_limit_us")
    if limit is not None:
        return limit.value
    alone = machine.quantity("hardware", "sentinel_p1_alone_us")
    return None if alone is None else _ALONE_LIMIT * alone.value


def sharing_facts(sharing: Sharing) -> dict[str, Json]:
    """Return quantities of the section ``hardware``: what the sentinels took, and how often."""
    facts: dict[str, Json] = {}
    for threads, us in sharing.one_us.items():
        facts[f"sentinel_p{threads}_alone_us"] = measured(us, "us", note=_SENTINEL)
    for threads, groups in sharing.groups.items():
        facts[f"sentinel_p{threads}_alone_us"] = measured(groups.alone_us, "us", note=_SENTINEL)
        facts[f"sentinel_p{threads}_shared_us"] = measured(groups.shared_us, "us")
        facts[f"sentinel_p{threads}_limit_us"] = measured(groups.limit_us, "us")
    if sharing.groups or sharing.one_us:
        facts[SHARED] = measured(sharing.cores, "1", note=_CORES)
    if sharing.groups:
        facts["samples_alone"] = measured(sharing.share(State.ALONE), "1", note=_SHARE)
        facts["samples_shared"] = measured(sharing.share(State.SHARED), "1", note=_SHARE)
    return facts


def sharing_told(sharing: Sharing) -> tuple[str, ...]:
    """Return what is to be said, which is nothing where cores were hardly ever shared."""
    alone, shared = sharing.share(State.ALONE), sharing.share(State.SHARED)
    if not sharing.groups or 1 - alone < NOTICEABLE_SHARE:
        return ()
    slower = " and ".join(
        f"{groups.ratio:.2f} times as long" + (f" on {threads} cores" if threads > 1 else "")
        for threads, groups in sorted(sharing.groups.items())
    )
    return (
        f"Another guest of the host computed on the same cores for {shared:.0%} of the samples, "
        f"none for {alone:.0%}; for the others that changed, or differed by core. A loop in the "
        f"first cache then takes {slower}. Rates are means over all samples, unless a section says "
        "that they are of idle cores.",
    )


_SENTINEL = "a short loop in the first cache, timed beside each sample"
_CORES = "part of the time that a core was shared with another guest"
_SHARE = "of the samples"
