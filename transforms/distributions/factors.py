"""Ways to write a number of ranks as a product."""

from __future__ import annotations

from collections.abc import Iterator


def factorisations(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ordered ways to write a number as a product of `parts` factors."""
    if parts == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for rest in factorisations(number // first, parts - 1):
                yield (first, *rest)
