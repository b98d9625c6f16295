# unknown: a slice with a step
import numpy as np

# advise: kernel N=1000 T=100 P=16
# advise: u: f8[N, N] over (block(p), none) on mesh(p=P)
def rb(u, f, T: int):
    for t in range(T):
        u[1:-1:2, 1:-1:2] = 0.25 * (u[:-2:2, 1:-1:2] + u[2::2, 1:-1:2] + u[1:-1:2, :-2:2] + u[1:-1:2, 2::2])  # <--
        u[2:-1:2, 2:-1:2] = 0.25 * (u[1:-2:2, 2:-1:2] + u[3::2, 2:-1:2] + u[2:-1:2, 1:-2:2] + u[2:-1:2, 3::2])
    return u
