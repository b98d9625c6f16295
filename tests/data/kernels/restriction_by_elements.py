# unknown: elements of blocks that are not cut as those computed are
import numpy as np

# advise: kernel N=513 P=4
# advise: fine: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: coarse: f8[(N+1)/2, (N+1)/2] over (block(p), none) on mesh(p=P)
def restrict(fine, coarse):
    m = coarse.shape[0]
    for i in range(1, m - 1):  # <--
        for j in range(1, m - 1):
            coarse[i, j] = 0.25 * fine[2 * i, 2 * j] + 0.125 * (
                fine[2 * i - 1, 2 * j] + fine[2 * i + 1, 2 * j]
                + fine[2 * i, 2 * j - 1] + fine[2 * i, 2 * j + 1])
