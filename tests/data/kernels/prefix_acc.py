# quiet: ADV401
import numpy as np

# advise: kernel N=100000 P=16
# advise: x: f8[N] over (block(p)) on mesh(p=P)
# advise: s: f8[N] over (block(p)) on mesh(p=P)
def prefix(x, s, N: int):
    t = 0.0
    for i in range(N):
        t += x[i]
        s[i] = t
    return s
