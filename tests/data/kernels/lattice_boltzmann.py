# quiet: ADV102 ADV201 ADV401
import numpy as np

CX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
CY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
W = [4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36]

# advise: kernel N=512 T=10 P=16
# advise: f: f8[9, N, N] over (none, none, block(p)) on mesh(p=P)
def lbm(f, T: int, tau: float):
    for t in range(T):
        for i, (cx, cy) in enumerate(zip(CX, CY)):
            f[i] = np.roll(f[i], (cx, cy), axis=(0, 1))
        rho = f.sum(axis=0)
        ux = np.zeros_like(rho)
        uy = np.zeros_like(rho)
        for i in range(9):
            ux += CX[i] * f[i]
            uy += CY[i] * f[i]
        ux /= rho
        uy /= rho
        for i, cx, cy, w in zip(range(9), CX, CY, W):
            cu = 3 * (cx * ux + cy * uy)
            feq = rho * w * (1 + cu + cu ** 2 / 2 - 1.5 * (ux ** 2 + uy ** 2))
            f[i] += (feq - f[i]) / tau
    return f
