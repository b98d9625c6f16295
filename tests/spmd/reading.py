"""Small programs read for tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TypeVar

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import Program
from advisor.ir.spmd.steps import Communicate, Loop, walk
from costdb.expr import Expr

Kind = TypeVar("Kind")

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


def steps(read: Program, kind: type[Kind]) -> list[Kind]:
    """Return all steps of a kind, of all functions but not of what they call."""
    visits = (visit for function in read.functions for visit in walk(function.body))
    return [visit.step for visit in visits if isinstance(visit.step, kind)]


def loops(read: Program) -> list[Loop]:
    """Return all loops of all functions."""
    return steps(read, Loop)


def works(part: object, kind: type[Kind]) -> Iterator[Kind]:
    """Yield the work of a kind within a process."""
    if isinstance(part, kind):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from works(one, kind)
    elif is_dataclass(part) and not isinstance(part, (Expr, type)):
        for field in fields(part):
            yield from works(getattr(part, field.name), kind)
