"""How many functions of Python a reduction goes through on its way to the library's own code.

``x.sum()`` is the library's own. ``np.sum(x)`` looks first whether `x` brings a sum of its own, a
mean looks at element types and divides, and a variance does so between its sums: a microsecond
each, which is more than a small array takes.
"""

from __future__ import annotations

_WITHIN = {"mean": 1, "var": 3, "std": 3}


def steps_of(name: str, *, function: bool) -> int:
    """Return the steps of a method of arrays, or of the function of the same name."""
    return _WITHIN.get(name, 0) + int(function)
