# quiet: ADV201
# unknown: `also`
"""Another name for the sum takes in terms as well."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    total = image.copy()
    also = total
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
        also += 1  # <--
    return total
