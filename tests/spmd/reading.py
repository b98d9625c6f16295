"""Small programs read for tests."""

from __future__ import annotations

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.memory import View
from advisor.ir.spmd.payloads import Payload
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import Communicate, Loop, walk
from costdb.expr import evaluate

HEAD = """\
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
size = comm.Get_size()
"""


def program(text: str, head: str = HEAD) -> Program:
    """Return the program that a few lines make behind the usual imports."""
    found = read_program("program.py", head + text)
    assert found is not None, "nothing communicates"
    return found


def operations(read: Program | None) -> list[Communicate]:
    """Return all communication operations of all functions, each once, in their order."""
    if read is None:
        return []
    found = {op.span: op for function in read.functions for _, op in function.operations()}
    return [found[span] for span in sorted(found)]


def the_operation(text: str, head: str = HEAD) -> Communicate:
    """Return the only communication operation of a program."""
    (found,) = operations(program(text, head))
    return found


def sent(text: str, head: str = HEAD) -> Payload:
    """Return what the last communication operation of a program sends."""
    payload = operations(program(text, head))[-1].send
    assert payload is not None
    return payload


def view_of(payload: Payload | None) -> View:
    """Return the array that a payload is."""
    assert payload is not None and payload.view is not None
    return payload.view


def count(payload: Payload | None, **values: int) -> float:
    """Return how many elements a payload carries."""
    assert payload is not None and payload.count is not None
    return float(evaluate(payload.count, values))


def loops(read: Program) -> list[Loop]:
    """Return all loops of all functions."""
    return [
        visit.step
        for function in read.functions
        for visit in walk(function.body)
        if isinstance(visit.step, Loop)
    ]
