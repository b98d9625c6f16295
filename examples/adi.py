"""Alternating directions: a recurrence along the rows, then one along the columns.

Each sweep is sequential along its own axis and parallel along the other one. Distributed along the
axis that it sweeps, a recurrence leaves all ranks but one waiting; along the other axis it needs no
communication at all. The two sweeps of a step disagree about which axis that is.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)


@kernel(N=1000)
def sweep_rows(
    x: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
    a: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.float64]:
    """Eliminate along axis 1, in place: every column needs the one before it."""
    for j in range(1, x.shape[1]):
        x[:, j] = x[:, j] - a[:, j] * x[:, j - 1]
    return x


@kernel(N=1000)
def sweep_columns(
    x: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
    a: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=mesh)],
) -> NDArray[np.float64]:
    """Eliminate along axis 0, in place: every row needs the one above it."""
    for i in range(1, x.shape[0]):
        x[i, :] = x[i, :] - a[i, :] * x[i - 1, :]
    return x


if __name__ == "__main__":
    field = np.arange(16.0).reshape(4, 4)
    factors = np.full((4, 4), 0.5)
    print(sweep_columns(sweep_rows(field, factors), factors))
