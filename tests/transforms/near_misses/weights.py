# quiet: ADV201
"""Every term has its own weight, which a running sum does not know."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    total = image.copy()
    moved = image.copy()
    for k in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += k * moved
    return total
