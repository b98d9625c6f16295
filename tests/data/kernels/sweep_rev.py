# says: ADV101 by rows, not by columns
# says: ADV202 transpose before the recurrence
import numpy as np

# advise: kernel N=1000 P=16
# advise: u: f8[N, N] over (none, block(p)) on mesh(p=P)
def back(u, N: int):
    for j in reversed(range(N - 1)):
        u[:, j] -= 0.5 * u[:, j + 1]
    return u
