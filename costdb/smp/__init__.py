"""The SMP interval model: a superstep's time lies between the best and the worst locality.

:mod:`costdb.smp.functions` holds the two families of cost functions, :mod:`costdb.smp.model`
the price of a superstep, :mod:`costdb.smp.sorts` three sorts as supersteps. The suites that a
machine is measured with (:mod:`costdb.smp.suites`) and the fits (:mod:`costdb.smp.fit`, which
needs numpy) are imported on demand.
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
from costdb.smp.sorts import RepeatedSuperstep, Sort, price_sort, sort_supersteps

__all__ = [
    "LOCALITY",
    "Family",
    "RepeatedSuperstep",
    "Sort",
    "SuperstepError",
    "SuperstepInterval",
    "locality",
    "measured_over_good",
    "price_sort",
    "price_superstep",
    "sort_supersteps",
    "superstep_interval",
]
