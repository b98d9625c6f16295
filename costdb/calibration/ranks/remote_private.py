"""Private computation between remote references, which finds the library's code in its place.

A loop of references, or of private statements, keeps caches and branch predictors to itself. In a
program the two take turns, and each return from a reference finds them full of the other's code
and data. Timed are private statements alone and after each reference; what they take longer is
neither the reference's rate nor the private part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

INTERPRETED = ("element", "integer")
"""An element added to, whole numbers divided."""
LIBRARY = ("product", "sum", "added")
"""Two vectors multiplied, one summed up, one added to another, all by the library."""
PRIVATE = (*INTERPRETED, *LIBRARY)

_VECTOR = 64
_DIVISOR = 7


def private_statement(what: str) -> Callable[[int], object]:
    """Return a statement of one's own variables that takes a place."""
    cell, left, right, made = np.ones(1), np.ones(_VECTOR), np.ones(_VECTOR), np.ones(_VECTOR)

    def element(_: int) -> None:
        cell[0] += 1.0

    def integer(place: int) -> object:
        return divmod(place, _DIVISOR)

    def product(_: int) -> None:
        cell[0] = left @ right

    def added(_: int) -> object:
        return np.add(left, right, out=made)

    return {
        "element": element,
        "integer": integer,
        "product": product,
        "sum": lambda _: left.sum(),
        "added": added,
    }[what]
