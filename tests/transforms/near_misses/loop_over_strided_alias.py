# quiet: ADV401
"""Reads what an earlier turn wrote, two places back."""

import numpy as np


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
def kernel(a, N: int):
    for i in range(2, N):
        a[i] += 2.0 * a[i - 2]
    return a
