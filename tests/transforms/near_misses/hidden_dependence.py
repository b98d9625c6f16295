# quiet: ADV201
"""The array that is shifted takes in the sum as well, so later terms depend on earlier ones."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = total[0, :]
        total += moved
    return total
