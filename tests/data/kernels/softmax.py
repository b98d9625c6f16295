# says: ADV101 by rows, not by columns
import numpy as np

# advise: kernel N=1000 M=1000 P=16
# advise: x: f8[N, M] over (none, block(p)) on mesh(p=P)
def softmax(x):
    m = x.max(axis=1, keepdims=True)
    e = np.exp(x - m)
    return e / e.sum(axis=1, keepdims=True)
