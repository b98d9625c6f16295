# unknown: a loop that may be left early
import numpy as np

# advise: kernel N=1000 P=16
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: x: f8[N] over (block(p)) on mesh(p=P)
# advise: b: f8[N] over (block(p)) on mesh(p=P)
def cg(a, x, b):
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for it in range(50):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = np.dot(r, r)
        if np.sqrt(new) < 1e-10:  # <--
            break
        p = r + (new / rs) * p
        rs = new
    return x
