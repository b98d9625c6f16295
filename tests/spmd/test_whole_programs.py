"""Whole programs as people write them: how many bytes a rank sends in all, worked out by hand.

A rank between the ends is meant, with four ranks. The number holds only if sizes, shapes, trips,
partners and branches of a program are all understood.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.analysis.spmd.lower import lower_steps
from advisor.frontend.spmd.reader import read_program
from advisor.ranking.programs import bind_program
from costdb.expr import evaluate
from costdb.lines.coefficients import bytes_of
from costdb.process.terms import Branch, Leaf, Parallel, Process, SeqLoop, Sequential
from costdb.work import Message

PROGRAMS = Path(__file__).parents[1] / "data" / "programs"

SENT_BYTES = {
    # two faces of 1024 numbers, 500 times
    "jacobi_in_dictionaries.py": 2 * 1024 * 8 * 500,
    "heat_solver.py": 2 * 2048 * 8 * 1000,
    # nine components of 300 points
    "components_first.py": 2 * 9 * 300 * 8 * 1000,
    "fortran_order.py": 2 * 3000 * 8 * 200,
    "waits_for_all.py": 2 * 4000 * 8 * 100,
    "persistent.py": 2 * 1000 * 8 * 250,
    "derived_column.py": 2 * 2000 * 8 * 1000,
    # 2 x 2 ranks, blocks of 600 x 600 with an edge
    "cartesian.py": (2 * 602 + 2 * 602) * 8 * 300,
    # 2 x 2 ranks, blocks of 1500 x 500
    "own_factor.py": (2 * 502 + 2 * 1502) * 8 * 400,
    # three fields
    "properties.py": 3 * 2 * 1200 * 8 * 50,
    # planes of single precision
    "wave.py": 2 * 256 * 256 * 4 * 400,
    "two_files/driver.py": 2 * 512 * 8 * 1000,
}


def sent(process: Process, here: dict[str, int | float]) -> int:
    """Return the bytes of all messages."""
    match process:
        case Leaf(work=Message(region=region)):
            return int(evaluate(bytes_of(region), here))
        case Sequential(parts=parts):
            return sum(sent(part, here) for part in parts)
        case Parallel(parts=parts):
            return max((sent(part, here) for part in parts), default=0)
        case Branch(probability, then, orelse):
            return sent(then if evaluate(probability, here) else orelse, here)
        case SeqLoop(low=low, high=high, body=body, variable=variable):
            first = int(evaluate(low, here))
            times = int(evaluate(high, here)) - first + 1
            return max(times, 0) * sent(body, {**here, variable: first})
    return 0


@pytest.mark.parametrize("name", SENT_BYTES)
def test_all_that_a_program_sends_is_known(name: str) -> None:
    file = PROGRAMS / name
    read = read_program(str(file), file.read_text())
    lowered = lower_steps(read.functions[-1].body)
    assert lowered.gaps == ()
    values = dict(bind_program(read, {"P": 4}).values)
    assert sent(lowered.process, values) == SENT_BYTES[name]


def test_every_program_has_its_number() -> None:
    files = {str(f.relative_to(PROGRAMS)) for f in PROGRAMS.rglob("*.py")}
    assert files == {*SENT_BYTES, "two_files/halo.py"}
