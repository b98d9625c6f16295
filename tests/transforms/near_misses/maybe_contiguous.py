# quiet: ADV201
# unknown: shares its memory
"""A contiguous copy may be none: what is stored into it may be stored into the image."""

import numpy as np


# advise: kernel N=1000 b=9
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def kernel(image, b: int):
    part = np.ascontiguousarray(image[:, 1:])
    part[:, :] = 0  # <--
    return part + image[:, 1:]
