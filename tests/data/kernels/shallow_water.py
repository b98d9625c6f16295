# says: ADV101 by rows, not by columns
import numpy as np

# advise: kernel N=1000 T=20 P=16
# advise: h: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: u: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: v: f8[N, N] over (none, block(p)) on mesh(p=P)
def shallow(h, u, v, T: int, dt: float, g: float):
    for t in range(T):
        u[:, 1:-1] -= dt * g * (h[:, 2:] - h[:, :-2]) / 2
        v[1:-1, :] -= dt * g * (h[2:, :] - h[:-2, :]) / 2
        h[1:-1, 1:-1] -= dt * ((u[1:-1, 2:] - u[1:-1, :-2]) + (v[2:, 1:-1] - v[:-2, 1:-1])) / 2
        for q in (h, u, v):
            q[0, :] = q[-2, :]
            q[-1, :] = q[1, :]
            q[:, 0] = q[:, -2]
            q[:, -1] = q[:, 1]
    return h
