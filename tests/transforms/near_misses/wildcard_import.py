# quiet: ADV201 ADV401
# unknown: `range` may be something other
"""Anything may have come in under any name."""

import numpy as np
from somewhere import *


# advise: kernel N=1000
# advise: a: f8[N] over (none) on mesh(x=4)
# advise: c: f8[N] over (none) on mesh(x=4)
def kernel(a, c, N: int):
    for i in range(N):  # <--
        c[i] = abs(a[i])
    return c
