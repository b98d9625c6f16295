"""A program of which some functions were followed before is the program that is read at once."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from advisor.frontend.spmd.bodies import BodyMemory, alike
from advisor.frontend.spmd.reader import read_program
from advisor.frontend.syntax.trees import TreeMemory
from advisor.ir.spmd.program import Program
from advisor.source import SourceProblem

EXAMPLES = Path(__file__).parents[2] / "examples" / "mpi"
PROGRAM = '''"""A program whose functions call one another; mpirun -n 8 python it."""

import argparse

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
WIDTH = 40
LAYERS = 2


class Grid:
    def __init__(self, n):
        self.n = n
        self.u = np.zeros((n, WIDTH))

    def exchange(self, comm):
        rank, size = comm.Get_rank(), comm.Get_size()
        above = np.empty(self.n)
        for _ in range(7):
            comm.Sendrecv(self.u[0].copy(), dest=(rank + 1) % size, recvbuf=above,
                          source=(rank - 1) % size)


def neighbours(comm):
    rank, size = comm.Get_rank(), comm.Get_size()
    return (rank - 1) % size, (rank + 1) % size


def made(n, layers=LAYERS):
    field = np.zeros((n, WIDTH))
    field[:layers] = 1.0
    return field


def exchange(field, comm, steps):
    left, right = neighbours(comm)
    r = np.empty(WIDTH)
    for step in range(steps):
        t = field[1, :].copy()
        comm.Sendrecv(t, dest=left, recvbuf=r, source=right)
        field[-1, :] = r


def total(field, comm):
    found = 0.0
    for row in range(field.shape[0]):
        found += comm.allreduce(field[row].sum())
    return found


def alone(u, comm, n: int):
    assert comm.Get_size() == 4
    for k in range(n):
        comm.Bcast(u[k], root=0)
    return made(n)


def another(u, comm, n: int):
    part = made(n + 1)
    for k in range(n):
        comm.Bcast(u[k], root=0)
        comm.send(part, dest=1)
    return neighbours(comm)


def collected(comm, n: int):
    names = {"left": 3, "n": n}

    def inner(k):
        return k * names["left"]

    whole = np.zeros((inner(n), LAYERS))
    comm.Allgather(whole[0].copy(), whole)
    return whole


def changed(comm):
    global WIDTH
    WIDTH = WIDTH + 1
    comm.Barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=300)
    given = parser.parse_args()
    field = made(given.size)
    coarse = made(given.size // 2, 1)
    exchange(field, comm, 20)
    exchange(coarse, comm, 10)
    Grid(given.size).exchange(comm)
    print(total(field, comm), total(coarse, comm))


if __name__ == "__main__":
    main()
'''
TEXTS = {
    "calls": PROGRAM,
    "called by none": PROGRAM.partition("def main")[0],
    **{path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py"))},
}
LINES = (
    "",
    "# a remark",
    "    # a remark",
    "N = 12",
    "WIDTH = 41",
    "LAYERS = 2.0",
    "import numpy",
    "import numpy as np, sys",
    "from mpi4py import MPI",
    "comm = MPI.COMM_WORLD.Dup()",
    "# mpirun -n 6",
    "    # advise: trip 9",
    "    return comm",
    "    global WIDTH; WIDTH = 3",
    "    assert comm.Get_size() == 2",
    "def neighbours(comm): return 0, 1",
    "def more(field, comm): exchange(field, comm, 3)",
    "    comm = comm.Split(0, 1)",
    "    n = n * WIDTH",
    "    n = WIDTH * n",
)


def edited(text: str, source: random.Random) -> str:
    """Return the text after one random edit of a line."""
    lines = text.split("\n")
    here = source.randrange(len(lines))
    kind = source.random()
    if kind < 0.25:
        lines.insert(here, source.choice(LINES))
    elif kind < 0.35:
        del lines[here]
    elif kind < 0.5:
        lines[here] += source.choice(("  # remark", " ", "  # advise: trip 5", "  # 😀"))
    elif kind < 0.75:
        swapped = {"+": "*", "*": "+", "rank": "size", "left": "right", "n": "steps", "1": "2"}
        word = source.choice(list(swapped))
        lines[here] = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", swapped[word], lines[here])
    elif kind < 0.9:
        lines[here] = re.sub(r"\d+", lambda n: str(int(n[0]) + source.randint(1, 9)), lines[here])
    else:
        other = source.randrange(len(lines))
        lines[here], lines[other] = lines[other], lines[here]
    return "\n".join(lines)


def read(text: str, *memory: object) -> Program | str | None:
    try:
        return read_program("/programs/it.py", text, *memory)  # type: ignore[arg-type]
    except SourceProblem as problem:
        return str(problem)


@pytest.mark.parametrize("name", TEXTS)
def test_random_edits(name: str) -> None:
    source = random.Random(name)
    trees, bodies = TreeMemory(), BodyMemory()
    text, programs, remembered, everything = TEXTS[name], 0, 0, 0
    for number in range(30 if text.startswith(PROGRAM[:200]) else 14):
        found = read(text, trees, bodies)
        everything = everything or len(bodies.followed)
        remembered += isinstance(found, Program) and len(bodies.followed) < everything
        wanted = read(text)
        assert alike(found, wanted), text
        programs += isinstance(found, Program)
        # an edit is often taken back, and what was known is known again
        kept = isinstance(found, Program) and number % 3
        text = edited(text if kept else TEXTS[name], source)
    assert programs >= 6
    assert remembered >= 1


def followed(memory: tuple[TreeMemory, BodyMemory], text: str) -> set[str]:
    """Return the functions that have to be followed to read a text."""
    found = read(text, *memory)
    assert isinstance(found, Program)
    assert alike(found, read(text))
    return set(memory[1].followed)


def test_a_function_is_followed_again_when_what_it_asked_for_has_changed() -> None:
    memory = TreeMemory(), BodyMemory()
    everything = followed(memory, PROGRAM)
    assert {"made", "exchange", "neighbours", "total", "alone", "another", "main"} <= everything
    # what changes names of the module is followed every time
    always = followed(memory, PROGRAM)
    assert always == {"changed"}

    def again(old: str, new: str) -> set[str]:
        text = PROGRAM.replace(old, new)
        assert text != PROGRAM
        found = followed(memory, text) - always
        assert followed(memory, PROGRAM) <= always | found
        return found

    # what only people read, and what stands on the same lines elsewhere
    assert again("    field[:layers] = 1.0\n", "    field[:layers] = 1.0  # all\n") == set()
    assert again("import argparse", "import argparse, sys") == set()
    # a function itself, and those that call it
    assert again("= 1.0", "= 2.0") == {"made", "alone", "another", "main"}
    assert again("range(field.shape[0])", "range(1, field.shape[0])") == {"total", "main"}
    callers = {"neighbours", "exchange", "another", "main"}
    assert again("return (rank - 1) % size, (rank + 1) % size", "return 0, 1") == callers
    assert again("return k * names", "return k + names") == {"collected", "inner"}
    # what a caller passes
    assert again("exchange(field, comm, 20)", "exchange(field, comm, 21)") == {"main", "exchange"}
    assert again("Grid(given.size)", "Grid(given.size + 1)") >= {"Grid.__init__", "Grid.exchange"}
    assert again("n + 1", "n + 2") == {"another", "made"}
    # constants and imports, by who names them; the value of a size is no part of a body
    assert again("WIDTH = 40", "WIDTH = 41") == set()
    assert again("WIDTH = 40", "WIDTH = 2") >= {"made", "exchange", "alone", "another"}
    assert not {"total", "neighbours"} & again("LAYERS = 2", "LAYERS = 3")
    assert again("import numpy as np", "import cupy as np") >= {"made", "exchange"}
    # how many ranks there are, for those who ask and come later
    assert "alone" in again("== 4", "== 5")


def test_files_that_share_a_function_do_not_share_what_is_around_it() -> None:
    memory = TreeMemory(), BodyMemory()
    function = "\n\ndef f(link, n: int):\n    u = np.zeros(n)\n    link.send(u, dest=1)\n"
    # whether a name is a communicator may hang on any line of its file
    using = "\n\ndef g(link):\n    link.Allreduce(1, 2)\n    MPI.COMM_WORLD.Barrier()\n"
    one = f"import numpy as np\nfrom mpi4py import MPI\n{function}{using}"
    other = one.replace("link.Allreduce", "link.Frobnicate")
    texts = {"/programs/one.py": one, "/programs/other.py": other}
    assert not alike(*(read(text) for text in texts.values()))
    for _ in range(2):
        for path, text in texts.items():
            assert alike(read_program(path, text, *memory), read_program(path, text))
    assert not memory[1].followed


def test_the_same_sum_written_in_another_order_is_not_the_same() -> None:
    memory = TreeMemory(), BodyMemory()
    text = PROGRAM.replace("made(given.size)", "made(given.size * WIDTH)")
    followed(memory, text)
    assert "made" in followed(memory, text.replace("given.size * WIDTH", "WIDTH * given.size"))
