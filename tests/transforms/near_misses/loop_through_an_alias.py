# quiet: ADV401
"""The other name is the same array, so the loop is a recurrence."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
def kernel(a, N: int):
    other = a
    for i in range(1, N):
        other[i] = a[i - 1] * 2.0
    return a
