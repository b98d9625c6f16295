# says: ADV402 fetch all of `x`
import numpy as np

# advise: kernel N=2000 P=16
# advise: x: f8[N] over (block(p)) on mesh(p=P)
# advise: f: f8[N] over (block(p)) on mesh(p=P)
def forces(x, f, N: int):
    for i in range(N):
        s = 0.0
        for j in range(N):
            r = x[j] - x[i]
            s += r / (abs(r) ** 3 + 1e-3)
        f[i] = s
    return f
