# quiet: ADV401 ADV501
import numpy as np

# advise: kernel N=1000 T=10 P=16
# advise: u: f8[N, N] over (block(p), none) on mesh(p=P)
def gs(u, N: int, T: int):
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u
