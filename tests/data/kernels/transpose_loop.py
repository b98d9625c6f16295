# says: ADV402 fetch all of `a`
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: b: f8[N, N] over (block(p), none) on mesh(p=P)
def tr(a, b, N: int):
    for i in range(N):
        for j in range(N):
            b[j, i] = a[i, j]
    return b
