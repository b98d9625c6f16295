"""Instances with operators, defaults of communicators, entries of lists that count ranks."""

from __future__ import annotations

import pytest
from reading import operations, program

from advisor.ir.spmd.steps import Op
from costdb.expr import evaluate


@pytest.mark.parametrize(("operator", "method"), [("@", "__matmul__"), ("*", "__mul__")])
def test_operators_of_a_class_are_followed(operator: str, method: str) -> None:
    read = program(
        "class Matrix:\n"
        f"    def {method}(self, x):\n"
        "        full = np.empty(70)\n"
        "        comm.Allgather(x, full)\n"
        "        return full\n"
        "    def __call__(self, x):\n"
        "        comm.Barrier()\n"
        "A = Matrix()\n"
        f"y = A {operator} np.ones(10)\n"
        "A(y)\n"
        "comm.Send(y, dest=1)\n"
    )
    assert [op.op for op in operations(read)] == [Op.ALLGATHER, Op.BARRIER, Op.SEND]
    sent = operations(read)[-1].send
    assert sent is not None and sent.count is not None
    assert evaluate(sent.count, {}) == 70


@pytest.mark.parametrize("given", ["", "MPI.COMM_WORLD", "None"])
def test_a_communicator_by_default(given: str) -> None:
    read = program(
        "def run(comm=None):\n"
        "    comm = comm or MPI.COMM_WORLD\n"
        "    comm.bcast(1)\n"
        f"run({given})\n",
        head="from mpi4py import MPI\n",
    )
    assert [op.op for op in operations(read)] == [Op.BCAST]


def test_an_entry_of_a_list_that_counts_ranks_is_that_of_the_own_rank() -> None:
    read = program(
        "n = 50\n"
        "counts = [n // size + (1 if r < n % size else 0) for r in range(size)]\n"
        "comm.Send(np.zeros(counts[rank]), dest=0)\n"
    )
    (sent,) = operations(read)
    assert sent.send is not None and sent.send.count is not None
    for ranks in (1, 3, 4, 7):
        for rank in range(ranks):
            expected = 50 // ranks + (1 if rank < 50 % ranks else 0)
            values = {"P": ranks, "rank": rank, "n": 50}
            assert evaluate(sent.send.count, values) == expected


def test_powers_of_numbers_are_sizes() -> None:
    read = program("N = 2 ** 20\ncomm.Send(np.zeros(N), dest=1)\n")
    assert read.sizes["N"].value == 2**20
