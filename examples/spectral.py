"""A filter in wave numbers: forward transforms, a product, and transforms back.

Fields are in blocks of rows, while the transforms run along columns. Each of them transposes there
and back; kept transposed from the first transform to the last, half of the exchanges are enough.
With many ranks and small fields the butterflies between ranks send fewer messages still.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank="P")


@kernel(N=512, P=16)
def smooth(
    field: Annotated[NDArray[np.complex128], Dist("N", "N", Block("rank"), None, on=mesh)],
    damping: Annotated[NDArray[np.complex128], Dist("N", "N", Block("rank"), None, on=mesh)],
) -> NDArray[np.complex128]:
    """Damp the waves of every column, in place.

    Parameters
    ----------
    field, damping : array of complex128, shape (N, N)
    """
    waves = np.fft.fft(field, axis=0)
    waves *= damping
    field[...] = np.fft.ifft(waves, axis=0)
    return field


if __name__ == "__main__":
    rough = np.outer(np.arange(8.0), np.ones(8)).astype(np.complex128)
    low = np.zeros((8, 8), dtype=np.complex128)
    low[0, :] = 1.0
    print(smooth(rough, low).real)
