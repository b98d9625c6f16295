# quiet: ADV401
"""Every element needs what was summed up to it."""

import numpy as np


# advise: kernel N=100000
# advise: x: f8[N] over (block(p)) on mesh(p=16)
# advise: s: f8[N] over (block(p)) on mesh(p=16)
def kernel(x, s, N: int):
    total = 0.0
    for i in range(N):
        total += x[i]
        s[i] = total
    return s
