# says: ADV101 by rows, not by columns
import cupy as cp
# advise: kernel N=1000 P=16
# advise: u: f4[N, N] over (none, block(p)) on mesh(p=P)
def f(u):
    s = cp.cumsum(u, axis=1)
    return s / cp.linalg.norm(s)
