from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, b=3)
def window(image: Plane, b: int) -> NDArray[np.int32]:
    running = np.cumsum(image[:, ::-1], axis=1, dtype=image.dtype)[:, ::-1]
    total = running.copy()
    lag = min(max(b, 0), image.shape[1])
    total[:, : image.shape[1] - lag] -= running[:, lag:]  # to the left
    return total
