# quiet: ADV401
"""The index is used after the loop."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
# advise: c: f8[N] over (none) on mesh(x=4)
def kernel(a, c, N: int):
    i = 0
    for i in range(N):
        c[i] = 2.0 * a[i]
    return c, i
