# quiet: ADV201
"""asarray is no copy: moving it moves the image."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    total = image.copy()
    moved = np.asarray(image)
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
    return total + image
