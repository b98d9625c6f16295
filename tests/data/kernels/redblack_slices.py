# says: ADV101 by rows, not by columns
# quiet: ADV102 ADV201 ADV401
import numpy as np

# advise: kernel N=1024 T=100 P=16
# advise: u: f8[N, N] over (none, block(p)) on mesh(p=P)
def rb(u, T: int):
    for t in range(T):
        u[1:-1:2, 1:-1:2] = 0.25 * (u[:-2:2, 1:-1:2] + u[2::2, 1:-1:2] + u[1:-1:2, :-2:2] + u[1:-1:2, 2::2])
        u[2:-1:2, 2:-1:2] = 0.25 * (u[1:-2:2, 2:-1:2] + u[3::2, 2:-1:2] + u[2:-1:2, 1:-2:2] + u[2:-1:2, 3::2])
    return u
