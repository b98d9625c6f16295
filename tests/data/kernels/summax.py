# says: ADV401 a `max` of arrays
import numpy as np

# advise: kernel N=1000 P=16
# advise: b: f8[N, N] over (none, block(p)) on mesh(p=P)
def total(b, N: int):
    s = b[0, 0]
    for i in range(N):
        for j in range(N):
            s = max(s, b[i, j])
    return s
