"""Chunks of all lines would compute those that the loop leaves alone."""

# quiet: ADV202
import numpy as np


# advise: kernel M=64 N=64 P=8
# advise: x: f8[M, N] over (none, block(r)) on mesh(r=P)
def kernel(x):
    for j in range(1, x.shape[1]):
        x[::2, j] = 0.5 * x[::2, j - 1]
    return x
