"""ADV602 and ADV603 over small programs: findings, near misses, and edits that run."""

from pathlib import Path

import pytest

from advisor.ir.spmd.proposal import ProgramTransform
from advisor.ir.spmd.steps import Loop
from costdb.expr import evaluate
from tests.transforms.spmd_running import program_text, proposals, rewritten, run_side_by_side
from transforms.messages.fused_reductions import TRANSFORM as SUMS
from transforms.messages.halo_faces import TRANSFORM as FACES
from transforms.messages.message_loops import TRANSFORM as LOOPS

RING = """
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size
u = np.arange(6000.0).reshape(20, 300) + rank
r = np.empty(300)
for step in range(5):
"""
TWO = """
rank = comm.Get_rank()
a = np.arange(2000.0).reshape(100, 20) * (rank + 1)
b = np.zeros((100, 20))
for step in range(3):
"""


def after(start: str, lines: str, end: str) -> str:
    return f"{start}{lines}return {end}\n"


SAID: dict[str, tuple[ProgramTransform, str, list[str]]] = {
    "rows": (
        FACES,
        after(
            RING,
            """
    t = u[1, :].copy()  # row one
    comm.Sendrecv(t, dest=left, recvbuf=r, source=right)
    u[-1, :] = r  # the last
    comm.Sendrecv(u[-2, :].copy(), right, 0, r, left, 0)
    u[0, :] = r
    u *= 0.5
""",
            "u",
        ),
        ["safe"] * 4,
    ),
    "columns_of_fortran_order": (
        FACES,
        after(
            RING.replace(
                ".reshape(20, 300) + rank",
                ".reshape(20, 300) + rank\nv = np.zeros((300, 8), order='F')",
            ),
            """
    v[:, 1] = u[3, :]
    comm.Sendrecv(v[:, 1].copy(), dest=left, recvbuf=r, source=right)
    v[:, 0] = r
""",
            "v",
        ),
        ["safe", "safe"],
    ),
    "rows_one_by_one": (
        LOOPS,
        after(
            TWO,
            """
    if rank == 0:
        for i in range(100):  # all rows
            comm.Send(a[i, :], dest=1)
    elif rank == 1:
        for i in range(100):
            comm.Recv(b[i, :], source=0)
""",
            "b",
        ),
        ["unsafe"],
    ),
    "elements_one_by_one": (
        LOOPS,
        after(
            TWO,
            """
    if rank == 1:
        for j in range(2, 20):
            comm.Send(a[7, j:j + 1], dest=0, tag=5)
    if rank == 0:
        for j in range(2, 20):
            comm.Recv(b[8, j:j + 1], source=1, tag=5)
""",
            "b",
        ),
        ["unsafe"],
    ),
}

SAID["numbers_one_after_another"] = (
    SUMS,
    """
error, total = 0.0, 0.0
for step in range(3):
    x = np.arange(100.0) / (comm.Get_rank() + step + 1)
    error = comm.allreduce(np.sum(x), op=MPI.SUM)  # first
    total = comm.allreduce(np.sum(x * x), op=MPI.SUM)
    largest = comm.allreduce(np.max(x), op=MPI.MAX)
return float(error), float(total), float(largest)
""",
    ["unsafe"],
)
QUIET: dict[str, tuple[ProgramTransform, str, str]] = {
    "strided_face": (
        FACES,
        RING.replace("300)\nfor", "20)\nfor"),
        """
    comm.Sendrecv(u[:, 1].copy(), dest=left, recvbuf=r, source=right)
    u[:, -1] = r
""",
    ),
    "copy_protects_a_pending_send": (
        FACES,
        RING,
        """
    t = u[1, :].copy()
    request = comm.Isend(t, dest=left)
    u[1, :] = step
    comm.Recv(u[-1, :], source=right)
    request.Wait()
""",
    ),
    "written_between": (
        FACES,
        RING,
        """
    t = u[1, :].copy()
    u[1, :] = 0
    comm.Sendrecv(t, dest=left, recvbuf=u[-1, :], source=right)
""",
    ),
    "copy_used_again": (
        FACES,
        RING,
        """
    t = u[1, :].copy()
    comm.Sendrecv(t, dest=left, recvbuf=u[-1, :], source=right)
    u[3, :] = t
""",
    ),
    "face_is_received_where_it_is_sent_from": (
        FACES,
        RING,
        """
    comm.Sendrecv(u[1, :].copy(), dest=left, recvbuf=u[1, :], source=right)
""",
    ),
    "nobody_leaves_the_buffer": (
        FACES,
        RING.replace("(rank + 1) % size", "rank + 1 if rank + 1 < size else MPI.PROC_NULL"),
        """
    comm.Sendrecv(u[1, :], dest=left, recvbuf=r, source=right)
    u[-1, :] = r
""",
    ),
    "buffer_read_later": (
        FACES,
        RING,
        """
    comm.Sendrecv(u[1, :], dest=left, recvbuf=r, source=right)
    u[-1, :] = r
    u[4, :] += r
""",
    ),
    "pipeline": (
        LOOPS,
        TWO,
        """
    if rank == 0:
        for i in range(100):
            a[i, :] += 1
            comm.Send(a[i, :], dest=1)
    elif rank == 1:
        for i in range(100):
            comm.Recv(b[i, :], source=0)
""",
    ),
    "not_one_stretch": (
        LOOPS,
        TWO,
        """
    if rank == 0:
        for i in range(100):
            comm.Send(a[i, 3:4], dest=1)
    elif rank == 1:
        for i in range(100):
            comm.Recv(b[i, 3:4], source=0)
""",
    ),
    "tags_differ": (
        LOOPS,
        TWO,
        """
    if rank == 0:
        for i in range(100):
            comm.Send(a[i, :], dest=1, tag=i)
    elif rank == 1:
        for i in range(100):
            comm.Recv(b[i, :], source=0, tag=i)
""",
    ),
    "one_number_depends_on_another": (
        SUMS,
        TWO,
        """
    error = comm.allreduce(np.sum(a), op=MPI.SUM)
    ratio = comm.allreduce(error / np.sum(b + 1), op=MPI.SUM)
""",
    ),
    "other_operations": (
        SUMS,
        TWO,
        """
    error = comm.allreduce(np.sum(a), op=MPI.SUM)
    most = comm.allreduce(np.max(b), op=MPI.MAX)
""",
    ),
    "something_between": (
        SUMS,
        TWO,
        """
    error = comm.allreduce(np.sum(a), op=MPI.SUM)
    b[:] = error
    total = comm.allreduce(np.sum(b), op=MPI.SUM)
""",
    ),
    "whole_numbers": (
        SUMS,
        TWO,
        """
    one = comm.allreduce(rank, op=MPI.SUM)
    two = comm.allreduce(rank + 1, op=MPI.SUM)
""",
    ),
    "other_counts": (
        LOOPS,
        TWO,
        """
    if rank == 0:
        for i in range(100):
            comm.Send(a[i, :], dest=1)
    elif rank == 1:
        for i in range(50):
            comm.Recv(b[2 * i, :], source=0)
            comm.Recv(b[2 * i + 1, :], source=0)
""",
    ),
    "from_anybody": (
        LOOPS,
        TWO,
        """
    if rank == 0:
        for i in range(100):
            comm.Send(a[i, :], dest=1)
    elif rank == 1:
        for i in range(100):
            comm.Recv(b[i, :], source=MPI.ANY_SOURCE)
""",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    rule, body, applicabilities = SAID[name]
    found = proposals(program_text(body), rule)
    assert [str(one.legality.applicability) for one in found] == applicabilities
    assert all(one.edits() for one in found)


@pytest.mark.parametrize("name", QUIET)
def test_what_is_left_alone(name: str) -> None:
    rule, start, lines = QUIET[name]
    source = program_text(after(start, lines, "a, b" if start is TWO else "u"))
    compile(source, "program.py", "exec")
    assert [one.title for one in proposals(source, rule)] == []


def test_rewritten_programs_give_equal_results(tmp_path: Path) -> None:
    programs = {}
    for name, (rule, body, _) in SAID.items():
        source = program_text(body)
        changed = rewritten(source, proposals(source, rule))
        assert proposals(changed, rule) == []
        assert changed.count("#") == source.count("#")
        programs[name] = (source, changed, 1e-14 if rule is SUMS else 0.0)
    told = run_side_by_side(tmp_path, programs, ranks=2)
    assert told == dict.fromkeys(SAID, "same")


PIPELINE = """
rank, size = comm.Get_rank(), comm.Get_size()
a = np.ones((2000, 30))
for i in range(2000):
    if rank > 0:
        comm.Recv(a[i, :1], source=rank - 1)
    a[i, 1:] += a[i, 0]
    if rank < size - 1:
        comm.Send(a[i, -1:], dest=rank + 1)
return a
"""


def test_a_pipeline_is_tried_with_larger_pieces() -> None:
    found = proposals(program_text(PIPELINE), LOOPS)
    assert [one.title.split()[2] for one in found] == ["4", "16", "64", "256"]
    assert len({one.span for one in found}) == 1
    assert {str(one.legality.applicability) for one in found} == {"display"}
    (before,), (after,) = found[1].before, found[1].after
    assert isinstance(before, Loop) and isinstance(after, Loop)
    assert before.trips is not None and after.trips is not None
    # as many turns as there are pieces, and one for each rank before the last
    assert evaluate(before.trips, {"P": 5}) == 2000 + 4
    assert evaluate(after.trips, {"P": 5}) == 125 + 4


@pytest.mark.parametrize(
    "change",
    [
        ("dest=rank + 1", "dest=(rank + 2) % size"),
        ("source=rank - 1", "source=MPI.ANY_SOURCE"),
        ("a[i, :1]", "a[0, :1]"),
        ("    a[i, 1:] += a[i, 0]\n", ""),
        ("    a[i, 1:] += a[i, 0]\n", "    a[i, 1:] += comm.allreduce(a[i, 0])\n"),
        ("range(2000)", "range(7)"),
    ],
)
def test_what_is_no_pipeline(change: tuple[str, str]) -> None:
    source = program_text(PIPELINE.replace(*change))
    assert source != program_text(PIPELINE)
    assert proposals(source, LOOPS) == []
