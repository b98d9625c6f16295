# says: ADV101 by rows, not by columns
import numpy as np

# advise: kernel N=1000 M=1000 P=16
# advise: a: f8[M, N] over (none, block(p)) on mesh(p=P)
# advise: b: f8[M, N] over (none, block(p)) on mesh(p=P)
# advise: c: f8[M, N] over (none, block(p)) on mesh(p=P)
# advise: d: f8[M, N] over (none, block(p)) on mesh(p=P)
def thomas(a, b, c, d, N: int):
    for j in range(1, N):
        w = a[:, j] / b[:, j - 1]
        b[:, j] -= w * c[:, j - 1]
        d[:, j] -= w * d[:, j - 1]
    d[:, N - 1] /= b[:, N - 1]
    for j in range(N - 2, -1, -1):
        d[:, j] = (d[:, j] - c[:, j] * d[:, j + 1]) / b[:, j]
    return d
