"""Programs of element loops, made at random and run as they are written and as rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel, Proposal
from advisor.source import apply_edits

MARGIN = 2
"""Subscripts reach so far beyond an index; loops keep that distance from both ends."""


@dataclass(frozen=True)
class Program:
    """Source with the names of its arrays, all of ``N`` elements each way."""

    source: str
    arrays: tuple[tuple[str, int], ...]
    dtype: str

    @property
    def kernel(self) -> Kernel:
        (kernel,) = read_kernels("program.py", self.source)
        return kernel


def program(
    body: Sequence[str],
    arrays: Sequence[tuple[str, int]] = (("a", 2), ("b", 2)),
    dtype: str = "i8",
    over: str = "",
    order: str = "C",
) -> Program:
    """Return a kernel with a body, its arrays square or cubic."""
    lines = ["import numpy as np", "", "# advise: kernel"]
    for name, dimensions in arrays:
        shape = ", ".join(["N"] * dimensions)
        lines.append(f"# advise: {name}: {dtype}[{shape}]{over} order={order}")
    names = ", ".join(name for name, _ in arrays)
    lines.append(f"def program({names}, N: int):")
    lines += [f"    {line}" for line in body]
    return Program("\n".join(lines) + "\n", tuple(arrays), dtype)


def results(source: str, made: Program, size: int, seed: int, **more: object) -> list[np.ndarray]:
    """Run a program on random arrays and return what it leaves in them.

    Names of `more` go over what the program imports.
    """
    generator = np.random.default_rng(seed)
    shapes = [(size,) * dimensions for _, dimensions in made.arrays]
    if made.dtype.startswith("f"):
        given = [generator.standard_normal(shape).astype(made.dtype) for shape in shapes]
    else:
        limits = np.iinfo(made.dtype)
        given = [
            generator.integers(limits.min, limits.max, shape, dtype=made.dtype) for shape in shapes
        ]
    names: dict[str, object] = {}
    exec(compile(source, "program.py", "exec"), names)
    names |= more
    function = names["program"]
    assert callable(function)
    with np.errstate(all="ignore"):
        function(*given, size)
    return given


def rewritten(made: Program, proposal: Proposal) -> str:
    """Return the source with the edits of a proposal, of which there must be some."""
    edits = proposal.edits()
    assert edits
    return apply_edits(made.source, edits)


def equal_bits(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@st.composite
def nests(
    draw: st.DrawFn, depth: int, statements: int = 1, dtype: str = "i8", *, choices: bool = False
) -> Program:
    """Nests whose statements write and read two arrays at random small distances.

    With `choices`, elements also decide which of two values is taken.
    """
    indices = "ijk"[:depth]
    lines: list[str] = []
    for level, index in enumerate(draw(st.permutations(indices))):
        low = draw(st.integers(MARGIN, MARGIN + 1))
        high = draw(st.integers(MARGIN, MARGIN + 1))
        lines.append("    " * level + f"for {index} in range({low}, N - {high}):  # along {index}")
    inside = "    " * depth
    dimensions = {"a": draw(st.integers(1, 2)), "b": draw(st.integers(1, 2))}

    # subscripts in one order throughout are what rewrites are for; others must stay as they are
    others = "" if draw(st.integers(0, 2)) else indices

    def element(name: str, usual: str) -> str:
        parts = []
        for dimension in range(dimensions[name]):
            index = draw(st.sampled_from([usual[-1 - dimension % depth], *others]))
            offset = draw(st.sampled_from([0, 0, 0, -1, 1, 2, -2]))
            if others and draw(st.integers(0, 9)) == 0:
                parts.append(str(draw(st.integers(0, 3))))
            else:
                parts.append(f"{index} {'+-'[offset < 0]} {abs(offset)}" if offset else index)
        return f"{name}[{', '.join(parts)}]"

    usual = "".join(draw(st.permutations(indices)))
    for _ in range(draw(st.integers(1, statements))):
        target = element(draw(st.sampled_from("ab")), usual)
        lines.append(f"{inside}# element by element")
        terms = [element(draw(st.sampled_from("aabb")), usual) for _ in range(2)]
        sign = draw(st.sampled_from("+-*"))
        kind = draw(st.integers(0, 3 if choices else 2))
        if kind == 3:
            chosen = f"{terms[0]} if {terms[0]} > {target} else {draw(st.sampled_from(terms))}"
            lines.append(f"{inside}{target} = {sign.replace('*', '-')}({chosen})")
        elif kind == 0:
            lines.append(f"{inside}{target} += {terms[0]}")
        elif kind == 1:
            lines.append(f"{inside}{target} = {terms[0]} {sign} {terms[1]}")
        else:
            lines.append(f"{inside}{target} = 3 * {terms[0]} {sign} {target}")
    order = draw(st.sampled_from("CF"))
    return program(lines, tuple(dimensions.items()), dtype, order=order)
