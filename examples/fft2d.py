"""Two-dimensional Fourier transform: one axis, then the other.

In blocks of rows the transforms along the rows are local, those along the columns are not: either
the array is transposed so that they become local, or the butterflies exchange data between ranks.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)


@kernel(N=1024)
def fft2d(
    signal: Annotated[NDArray[np.complex128], Dist("N", "N", Block("rank"), None, on=mesh)],
) -> NDArray[np.complex128]:
    """Return the discrete Fourier transform of a square array.

    Parameters
    ----------
    signal : array of complex128, shape (N, N)
    """
    rows = np.fft.fft(signal, axis=1)
    return np.fft.fft(rows, axis=0)


if __name__ == "__main__":
    wave = np.exp(2j * np.pi * np.arange(8) / 8)
    print(np.abs(fft2d(np.outer(wave, wave))).round(6))
