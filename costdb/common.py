"""Prices that belong to no one model: barriers, stated time, and what loops over elements do.

A reference to an element of another rank is priced by the pattern rates of a partitioned global
address space where the profile has them. Where it has none, it is what message passing makes of
it: a message for each element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from costdb.estimate import Missing, Priced, Term
from costdb.expr import ONE, ceil, conditional, less_equal, log2, num, sym
from costdb.lines.coefficients import Bill
from costdb.machines import Machine
from costdb.pgas.model import price_remote_group
from costdb.quantity import Omission, Quantity
from costdb.work import (
    Barrier,
    Collective,
    CollectiveKind,
    Fixed,
    Interpretation,
    Region,
    RemoteElements,
    RemoteGroup,
    Unknown,
)

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


SECTION, KEY = "python", "element_us"
STEPS = ("iteration_us", "getitem_us", "setitem_us", "arith_us", "call_us")
"""An iteration of a loop, an element fetched and stored, an operator, and a call of the array
library for one number."""


def price_remote_elements(work: RemoteElements, machine: Machine) -> Priced | Missing:
    """Price references to single elements of other ranks.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    if machine.section("pgas"):
        group = RemoteGroup(
            work.count,
            work.threads,
            work.pattern,
            work.store,
            work.mixed,
            work.label,
        )
        return price_remote_group(group, machine)
    bill = Bill(machine)
    remote = work.count * (1 - ONE / work.threads) if work.mixed else work.count
    element = Region(work.itemsize_bytes, (ONE,), (ONE * work.itemsize_bytes,))
    bill.charge_messages(remote, element)
    return bill.total()


def price_interpretation(work: Interpretation, machine: Machine) -> Priced | Missing:
    """Price the interpreter's part in a loop: nothing where the profile does not state it.

    Profiles of machines that the literature measured with compiled programs state none.
    """
    stated = {key: machine.quantity(SECTION, key) for key in STEPS}
    known = {key: quantity for key, quantity in stated.items() if quantity is not None}
    if len(known) == len(STEPS):
        in_each = int(work.loop), work.loads, work.stores, work.operations, work.calls
        return _by_steps(work, dict(zip(STEPS, in_each, strict=True)), known)
    each = machine.quantity(SECTION, KEY)
    if each is None and machine.section("arrays"):
        # measured with an interpreter, but not what that takes by itself
        lacks = Omission(0, "interpreted steps", f'machine "{machine.name}" states no {SECTION}')
        return Priced(num(0), omitted=(lacks,))
    if each is None or not work.loop:
        return Priced(num(0))
    symbol = f"{SECTION}.element"
    time_us = work.iterations * sym(symbol)
    return Priced(time_us, (Term(work.label, SECTION, time_us),), {symbol: each})


def _by_steps(
    work: Interpretation, counts: Mapping[str, int], stated: Mapping[str, Quantity]
) -> Priced:
    """Price what an interpreter does in each iteration: the loop, elements, arithmetic."""
    symbols = {key: f"{SECTION}.{key.removesuffix('_us')}" for key, n in counts.items() if n}
    each = sum((counts[key] * sym(symbol) for key, symbol in symbols.items()), num(0))
    time_us = work.iterations * each
    used = {symbol: stated[key] for key, symbol in symbols.items()}
    return Priced(time_us, (Term(work.label, SECTION, time_us),), used)
