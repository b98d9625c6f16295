# says: ADV101 by rows, not by columns
import numpy as np

NEIGHBOURS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]

# advise: kernel N=1024 T=10 P=16
# advise: g: i4[N, N] over (none, block(p)) on mesh(p=P)
# advise: n: i4[N, N] over (none, block(p)) on mesh(p=P)
def life(g, n, N: int, T: int):
    for t in range(T):
        n[:] = 0
        for dy, dx in NEIGHBOURS:
            n[1:-1, 1:-1] += g[1 + dy:N - 1 + dy, 1 + dx:N - 1 + dx]
        g[:] = np.where((n == 3) | ((g == 1) & (n == 2)), 1, 0)
    return g
