"""Exchanges with neighbours in drawn words: what is proposed does the same on real ranks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.ranks import needs_mpi, on_ranks
from tests.transforms.spmd_running import HEADER, proposals, run_side_by_side
from transforms.messages.hand_written import TRANSFORM

TURN = """\
    for r in range(size):
        if {is_mine}:
            if rank > 0:
                comm.send(u[1]{copy}, dest=rank - 1, tag=1)
            if rank < size - 1:
                comm.send(u[-2]{copy}, dest=rank + 1, tag=2)
        if r == rank + 1:
            u[-1] = comm.recv(source=r, tag=1)
        if r == rank - 1:
            u[0] = comm.recv(source=r, tag=2)
{barrier}
"""
DOWN_THEN_UP = """\
    if {not_last}:
        comm.send(u[-2]{copy}, dest=rank + 1, tag=5)
    if {not_first}:
        u[0] = comm.recv(source=rank - 1, tag=5)
        comm.send(u[1]{copy}, dest=rank - 1, tag=6)
    if {not_last}:
        u[-1] = comm.recv(source=rank + 1, tag=6)
"""
CHAIN = """\
    if {not_last}:
        comm.send(u[-2]{copy}, dest=rank + 1)
        u[-1] = comm.recv(source=rank + 1)
    if {not_first}:
        u[0] = comm.recv(source=rank - 1)
        comm.send(u[1]{copy}, dest=rank - 1)
"""
NUMBERS = """\
    if {not_last}:
        comm.send(float(u[-2, 3]), dest=rank + 1)
        u[-1, 3] = comm.recv(source=rank + 1)
    if {not_first}:
        u[0, 3] = comm.recv(source=rank - 1)
        comm.send(float(u[1, 3]), dest=rank - 1)
"""
ONE_BY_ONE = """\
    if {not_first}:
        comm.Sendrecv(u[1], dest=rank - 1, sendtag=7, recvbuf=u[0], source=rank - 1, recvtag=8)
    if {not_last}:
        comm.Sendrecv(u[-2], dest=rank + 1, sendtag=8, recvbuf=u[-1], source=rank + 1, recvtag=7)
"""
WORDS = {
    "copy": ("", ".copy()"),
    "barrier": ("", "        comm.Barrier()"),
    "not_last": ("rank < size - 1", "rank + 1 < size", "rank != size - 1"),
    "not_first": ("rank > 0", "rank - 1 >= 0", "rank != 0"),
    "is_mine": ("r == rank", "rank == r"),
}
FORMS = {"turn": TURN, "down": DOWN_THEN_UP, "chain": CHAIN, "numbers": NUMBERS}
FORMS["neighbour"] = ONE_BY_ONE
DRIVER = """\
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
{functions}
def reference(u, part):
    up = rank - 1 if rank > 0 else MPI.PROC_NULL
    down = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    comm.Sendrecv(u[-2, part].copy(), dest=down, recvbuf=u[0, part], source=up)
    comm.Sendrecv(u[1, part].copy(), dest=up, recvbuf=u[-1, part], source=down)


for function in ({names}):
    one = np.arange(48.0).reshape(6, 8) + 100 * rank
    other = one.copy()
    function(one)
    reference(other, slice(3, 4) if "numbers" in function.__name__ else slice(None))
    same = comm.allreduce(np.array_equal(one, other), op=MPI.LAND)
    if rank == 0:
        print(function.__name__, same)
"""


def drawn(form: str, seed: int) -> str:
    """Return a function that exchanges lines, and its calls in a loop."""
    draw = random.Random(f"{form} {seed}")
    words = {name: draw.choice(ways) for name, ways in WORDS.items()}
    return f"def {form}{seed}(u):\n{FORMS[form].format(**words)}"


def program(function: str, name: str) -> str:
    """Return a program that makes an exchange in every step."""
    made = f"{HEADER}comm = MPI.COMM_WORLD\nrank, size = comm.Get_rank(), comm.Get_size()\n\n\n"
    steps = f"u = np.zeros((6, 400))\nfor step in range(500):\n    {name}(u)\n    u[1:-1] += 1\n"
    return f"{made}{function}\n\n{steps}"


CASES = [(form, seed) for form in FORMS for seed in range(4)]


@pytest.mark.parametrize(("form", "seed"), CASES)
def test_an_exchange_is_told_however_it_is_written(form: str, seed: int) -> None:
    source = program(drawn(form, seed), f"{form}{seed}")
    (told,) = proposals(source, TRANSFORM)
    wanted = "send all one way first" if form == "neighbour" else "exchange by `Sendrecv`"
    assert told.title.startswith(wanted)
    assert len(told.after) == 2
    assert not told.edits()


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_what_is_told_does_the_same_on_real_ranks(ranks: int, tmp_path: Path) -> None:
    functions = "\n\n".join(drawn(form, seed) for form, seed in CASES)
    names = ", ".join(f"{form}{seed}" for form, seed in CASES)
    text = HEADER + DRIVER.format(functions=functions, names=names)
    (tmp_path / "program.py").write_text(text)
    told = on_ranks(ranks, "program.py", folder=tmp_path)
    assert told.split() == [word for form, seed in CASES for word in (f"{form}{seed}", "True")]


QUIET = {
    "what came goes on": DOWN_THEN_UP.replace("u[1]", "u[0]"),
    "what came is worked on": DOWN_THEN_UP.replace("u[1]", "u[0] + 1"),
    "what a neighbour sent goes on": ONE_BY_ONE.replace("u[-2]", "u[0]"),
    "all one way first": """\
    up = rank - 1 if rank > 0 else MPI.PROC_NULL
    down = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    comm.Sendrecv(u[-2], dest=down, recvbuf=u[0], source=up)
    comm.Sendrecv(u[1], dest=up, recvbuf=u[-1], source=down)
""",
    "a name that came goes on": CHAIN.replace("u[0] =", "u[0] = got =").replace("u[1]", "got"),
    "it comes to where it is sent from": CHAIN.replace("u[0] =", "u[1] ="),
    "the first one sends to all": """\
    if rank == 0:
        for k in range(1, size):
            comm.send(u[1], dest=k)
    else:
        u[0] = comm.recv(source=0)
        comm.send(u[1], dest=0)
    if rank == 0:
        for k in range(1, size):
            u[-1] = comm.recv(source=k)
""",
    "numbers that came": NUMBERS.replace("float(u[1, 3])", "float(u[0, 3])"),
}


@pytest.mark.parametrize("name", QUIET)
def test_messages_that_have_to_wait_stay(name: str) -> None:
    words = {word: ways[0] for word, ways in WORDS.items()}
    source = program(f"def exchange(u):\n{QUIET[name].format(**words)}", "exchange")
    told = [one.title for one in proposals(source, TRANSFORM)]
    assert not [one for one in told if "Sendrecv" in one or "one way first, then" in one]


PAIR = """\
def main(comm):
    rank = comm.Get_rank()
    mine, theirs = np.arange(90000.0) + rank, np.zeros(90000)
    if rank == 0:
        comm.Send(mine, dest=1)
        comm.Recv(theirs, source=1)
    elif rank == 1:
        comm.Recv(theirs, source=0)
        comm.Send(mine, dest=0)
    return mine, theirs
"""


@needs_mpi
def test_two_ranks_that_exchange_arrays_need_not_take_turns(tmp_path: Path) -> None:
    before = f"{HEADER}{PAIR}"
    (told,) = proposals(before, TRANSFORM)
    assert told.title.startswith("exchange by `Sendrecv`") and len(told.after) == 1
    after = before
    for turns in (
        ("Send(mine, dest=1)", "Recv(theirs, source=1)"),
        ("Recv(theirs, source=0)", "Send(mine, dest=0)"),
    ):
        other = turns[0][-2]
        call = f"Sendrecv(mine, dest={other}, recvbuf=theirs, source={other})"
        after = after.replace("\n        comm.".join(turns), call)
    assert after.count("Sendrecv") == 2
    for ranks in (2, 3):
        assert run_side_by_side(tmp_path, {"pair": (before, after, 0)}, ranks) == {"pair": "same"}


@pytest.mark.parametrize(
    "change",
    [
        ("Send(mine, dest=0)", "Send(theirs, dest=0)"),
        ("elif rank == 1", "else"),
        ("    if rank == 0", "    start = MPI.Wtime()\n    if rank == 0"),
        ("comm.Send(mine, dest=1)\n", "comm.Send(mine, dest=1)\n        comm.Send(mine, dest=1)\n"),
    ],
)
def test_pairs_that_answer_or_measure_stay(change: tuple[str, str]) -> None:
    text = PAIR.replace(*change)
    assert text != PAIR and not proposals(f"{HEADER}{text}", TRANSFORM)
