"""Collectives that a profile does not state: what stands in for them, and how uncertain that is.

A library does not compose a collective of others, and which algorithm it takes hangs on sizes and
ranks. So what is derived is marked as such, with an interval as wide as algorithms differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from costdb.machines import Machine
from costdb.quantity import Provenance, Quantity
from costdb.work import CollectiveKind

SECTION = "collectives"

_KIN: Mapping[CollectiveKind, CollectiveKind] = MappingProxyType(
    {
        CollectiveKind.REDUCE_SCATTER: CollectiveKind.REDUCE,
        CollectiveKind.ALLGATHERV: CollectiveKind.ALLGATHER,
        CollectiveKind.ALLTOALLV: CollectiveKind.ALLTOALL,
    }
)
"""Whose steps stand in for those of a kind: they send as much, and combine as much of it."""

DERIVED_KINDS = frozenset(_KIN)

HALVING = Quantity(
    1.0,
    0.5,
    2.0,
    "1",
    Provenance.DERIVED,
    "a reduce-scatter is taken to halve recursively: ceil(log2 p) steps, which together send and"
    " combine (p-1)/p of the array; libraries also exchange pairwise, or reduce and scatter",
)

UNEQUAL = Quantity(
    1.0,
    0.8,
    2.5,
    "1",
    Provenance.DERIVED,
    "pieces whose lengths may differ are taken to move as equal ones do, for which libraries have"
    " shorter ways",
)


def states_steps(machine: Machine, kind: CollectiveKind) -> bool:
    """Tell whether a profile states the steps of a kind of collective."""
    return bool(machine.section(SECTION, "steps", kind.value))


def stated_kin(machine: Machine, kind: CollectiveKind) -> CollectiveKind | None:
    """Return the kind whose steps a profile states for `kind`: itself, or what stands in for it.

    None where messages have to do.
    """
    if states_steps(machine, kind):
        return kind
    kin = _KIN.get(kind)
    return kin if kin is not None and states_steps(machine, kin) else None


def factor_of(kind: CollectiveKind, kin: CollectiveKind | None) -> Quantity | None:
    """Return how far a price may be off that was derived, None where it was not.

    Parameters
    ----------
    kind : CollectiveKind
    kin : CollectiveKind or None
        Whose steps are used; None for messages, of which the textbook makes equal and unequal
        pieces alike.
    """
    if kin is kind:
        return None
    if kind is CollectiveKind.REDUCE_SCATTER:
        return HALVING
    return None if kin is None else UNEQUAL


def symbol_of(kind: CollectiveKind) -> str:
    """Return the symbol of that factor."""
    return f"{SECTION}.{kind.value}.derived"
