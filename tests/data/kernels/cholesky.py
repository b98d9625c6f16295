# unknown: a shift whose direction depends on its size
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (none, block(p)) on mesh(p=P)
def chol(a, N: int):
    for k in range(N):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1:, k] = a[k + 1:, k] / a[k, k]
        for j in range(k + 1, N):
            a[j:, j] -= a[j:, k] * a[j, k]  # <--
    return a
