"""Prices of what element loops do besides arithmetic: remote references, and interpretation.

A reference to an element of another rank is priced by the pattern rates of a partitioned global
address space where the profile has them. Where it has none, it is what message passing makes of
it: a message for each element.
"""

from __future__ import annotations

from collections.abc import Mapping

from costdb.estimate import Missing, Priced, Term
from costdb.expr import ONE, num, sym
from costdb.interpretation import Interpretation, Step
from costdb.lines.coefficients import Bill
from costdb.machines import Machine
from costdb.omission import Omission
from costdb.pgas.model import price_remote_group
from costdb.quantity import Quantity
from costdb.work import Region, RemoteElements, RemoteGroup, Then

SECTION, KEY = "python", "element_us"
STEPS = ("iteration_us", "getitem_us", "setitem_us", "arith_us")
VECTOR_STEPS = {"vector_getitem_us": "getitem_us", "vector_setitem_us": "setitem_us"}
"""Of arrays with one dimension, and what stands in where they were not measured."""
_ALIKE = frozenset({
    Step.NUMBER_ARITH, Step.MIXED_ARITH, Step.COMPARE, Step.UNARY, Step.EXTREME, Step.MATH,
    Step.FUNCTION, Step.BINARY_FUNCTION,
})  # fmt: skip
"""Steps for which arithmetic stands in where they were not measured; others count as nothing."""


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
            then=Then.INTERPRETED,
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
    if None not in stated.values():
        own = {key: machine.quantity(SECTION, key) for key in VECTOR_STEPS}
        known = {k: q for k, q in (stated | own).items() if q is not None}
        return _by_steps(work, machine, known)
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


def _by_steps(work: Interpretation, machine: Machine, stated: Mapping[str, Quantity]) -> Priced:
    """Price what an interpreter does in each iteration: the loop, elements, arithmetic."""
    in_each = int(work.loop), work.loads, work.stores, work.operations
    counts = dict(zip(STEPS, in_each, strict=True))
    vectors = work.vector_loads, work.vector_stores
    for (key, other), count in zip(VECTOR_STEPS.items(), vectors, strict=True):
        used_for = key if key in stated else other
        counts[used_for] = counts.get(used_for, 0) + count
    known = dict(stated)
    for step, count in work.others:
        key, own = f"{step}_us", machine.quantity(SECTION, f"{step}_us")
        if own is not None:
            known[key] = own
        elif step in _ALIKE:
            key = "arith_us"
        else:
            continue
        counts[key] = counts.get(key, 0) + count
    each, used = num(0), dict[str, Quantity]()
    for key, count in counts.items():
        if count:
            symbol = f"{SECTION}.{key.removesuffix('_us')}"
            each = each + count * sym(symbol)
            used[symbol] = known[key]
    time_us = work.iterations * each
    return Priced(time_us, (Term(work.label, SECTION, time_us),), used)
