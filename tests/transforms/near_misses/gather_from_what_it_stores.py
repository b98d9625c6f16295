# quiet: ADV402 ADV401
"""Later iterations read what earlier ones stored."""

import numpy as np


# advise: kernel N=100000
# advise: t: f8[N] over (block(x)) on mesh(x=16)
# advise: k: i8[N] over (block(x)) on mesh(x=16)
def kernel(t, k, N: int):
    for i in range(N):
        t[i] = t[k[i]]
    return t
