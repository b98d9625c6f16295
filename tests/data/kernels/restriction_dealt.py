# says: ADV402 fetch all of `fine`
import numpy as np

# advise: kernel N=256 P=4
# advise: coarse: f8[N] over (cyclic(p)) on mesh(p=P)
# advise: fine: f8[2*N] over (cyclic(p)) on mesh(p=P)
def restrict(coarse, fine):
    for i in range(coarse.shape[0]):
        coarse[i] = 0.5 * (fine[2 * i] + fine[2 * i + 1])
# noted: no prediction: a slice with a step of pieces dealt out that are no multiple
