"""Loops in which each element is the one before it and a term, made at random."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Proposal
from tests.transforms.generated.loop_programs import (
    Program,
    equal_bits,
    program,
    results,
    rewritten,
)
from transforms.loops.vectorise import TRANSFORM

ARRAYS = (("a", 2), ("b", 2), ("v", 1), ("w", 1))


def offered(made: Program) -> list[Proposal]:
    return [p for p in TRANSFORM.propose(made.kernel) if "prefix sum" in p.title]


@st.composite
def running(draw: st.DrawFn) -> Program:
    dtype = draw(st.sampled_from(["f8", "f4", "i8"]))
    low, high = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    shift = draw(st.integers(-1, min(1, high)))
    deep = draw(st.booleans())

    def at(index: str, offset: int) -> str:
        return f"{index} {'+-'[offset < 0]} {abs(offset)}" if offset else index

    if deep:
        axis = draw(st.integers(0, 1))
        order = draw(st.permutations(["i", "j"]))
        bounds = {"ij"[axis]: (max(low, 2), max(high, 1)), "ij"[1 - axis]: (0, 0)}
        lines = [
            "    " * depth + (f"for {v} in range({bounds[v][0]}, N - {bounds[v][1]}):  # {v}")
            for depth, v in enumerate(order)
        ]
        place = [at(v, shift if k == axis else 0) for k, v in enumerate("ij")]
        before = [at(v, shift - 1 if k == axis else 0) for k, v in enumerate("ij")]
        own, last = f"a[{', '.join(place)}]", f"a[{', '.join(before)}]"
        term = draw(st.sampled_from(["b[i, j]", "b[i, j] * v[i]", "(b[j, i] - w[j])", "v[j]"]))
    else:
        low = max(low, 1 - shift)
        lines = [f"for i in range({low}, N - {high}):  # all"]
        own, last = f"v[{at('i', shift)}]", f"v[{at('i', shift - 1)}]"
        term = draw(st.sampled_from(["w[i]", "w[i] * b[i, 0]", "(w[i] - w[i - 1])", "w[N - 1]"]))
    sides = [last, term] if draw(st.booleans()) else [term, last]
    lines.append("    " * (1 + deep) + f"{own} = {' + '.join(sides)}  # up to here")
    return program(lines, ARRAYS, dtype)


def check_running(made: Program, seed: int) -> int:
    """Check everything that must hold of prefix sums; returns how many rewrites there are."""
    rewrites = 0
    for proposal in offered(made):
        if not proposal.edits():
            continue
        rewrites += 1
        source = rewritten(made, proposal)
        for size in (4, 5, 9, 40):
            before, after = (results(text, made, size, seed) for text in (made.source, source))
            assert equal_bits(before, after), source
        (again,) = read_kernels("program.py", source)
        assert lower(again) == lower(proposal.variant), source
        assert sorted(re.findall("#.*", source)) == sorted(re.findall("#.*", made.source))
        if not re.search(r"\bfor\b", source):
            assert not list(TRANSFORM.propose(again))
    return rewrites
