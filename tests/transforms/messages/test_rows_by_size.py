"""ADV602 on rows whose places follow from sizes: apart where the source says how large they are."""

from __future__ import annotations

import pytest

from tests.transforms.spmd_running import program_text, proposals, rewritten
from transforms.messages.halo_faces import TRANSFORM

PROGRAM = """
rank, size = comm.Get_rank(), comm.Get_size()
up, down = (rank - 1) % size, (rank + 1) % size
{sizes}
u = np.arange((nx + 2.0) * (ny + 2)).reshape(nx + 2, ny + 2) + 1000 * rank
for step in range(3):
    comm.Sendrecv(u[1, :].copy(), dest=up, recvbuf=u[-1, :], source=down)
    comm.Sendrecv(u[{last}, :].copy(), dest=down, recvbuf=u[0, :], source=up)
    u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
return u
"""


def told(sizes: str, last: str = "-2") -> tuple[str, str, list[str]]:
    source = program_text(PROGRAM.format(sizes=sizes, last=last))
    ours = [p for p in proposals(source, TRANSFORM) if p.title.startswith("send")]
    return source, rewritten(source, ours), [p.title for p in ours]


@pytest.mark.parametrize(
    "sizes",
    [
        "import sys\nnx, ny = int(sys.argv[1]), 5",
        "nx, ny = len(sys.argv), 5",
        "import os\nnx, ny = int(os.environ.get('NX', 6)), 5",
    ],
)
def test_rows_of_sizes_that_a_run_decides_may_be_one(sizes: str) -> None:
    assert told(sizes)[2] == []
