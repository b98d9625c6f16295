# quiet: ADV101 ADV102 ADV103 ADV104 ADV402
import numpy as np

# advise: kernel N=1024 P=16
# advise: coarse: f8[N] over (block(p)) on mesh(p=P)
# advise: fine: f8[2*N] over (block(p)) on mesh(p=P)
def restrict(coarse, fine):
    coarse[:] = 0.5 * (fine[::2] + fine[1::2])
    return coarse
