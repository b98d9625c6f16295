"""Programs with scans across the storage order, made at random."""

from __future__ import annotations

from hypothesis import strategies as st

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Proposal
from advisor.source import apply_edits
from tests.transforms.checks import Rewrite, check_square, check_text
from tests.transforms.generated.loop_programs import Program, equal_bits, program, results
from transforms.sweeps.scan_rows import TRANSFORM

ARRAYS = (("a", 2), ("b", 2), ("c", 3), ("d", 3))
DTYPES = ("f8", "f4", "i8", "i4", "u1", "u2")


def offered(made: Program) -> list[Proposal]:
    return list(TRANSFORM.propose(made.kernel))


@st.composite
def scanning(draw: st.DrawFn) -> Program:
    """Draw a statement or two around a scan, written as a function or as a method."""
    deep = draw(st.booleans())
    order = draw(st.sampled_from("CF"))
    name, other = ("c", "d") if deep else ("a", "b")
    rank = 3 if deep else 2
    axis = draw(st.integers(0, rank - 2)) + (order == "F")
    function = draw(st.sampled_from(["cumsum", "cumprod"]))
    written = axis - draw(st.sampled_from([0, rank]))
    along = f"axis={written}" if draw(st.booleans()) else f"{written}"
    call = draw(st.sampled_from([f"np.{function}({name}, {along})", f"{name}.{function}({along})"]))
    lines = draw(
        st.sampled_from(
            [
                [f"total = {call}  # row by row", f"{other}[...] = total"],
                [f"{other}[...] = {call}  # into place"],
                [f"{other}[...] += {call} - 1"],
                [f"mixed = 2 * {call} + {other}", f"{other}[...] = mixed"],
                [f"{other}[...] = np.cumsum({call}, axis={rank - 1})"],
                ["for k in range(2):", f"    i = {call}", f"    {name}[...] = i + k"],
                [f"made = {name} + 1", f"r = np.cumsum(made, axis={axis})", f"{other}[...] = r"],
            ]
        )
    )
    return program(lines, ARRAYS, draw(st.sampled_from(DTYPES)), order=order)


def check_scans(made: Program, seed: int) -> int:
    """Check everything that must hold of scans by rows; returns how many rewrites there are."""
    rewrites = 0
    for proposal in offered(made):
        edits = proposal.edits()
        if not edits:
            continue
        rewrites += 1
        source = apply_edits(made.source, edits)
        for size in (0, 1, 2, 7, 33):
            before, after = (results(text, made, size, seed) for text in (made.source, source))
            assert equal_bits(before, after), source
        found = Rewrite(made.source, made.kernel, proposal, source)
        check_text(found)
        check_square(found)
        (again,) = read_kernels("program.py", source)
        left = [p.title for p in TRANSFORM.propose(again)]
        assert proposal.title not in left, source
    return rewrites
