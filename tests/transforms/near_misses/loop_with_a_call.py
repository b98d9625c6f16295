# quiet: ADV401
# unknown: `note`
"""The call may do anything, also with the array."""

import numpy as np

from somewhere import note


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
# advise: c: f8[N] over (none) on mesh(x=4)
def kernel(a, c, N: int):
    for i in range(N):
        c[i] = note(a[i])  # <--
    return c
