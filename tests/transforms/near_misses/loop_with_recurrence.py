# quiet: ADV401
"""Each element needs the one before it."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
def kernel(a, N: int):
    for i in range(1, N):
        a[i] = a[i] + a[i - 1]
    return a
