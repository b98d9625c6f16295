# says: ADV102 cyclically
import numpy as np

# advise: kernel N=800 P=8
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
def cholesky(a, N: int):
    for j in range(N):
        a[j, j] = np.sqrt(a[j, j])
        a[j + 1:, j] /= a[j, j]
        for k in range(j + 1, N):
            a[k:, k] -= a[k:, j] * a[k, j]
    return a
