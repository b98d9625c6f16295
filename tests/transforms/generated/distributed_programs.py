"""Kernels over arrays whose distributions are drawn at random, in annotations and in comments."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

DTYPES = {"f8": "float64", "f4": "float32", "i4": "int32", "i8": "int64"}
STATEMENTS = (
    "{a}[1:-1, 1:-1] = {b}[:-2, 1:-1] + {b}[2:, 1:-1] - {b}[1:-1, :-2]",
    "{a}[:, 1:] = {b}[:, :-1]",
    "{a}[1:-1:2, 1:-1:2] = {b}[:-2:2, 1:-1:2] + {b}[2::2, 1:-1:2] - {b}[1:-1:2, :-2:2]",
    "{a}[:, 1::3] += {b}[:, :-1:3]",
    "{a}[::4, :] = {b}[::4, :]",
    "{a}[1:, :] += {b}[:-1, :]",
    "{a}[...] = 2 * {b} - {a}",
    "{a}[0, :] = {b}.sum(axis=0)",
    "{a}[...] = {b}.cumsum(axis=1)",
    "for k in range(1, N):  # backwards\n        {a}[:, k] += {a}[:, k - 1]",
    "for k in range(N - 1):\n        {a}[k + 1 :, k + 1 :] -= {b}[k, k + 1 :]",
    "t = {b}.copy()  # kept\n    t[2:, :] += {b}[:-2, :]\n    {a}[...] = t",
)
HEAD = """\
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Cyclic, Dist, Mesh, kernel

mesh = Mesh({mesh})


"""


@dataclass(frozen=True)
class Distributed:
    """Source, and how its distributions are written."""

    source: str
    in_comments: bool


@st.composite
def distributed(draw: st.DrawFn) -> Distributed:
    """Up to three arrays, each of them with a distribution of its own, and some statements."""
    names = "uvw"[: draw(st.integers(1, 3))]
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    mesh = draw(st.sampled_from(["r=4", "r=2, c=2", "r=1, c=8", "r=16"]))
    axes = [part.partition("=")[0] for part in mesh.split(", ")]
    in_comments = draw(st.booleans())
    places = [_places(draw, axes) for _ in names]
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        statement = draw(st.sampled_from(STATEMENTS))
        given = {"a": draw(st.sampled_from(names)), "b": draw(st.sampled_from(names))}
        if draw(st.integers(0, 3)) == 0:
            lines.append(f"# about {given['a']}")
        lines.append(statement.format(**given))
    body = "".join(f"    {line}\n" for line in lines)
    if in_comments:
        declared = "".join(
            f"# advise: {name}: {dtype}[N, N] over ({', '.join(_said(e) for e in entries)})"
            f" on mesh({mesh})\n"
            for name, entries in zip(names, places, strict=True)
        )
        head = f"import numpy as np\n\n\n# advise: kernel N=400\n{declared}"
        return Distributed(f"{head}def step({', '.join(names)}, N: int):\n{body}", True)
    parameters = "".join(
        f"    {name}: Annotated[NDArray[np.{DTYPES[dtype]}],"
        f' Dist("N", "N", {", ".join(map(_written, entries))}, on=mesh)],  # {name}\n'
        for name, entries in zip(names, places, strict=True)
    )
    head = HEAD.format(mesh=mesh)
    return Distributed(
        f"{head}@kernel(N=400)\ndef step(\n{parameters}    N: int,\n) -> None:\n{body}", False
    )


def _places(draw: st.DrawFn, axes: list[str]) -> tuple[tuple[str, int], ...]:
    """Return for each dimension a mesh axis, empty for none, and its pieces, 0 for a block."""
    left, found = list(axes), []
    for _ in range(2):
        axis = draw(st.sampled_from([*left, ""]))
        if axis:
            left.remove(axis)
        found.append((axis, draw(st.sampled_from([0, 0, 1, 4]))))
    return tuple(found)


def _said(entry: tuple[str, int]) -> str:
    axis, pieces = entry
    if not axis:
        return "none"
    return f"cyclic({axis}, {pieces})" if pieces else f"block({axis})"


def _written(entry: tuple[str, int]) -> str:
    axis, pieces = entry
    if not axis:
        return "None"
    return f'Cyclic("{axis}", {pieces})' if pieces else f'Block("{axis}")'
