# quiet: ADV401
"""A view moved by one makes it a recurrence."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
def kernel(a, N: int):
    later = a[1:]
    for i in range(N - 1):
        later[i] = a[i] * 2.0
    return a
