"""Work that the interpreter does itself, and what a compiler takes from it."""

from __future__ import annotations

import pytest
from reading import loops, program

from advisor.analysis.spmd.lower import lower_steps
from advisor.ir.spmd.steps import Compute, Unknown, walk
from costdb.process.terms import Leaf, Process, SeqLoop, Sequential
from costdb.work import Interpretation


def interpretations(process: Process) -> list[Interpretation]:
    match process:
        case Leaf(work=Interpretation() as work):
            return [work]
        case Sequential(parts=parts):
            return [work for part in parts for work in interpretations(part)]
        case SeqLoop(body=body):
            return interpretations(body)
    return []


def test_a_loop_over_numbers_is_the_interpreters_work() -> None:
    read = program(
        "import random\n"
        "def estimate(samples):\n"
        "    hits = 0\n"
        "    for _ in range(samples):\n"
        "        x, y = random.random(), random.random()\n"
        "        if x * x + y * y <= 1:\n"
        "            hits += 1\n"
        "    return hits\n"
        "pi = comm.reduce(estimate(1_000_000 // size), op=MPI.SUM)\n"
    )
    (function,) = read.functions
    (work,) = interpretations(lower_steps(function.body).process)
    # two calls, three products and sums, a comparison, an increment
    assert (work.loads, work.stores, work.operations) == (0, 0, 7)


def test_a_loop_that_does_nothing_is_no_work() -> None:
    read = program("for k in range(5):\n    pass\ncomm.Barrier()\n")
    assert loops(read) == []


COMPILED = """\
import numba
from numba import njit

{decorator}
def relax(u):
    for i in range(u.shape[0]):
        u[i] = 0.5 * u[i]

x = np.zeros(1000)
relax(x)
comm.Bcast(x)
"""


@pytest.mark.parametrize("decorator", ["@njit", "@numba.njit(cache=True)", "@numba.jit"])
def test_compiled_loops_have_no_price_of_the_interpreter(decorator: str) -> None:
    (function,) = program(COMPILED.format(decorator=decorator)).functions
    kinds = [type(v.step) for v in walk(function.body, into_calls=True)]
    assert Unknown in kinds
    assert not interpretations(lower_steps(function.body).process)
    (gap,) = lower_steps(function.body).gaps
    assert "`relax`, which numba compiles, is not modelled" in gap.reason


def test_the_same_loop_interpreted_has_one() -> None:
    (function,) = program(COMPILED.format(decorator="")).functions
    assert any(
        isinstance(v.step, Compute) and v.step.what == "element"
        for v in walk(function.body, into_calls=True)
    )
    assert interpretations(lower_steps(function.body).process)
