"""The SMP interval model: a superstep's time lies between the best and the worst locality.

:mod:`costdb.smp.functions` holds the two families of cost functions, :mod:`costdb.smp.model`
the price of a superstep, :mod:`costdb.smp.suites` those that a machine is measured with.
"""

from costdb.smp.functions import (
    Family,
    SuperstepError,
    SuperstepInterval,
    locality,
    measured_over_good,
    superstep_interval,
)
from costdb.smp.model import LOCALITY, price_superstep

__all__ = [
    "LOCALITY",
    "Family",
    "SuperstepError",
    "SuperstepInterval",
    "locality",
    "measured_over_good",
    "price_superstep",
    "superstep_interval",
]
