# quiet: ADV401
import numpy as np

# advise: kernel N=100000 T=100 P=16
# advise: u: f8[N] over (block(p)) on mesh(p=P)
def upwind(u, c: float, T: int):
    for t in range(T):
        u[1:] = u[1:] - c * (u[1:] - u[:-1])
        u[0] = u[-1]
    return u
