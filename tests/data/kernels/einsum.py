# unknown: np.einsum of something other than two arrays or more
import numpy as np

# advise: kernel N=500 P=16
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: b: f8[N, N] over (block(p), none) on mesh(p=P)
def f(a, b):
    return np.einsum("ij,jk->ik", a, b), np.einsum("ii", a), np.trace(b)  # <--
