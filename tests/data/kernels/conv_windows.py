# says: ADV101 by rows, not by columns
import numpy as np

# advise: kernel N=1000 P=16
# advise: img: f8[N, N] over (none, block(p)) on mesh(p=P)
# advise: ker: f8[3, 3] over (none, none) on mesh(p=P)
def conv(img, ker, N: int):
    out = np.zeros_like(img)
    for a in range(3):
        for b in range(3):
            out[1:-1, 1:-1] += ker[a, b] * img[a:N - 2 + a, b:N - 2 + b]
    return out * len(ker) / img.shape[0]
