# advise: kernel N=4096 b=5
# advise: values: f8[N] over (block(rank)) on mesh(rank=16)
def window(values, b):
    total = values.copy()
    moved = values.copy()
    for _ in range(1, b):
        moved = np.roll(moved, 1)
        total += moved
    return total


import numpy as np  # noqa: E402
