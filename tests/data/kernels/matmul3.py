# says: ADV401 a product of arrays
import numpy as np

# advise: kernel N=300 P=16
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: b: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: c: f8[N, N] over (block(p), none) on mesh(p=P)
def mm(a, b, c, N: int):
    for i in range(N):
        for j in range(N):
            for k in range(N):
                c[i, j] += a[i, k] * b[k, j]
    return c
