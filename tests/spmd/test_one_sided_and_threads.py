"""Windows as remote references, and parallel loops as supersteps."""

from __future__ import annotations

from reading import operations, program, works

from advisor.analysis.spmd.lower import lower_steps
from advisor.ir.spmd.steps import Op, Wait
from costdb.expr import evaluate, to_text
from costdb.work import Barrier, Leaf, Message, Pattern, Process, RemoteGroup, SeqLoop, Sequential


def leaves_within(process: Process, times: int = 1) -> list[tuple[str, int]]:
    """Return the label of every message and how often it is sent."""
    match process:
        case Leaf(work=Message(label=label)):
            return [(label, times)]
        case SeqLoop(low=low, high=high, body=body):
            return leaves_within(body, times * int(evaluate(high - low + 1, {})))
        case Sequential(parts=parts):
            return [found for part in parts for found in leaves_within(part, times)]
    return []


def test_a_window_moves_double_words_between_fences() -> None:
    text = (
        "n = 64\n"
        "mine = np.zeros(n)\n"
        "got = np.empty(n)\n"
        "win = MPI.Win.Create(mine, comm=comm)\n"
        "win.Fence()\n"
        "win.Get(got, (rank + 1) % size)\n"
        "win.Fence()\n"
        "win.Put([got, MPI.DOUBLE], target_rank=0)\n"
        "win.Lock(0)\n"
        "win.Accumulate(np.ones(1), 0, op=MPI.SUM)\n"
        "win.Unlock(0)\n"
        "win.Free()\n"
    )
    read = program(text)
    assert [op.op for op in operations(read)] == [
        Op.FENCE, Op.GET, Op.FENCE, Op.PUT, Op.LOCK, Op.ACCUMULATE, Op.UNLOCK
    ]  # fmt: skip
    (function,) = read.functions
    lowered = lower_steps(function.body)
    remote = works(lowered.process, RemoteGroup)
    assert [(to_text(w.count), w.pattern, w.store) for w in remote] == [
        ("n", Pattern.VECTOR, False),
        ("n", Pattern.VECTOR, True),
        ("1", Pattern.BASELINE, True),
    ]
    assert len([*works(lowered.process, Barrier)]) == 2
    assert [gap.span.start_line for gap in lowered.gaps] == [15, 17]


def test_a_shared_window_is_memory_of_all() -> None:
    text = (
        "node = comm.Split_type(MPI.COMM_TYPE_SHARED)\n"
        "win = MPI.Win.Allocate_shared(800, 8, comm=node)\n"
        "buf, itemsize = win.Shared_query(0)\n"
        "shared = np.ndarray(buffer=buf, dtype='d', shape=(100,))\n"
        "win.Fence()\n"
        "shared[rank] = 1.0\n"
        "win.Fence()\n"
    )
    (first, second) = operations(program(text))
    assert first.op is second.op is Op.FENCE
    assert to_text(first.communicator.size) == "P.node"


def test_partners_and_results_of_one_sided_operations() -> None:
    text = (
        "one, old = np.ones(1, dtype='i8'), np.empty(1, dtype='i8')\n"
        "x, y = np.zeros(30), np.zeros(30)\n"
        "win = MPI.Win.Allocate(240, 8, comm=comm)\n"
        "win.Lock_all()\n"
        "win.Fetch_and_op(one, old, 3, 0, MPI.SUM)\n"
        "win.Get_accumulate(x, y, target_rank=(rank + 1) % size, op=MPI.SUM)\n"
        "win.Compare_and_swap(one, one, old, 2)\n"
        "req = win.Rput(x, target_rank=5)\n"
        "req.Wait()\n"
        "win.Flush(5)\n"
        "win.Unlock_all()\n"
        "win.Lock(rank=4, lock_type=MPI.LOCK_SHARED)\n"
        "win.Unlock(4)\n"
    )
    read = program(text)
    found = operations(read)
    partners = [None if op.dest is None or op.dest.rank is None else to_text(op.dest.rank)
                for op in found]  # fmt: skip
    assert partners == [None, "3", "(rank + 1) % P", "2", "5", "5", None, "4", "4"]
    fetched, both, swapped, put = found[1:5]
    for op, count in ((fetched, 1), (both, 30), (swapped, 1)):
        assert evaluate(op.send.count, {}) == evaluate(op.receive.count, {}) == count
    assert not put.blocking
    waits = [v.step for v in read.functions[-1].visits() if isinstance(v.step, Wait)]
    assert len(waits) == 1


def test_persistent_operations_take_place_where_they_start() -> None:
    text = (
        "x, y = np.zeros(30), np.zeros(30)\n"
        "a = comm.Send_init(x, dest=1)\n"
        "b = comm.Recv_init(y, source=0)\n"
        "reqs = [a, b]\n"
        "for step in range(7):\n"
        "    MPI.Prequest.Startall(reqs)\n"
        "    MPI.Prequest.Waitall(reqs)\n"
        "a.Start()\n"
        "a.Wait()\n"
    )
    read = program(text)
    (function,) = read.functions
    found = [(visit.depth, op.op, op.span.start_line) for visit, op in function.operations()]
    assert found == [(1, Op.SEND, 12), (1, Op.RECV, 12), (0, Op.SEND, 14)]
    messages = [w for w in leaves_within(lower_steps(function.body).process) if w[0] == "Send_init"]
    assert [times for _, times in messages] == [7, 1]
    names = {op.send.view.buffer.name for _, op in function.operations() if op.send is not None}
    assert names == {"x"}, "arrays made in one statement are told apart"


PARALLEL = """\
import numpy as np
from numba import njit, prange


@njit(parallel=True)
def total(a: np.ndarray, n: int):
    out = np.zeros(n)
    for i in prange(n):
        out[i] = a[i] + 2.0 * a[i]
    return out


a = np.zeros(1000)
total(a, 1000)
"""
