# says: ADV401 one array statement
# says: ADV102 cyclically
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (none, block(p)) on mesh(p=P)
def lu(a, N: int):
    for k in range(N - 1):
        for i in range(k + 1, N):
            a[i, k] = a[i, k] / a[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a
