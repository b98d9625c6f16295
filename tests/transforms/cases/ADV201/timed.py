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
        total = np.zeros(state.shape, dtype=np.int32)
        moved = state.copy()
        for _ in range(2 * b):
            total += moved
            moved[:, 1:] = moved[:, :-1]
            moved[:, 0] = 0
        state = state * 3 - total
    return state
