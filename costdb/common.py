"""Prices that belong to no one model: barriers, and time that somebody states."""

from __future__ import annotations

from dataclasses import replace

from costdb.estimate import Missing, Priced, Term
from costdb.expr import ceil, conditional, less_equal, log2, num, sym
from costdb.machines import Machine
from costdb.omission import Omission
from costdb.work import Barrier, Collective, CollectiveKind, Fixed, Region, Unknown

_NOTHING = Region(1, (num(0),), (num(1),))


def price_barrier(work: Barrier, machine: Machine) -> Priced | Missing:
    """Price a barrier: as the profile states it, else as ``ceil(log2 p)`` steps or empty messages.

    That is the dissemination algorithm, in which every rank hears from every other by doubling
    distances. One rank waits for nobody.
    """
    stated = machine.quantity("hardware", "barrier_us")
    if stated is not None:
        time = conditional(less_equal(work.ranks, 1), 0, sym("hardware.barrier"))
        return Priced(time, (Term(work.label, "barrier", time),), {"hardware.barrier": stated})
    step = machine.quantity("collectives", "barrier_step_us")
    if step is not None:
        time = ceil(log2(work.ranks)) * sym("collectives.barrier_step")
        return Priced(
            time, (Term(work.label, "barrier", time),), {"collectives.barrier_step": step}
        )
    from costdb.lines.model import price_collective

    rounds = price_collective(
        Collective(CollectiveKind.BROADCAST, work.ranks, _NOTHING, work.label), machine
    )
    if isinstance(rounds, Missing):
        return Missing(f"{rounds.what}, nor hardware.barrier_us", rounds.remedy)
    terms = tuple(replace(term, label=work.label) for term in rounds.terms)
    # An empty message costs the start-up alone, which is no extrapolation in size.
    return replace(rounds, terms=terms, domains=())


def price_fixed(work: Fixed, machine: Machine) -> Priced | Missing:
    """Price stated time at what it states, on any machine."""
    return Priced(work.microseconds, (Term(work.label, "stated", work.microseconds),))


def price_unknown(work: Unknown, machine: Machine) -> Priced | Missing:
    """Price what nobody can price: nothing, and it is told as omitted."""
    return Priced(num(0), omitted=(Omission(work.line, work.text, work.reason),))
