# quiet: ADV401 ADV504
import numpy as np

# advise: kernel N=1000 T=50 P=16
# advise: c: c16[N, N] over (none, block(p)) on mesh(p=P)
def mandel(c, T: int):
    z = np.zeros_like(c)
    for t in range(T):
        live = np.abs(z) < 2
        z[live] = z[live] ** 2 + c[live]
    return z
