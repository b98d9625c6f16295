# unknown: how often the loop runs
import numpy as np

# advise: kernel N=100000 P=16
# advise: x: f8[N] over (block(p)) on mesh(p=P)
def f(x, N: int):
    total = 0
    i = 0
    while i < N:  # <--
        total += x[i]
        i += 1
    return total
