from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, b=3)
def window(image: Plane, b: int, c: int) -> NDArray[np.int32]:
    rows = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved = np.roll(moved, 1, axis=0)
        rows += moved
    total = rows.astype(np.int64)
    moved = rows.copy()
    for _ in range(c - 1):
        moved[:, :-1] = moved[:, 1:]
        moved[:, -1] = 0
        total += moved
    return total
