from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=4, col=4)
Plane = Annotated[NDArray[np.int32], Dist("N", "M", Block("row"), Block("col"), on=mesh)]


@kernel(N=1000, M=900, b=3)
def window(image: Plane, b: int, c: int) -> NDArray[np.int32]:
    lag = max(b, 1) * min(image.shape[0], 1)
    running = np.cumsum(np.pad(image, ((lag, 0), (0, 0)), mode="wrap"), axis=0, dtype=image.dtype)
    rows = running[lag:, :] - running[: image.shape[0], :]
    running_2 = np.cumsum(rows[:, ::-1], axis=1, dtype=np.int64)[:, ::-1]
    total = running_2.copy()
    lag_2 = max(c, 1)
    total[:, :-lag_2] -= running_2[:, lag_2:]
    return total
