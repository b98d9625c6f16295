# says: ADV402 fetch all of `t`
import numpy as np

# advise: kernel N=1000000 M=4096 P=16
# advise: idx: i8[N] over (block(p)) on mesh(p=P)
# advise: t: f8[M] over (block(p)) on mesh(p=P)
# advise: y: f8[N] over (block(p)) on mesh(p=P)
def gather(idx, t, y, N: int):
    for i in range(N):
        y[i] = t[idx[i]]
    return y
