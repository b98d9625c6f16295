from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, r=4)
def smooth(image: Plane, r: int) -> NDArray[np.int32]:
    total = np.zeros_like(image)
    for d in range(-r, r + 1):
        total += np.roll(image, d, axis=1)  # around each
    return total
