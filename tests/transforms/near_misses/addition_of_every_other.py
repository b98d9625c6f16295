"""Every other element is added: the other sums stay as they are."""

# quiet: ADV201
import numpy as np


# advise: kernel N=1000 b=16
# advise: x: i8[N] over (block(r)) on mesh(r=4)
# advise: total: i8[N] over (block(r)) on mesh(r=4)
def kernel(x, total, b: int, N: int):
    for k in range(1, b):
        total[k::2] += x[: N - k : 2]
    return total
