# unknown: how often the loop runs is not known
import numpy as np

# advise: kernel N=10000 NNZ=100000 P=16
# advise: indptr: i8[N + 1] over (none) on mesh(p=P)
# advise: indices: i8[NNZ] over (block(p)) on mesh(p=P)
# advise: data: f8[NNZ] over (block(p)) on mesh(p=P)
# advise: x: f8[N] over (block(p)) on mesh(p=P)
# advise: y: f8[N] over (block(p)) on mesh(p=P)
def spmv(indptr, indices, data, x, y, N: int):
    for i in range(N):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):  # <--
            s += data[k] * x[indices[k]]
        y[i] = s
    return y
