"""What expressions choose, rank by rank, and numbers made of what nothing is known of."""

from __future__ import annotations

import pytest
from reading import HEAD, operations, program, steps

from advisor.engine import Options, check_source
from advisor.ir.spmd.memory import PayloadKind
from advisor.ir.spmd.program import number_of
from advisor.ir.spmd.steps import Branch, Communicate, Unknown


@pytest.mark.parametrize(
    ("text", "sends"),
    [
        ("[comm.send(1, dest=k) for k in range(size) if k != rank]", {(0, 1): True, (2, 2): False}),
        ("x = comm.send(1, dest=1) if rank == 0 else None", {(0, 0): True, (2, 0): False}),
        ("x = None if rank else comm.send(1, dest=1)", {(0, 0): False, (2, 0): True}),
    ],
)
def test_a_choice_is_a_branch(text: str, sends: dict[tuple[int, int], bool]) -> None:
    (branch,) = steps(program(text), Branch)
    for (rank, k), first in sends.items():
        assert number_of(branch.condition.value, {"rank": rank, "k": k}) == first
    inside = branch.then if "else comm" not in text else branch.orelse
    assert isinstance(inside[-1], Communicate)


def test_of_a_choice_that_is_made_nothing_else_is_done() -> None:
    read = program("x = comm.bcast(1) if True else comm.bcast(2)")
    assert [one.send.text for one in operations(read) if one.send] == ["1"]
    assert steps(read, Branch) == []


@pytest.mark.parametrize("made", ["given.max()", "np.max(given)", "np.abs(given).max() / 2"])
def test_a_number_of_something_unknown_is_a_number(made: str) -> None:
    text = f"given = comm.recv(source=0)\nn = {made}\ncomm.allreduce(n, op=MPI.MAX)"
    read = program(text)
    sent = operations(read)[-1].send
    assert sent is not None and sent.kind is PayloadKind.SCALAR and sent.dtype is None
    assert not [one for one in steps(read, Unknown) if "not followed" in one.reason]


def test_what_else_an_unknown_object_does_is_unknown() -> None:
    read = program("given = comm.recv(source=0)\ngiven.fill(1)\ngiven.sum(0)")
    assert len([one for one in steps(read, Unknown) if "not followed" in one.reason]) == 1


def test_numbers_of_unknown_type_go_into_functions_and_loops() -> None:
    body = (
        "def scaled(x, k):\n    for i in range(100):\n        x[i] = x[i] * k\n    return x\n"
        "given = comm.recv(source=0)\nm = given.max()\nu = np.full(10, m) + m\n"
        "for i in range(10):\n    u[i] = u[i] + m\n"
        "scaled(np.zeros(100), m)\ncomm.allreduce(m)\ncomm.Allreduce(MPI.IN_PLACE, u)\n"
    )
    found = check_source("program.py", HEAD + body, Options("node2026", {}, (), (), None))
    assert "P" in found.names
