"""Mutated programs never crash the front end, the lowering or a rule."""

from __future__ import annotations

import random
import re
from keyword import iskeyword
from pathlib import Path

import pytest
from reading import HEAD
from test_one_sided_and_threads import PARALLEL
from test_payloads import PAYLOADS
from test_traps import COMMUNICATE, QUIET

from advisor.analysis.spmd.lower import lower_steps
from advisor.frontend.spmd.reader import read_program
from advisor.frontend.trees import deep_nesting_refused
from advisor.source import SourceProblem
from advisor.transform_registry import program_transforms

SETTING = (
    HEAD
    + """\
n = 960
nb = n // size
a, b, u = np.zeros(n), np.zeros(nb), np.zeros((size, nb))
left, right = (rank - 1) % size, (rank + 1) % size
cart = comm.Create_cart((4, 2))
west, east = cart.Shift(1, 1)
north, south = cart.Shift(0, 1)
for step in range(9):
"""
)
IDIOMS = [
    """
    comm.Bcast(a, root=0)
    for i in range(rank * nb, (rank + 1) * nb):
        b[i - rank * nb] = a[i]
    b += a[rank * nb:(rank + 1) * nb]
""",
    """
    full = np.zeros(n)
    full[rank * nb:(rank + 1) * nb] = b
    comm.Allreduce(MPI.IN_PLACE, full)
    comm.Gather(b, a, root=0)
    if rank == 0:
        worst = np.max(a)
""",
    """
    if rank == 0:
        for k in range(1, size):
            comm.Recv(u[k], source=k, tag=k)
            b += u[k]
    else:
        comm.Send(b, dest=0, tag=rank)
    for k in range(size):
        comm.Sendrecv(u[k, :], dest=k, recvbuf=a[k * nb:(k + 1) * nb], source=k)
""",
    """
    if rank == 0:
        comm.Send(b, dest=right)
        comm.Recv(u[0], source=left)
    else:
        comm.Recv(u[0], source=left)
        comm.Send(b, dest=right)
    if rank > 0:
        comm.Recv(u[step, :1], source=rank - 1)
    u[step] += 1
    if rank < size - 1:
        comm.Send(u[step, -1:], dest=rank + 1)
""",
    """
    cart.Sendrecv(u[1, :], dest=north, recvbuf=u[0, :], source=south)
    cart.Sendrecv(u[:, 1].copy(), dest=west, recvbuf=b, source=east)
    part = u.T @ u[:, 0]
    comm.Allreduce(part, b)
    for i in range(rank * nb, (rank + 1) * nb):
        for j in range(i, n):
            a[i] += a[j]
    b[0] += np.sum(a[rank::size])
""",
]
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "mpi").glob("*.py"))
SEEDS = [
    *(path.read_text() for path in EXAMPLES),
    HEAD + "".join(f"x = {made}\ncomm.send({sent}, dest=1)\n" for made, sent, *_ in PAYLOADS),
    *(HEAD + text for text, _ in COMMUNICATE.values()),
    *QUIET.values(),
    PARALLEL,
    *(SETTING + text for text in IDIOMS for _ in range(3)),
]
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
VALUES = [
    "None", "0", "-1", "rank", "size", "comm", "[]", "()", "{}", "x", "'s'", "self", "1j",
    "np.zeros((3, 0))", "x[::-1]", "x[..., None]", "(lambda: 0)", "MPI.IN_PLACE", "10**100",
    "(1/0)", "2**rank", "(n % 0)", "n // 0", "(x := 1)", "u.T[1:, None]", "range(0)",
    "(size - size)", "[*x]", "np.zeros(-5)", "x[1:2:0]", "(not x)", "(yield)", "P", "nan",
]  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """Return a text with some names, numbers and lines changed; most stay programs."""
    tokens = TOKEN.findall(text)
    names = [token for token in tokens if token.isidentifier() and not iskeyword(token)]
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(tokens))
        token = tokens[place]
        if token.isidentifier() and not iskeyword(token):
            tokens[place] = chance.choice(names)
        elif token.isdigit() or chance.random() < 0.1:
            tokens[place] = chance.choice(VALUES)
    lines = "".join(tokens).split("\n")
    place = chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            lines.insert(place, lines[place])
        case 1 if not lines[place].endswith(":"):
            del lines[place]
        case _:
            pass
    return "\n".join(lines)


def survive(text: str) -> bool:
    """Read and lower a text, ask all rules about it; return whether it was a program."""
    try:
        with deep_nesting_refused("f.py"):
            read = read_program("f.py", text)
    except SourceProblem:
        return False
    if read is None:
        return False
    for function in read.functions:
        lower_steps(function.body)
    for rule in program_transforms():
        for proposal in rule.propose_program(read):
            proposal.edits()
            lower_steps(proposal.before, proposal.loops)
            lower_steps(proposal.after, proposal.loops)
    return True


@pytest.mark.parametrize("seed", range(4))
def test_mutated_programs_are_read_or_refused_in_one_line(seed: int) -> None:
    chance = random.Random(seed)
    read = sum(survive(mutated(chance.choice(SEEDS), chance)) for _ in range(40))
    # most still parse: else nothing was tested
    assert read >= 8
