# advise: kernel N=4096 b=5
# advise: values: f8[N] over (block(rank)) on mesh(rank=16)
def window(values, b):
    lag = max(b, 1) * min(values.shape[0], 1)
    running = np.cumsum(np.pad(values, ((lag, 0),), mode="wrap"), axis=0, dtype=values.dtype)
    total = running[lag:] - running[: values.shape[0]]
    return total


import numpy as np  # noqa: E402
