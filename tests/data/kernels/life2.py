# unknown: the call of `sum` is not understood
import numpy as np

# advise: kernel N=1000 T=10 P=16
# advise: g: u1[N, N] over (none, block(p)) on mesh(p=P)
def life(g, T: int):
    for t in range(T):
        n = sum(np.roll(g, (dy, dx), axis=(0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))  # <--
        g = np.logical_or(n == 3, np.logical_and(g == 1, n == 2)).astype(np.uint8)
    return g
