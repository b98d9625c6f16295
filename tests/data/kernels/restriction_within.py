# says: ADV101 order="F"
import numpy as np

# advise: kernel N=1024 M=1024 P=16
# advise: coarse: f8[M, N] over (block(p), none) on mesh(p=P)
# advise: fine: f8[M, 2*N] over (block(p), none) on mesh(p=P)
def restrict(coarse, fine):
    coarse[1:-1, :] = 0.25 * (fine[:-2, ::2] + fine[1:-1, 1::2] + fine[2:, ::2])
    return coarse
