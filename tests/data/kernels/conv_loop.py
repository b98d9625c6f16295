# unknown: a reference at a distance from the index of a loop further out
import numpy as np

# advise: kernel N=500 P=16
# advise: img: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: ker: f8[3, 3] over (none, none) on mesh(p=P)
# advise: out: f8[N, N] over (block(p), none) on mesh(p=P)
def conv(img, ker, out, N: int):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            s = 0.0
            for a in range(3):  # <--
                for b in range(3):
                    s += img[i + a - 1, j + b - 1] * ker[a, b]
            out[i, j] = s
    return out
