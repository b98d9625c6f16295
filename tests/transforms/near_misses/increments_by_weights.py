# quiet: ADV403
"""Sums of floating-point weights would come in another order."""

import numpy as np


# advise: kernel N=100000 M=512
# advise: h: f8[M] over (block(x)) on mesh(x=16)
# advise: w: f8[N] over (block(x)) on mesh(x=16)
# advise: k: i8[N] over (block(x)) on mesh(x=16)
def kernel(h, w, k, N: int):
    for i in range(N):
        h[k[i]] += w[i]
    return h
