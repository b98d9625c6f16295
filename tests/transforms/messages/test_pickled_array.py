"""ADV601 over small programs: what it says, what it leaves alone, and that its edits run."""

from pathlib import Path

import pytest

from advisor.finding import Applicability
from tests.transforms.spmd_running import program_text, proposals, rewritten, run_side_by_side
from transforms.messages.pickled_array import TRANSFORM

# name: body, applicability of each finding in order, tolerance of the comparison
SAID: dict[str, tuple[str, list[str], float]] = {
    "allreduce_float": (
        """
        x = np.arange(5000) + 0.1 * comm.Get_rank()
        for step in range(3):
            x = comm.allreduce(x / 3, op=MPI.SUM)  # keep me
        return x
        """,
        ["unsafe"],
        1e-14,
    ),
    "allreduce_int": (
        """
        x = np.arange(5000)
        for step in range(3):
            total = comm.allreduce(x, op=MPI.SUM)
            x = total % 1000 + comm.Get_rank()
        return x, total
        """,
        ["safe"],
        0,
    ),
    "reduction_along_an_axis": (
        """
        x = np.arange(6000).reshape(20, 300)
        for step in range(3):
            rows = comm.allreduce(np.sum(x, axis=1))
        return rows
        """,
        ["safe"],
        0,
    ),
    "reduce": (
        """
        x = np.ones(1000) * comm.Get_rank()
        totals = []
        for step in range(3):
            total = comm.reduce(x, op=MPI.SUM, root=1)
            totals.append(total)
        return totals
        """,
        ["unsafe"],
        1e-14,
    ),
    "bcast": (
        """
        rank = comm.Get_rank()
        n = 1000
        seen = []
        for step in range(3):
            if rank == 1:
                data = np.arange(n, dtype=np.float64) * step
            else:
                data = None
            data = comm.bcast(data, root=1)
            seen.append(data.sum())
        return seen
        """,
        ["unsafe"],
        0,
    ),
    "gather": (
        """
        seen = []
        for step in range(3):
            local = np.full((4, 5), comm.Get_rank() + step, dtype=np.float32)
            parts = comm.gather(local, root=0)
            if comm.Get_rank() == 0:
                seen.append(np.concatenate(parts))
            everything = comm.allgather(local)
            seen.append(np.stack(everything))
        return seen
        """,
        ["unsafe", "unsafe"],
        0,
    ),
    "pieces_for_all": (
        """
        size, n = comm.Get_size(), 700
        x = np.arange(n * size) + comm.Get_rank()
        seen = []
        for step in range(3):
            pieces = comm.alltoall([x[r * n : (r + 1) * n] for r in range(size)])  # keep me
            seen.append(np.concatenate(pieces))
        return seen
        """,
        ["unsafe"],
        0,
    ),
    "columns_for_all": (
        """
        size, n = comm.Get_size(), 6
        a = np.arange(5.0 * n * size * 4).reshape(5, n * size, 4) * (1 + comm.Get_rank())
        for step in range(3):
            blocks = comm.alltoall([a[:, r * n : (r + 1) * n] for r in range(size)])
            a = np.concatenate(blocks, axis=1) + step
        return a
        """,
        ["unsafe"],
        0,
    ),
    "equal_parts_for_all": (
        """
        x = np.arange(600.0)
        for step in range(3):
            x = comm.alltoall(np.split(np.ones(600 * comm.Get_size()) * step, comm.Get_size()))
        return [part + comm.Get_rank() for part in x]
        """,
        ["unsafe"],
        0,
    ),
    "shift_of_a_column": (
        """
        rank, size = comm.Get_rank(), comm.Get_size()
        u = np.arange(600.0).reshape(20, 30) + rank
        left, right = (rank - 1) % size, (rank + 1) % size
        for step in range(3):
            u[:, -1] = 0
            got = comm.sendrecv(u[:, 1], dest=left, source=right)
            u[:, -1] = got + 1
        return u
        """,
        ["safe"],
        0,
    ),
    "one_to_one": (
        """
        rank = comm.Get_rank()
        n = 2000
        x = np.arange(n, dtype=np.int32)
        for step in range(3):
            if rank == 0:
                comm.send(x, dest=1, tag=7)
                y = x
            elif rank == 1:
                y = comm.recv(source=0, tag=7)
        return y
        """,
        ["safe"],
        0,
    ),
    "ping_and_pong_on_two_tags": (
        """
        rank = comm.Get_rank()
        x = np.zeros(1000)
        y = np.ones(1000)
        for step in range(3):
            if rank == 0:
                comm.send(x, dest=1, tag=1)
                y = comm.recv(source=1, tag=2)
            if rank == 1:
                z = comm.recv(source=0, tag=1)
                comm.send(z + step, dest=0, tag=2)
        return y
        """,
        ["safe"],
        0,
    ),
    "strided_column_to_one": (
        """
        rank = comm.Get_rank()
        u = np.arange(600.0).reshape(20, 30)
        for step in range(3):
            if rank == 0:
                comm.send(u[:, 3], dest=1)
            elif rank == 1:
                face = comm.recv(source=0)
                u[:, 0] = face
        return u
        """,
        ["safe"],
        0,
    ),
}

QUIET = {
    "half_way_round": """
        rank, size = comm.Get_rank(), comm.Get_size()
        x = np.zeros(1000)
        for i in range(9):
            x = comm.sendrecv(x, dest=(rank + size // 2) % size, source=(rank + size // 2) % size)
        """,
    "as_far_as_each_rank_says": """
        rank, size = comm.Get_rank(), comm.Get_size()
        x, far = np.zeros(1000), far_of(rank)
        for i in range(9):
            x = comm.sendrecv(x, dest=(rank + far) % size, source=(rank - far) % size)
        """,
    "outside_loops": "x = np.zeros(1000)\nx = comm.allreduce(x)\n",
    "numbers": "for i in range(9):\n    t = comm.allreduce(np.sum(np.ones(1000)))\n",
    "lists": "for i in range(9):\n    t = comm.bcast([1, 2, 3])\n",
    "text": "for i in range(9):\n    t = comm.bcast({'a': np.zeros(9)})\n",
    "unknown": "for i in range(9):\n    t = comm.bcast(load(i))\n",
    "objects": "x = np.array([None, 1], dtype=object)\nfor i in range(9):\n    t = comm.bcast(x)\n",
    "shapes_by_rank": """
        for i in range(9):
            x = np.zeros(100 + comm.Get_rank())
            t = comm.allgather(x)
        """,
    "unknown_shape": """
        for i in range(9):
            x = np.flatnonzero(np.arange(100) % (i + 2))
            t = comm.allgather(x)
        """,
    "dealt_out_in_turn": """
        size = comm.Get_size()
        x = np.zeros(1000)
        for i in range(9):
            t = comm.alltoall([x[r::size] for r in range(size)])
        """,
    "parts_that_may_differ": """
        for i in range(9):
            t = comm.alltoall(np.array_split(np.zeros(1000), comm.Get_size()))
        """,
    "scattered_parts_that_may_differ": """
        x = np.zeros(1000)
        for i in range(9):
            pieces = np.array_split(x, comm.Get_size()) if comm.Get_rank() == 0 else None
            mine = comm.scatter(pieces, root=0)
            parts = comm.gather(mine * 2.0, root=0)
        """,
    "pieces_for_some": """
        size = comm.Get_size()
        x = np.zeros(1000 * size)
        for i in range(9):
            t = comm.alltoall([x[r * 9 : r * 9 + 9] if r else None for r in range(size)])
        """,
    "pieces_that_grow": """
        size = comm.Get_size()
        x = np.zeros(1000 * size)
        for i in range(9):
            t = comm.alltoall([x[: 9 + r] for r in range(size)])
        """,
    "pieces_by_rank": """
        size, n = comm.Get_size(), 10 + comm.Get_rank()
        x = np.zeros(1000 * size)
        for i in range(9):
            t = comm.alltoall([x[r * n : (r + 1) * n] for r in range(size)])
        """,
    "pieces_from_elsewhere": """
        size = comm.Get_size()
        x = np.zeros(1000 * size)
        parts = [x[r * 9 : r * 9 + 9] for r in range(size)]
        for i in range(9):
            t = comm.alltoall(parts)
            parts[0] = x[:4]
        """,
    "largest_of_arrays_cannot_run": """
        x = np.zeros(1000)
        for i in range(9):
            t = comm.allreduce(x, op=MPI.MAX)
        """,
    "buffers_already": """
        x, t = np.zeros(1000), np.zeros(1000)
        for i in range(9):
            comm.Allreduce(x, t)
        """,
    "farm": """
        for i in range(9):
            if comm.Get_rank() == 0:
                x = comm.recv(source=MPI.ANY_SOURCE)
            else:
                comm.send(np.zeros(1000), dest=0)
        """,
    "two_senders_of_different_things": """
        for i in range(9):
            if comm.Get_rank() == 0:
                comm.send(np.zeros(1000), dest=1)
                comm.send([i], dest=1)
            else:
                x = comm.recv(source=0)
        """,
    "source_changes_before_the_wait": """
        x = np.zeros(1000)
        for i in range(9):
            if comm.Get_rank() == 0:
                request = comm.isend(x, dest=1)
                x += 1
                request.wait()
            else:
                y = comm.recv(source=0)
        """,
    "nobody_at_the_edge": """
        rank, size = comm.Get_rank(), comm.Get_size()
        left = rank - 1 if rank > 0 else MPI.PROC_NULL
        right = rank + 1 if rank < size - 1 else MPI.PROC_NULL
        x = np.zeros(1000)
        for i in range(9):
            got = comm.sendrecv(x, dest=left, source=right)
        """,
    "not_the_inverse": """
        rank, size = comm.Get_rank(), comm.Get_size()
        x = np.zeros(1000)
        for i in range(9):
            got = comm.sendrecv(x, dest=(rank + 1) % size, source=(rank + 1) % size)
        """,
}


def until_quiet(source: str) -> str:
    """Return a program after all edits: what one brings to light, another changes."""
    for _ in range(3):
        offered = proposals(source, TRANSFORM)
        if not offered:
            return source
        source = rewritten(source, offered)
    raise AssertionError("there is always something left to say")


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    body, applicabilities, _ = SAID[name]
    found = proposals(program_text(body), TRANSFORM)
    assert [str(one.legality.applicability) for one in found] == applicabilities
    assert all(one.edits() for one in found)


@pytest.mark.parametrize("name", QUIET)
def test_what_is_left_alone(name: str) -> None:
    found = proposals(program_text(QUIET[name]), TRANSFORM)
    assert [one.title for one in found] == []


@pytest.mark.parametrize("name", SAID)
def test_nothing_is_left_to_say_after_the_edit(name: str) -> None:
    source = program_text(SAID[name][0])
    after = until_quiet(source)
    compile(after, "after.py", "exec")
    assert after.count("# keep me") == source.count("# keep me")


@pytest.mark.parametrize("ranks", [2])
def test_rewritten_programs_give_equal_results(tmp_path: Path, ranks: int) -> None:
    programs = {}
    for name, (body, _, tolerance) in SAID.items():
        source = program_text(body)
        programs[name] = (source, until_quiet(source), tolerance)
    told = run_side_by_side(tmp_path, programs, ranks)
    assert told == dict.fromkeys(SAID, "same")


def test_shown_only_where_memory_cannot_be_written() -> None:
    source = program_text(
        """
        for i in range(3):
            print(comm.allreduce(np.arange(1000)))
        """
    )
    (found,) = proposals(source, TRANSFORM)
    assert found.legality.applicability is Applicability.DISPLAY
    assert found.edits() == ()
