"""Prices of what element loops do besides arithmetic: remote references, and interpretation.

A reference to an element of another rank is priced by the pattern rates of a partitioned global
address space where the profile has them. Where it has none, it is what message passing makes of
it: a message for each element.
"""

from __future__ import annotations

from collections.abc import Mapping

from costdb.estimate import Missing, Priced, Term
from costdb.expr import ONE, num, sym
from costdb.lines.coefficients import Bill
from costdb.machines import Machine
from costdb.omission import Omission
from costdb.pgas.model import price_remote_group
from costdb.quantity import Quantity
from costdb.work import Interpretation, Region, RemoteElements, RemoteGroup

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
