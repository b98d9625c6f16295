# says: ADV101 by rows, not by columns
import numpy as np

# advise: kernel N=1024 T=10 P=16
# advise: g: i4[N, N] over (none, block(p)) on mesh(p=P)
def life(g, T: int):
    for t in range(T):
        n = np.zeros_like(g)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if (dy, dx) != (0, 0):
                    n += np.roll(np.roll(g, dy, axis=0), dx, axis=1)
        g[(n < 2) | (n > 3)] = 0
        g[n == 3] = 1
    return g
