# unknown: how often the loop runs
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: w: f8[N] over (none) on mesh(p=P)
def scale(a, w):
    for i, row in enumerate(a):  # <--
        row *= w[i]
    for j in range(a.shape[1]):
        a[:, j] = a[:, j] * 2
    return a
