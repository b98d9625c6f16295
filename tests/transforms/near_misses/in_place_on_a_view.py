# quiet: ADV401
"""Adding to the view changes the array that the loop reads."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
# advise: c: f8[N] over (none) on mesh(x=4)
def kernel(a, c, N: int):
    part = c[1:]
    part += a[1:]
    for i in range(1, N):
        part[i - 1] = c[i - 1] + a[i]
    return c
