# quiet: ADV201
"""Two sums along one axis are no table of sums over both."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    table = np.cumsum(np.cumsum(image, 0), 0)
    return table
