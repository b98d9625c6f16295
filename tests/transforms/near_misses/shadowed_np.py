# quiet: ADV101 ADV201 ADV401 ADV501
# unknown: the call of `np.roll`
"""The name np is something else here."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (none, block(x)) on mesh(x=4)
def kernel(image, np, b: int):
    total = image.copy()
    for _ in range(b - 1):
        total = np.roll(total, 1, 1)  # <--
    return total
