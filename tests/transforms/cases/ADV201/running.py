from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, b=3)
def window(image: Plane, b: int) -> NDArray[np.int32]:
    """Each element and the b - 1 above it."""
    # first term
    total = image.copy()
    moved = image.copy()  # goes down
    for _ in range(b - 1):  # one row a time
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0  # nothing above
        total += moved
        # done
    return total
