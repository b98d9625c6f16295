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
    running = np.cumsum(image, axis=0, dtype=image.dtype)
    total = running.copy()
    # goes down
    # one row a time
    # nothing above
    lag = max(b, 1)
    total[lag:, :] -= running[:-lag, :]
        # done
    return total
