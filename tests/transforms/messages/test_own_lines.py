"""Sums of arrays of which every rank fills other rows or columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks import needs_mpi
from tests.transforms.spmd_running import HEADER, proposals, run_side_by_side
from transforms.messages import wrong_collective

ROWS = """\
def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    n = 90
    for step in range(3):
        full = np.zeros((n, n))
        for i in range(rank, n, size):
            for k in range(n):
                full[i][k] += i * k + step
        total = comm.reduce(full, op=MPI.SUM, root=0)
    return total
"""
GATHERED_ROWS = """\
        parts = comm.gather(full[rank::size], root=0)
        total = None
        if rank == 0:
            total = np.empty((n, n))
            for k, part in enumerate(parts):
                total[k::size] = part
"""
COLUMNS = """\
def main(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    full = np.zeros((300, size))
    for step in range(3):
        for i in range(300):
            full[i, rank] = i * rank + step
        total = comm.allreduce(full, op=MPI.SUM)
    return total
"""
GATHERED_COLUMNS = """\
        mine, total = full[:, rank].copy(), np.empty((size, 300))
        comm.Allgather(mine, total)
        total = total.T.copy()
"""


def told(text: str) -> list[str]:
    titles = [one.title for one in proposals(f"{HEADER}{text}", wrong_collective.TRANSFORM)]
    return [one for one in titles if "that each rank fills" in one]


@needs_mpi
@pytest.mark.parametrize(
    ("text", "which", "gathered"),
    [(ROWS, "rows", GATHERED_ROWS), (COLUMNS, "columns", GATHERED_COLUMNS)],
)
def test_a_gather_of_what_each_rank_fills_gives_the_sum(
    text: str, which: str, gathered: str, tmp_path: Path
) -> None:
    assert told(text) == [
        f"gather the {which} that each rank fills of `full`, do not add zeros to them"
    ]
    (line,) = [one for one in text.splitlines(keepends=True) if "reduce(" in one]
    programs = {"lines": (f"{HEADER}{text}", f"{HEADER}{text.replace(line, gathered)}", 0)}
    for ranks in (1, 2, 3):
        assert run_side_by_side(tmp_path, programs, ranks) == {"lines": "same"}


@pytest.mark.parametrize(
    "change",
    [
        ("np.zeros", "np.ones"),
        ("range(rank, n, size)", "range(rank, n)"),
        ("range(rank, n, size)", "range(n)"),
        ("full[i][k] +=", "full[0][k] +="),
        ("        total =", "        full[0] += 1\n        total ="),
        ("MPI.SUM", "MPI.MAX"),
        ("        total =", "        full = np.exp(full)\n        total ="),
        # what changes an array, or may, by its name
        ("        total =", "        np.fill_diagonal(full, 3)\n        total ="),
        ("        total =", "        np.copyto(full, 1)\n        total ="),
        ("        total =", "        comm.Bcast(full, root=0)\n        total ="),
    ],
)
def test_sums_of_what_several_ranks_fill_stay(change: tuple[str, str]) -> None:
    text = ROWS.replace(*change)
    assert text != ROWS and not told(text)
