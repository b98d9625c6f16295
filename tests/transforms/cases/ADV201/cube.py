import numpy
from typing import Annotated

from advisor import Dist, Mesh, kernel

layout = Dist("N", "M", "K", None, "y", "z", on=Mesh(y=2, z=4), dtype="uint8")


@kernel(N=64, M=64, K=64, b=3)
def window(image: Annotated[numpy.ndarray, layout], b: int):
    total = numpy.zeros(image.shape, dtype=numpy.uint16)
    for k in range(b):
        total += numpy.roll(image, k, axis=-1)
    return total
