"""ADV604 over small programs: findings, near misses, and edits that run."""

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
from transforms.messages.wrong_collective import TRANSFORM

START = """
rank, size = comm.Get_rank(), comm.Get_size()
n = 1001
nb = n // size
a, b = np.empty(n), np.zeros(nb)
whole, u = np.empty((size * 30, 20)), np.ones((30, 20)) * (rank + 1)
total, seen = np.zeros(n), []
for step in range(4):
    u += step
"""

# what stands in the loop, what is returned, applicabilities, words of the titles
SAID: dict[str, tuple[str, str, list[str], float]] = {
    "block_of_a_broadcast": (
        """
    if rank == 0:
        a[:] = np.arange(n) + step
    comm.Bcast(a, root=0)
    mine = a[rank * nb:(rank + 1) * nb]  # the block
    b += mine
""",
        "b",
        ["unsafe"],
        0,
    ),
    "block_used_twice": (
        """
    low, high = rank * nb, (rank + 1) * nb
    if rank == 0:
        a[:] = np.arange(n) * step
    comm.Bcast(a)  # to all
    b[:] = a[low:high]
    b += 2 * a[rank * nb:(rank + 1) * nb]
""",
        "b",
        ["unsafe"],
        0,
    ),
    "rows_that_all_have": (
        """
    if rank == 1:
        whole[:] = step
    comm.Bcast(whole, root=1)
    rows = whole[rank * 30:(rank + 1) * 30].copy()
    u += rows
""",
        "u",
        ["unsafe"],
        0,
    ),
    "zeros_are_added": (
        """
    full = np.zeros(n)
    full[rank * nb:(rank + 1) * nb] = rank + step + b
    comm.Allreduce(full, total, op=MPI.SUM)  # keep
    seen.append(total.copy())
""",
        "seen, full",
        ["unsafe"],
        0,
    ),
    "zeros_are_added_in_place": (
        """
    full = np.zeros((size * 30, 20))
    full[rank * 30:(rank + 1) * 30] = u
    comm.Allreduce(MPI.IN_PLACE, full)
    seen.append(full)
    total[:] = 0
    total[rank * nb:(rank + 1) * nb] = rank + 1
    comm.Allreduce(MPI.IN_PLACE, total)
    seen.append(total.copy())
""",
        "seen",
        ["unsafe", "unsafe"],
        0,
    ),
    "a_number_of_each_rank": (
        """
    each = np.zeros(size)
    each[rank] = b.sum() + step + rank
    all_of_them = np.empty_like(each)
    comm.Allreduce(each, all_of_them, op=MPI.SUM)  # keep
    seen.append(all_of_them)
""",
        "seen, each",
        ["unsafe"],
        0,
    ),
    "a_row_of_each_rank": (
        """
    each = np.zeros((size + 2, 20))
    each[rank, :] = u[step] * rank
    comm.Allreduce(MPI.IN_PLACE, each)
    seen.append(each)
    counts = np.zeros((size, 3), dtype=np.int64)
    counts[comm.Get_rank()] += step + rank
    got = np.empty((size, 3), dtype=np.int64)
    comm.Allreduce(counts, got)
    seen.append(got)
""",
        "seen",
        ["unsafe", "unsafe"],
        0,
    ),
    "largest_of_a_gathered_field": (
        """
    comm.Gather(u, whole, root=0)
    worst = None
    if rank == 0:
        worst = np.max(whole)
    worst = comm.bcast(worst, root=0)
    seen.append(worst)
""",
        "seen",
        ["unsafe"],
        0,
    ),
    "sum_of_a_field_that_all_have": (
        """
    comm.Allgather(u, whole)
    seen.append(np.sqrt(whole.sum()) + rank)
""",
        "seen",
        ["unsafe"],
        1e-14,
    ),
    "field_for_one_rank": (
        """
    comm.Allgather(u, whole)
    if rank == 1:
        b[0] = whole[3, 4]
        u[0] = whole[50] + whole[2]
""",
        "u, b",
        ["safe"],
        0,
    ),
}
SHOWN = {
    "bounds_from_behind": """
    comm.Bcast(a, root=0)
    low = rank * nb
    b[:] = a[low:low + nb]
""",
    "an_element_of_the_block_at_a_time": """
    for k in range(rank * 3, (rank + 1) * 3):
        each, got = np.zeros(size * 3), np.empty(size * 3)
        each[k] = step
        comm.Allreduce(each, got)
        seen.append(got)
""",
    "elements_of_the_block": """
    comm.Bcast(a, root=0)
    for i in range(rank * nb, (rank + 1) * nb):
        b[i - rank * nb] = a[i]
""",
    "pickled": """
    x = np.ones(1000)
    x = comm.bcast(x, root=0)
    b[:10] = x[rank * 10:(rank + 1) * 10]
""",
}
QUIET = {
    "all_of_it_is_used": """
    comm.Bcast(a, root=0)
    mine = a[rank * nb:(rank + 1) * nb]
    b += mine / a[0]
""",
    "all_of_it_is_returned": """
    comm.Bcast(total, root=0)
    b += total[rank * nb:(rank + 1) * nb]
""",
    "given_to_a_function": """
    comm.Bcast(a, root=0)
    b += a[rank * nb:(rank + 1) * nb]
    print(a)
""",
    "blocks_overlap": """
    comm.Bcast(a, root=0)
    b[:-1] += a[rank * nb:(rank + 1) * nb + 1][:-2]
""",
    "same_block_on_all": """
    comm.Bcast(a, root=0)
    b += a[0:nb]
""",
    "block_is_written": """
    comm.Bcast(a, root=0)
    mine = a[rank * nb:(rank + 1) * nb]
    mine += 1
""",
    "every_other_row": """
    comm.Bcast(whole, root=0)
    u[0] = whole[rank::size].sum()
""",
    "another_rank_s_number": """
    each = np.zeros(size)
    each[(rank + 1) % size] = step
    comm.Allreduce(MPI.IN_PLACE, each)
    seen.append(each)
""",
    "two_numbers": """
    each = np.zeros(size + 1)
    each[rank] = step
    each[rank + 1] = 2
    comm.Allreduce(MPI.IN_PLACE, each)
    seen.append(each)
""",
    "not_zero_before": """
    full = np.ones(n)
    full[rank * nb:(rank + 1) * nb] = step
    comm.Allreduce(MPI.IN_PLACE, full)
""",
    "more_than_the_block": """
    full = np.zeros(n)
    full[rank * nb:(rank + 1) * nb] = step
    full[0] = 1
    comm.Allreduce(MPI.IN_PLACE, full)
""",
    "largest_not_sum": """
    full = np.zeros(n)
    full[rank * nb:(rank + 1) * nb] = -1
    comm.Allreduce(MPI.IN_PLACE, full, op=MPI.MAX)
""",
    "histogram": """
    full = np.zeros(n)
    full[step:step + 5] = rank
    comm.Allreduce(MPI.IN_PLACE, full)
""",
    "written_through_another_name": """
    full = np.zeros(n)
    also = full
    also[3] = 7
    full[rank * nb:(rank + 1) * nb] = step
    comm.Allreduce(MPI.IN_PLACE, full)
""",
    "uneven_blocks": """
    lo = rank * nb + min(rank, n % size)
    hi = lo + nb + (1 if rank < n % size else 0)
    full = np.zeros(n)
    full[lo:hi] = step
    comm.Allreduce(MPI.IN_PLACE, full)
""",
    "field_is_written_out": """
    comm.Gather(u, whole, root=0)
    if rank == 0:
        np.save('field', whole)
""",
    "two_numbers_of_a_field": """
    comm.Gather(u, whole, root=0)
    if rank == 0:
        seen.append(np.max(whole))
        seen.append(whole[0, 0])
""",
    "median": """
    comm.Gather(u, whole, root=0)
    if rank == 0:
        seen.append(np.median(whole))
""",
    "no_dimensions": """
    one = np.array(0.0)
    comm.Bcast(one)
    one += 1
    seen.append(one.sum())
    comm.Allreduce(MPI.IN_PLACE, one)
""",
    "along_an_axis": """
    comm.Allgather(u, whole)
    b[:20] += np.sum(whole, axis=0)
""",
    "all_ranks_use_the_field": """
    comm.Allgather(u, whole)
    if rank == 0:
        u[0] = whole[40]
    else:
        u[0] = whole[1]
""",
}


def text(lines: str, returned: str = "total, seen") -> str:
    return program_text(f"{START}{lines}return {returned}\n")


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    lines, returned, applicabilities, _ = SAID[name]
    check_what_is_said(text(lines, returned), TRANSFORM, applicabilities)


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_only_shown(name: str) -> None:
    check_what_is_only_shown(text(SHOWN[name]), TRANSFORM)


@pytest.mark.parametrize("name", QUIET)
def test_what_is_left_alone(name: str) -> None:
    check_what_is_left_alone(text(QUIET[name]), TRANSFORM)


def test_set_up_is_left_alone() -> None:
    lines = SAID["block_of_a_broadcast"][0]
    once = START.replace("for step in range(4):", "step = 3\nif n:")
    assert proposals(program_text(f"{once}{lines}return b\n"), TRANSFORM) == []


@pytest.mark.parametrize("ranks", [2, 3])
def test_rewritten_programs_give_equal_results(tmp_path: Path, ranks: int) -> None:
    programs = {
        name: (text(lines, returned), tolerance)
        for name, (lines, returned, _, tolerance) in SAID.items()
    }
    check_rewritten_programs(tmp_path, programs, TRANSFORM, ranks)
