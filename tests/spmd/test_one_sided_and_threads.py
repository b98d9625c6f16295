"""Windows as remote references, and parallel loops as supersteps."""

from __future__ import annotations

import pytest
from reading import operations, program, works

from advisor.analysis.spmd.lower import lower_steps
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.steps import LoopKind, Op, Wait
from costdb.expr import evaluate, to_text
from costdb.process.terms import Leaf, Process, SeqLoop, Sequential
from costdb.work import Barrier, Message, Pattern, RemoteGroup, Superstep


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
    assert (put.blocking, put.request) == (False, "req")
    waits = [v.step for v in read.functions[-1].visits() if isinstance(v.step, Wait)]
    assert [wait.requests for wait in waits] == [("req",)]


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


def test_iterations_of_a_parallel_loop_are_divided_among_threads() -> None:
    read = read_program("f.py", PARALLEL)
    found = read.function("total")
    lowered = lower_steps(found.body)
    (step,) = works(lowered.process, Superstep)
    sizes = {"n": 1000, "threads": 4}
    # two reads and one write of 8-byte elements, counted in elements of 4 bytes
    assert evaluate(step.reads, sizes) == 2 * 2 * 250
    assert evaluate(step.writes, sizes) == 2 * 250
    assert evaluate(step.total, sizes) == 3 * 2 * 1000
    assert [v.step.kind for v in found.visits() if hasattr(v.step, "kind")] == [LoopKind.THREADS]


DEALT = """\
import numpy as np
from numba import njit, prange


@njit(parallel=True)
def work(n: int, parts: int):
    a = np.zeros(n)
    for t in prange({over}):
        for j in range({inner}):
            a[j] = 1.0
    return a
"""


@pytest.mark.parametrize(
    ("over", "inner"),
    [
        ("parts", "t, n, parts"),
        ("parts", "t * n // parts, (t + 1) * n // parts"),
        ("n", "t, n"),
        ("n", "t"),
    ],
)
@pytest.mark.parametrize("threads", [1, 3, 4])
def test_threads_that_have_more_to_do_than_others(over: str, inner: str, threads: int) -> None:
    read = read_program("f.py", DEALT.format(over=over, inner=inner))
    found = read.function("work")
    (step,) = works(lower_steps(found.body).process, Superstep)
    for n, parts in ((23, 4), (24, 4), (7, 5)):
        trips = {"parts": parts, "n": n}[over]
        words = [2 * len(eval(f"range({inner})", {"t": t, "n": n, "parts": parts}))
                 for t in range(trips)]  # fmt: skip
        share = -(-trips // threads)
        blocks = [sum(words[k * share : (k + 1) * share]) for k in range(threads)]
        values = {"n": n, "parts": parts, "threads": threads}
        assert evaluate(step.writes, values) == max(blocks)
        assert evaluate(step.total, values) == sum(words)


def test_the_index_arithmetic_of_ranks_is_told() -> None:
    text = (
        "x = np.zeros(100)\n"
        "for i in range(rank, 100, size):\n"
        "    x[i] = 1.0\n"
        "for i in range(rank * 100 // size, (rank + 1) * 100 // size):\n"
        "    x[i] = 2.0\n"
        "for i in range(100):\n"
        "    x[i] = 3.0\n"
        "comm.Allreduce(MPI.IN_PLACE, x)\n"
    )
    (function,) = program(text).functions
    found = [v.step for v in function.visits() if hasattr(v.step, "by_rank")]
    assert [loop.by_rank for loop in found] == [True, True, False]
    assert [evaluate(found[0].trips, {"P": 3, "rank": r}) for r in range(3)] == [34, 33, 33]
