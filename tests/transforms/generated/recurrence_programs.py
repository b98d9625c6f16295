"""Sweeps whose columns need those before them, made at random."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def recurrences(draw: st.DrawFn) -> str:
    """Sweeps along axis 1, with one or two statements that reach backwards."""
    names = draw(st.sampled_from(["x", "xa"]))
    lines = []
    for _ in range(draw(st.integers(1, 2))):
        terms = ["x[:, j - 1]"]
        for _ in range(draw(st.integers(0, 2))):
            array, back = draw(st.sampled_from(names)), draw(st.integers(0, 2))
            index = f"j - {back}" if back else "j"
            terms.append(f"{array}[:, {index}]")
        sign = draw(st.sampled_from(["+", "-", "*"]))
        target = draw(st.sampled_from(["x[:, j] = ", "x[:, j] += ", "x[:, j] = 0.5 * "]))
        spacing = draw(st.sampled_from([":", " : "]))
        lines.append(f"    {target}({f' {sign} '.join(terms)})".replace("[:", f"[{spacing}"))
        if draw(st.booleans()):
            lines.append("    # on to the next")
    header = "for j in range(2, x.shape[1]):"
    body = "\n".join(f"    {line}" for line in [header + "  # sweep", *lines])
    declared = "\n".join(
        f"# advise: {n}: f8[M, N] over (none, block(r)) on mesh(r=P)" for n in names
    )
    return f"""\
import numpy as np

# advise: kernel M=64 N=64 P=8
{declared}
def sweep({", ".join(names)}):
{body}
"""
