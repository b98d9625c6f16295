from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, b=3)
def window(image: Plane, b: int) -> NDArray[np.int32]:
    lag = max(b, 1) * min(image.shape[0], 1)
    running = np.cumsum(np.pad(image, ((0, lag), (0, 0)), mode="wrap")[::-1, :], axis=0, dtype=image.dtype)[::-1, :]
    total = running[: image.shape[0], :] - running[lag:, :]
    return total
