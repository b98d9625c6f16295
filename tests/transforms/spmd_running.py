"""Programs and their rewrites, run side by side on real ranks.

A program is a function ``main(comm)`` that returns arrays, numbers, or lists of them; for every
rank the rewritten one must return what the original does.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import Program, ProgramProposal, ProgramTransform
from advisor.source import Edit, apply_edits
from tests.ranks import on_ranks

HEADER = "import numpy as np\nfrom mpi4py import MPI\n\n\n"

DRIVER = """\
import sys
from importlib import import_module

import numpy as np
from mpi4py import MPI

def same(one, other, tolerance):
    if one is None or other is None:
        return one is other
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(
            same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return np.allclose(one, other, rtol=tolerance, atol=0) if tolerance else np.array_equal(
        one, other, equal_nan=one.dtype.kind in "fc")

for argument in sys.argv[1:]:
    name, tolerance = argument.split("=")
    before = import_module(f"{name}_before").main(MPI.COMM_WORLD)
    after = import_module(f"{name}_after").main(MPI.COMM_WORLD)
    agree = MPI.COMM_WORLD.allreduce(same(before, after, float(tolerance)), op=MPI.LAND)
    if MPI.COMM_WORLD.Get_rank() == 0:
        print(name, "same" if agree else f"DIFFERS: {before!r} and {after!r}", flush=True)
"""


def program_text(body: str) -> str:
    """Return a whole program for the body of its main function."""
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    # what only upper-case methods and a barrier have says that this is mpi4py's communicator
    return f"{HEADER}def main(comm):\n    comm.Barrier()\n{lines}"


def read(source: str) -> Program:
    found = read_program("program.py", source)
    assert found is not None
    return found


def proposals(source: str, rule: ProgramTransform) -> list[ProgramProposal]:
    return list(rule.propose_program(read(source)))


def rewritten(source: str, offered: Iterable[ProgramProposal]) -> str:
    edits: dict[Edit, None] = {}
    for proposal in offered:
        edits.update(dict.fromkeys(proposal.edits()))
    return apply_edits(source, edits)


def run_side_by_side(
    folder: Path, programs: Mapping[str, tuple[str, str, float]], ranks: int
) -> dict[str, str]:
    """Run originals and rewrites; returns what the driver says of each program."""
    for name, (before, after, _) in programs.items():
        (folder / f"{name}_before.py").write_text(before)
        (folder / f"{name}_after.py").write_text(after)
    (folder / "driver.py").write_text(DRIVER)
    arguments = [f"{name}={tolerance}" for name, (_, _, tolerance) in programs.items()]
    told = on_ranks(ranks, "driver.py", *arguments, folder=folder)
    return dict(line.split(" ", 1) for line in told.splitlines())
