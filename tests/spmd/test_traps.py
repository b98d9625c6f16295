"""What fools a tool: receivers that are no communicators, names that mean something else."""

from __future__ import annotations

import pytest
from reading import HEAD, operations, program, the_operation

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.memory import PayloadKind
from advisor.ir.spmd.steps import CommKind
from costdb.expr import to_text

# files in which nothing is mpi4py's communication
QUIET = {
    "a socket": "import socket\ncomm = socket.socket()\ncomm.send(b'x')\ncomm.recv(10)\n",
    "nccl": (
        "from cupy.cuda import nccl\n"
        "comm = nccl.NcclCommunicator(2, nccl.get_unique_id(), 0)\n"
        "comm.allReduce(a, b, n, t, op, stream)\ncomm.bcast(a, n, t, 0, stream)\n"
    ),
    "nccl beside mpi4py": (
        "from mpi4py import MPI\nfrom cupy.cuda import nccl\n"
        "comm = nccl.NcclCommunicator(2, nccl.get_unique_id(), 0)\n"
        "comm.send(a, n, t, 1, stream)\ncomm.reduce(a, b, n, t, op, 0, stream)\n"
    ),
    "mpi4jax": (
        "from mpi4py import MPI\nimport mpi4jax\nimport jax.numpy as jnp\n"
        "comm = MPI.COMM_WORLD\nx = jnp.zeros(10)\n"
        "y, token = mpi4jax.allreduce(x, op=MPI.SUM, comm=comm)\n"
    ),
    "e-mail": "import smtplib\nserver = smtplib.SMTP('h')\nserver.sendmail(a, b, c)\n",
    "a wrapper of its own": (
        "from mpi4py import MPI\n"
        "class Comm:\n"
        "    def bcast(self, x):\n        return x\n"
        "    def allreduce(self, x):\n        return x\n"
        "comm = Comm()\nx = comm.bcast(1)\ny = comm.allreduce(2)\n"
    ),
    "a wrapper that is a parameter": (
        "def reduce(comm, x):\n"
        "    counts, displs, _ = comm.counts_displs_shape(x.shape, 0)\n"
        "    comm.Allreduce(x, x)\n"
    ),
    "case matters": (
        "def f(comm, x):\n    comm.BCAST(x)\n    comm.SendRecv(x)\n    comm.allReduce(x)\n"
    ),
    "lower case without evidence": "def f(comm, x):\n    comm.send(x, dest=1)\n    comm.bcast(x)\n",
    "names in texts": "s = 'from mpi4py import MPI; comm.Bcast(x)'\n# comm.Allreduce(x)\n",
    "import alone": "from mpi4py import MPI\nprint(MPI.COMM_WORLD.Get_rank())\n",
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_not_mpi4pys_is_left_alone(name: str) -> None:
    assert operations(read_program("f.py", QUIET[name])) == []


# programs in which something is, and how many operations
COMMUNICATE = {
    "a duplicate": ("c = comm.Dup()\nc.Barrier()\n", CommKind.WORLD),
    "a split": ("c = comm.Split(rank % 2, rank)\nc.Barrier()\n", CommKind.SPLIT),
    "a node": ("c = comm.Split_type(MPI.COMM_TYPE_SHARED)\nc.Barrier()\n", CommKind.NODE),
    "a grid": ("c = comm.Create_cart((2, 2))\nc.Barrier()\n", CommKind.CARTESIAN),
    "directly": ("MPI.COMM_WORLD.Barrier()\n", CommKind.WORLD),
    "another name": ("world = comm\nworld.Barrier()\n", CommKind.WORLD),
    "an attribute": (
        "class Grid:\n"
        "    def __init__(self, c):\n        self.c = c\n"
        "    def wait(self):\n        self.c.Barrier()\n"
        "Grid(comm).wait()\n",
        CommKind.WORLD,
    ),
    "a parameter that a caller gives": (
        "def f(c):\n    c.Barrier()\nf(comm)\n",
        CommKind.WORLD,
    ),
    "an annotated parameter": ("def f(c: MPI.Comm):\n    c.Barrier()\n", CommKind.GIVEN),
    "an annotation as a text": ("def f(c: 'MPI.Intracomm'):\n    c.bcast(1)\n", CommKind.GIVEN),
    "a default": ("def f(c=MPI.COMM_WORLD):\n    c.Barrier()\n", CommKind.WORLD),
    "a dictionary": ("d = {'comm': comm}\nd['comm'].Barrier()\n", CommKind.WORLD),
}


@pytest.mark.parametrize("name", COMMUNICATE)
def test_communicators_are_found_by_type(name: str) -> None:
    text, kind = COMMUNICATE[name]
    assert the_operation(text).communicator.kind is kind


def test_np_may_be_the_number_of_ranks() -> None:
    text = (
        "np = comm.Get_size()\n"
        "data = [0] * np\n"
        "x = np.zeros(10)\n"  # would fail at run time: an integer has no zeros
        "comm.send(x, dest=1)\n"
    )
    found = the_operation(text).send
    assert found.kind is not PayloadKind.ARRAY


def test_the_number_of_ranks_called_np_beside_numpy_under_its_own_name() -> None:
    head = "import numpy\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\nnp = comm.Get_size()\n"
    found = the_operation("x = numpy.zeros(100 // np)\ncomm.Bcast(x)\n", head).send
    assert to_text(found.count) == "100 // P"


def test_set_up_weighs_nothing_and_a_step_of_a_loop_does() -> None:
    text = (
        "def exchange(u):\n"
        "    comm.Bcast(u)\n"
        "u = np.zeros(10)\n"
        "comm.bcast({})\n"
        "for step in range(100):\n"
        "    exchange(u)\n"
        "    for k in range(3):\n"
        "        comm.Barrier()\n"
    )
    read = program(text)
    weights = {
        op.method: function.weight(visit)
        for function in read.functions
        for visit, op in function.operations()
    }
    assert weights == {"bcast": 0, "Bcast": 1, "Barrier": 2}


def test_a_loop_that_only_communicates_between_clocks_is_a_measurement() -> None:
    text = (
        "x = np.zeros(10)\n"
        "t0 = MPI.Wtime()\n"
        "for _ in range(1000):\n"
        "    comm.send(x, dest=1)\n"
        "t1 = MPI.Wtime()\n"
    )
    ((visit, _),) = (pair for function in program(text).functions for pair in function.operations())
    assert visit.loops[0].timing
    assert visit.depth == 0


def test_python_2_and_broken_programs_are_one_line() -> None:
    from advisor.source import SourceProblem

    for text in ("print 'hello'\n", "if rank == 0\n    pass\n", "comm.send(x,\n"):
        with pytest.raises(SourceProblem) as told:
            read_program("f.py", HEAD + text)
        assert "\n" not in str(told.value)
