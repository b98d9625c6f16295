"""Loops that deal elements out to threads, made at random and run with threads in any order."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from advisor.analysis.spmd.lower import lower_steps
from advisor.finding import Applicability
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import ProgramProposal
from advisor.ir.spmd.steps import Step
from advisor.ranking.programs import bind_program
from advisor.source import apply_edits
from costdb.expr import evaluate
from costdb.work import Leaf, Process, Sequential, Superstep
from transforms.loops.interleaved_writes import TRANSFORM

PROGRAM = """\
import math

import numpy as np
from numba import njit, prange


@njit(parallel=True)
def work({parameters}):
{before}    for t in prange(parts):
        for i in range(t, {end}, parts):
{body}
{behind}

work(np.zeros({size}), np.zeros({size}), {n}, {parts})
"""
GIVEN = "x: np.ndarray, y: np.ndarray, n: int, parts: int"
MADE = "    y = np.zeros(x.shape[0])\n"


def source_of(
    body: list[str], *, n: int = 20, parts: int = 3, end: str = "n", before: str = "",
    parameters: str = GIVEN, behind: str = "    return y", size: int | None = None,
) -> str:  # fmt: skip
    text = PROGRAM.format(
        parameters=parameters, before=before, end=end, behind=behind + "\n", n=n, parts=parts,
        body="\n".join(" " * 12 + line for line in body), size=n + 8 if size is None else size,
    )  # fmt: skip
    compile(text, "f.py", "exec")
    return text


def proposals(source: str) -> list[ProgramProposal]:
    read = read_program("f.py", source)
    assert read is not None
    return list(TRANSFORM.propose_program(read))


def run(source: str, n: int, parts: int, seed: int, *, order: int) -> np.ndarray:
    """Run a program with the threads one after the other, in any order."""

    def prange(count: int) -> list[int]:
        threads = list(range(count))
        random.Random(order).shuffle(threads)
        return threads

    definition = source.partition("@njit(parallel=True)\n")[2].partition("\n\nwork(")[0]
    names = {"np": np, "prange": prange, "math": __import__("math")}
    exec(compile(definition, "f.py", "exec"), names)
    data = np.random.default_rng(seed)
    x, y = data.integers(1, 9, n + 8) / 4, data.integers(1, 9, n + 8) / 4
    return np.asarray(names["work"](x, y, n, parts))


def supersteps(process: Process) -> list[Superstep]:
    match process:
        case Leaf(work=Superstep() as step):
            return [step]
        case Sequential(parts=parts):
            return [one for part in parts for one in supersteps(part)]
    return []


def superstep_of(steps: tuple[Step, ...]) -> Superstep:
    (found,) = supersteps(lower_steps(steps).process)
    return found


STATEMENTS = st.sampled_from(
    [
        "y[i] = 2.0 * x[i]",
        "y[i] = x[i] + x[i + 1]",
        "y[i] += x[n - i]",
        "y[i] = y[i] * i",
        "s = x[i] - 1.0",
        "y[i] = math.sqrt(abs(x[i])) + np.sin(x[i])",
        "y[i] = max(x[i], 2.0) if i > 2 else 0.5",
        "if x[i] > 1.0:\n                y[i] = x[i]",
        "s = 0.0\n            for j in range(i):\n                s += x[j]\n            y[i] = s",
    ]
)


@dataclass(frozen=True)
class Dealt:
    """A program with the values that it is run with.

    Attributes
    ----------
    source : str
    n, parts : int
        Elements and threads.
    is_safe : bool
        What it writes is made in the function.
    """

    source: str
    n: int
    parts: int
    is_safe: bool


@st.composite
def dealt(draw: st.DrawFn) -> Dealt:
    """A loop with up to three statements."""
    body = draw(st.lists(STATEMENTS, min_size=1, max_size=3))
    end = draw(st.sampled_from(["n", "n - 1", "x.shape[0] - 8", "13"]))
    n = draw(st.integers(13 if end == "13" else 0, 30))
    parts = draw(st.integers(1, 7))
    before = draw(st.sampled_from(["", MADE]))
    source = source_of(body, n=60, parts=parts, end=end, before=before)
    return Dealt(source, n, parts, bool(before) or "x[" not in "".join(body))


def check_blocks(made: Dealt, seed: int) -> int:
    """Check everything that must hold of a rewrite; returns how many there are."""
    offered = proposals(made.source)
    assert len(offered) <= 1
    for proposal in offered:
        wanted = Applicability.SAFE if made.is_safe else Applicability.UNSAFE
        assert proposal.legality.applicability is wanted
        fixed = apply_edits(made.source, proposal.edits())
        assert fixed != made.source
        before = run(made.source, made.n, made.parts, seed, order=seed)
        after = run(fixed, made.n, made.parts, seed, order=seed + 1)
        assert before.tobytes() == after.tobytes(), fixed
        # the square: the rewritten source is the variant, and is left alone
        assert not proposals(fixed)
        read = read_program("f.py", fixed)
        assert read is not None
        function = read.function("work")
        assert function is not None
        (again, told) = superstep_of(function.body), superstep_of(proposal.after)
        values = bind_program(read, {"threads": 2}).values
        for one, other in ((again.writes, told.writes), (again.total, told.total)):
            assert evaluate(one, values) == evaluate(other, values)
    return len(offered)
