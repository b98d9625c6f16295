"""What a name means at the head of a loop: what it meant before, or what an iteration left."""

from __future__ import annotations

import textwrap

import pytest
from reading import HEAD, operations, program

from transforms.messages.pickled_array import propose

BEGINS = """\
size, x, other = comm.Get_size(), np.zeros((8, 8), dtype=int), np.ones((8, 8), dtype=int)
held, rows = {"x": x}, [x, other]
"""
SENT = "y = comm.sendrecv({}, dest=(rank + 1) % size, source=(rank - 1) % size)"

# what is sent, and what an iteration makes of it
CHANGED = {
    "another type": ("x", "x = x.astype(float)"),
    "another shape": ("x", "x = x.reshape(4, 16)"),
    "a number": ("x", "x = 3"),
    "a list": ("x", "x = [1, rank]"),
    "another order": ("x", "x = x.T"),
    "backwards": ("x", "x = x[::-1]"),
    "in place": ("x", "x.shape = (64,)"),
    "resized in place": ("x", "x.resize((7, 8), refcheck=False)"),
    "under another name": ("x", "z = x\nz.shape = (64,)"),
    "an entry": ('held["x"]', 'held["x"] = held["x"].T'),
    "an item": ("rows[0]", "rows[0] = rows[1][1:]"),
    "on the way to the next": ("x", "if rank == 1:\n    x = x.T\n    continue"),
    "by a function": ("held['x']", "turn(held)"),
    "by a function that returns early": ("held['x']", "turn_some(held)"),
    "what was one of two": ("x", "x, other = other, x\nother = other[::2]"),
    "in a loop within": ("x", "for j in range(2):\n    x = x[1:]"),
    "of the second iteration": ("x", "x, other = other, other.T"),
}
DEFINED = """\
def turn(held):
    held["x"] = held["x"].T

def turn_some(held):
    if rank == 0:
        held["x"] = held["x"].T
        return
"""


@pytest.mark.parametrize("loop", ["for i in range(4):", "while y is not None:"])
@pytest.mark.parametrize("name", CHANGED)
def test_what_changes_is_not_taken_for_what_it_was(name: str, loop: str) -> None:
    sent, change = CHANGED[name]
    body = textwrap.indent(f"{SENT.format(sent)}\n{change}", "    ")
    found = program(f"{HEAD}{DEFINED}{BEGINS}y = 0\n{loop}\n{body}\n")
    assert [one for one in propose(found) if one.edits()] == []


@pytest.mark.parametrize("others", ["x = None", "x = x[::2]", "x = x.T"])
def test_what_some_ranks_have_is_not_taken_for_what_all_send(others: str) -> None:
    repeated = f"for i in range(9):\n    {SENT.format('x')}\n"
    found = program(f"{BEGINS}if rank % 2:\n    {others}\n{repeated}")
    assert [one for one in propose(found) if one.edits()] == []


@pytest.mark.parametrize("change", ["x = x + y", "x, other = other, x", "x[1:] = 3", "z = x[1:]"])
def test_arrays_alike_stay_known(change: str) -> None:
    body = textwrap.indent(f"{SENT.format('x')}\n{change}", "    ")
    found = program(f"{HEAD}{BEGINS}for i in range(4):\n{body}\n")
    assert [one for one in propose(found) if one.edits()] != []


def test_what_is_swapped_may_be_either() -> None:
    found = program(
        f"{HEAD}{BEGINS}for i in range(4):\n    comm.Bcast(x)\n    x, other = other, x\n"
    )
    view = operations(found)[0].send.view
    assert {name for name, _ in view.buffer.memories} == {"x", "other"}
