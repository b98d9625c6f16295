# unknown: an array as subscript that is no vector
import numpy as np

# advise: kernel N=10000 W=8 P=16
# advise: cols: i8[N, W] over (block(p), none) on mesh(p=P)
# advise: vals: f8[N, W] over (block(p), none) on mesh(p=P)
# advise: x: f8[N] over (block(p)) on mesh(p=P)
def spmv(cols, vals, x):
    return (vals * x[cols]).sum(axis=1)  # <--
