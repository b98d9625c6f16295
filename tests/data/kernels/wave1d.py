# quiet: ADV101 ADV201
import numpy as np

# advise: kernel N=100000 T=100 P=16
# advise: u: f8[N] over (block(p)) on mesh(p=P)
# advise: v: f8[N] over (block(p)) on mesh(p=P)
# advise: w: f8[N] over (block(p)) on mesh(p=P)
def wave(u, v, w, c2: float, T: int):
    for t in range(T):
        w[1:-1] = 2 * v[1:-1] - u[1:-1] + c2 * (v[2:] - 2 * v[1:-1] + v[:-2])
        u, v, w = v, w, u
    return v
