"""What programs of array calls leave unexplained beyond what their calls do.

The misses of classes of calls know nothing of one another; what a whole program brings with it
(data and code that other calls drove out of the caches) falls on all its calls alike. That is one
factor: its middle is the median of measured over predicted time, its ends are as far from that as
is needed so that nine in ten programs lie within it and the residuals of their classes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import median

from costdb.calibration.array_calls.sequence_points import SEQUENCE, process_of
from costdb.calibration.section import Quality, Timing
from costdb.estimate import Estimate, Missing
from costdb.evaluate import evaluate_price
from costdb.machines.documents import Json
from costdb.machines.machine import machine_of
from costdb.pricing import price_process

_QUANTILE = 0.95
_LEAST = 8
"""Of fewer programs nothing is said."""
_NOTE = "programs of several array calls, measured over predicted, beyond what their classes miss"
_MODEL = "calls one after another"


def fit_sequences(
    timings: Sequence[Timing], parts: Mapping[str, Json], line_bytes: int
) -> tuple[Json | None, list[Quality]]:
    """Return the factor of whole programs, and how well they are predicted without it.

    Parameters
    ----------
    timings : sequence of Timing
    parts : mapping of str to JSON
        What was fitted to single calls.
    line_bytes : int

    Returns
    -------
    JSON or None
        None where too few programs were measured.
    """
    # the process that measures decides how many threads NumPy may have, before it is imported
    import numpy as np

    from costdb.calibration.fitting import quality
    from costdb.machines.stated import measured

    document: dict[str, Json] = {
        "schema_version": 1,
        "name": "fitted",
        "title": "what was fitted to single calls",
        "library": "none",
        "sources": {"calibration": "this one"},
        "hardware": {"cache_line_bytes": measured(line_bytes, "byte")},
        **parts,
    }
    machine = machine_of(document, "calibration")
    ratios: list[float] = []
    needed: tuple[list[float], list[float]] = [], []
    pairs: list[tuple[float, float]] = []
    judged: list[tuple[Timing, Estimate]] = []
    for timing in timings:
        price = price_process(process_of(timing.point), machine)
        if timing.launches_us and not isinstance(price, Missing):
            found = evaluate_price(price, {})
            judged.append((timing, found))
            pairs.append((timing.typical_us, 1e6 * found.mid))
            ratios.append(timing.typical_us / (1e6 * found.mid))
    if len(judged) < _LEAST:
        return None, []
    middle = median(ratios)
    for timing, found in judged:
        for launch in timing.each_launch_us:
            off = launch / (1e6 * found.mid * middle) - 1
            own = 1 - found.low / found.mid, found.high / found.mid - 1
            for side, sign in enumerate((-1, 1)):
                needed[side].append(sqrt(max(0.0, max(0.0, sign * off) ** 2 - own[side] ** 2)))
    low, high = (float(np.quantile(side, _QUANTILE)) for side in needed)
    factor = measured(middle, "1", middle * (1 - min(low, 0.9)), middle * (1 + high), _NOTE)
    times, predicted = (np.array(one) for one in zip(*pairs, strict=True))
    return factor, [quality(SEQUENCE, _MODEL, times, predicted, chosen=True)]
