# says: ADV102 cyclically
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
def lu(a, N: int):
    for k in range(N - 1):
        for i in range(k + 1, N):
            a[i, k] /= a[k, k]
            a[i, k + 1:] -= a[i, k] * a[k, k + 1:]
    return a
