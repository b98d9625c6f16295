# quiet: ADV501
"""The value comes from the row above and the column to the right: the loops keep their order."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N, N] over (none, none) on mesh(x=4)
def kernel(a, N: int):
    for j in range(N - 1):
        for i in range(1, N):
            a[i, j] = a[i - 1, j + 1] * 2.0
    return a
