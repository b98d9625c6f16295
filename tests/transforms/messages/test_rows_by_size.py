"""ADV602 on rows whose places follow from sizes: apart where the source says how large they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transforms.spmd_running import program_text, proposals, rewritten, run_side_by_side
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
WRITTEN = "nx, ny = 6, 5"


def told(sizes: str, last: str = "-2") -> tuple[str, str, list[str]]:
    source = program_text(PROGRAM.format(sizes=sizes, last=last))
    ours = [p for p in proposals(source, TRANSFORM) if p.title.startswith("send")]
    return source, rewritten(source, ours), [p.title for p in ours]


def test_rows_of_written_sizes_are_sent_as_they_are(tmp_path: Path) -> None:
    programs = {}
    for number, (sizes, last) in enumerate([(WRITTEN, "-2"), ("nx = 6\nny = 5", "nx"),
                                            (WRITTEN, "nx - 1")]):  # fmt: skip
        before, after, titles = told(sizes, last)
        assert len(titles) == 2
        assert ".copy()" not in after
        programs[f"p{number}"] = (before, after, 0.0)
    assert run_side_by_side(tmp_path, programs, 2) == dict.fromkeys(programs, "same")


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


def test_a_row_that_is_received_into_is_copied_first() -> None:
    source = program_text(
        PROGRAM.format(sizes=WRITTEN, last="-2").replace("u[-1, :]", "u[nx - 5, :]")
    )
    titles = [p.title for p in proposals(source, TRANSFORM) if p.title.startswith("send")]
    assert titles == ["send `u[-2, :]` as it is, without the copy"]
