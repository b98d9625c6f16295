"""Only every other element moves: what is added is no window sum."""

# quiet: ADV201
import numpy as np


# advise: kernel N=1000 b=16
# advise: x: i8[N] over (block(r)) on mesh(r=4)
def kernel(x, b: int):
    total = x.copy()
    moved = x.copy()
    for _ in range(b - 1):
        moved[1::2] = moved[:-1:2]
        moved[0] = 0
        total += moved
    return total
