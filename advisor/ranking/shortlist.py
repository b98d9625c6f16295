"""Many similar proposals, compared by one formula before any of them is priced on its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor.analysis.lower import Unpriced
from advisor.ir.concrete import at_sizes
from advisor.ir.proposal import Proposal
from advisor.ranking.compare import cost, time_s
from costdb.estimate import Missing
from costdb.expr import ExprError
from costdb.machines import Machine

KEPT = 3
"""Members of a family that are priced on their own."""

LARGE = 8
"""Members from which on a common formula, which costs more than one price, is worth it."""


def shortlist(
    proposals: Iterable[Proposal], machine: Machine, sizes: Mapping[str, int | float]
) -> list[Proposal]:
    """Return proposals, of each family only the members that its formula puts first.

    Parameters
    ----------
    proposals : iterable of Proposal
    machine : Machine
    sizes : mapping of str to number

    Returns
    -------
    list of Proposal
        In their original order. A small family, and one whose common form has no price, is left
        as it is.
    """
    everything = list(proposals)
    families: dict[int, list[Proposal]] = {}
    for proposal in everything:
        if proposal.family is not None:
            families.setdefault(id(proposal.family.kernel), []).append(proposal)
    dropped: set[int] = set()
    for members in families.values():
        if len(members) >= LARGE:
            dropped |= {id(proposal) for proposal in _later(members, machine, sizes)}
    return [proposal for proposal in everything if id(proposal) not in dropped]


def _later(
    members: Sequence[Proposal], machine: Machine, sizes: Mapping[str, int | float]
) -> list[Proposal]:
    """Return the members that are not among the first."""
    assert members[0].family is not None
    try:
        common = cost(at_sizes(members[0].family.kernel, sizes), machine, closed=False, parts=False)
    except Unpriced:
        return []
    if isinstance(common, Missing):
        return []
    times: list[tuple[float, int]] = []
    for position, proposal in enumerate(members):
        assert proposal.family is not None
        try:
            time = time_s(common, {**sizes, **proposal.family.bindings})
        except ExprError:
            # a size is missing: whoever prices the members themselves says so
            return []
        times.append((time, position))
    return [members[position] for _, position in sorted(times)[KEPT:]]
