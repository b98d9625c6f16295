"""A compiled kernel whose loops suit one storage order and not the other.

Nothing in the source says how the arrays lie in memory, so nothing can be advised from the source
alone. The compiler knows: for the array in Fortran order the walk by rows touches a cache line for
every element, for the one in C order it does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from advisor.compiler import advised_njit


@advised_njit
def scaled(image: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return ``factor * image``, element by element.

    Parameters
    ----------
    image : array of float64, shape (rows, columns)
    factor : float
    """
    rows, columns = image.shape
    result = np.empty_like(image)
    for i in range(rows):
        for j in range(columns):
            result[i, j] = factor * image[i, j]
    return result


if __name__ == "__main__":
    picture = np.arange(6000 * 400, dtype=np.float64).reshape(6000, 400)
    by_rows = scaled(picture, 2.0)
    by_columns = scaled(np.asfortranarray(picture), 2.0)
    print(float(by_rows.sum()), bool((by_rows == by_columns).all()))
