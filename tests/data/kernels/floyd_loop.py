# quiet: ADV401
import numpy as np

# advise: kernel N=300 P=16
# advise: d: f8[N, N] over (block(p), none) on mesh(p=P)
def floyd(d, N: int):
    for k in range(N):
        for i in range(N):
            for j in range(N):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d
