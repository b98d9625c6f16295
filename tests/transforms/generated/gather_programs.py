"""Programs that refer to elements at places that only the data know, made at random."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel, Transform
from advisor.source import apply_edits
from tests.transforms.checks import without_places


@dataclass(frozen=True)
class Placed:
    """A program whose argument ``k`` holds places in its arrays ``t`` and ``h``."""

    source: str

    @property
    def kernel(self) -> Kernel:
        (kernel,) = read_kernels("program.py", self.source)
        return kernel


def placed(body: list[str], dtype: str = "i8", dim: str = "block(p)") -> Placed:
    """Return a kernel with a body over a table, places in it, and two vectors."""
    lines = ["import numpy as np", "", "# advise: kernel N=40 M=9"]
    shapes = {"t": "M", "h": "M", "k": "N", "y": "N", "z": "N"}
    for name, extent in shapes.items():
        kind = "i8" if name == "k" else dtype
        lines.append(f"# advise: {name}: {kind}[{extent}] over ({dim}) on mesh(p=4)")
    lines.append("def program(t, h, k, y, z, N: int, M: int):")
    lines += [f"    {line}" for line in body]
    return Placed("\n".join(lines) + "\n")


def run(source: str, size: int, places: int, seed: int, dtype: str = "i8") -> list[bytes]:
    """Return what a program leaves in its arrays."""
    generator = np.random.default_rng(seed)
    values: Callable[[int], np.ndarray] = lambda n: generator.integers(-99, 99, n).astype(dtype)  # noqa: E731
    t, h, y, z = values(places), values(places), values(size), values(size)
    k = generator.integers(0, places, size)
    names: dict[str, object] = {}
    exec(compile(source, "program.py", "exec"), names)
    function = names["program"]
    assert callable(function)
    function(t, h, k, y, z, size, places)
    return [array.tobytes() for array in (t, h, k, y, z)]


@st.composite
def gathering(draw: st.DrawFn) -> Placed:
    """Statements and loops that read ``t`` at the places in ``k``."""
    kind = draw(st.integers(0, 3))
    sign, factor = draw(st.sampled_from("+-*")), draw(st.sampled_from(["", "3 * "]))
    dim = draw(st.sampled_from(["block(p)", "cyclic(p)"]))
    if kind == 0:
        body = [f"y[:] = {factor}t[k] {sign} z  # all at once"]
    elif kind == 1:
        body = [f"y += {factor}np.take(t, k)  # added"]
    elif kind == 2:
        body = ["for i in range(N):  # one by one", f"    y[i] = {factor}t[k[i]] {sign} z[i]"]
    else:
        body = [
            "for s in range(3):",
            "    for i in range(N):  # one by one",
            f"        y[i] = y[i] {sign} {factor}t[k[i]]",
            f"    z[:] = z {sign} y",
        ]
    return placed(body, dim=dim)


@st.composite
def counting(draw: st.DrawFn) -> Placed:
    """Statements and loops that increment ``h`` at the places in ``k``."""
    dim = draw(st.sampled_from(["block(p)", "cyclic(p)", "none"]))
    dtype = draw(st.sampled_from(["i8", "i4"]))
    if draw(st.booleans()):
        return placed(["np.add.at(h, k, 1)  # each"], dtype, dim)
    low, high = draw(st.sampled_from([("", "N"), ("1, ", "N"), ("0, ", "N - 1")]))
    return placed([f"for i in range({low}{high}):", "    h[k[i]] += 1  # each"], dtype, dim)


def check_rewrites(made: Placed, rule: Transform, seed: int) -> None:
    """Check everything that must hold of what a rule makes of a program."""
    proposals = [p for p in rule.propose(made.kernel) if p.edits()]
    assert proposals, made.source
    dtype = "i4" if "h: i4" in made.source else "i8"
    for proposal in proposals:
        source = apply_edits(made.source, proposal.edits())
        for size, places in ((0, 1), (1, 1), (7, 3), (40, 9)):
            before = run(made.source, size, places, seed, dtype)
            assert run(source, size, places, seed, dtype) == before, source
        (again,) = read_kernels("program.py", source)
        assert without_places(again.body) == without_places(proposal.variant.body), source
        kept = re.findall("#.*", made.source)
        assert [c for c in re.findall("#.*", source) if "_all" not in c] == kept
        arrays = {p.title for p in rule.propose(again)}
        assert proposal.title not in arrays, source
