# says: ADV401 a `sum` of arrays
# says: ADV104 distribute axis 0 of `r`
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: r: f8[N] over (none) on mesh(p=P)
def rows(a, r, N: int):
    for i in range(N):
        s = 0.0
        for j in range(N):
            s += a[i, j]
        r[i] = s / N
    return r
