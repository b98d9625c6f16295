"""Collectives in functions whose callers decide who needs what comes of them."""

from __future__ import annotations

import pytest

from tests.transforms.spmd_running import proposals
from transforms.messages import wrong_collective

START = """\
from mpi4py import MPI

def energy(comm, mine):
    return comm.allreduce(mine, op=MPI.SUM)

def twice(comm, mine):
    found = energy(comm, mine)
    return 2 * found

def main():
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    is_root = rank == 0
    both = twice(comm, float(rank))
"""


@pytest.mark.parametrize(
    ("end", "at_root"),
    [
        ("    if is_root:\n        print(both)\n", True),
        ("    if rank != 0:\n        return\n    print(both)\n", True),
        ("    if rank == 0 or both > 3:\n        print(rank)\n", False),
        ("    if rank < 2:\n        print(both)\n", False),
        ("    print(both)\n", False),
        ("    return both\n", False),
    ],
)
def test_what_a_function_returns_is_needed_where_its_callers_need_it(
    end: str, at_root: bool
) -> None:
    source = f"{START}{end}\nmain()\n"
    titles = [one.title for one in proposals(source, wrong_collective.TRANSFORM)]
    assert titles == ["reduce `mine` to rank 0, which alone uses it"] * at_root


def test_callers_that_nobody_knows_may_need_it() -> None:
    source = f"{START}    if rank == 0:\n        print(both)\n\nmain()\nothers = [twice]\n"
    assert proposals(source, wrong_collective.TRANSFORM) == []
