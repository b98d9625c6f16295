import numpy
from typing import Annotated

from advisor import Dist, Mesh, kernel

layout = Dist("N", "M", "K", None, "y", "z", on=Mesh(y=2, z=4), dtype="uint8")


@kernel(N=64, M=64, K=64, b=3)
def window(image: Annotated[numpy.ndarray, layout], b: int):
    lag = max(b, 0) * min(image.shape[2], 1)
    running = numpy.cumsum(numpy.pad(image, ((0, 0), (0, 0), (lag, 0)), mode="wrap"), axis=2, dtype=numpy.uint16)
    total = running[:, :, lag:] - running[:, :, : image.shape[2]]
    return total
