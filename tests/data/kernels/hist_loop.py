# says: ADV403 each rank's own
import numpy as np

# advise: kernel N=1000000 M=4096 P=16
# advise: x: i8[N] over (block(p)) on mesh(p=P)
# advise: h: i8[M] over (block(p)) on mesh(p=P)
def hist(x, h, N: int):
    for i in range(N):
        h[x[i]] += 1
    return h
