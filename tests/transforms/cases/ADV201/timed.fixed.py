from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, b=3)
def window(image: Plane, b: int) -> NDArray[np.int32]:
    state = image.copy()
    for _ in range(4):
        running = np.cumsum(state, axis=1, dtype=state.dtype)
        total = running.copy()
        lag = min(max(2 * b, 0), state.shape[1])
        total[:, lag:] -= running[:, : state.shape[1] - lag]
        state = state * 3 - total
    return state
