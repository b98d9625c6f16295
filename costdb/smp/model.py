"""The price of a superstep: from Good to Bad, by how local its accesses are."""

from __future__ import annotations

from costdb.estimate import Missing, Priced, Term
from costdb.expr import sym
from costdb.machines import Machine
from costdb.quantity import Provenance, Quantity
from costdb.smp.functions import Family, superstep_interval
from costdb.work import Superstep

MODEL = "smp"

LOCALITY = "smp.locality"
RESIDUAL = "smp.residual"
_UNKNOWN_LOCALITY = Quantity(
    0.5,
    0.0,
    1.0,
    "1",
    Provenance.DERIVED,
    "definition of Loc: 0 at the Bad prediction, 1 at the Good one; the middle is their mean",
)


def price_superstep(step: Superstep, machine: Machine) -> Priced | Missing:
    """Price a superstep as ``Bad - locality * (Bad - Good)``.

    The symbol `smp.locality` is the published grade `Loc`, unknown before the program runs: its
    interval is 0 to 1, so the estimate runs from Good to Bad with their arithmetic mean in the
    middle. The cost functions are those that tell reads, writes and all accesses apart. A
    calibrated profile may state a `residual`, whose interval widens both ends.
    """
    interval = superstep_interval(
        Family.HRHWM, step.reads, step.writes, step.total, step.processors, machine
    )
    if isinstance(interval, Missing):
        return interval
    share = sym(LOCALITY)
    time_us = share * interval.good + (1 - share) * interval.bad
    coefficients = {LOCALITY: _UNKNOWN_LOCALITY, **interval.coefficients}
    residual = machine.quantity(MODEL, "residual")
    if residual is not None:
        time_us = sym(RESIDUAL) * time_us
        coefficients[RESIDUAL] = residual
    terms = (Term(step.label, MODEL, time_us),)
    return Priced(time_us, terms, coefficients, interval.domains)
