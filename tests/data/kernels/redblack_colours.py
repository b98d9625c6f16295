# says: ADV101 by rows, not by columns
import numpy as np

# advise: kernel N=1024 T=50 P=16
# advise: u: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: f: f8[N, N] over (none, block(p)) on mesh(p=P)
def rb(u, f, T: int):
    for t in range(T):
        for si, sj in ((1, 1), (2, 2), (1, 2), (2, 1)):
            u[si:-1:2, sj:-1:2] = 0.25 * (u[si - 1:-2:2, sj:-1:2] + u[si + 1::2, sj:-1:2]
                                          + u[si:-1:2, sj - 1:-2:2] + u[si:-1:2, sj + 1::2]
                                          - f[si:-1:2, sj:-1:2])
    return u
