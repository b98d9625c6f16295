"""Kernels of the tests of prices and rankings, on a machine whose numbers are round."""

from __future__ import annotations

from pathlib import Path

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed, Sizes, bind_sizes, cost
from costdb.evaluate import Missing
from costdb.machines import Machine, load_machine

DATA = Path(__file__).parents[2] / "data"
PROFILE = DATA / "plain_machine.json"
MACHINE = load_machine(str(PROFILE))

BOX = """\
import numpy as np
# advise: kernel N=1000 b=6
# advise: image: i4[N, N] over (block(x), none) on mesh(x=4)
def box(image, N: int, b: int):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[1:, :] = moved[:-1, :]
        moved[0, :] = 0
        total += moved
    return total
"""

HALO = """\
import numpy as np
# advise: kernel N=100 M=50 T=3 w=20
# advise: u: {dtype}[N, M] over ({dims}) on mesh(x=4) order={order}
# advise: v: {dtype}[N, M] over ({dims}) on mesh(x=4) order={order}
def halo(u, v, N: int, M: int, T: int, w: int):
    for t in range(T):
        v[{region}] = u[{shifted}]
        u[:, :] = v
"""


def kernel_of(source: str) -> Kernel:
    (kernel,) = read_kernels("program.py", source)
    return kernel


def halo(dtype: str = "f8", axis: int = 0, order: str = "C") -> Kernel:
    """Return a kernel that sends the first `w` elements of one row or column a step."""
    region, shifted = ("1:, :w", ":-1, :w") if axis == 0 else (":w, 1:", ":w, :-1")
    dims = "block(x), none" if axis == 0 else "none, block(x)"
    return kernel_of(
        HALO.format(dtype=dtype, dims=dims, order=order, region=region, shifted=shifted)
    )


def priced(kernel: Kernel, machine: Machine = MACHINE) -> Costed:
    found = cost(kernel, machine)
    assert not isinstance(found, Missing)
    return found


def sizes_of(kernel: Kernel, **given: int) -> Sizes:
    return bind_sizes(kernel, given)
