# says: ADV102 cyclically
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (none, block(p)) on mesh(p=P)
def lu(a):
    n = a.shape[0]
    for k in range(n - 1):
        a[k+1:, k] /= a[k, k]
        a[k+1:, k+1:] -= np.outer(a[k+1:, k], a[k, k+1:])
    return a
