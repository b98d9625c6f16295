# quiet: ADV201
# unknown: `watch`
"""A function may look at the sum while it grows."""

import numpy as np

from somewhere import watch


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
        watch(total)  # <--
    return total
