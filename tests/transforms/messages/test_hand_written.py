"""ADV607 over small programs: findings, near misses, and edits that run."""

from pathlib import Path

import pytest

from tests.transforms.spmd_running import (
    check_rewritten_programs,
    check_what_is_left_alone,
    check_what_is_only_shown,
    check_what_is_said,
    program_text,
    proposals,
)
from transforms.messages.hand_written import TRANSFORM

START = """
rank, size = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % size, (rank + 1) % size
x, y = np.arange(40) + 1.5 * rank, np.zeros(40)
whole, other = np.zeros((size, 40)), np.zeros((size, 40))
flat, line = np.zeros(40 * size), comm.Create_cart((size,))
low, high = line.Shift(0, 1)
for step in range(3):
    x += step
"""

SAID = {
    "gather": (
        """
    if rank == 0:
        whole[0] = -x
        for i in range(1, size):  # all others
            comm.Recv(whole[i], source=i)
    else:
        comm.Send(x, dest=0)
""",
        ["unsafe"],
    ),
    "gather_of_slices": (
        """
    if rank != 0:
        comm.Send(x, dest=0, tag=rank)
    else:
        for i in range(size - 1):
            comm.Recv(flat[(i + 1) * 40:(i + 2) * 40], source=i + 1, tag=i + 1)
""",
        ["unsafe"],
    ),
    "gather_of_positive_ranks": (
        """
    if rank > 0:
        comm.Send(x, dest=0)
    else:
        for i in range(1, size):
            comm.Recv(whole[i], source=i)
""",
        ["unsafe"],
    ),
    "rows_round_a_circle": (
        """
    whole[rank] = x
    for k in range(size - 1):
        sent = (rank - k) % size
        taken = (rank - k - 1) % size
        comm.Sendrecv(whole[sent], dest=right, recvbuf=whole[taken], source=left)
""",
        ["unsafe"],
    ),
    "rows_round_a_circle_the_other_way": (
        """
    whole[rank, :] = x
    for k in range(1, size):
        comm.Sendrecv(whole[(rank + k - 1) % size], left, 0, whole[(rank + k) % size], right)
""",
        ["unsafe"],
    ),
    "scatter_with_a_guard": (
        """
    if rank == 0:
        whole[:] = step + np.arange(40)
        for k in range(size):
            if k != rank:
                comm.Send(whole[k, :], dest=k)
        x[:] = whole[0]
    else:
        comm.Recv(x, source=0)
""",
        ["unsafe"],
    ),
    "broadcast": (
        """
    if rank == 0:
        for k in range(1, size):
            comm.Send(x, dest=k, tag=4)
    else:
        comm.Recv(y, source=0, tag=4)
""",
        ["unsafe"],
    ),
    "all_to_all": (
        """
    whole += x
    for k in range(size):
        comm.Sendrecv(whole[k], dest=k, recvbuf=other[k], source=k)
""",
        ["unsafe"],
    ),
    "ring_that_one_starts": (
        """
    if rank == 0:
        comm.Send(x, dest=right)
        comm.Recv(y, source=left)
    else:
        comm.Recv(y, source=left)
        comm.Send(x, dest=right)  # on
""",
        ["safe"],
    ),
    "open_chain": (
        """
    if rank > 0:
        comm.Recv(y, source=rank - 1, tag=3)
    if rank < size - 1:
        comm.Send(x, dest=rank + 1, tag=3)
""",
        ["safe"],
    ),
    "open_chain_of_a_mesh": (
        """
    line.Recv(whole[0], source=low)
    line.Send(whole[1], dest=high)
    whole[1] += x
""",
        ["safe"],
    ),
}
SHOWN = {
    "root_adds": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(y, source=k)
            x += y
    else:
        comm.Send(x, dest=0)
""",
    "more_is_done_with_each_piece": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(whole[k], source=k)
            whole[k] += 1
    else:
        comm.Send(x, dest=0)
""",
    "shares_of_a_whole": """
    share = 240 // size
    field = np.zeros(240)
    if rank == 0:
        for k in range(1, size):
            comm.Recv(field[k * share:(k + 1) * share], source=k)
    else:
        comm.Send(x[:share], dest=0)
""",
    "pieces_of_other_lengths": """
    starts = [k * 40 + k * (k - 1) // 2 for k in range(size + 1)]
    mine = np.zeros(40 + rank)
    if rank == 0:
        everything = np.zeros(starts[size])
        for k in range(1, size):
            comm.Recv(everything[starts[k]:starts[k + 1]], source=k)
    else:
        comm.Send(mine, dest=0)
""",
    "copied_to_its_place": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(y, source=k)
            flat[k * 40:(k + 1) * 40] = y
    else:
        comm.Send(x, dest=0)
""",
    "pickled_gather": """
    if rank == 0:
        parts = [x]
        for k in range(1, size):
            parts.append(comm.recv(source=k))
    else:
        comm.send(x, dest=0)
""",
    "pickled_number": """
    total = float(np.sum(x))
    if rank == 0:
        for k in range(1, size):
            total += comm.recv(source=k)
    else:
        comm.send(total, dest=0)
""",
    "pickled_broadcast": """
    if rank == 0:
        for k in range(1, size):
            comm.send(x, dest=k)
    else:
        x = comm.recv(source=0)
""",
    "pickled_scatter": """
    if rank == 0:
        for k in range(1, size):
            comm.send(whole[k], dest=k)
    else:
        x = comm.recv(source=0)
""",
    "not_the_whole_array": """
    larger = np.zeros((size + 9, 40))
    if rank == 0:
        for k in range(1, size):
            comm.Recv(larger[k], source=k)
    else:
        comm.Send(x, dest=0)
""",
}
QUIET = {
    "rows_that_are_their_own_only": """
    whole[rank] = x
    for k in range(size - 1):
        comm.Sendrecv(whole[rank], dest=right, recvbuf=whole[(rank - k - 1) % size], source=left)
""",
    "rows_one_pass_short": """
    whole[rank] = x
    for k in range(size - 2):
        comm.Sendrecv(whole[(rank - k) % size], right, 0, whole[(rank - k - 1) % size], left)
""",
    "rows_of_the_wrong_neighbour": """
    whole[rank] = x
    for k in range(size - 1):
        comm.Sendrecv(whole[(rank - k) % size], left, 0, whole[(rank - k - 1) % size], right)
""",
    "rows_into_another_array": """
    whole[rank] = x
    for k in range(size - 1):
        comm.Sendrecv(whole[(rank - k) % size], right, 0, other[(rank - k - 1) % size], left)
""",
    "rows_that_are_worked_on": """
    whole[rank] = x
    for k in range(size - 1):
        comm.Sendrecv(whole[(rank - k) % size], right, 0, whole[(rank - k - 1) % size], left)
        y += whole[(rank - k - 1) % size]
""",
    "farm": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(whole[k], source=MPI.ANY_SOURCE)
    else:
        comm.Send(x, dest=0)
""",
    "tasks_by_number": """
    if rank == 0:
        for k in range(1, size):
            comm.send(k * 10, dest=k)
    else:
        task = comm.recv(source=0)
""",
    "not_all_ranks_send": """
    if rank > 1:
        comm.Send(x, dest=0)
    else:
        for k in range(1, size):
            comm.Recv(whole[k], source=k)
""",
    "other_order": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(whole[size - k], source=k)
    else:
        comm.Send(x, dest=0)
""",
    "only_some": """
    if rank == 0:
        for k in range(2, size):
            comm.Recv(whole[k], source=k)
    else:
        comm.Send(x, dest=0)
""",
    "other_tag": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(whole[k], source=k, tag=k)
    else:
        comm.Send(x, dest=0, tag=1)
""",
    "more_messages_in_the_branches": """
    if rank == 0:
        comm.Send(x, dest=1)
        for k in range(1, size):
            comm.Recv(whole[k], source=k)
    else:
        if rank == 1:
            comm.Recv(y, source=0)
        comm.Send(x, dest=0)
""",
    "lengths_differ": """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(whole[k], source=k)
    else:
        comm.Send(x[:20], dest=0)
""",
    "columns": """
    square = np.zeros((40, size))
    if rank == 0:
        for k in range(1, size):
            comm.Recv(square[:, k].copy(), source=k)
    else:
        comm.Send(x, dest=0)
""",
    "ping_pong": """
    if rank == 0:
        comm.Send(x, dest=1)
        comm.Recv(x, source=1)
    else:
        comm.Recv(x, source=0)
        comm.Send(x, dest=0)
""",
    "token": """
    if rank == 0:
        comm.Send(x, dest=right)
        comm.Recv(x, source=left)
    else:
        comm.Recv(x, source=left)
        x += 1
        comm.Send(x, dest=right)
""",
    "passed_on": """
    if rank > 0:
        comm.Recv(x, source=rank - 1)
    if rank < size - 1:
        comm.Send(x, dest=rank + 1)
""",
    "even_and_odd": """
    if rank % 2 == 0:
        comm.Send(x, dest=right)
        comm.Recv(y, source=left)
    else:
        comm.Recv(y, source=left)
        comm.Send(x, dest=right)
""",
    "waits_for_ever": """
    comm.Recv(y, source=left)
    comm.Send(x, dest=right)
""",
    "not_the_same_piece": """
    for k in range(size):
        comm.Sendrecv(whole[k], dest=k, recvbuf=other[size - 1 - k], source=k)
""",
    "no_dimensions": """
    one = np.array(1.0)
    if rank == 0:
        for k in range(1, size):
            comm.Recv(one, source=k)
    else:
        comm.Send(one, dest=0)
""",
    "exchange_in_place": """
    for k in range(size):
        comm.Sendrecv(whole[k], dest=k, recvbuf=whole[k], source=k)
""",
}


def text(lines: str) -> str:
    return program_text(f"{START}{lines}return x, y, whole, other, flat\n")


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    lines, applicabilities = SAID[name]
    check_what_is_said(text(lines), TRANSFORM, applicabilities)


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_only_shown(name: str) -> None:
    check_what_is_only_shown(text(SHOWN[name]), TRANSFORM)


@pytest.mark.parametrize("name", QUIET)
def test_what_is_left_alone(name: str) -> None:
    check_what_is_left_alone(text(QUIET[name]), TRANSFORM)


def test_only_loops_over_ranks_count_outside_of_other_loops() -> None:
    once = START.replace("for step in range(3):", "step = 3\nif size:")
    for name, (lines, _) in SAID.items():
        found = proposals(program_text(f"{once}{lines}return x\n"), TRANSFORM)
        assert len(found) == (0 if "chain" in name or "ring" in name else 1)


@pytest.mark.parametrize("ranks", [2, 3])
def test_rewritten_programs_give_equal_results(tmp_path: Path, ranks: int) -> None:
    programs = {name: (text(lines), 0.0) for name, (lines, _) in SAID.items()}
    check_rewritten_programs(tmp_path, programs, TRANSFORM, ranks)
