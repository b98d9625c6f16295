# says: ADV401 a prefix sum
import numpy as np

# advise: kernel N=100000 P=16
# advise: x: f8[N] over (block(p)) on mesh(p=P)
# advise: s: f8[N] over (block(p)) on mesh(p=P)
def prefix(x, s, N: int):
    s[0] = x[0]
    for i in range(1, N):
        s[i] = s[i - 1] + x[i]
    return s
