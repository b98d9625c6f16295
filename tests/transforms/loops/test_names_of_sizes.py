"""Edits name sizes as the loops did: they hold when one of two sizes that are alike changes."""

from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.source import apply_edits

PLATE = """\
import numpy as np

nx, ny = 40, 40
nt = 40
x, hx = np.linspace(0.0, 1.0, nx + 1, retstep=True)
y, hy = np.linspace(0.0, 2.0, ny + 1, retstep=True)
u = np.zeros((nx + 1, ny + 1))
v = np.zeros((ny, nx))
for i in range(nx + 1):
    for j in range(ny + 1):
        u[i, j] = np.sin(x[i]) * y[j]
for step in range(nt):
    {before}
    for i in range(1, nx):
        for j in range(1, ny):
            {line}
"""


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("w = u.copy()", "u[i, j] = w[i, j] + 0.1 * ((w[i + 1, j] - w[i - 1, j]) / hx + hy)"),
        ("w = u.copy()", "u[i, j] = w[i, ny - 1] + w[nx - 1, j] * 0.5 / hy"),
        ("u[nx, :] = u[nx - 1, :]", "v[j, i] = u[i, j - 1] + u[i - 1, ny] * hx"),
    ],
)
def test_sizes_that_are_alike_are_told_apart(before: str, line: str) -> None:
    source = after = PLATE.format(before=before, line=line)
    while True:
        found = check_source("a.py", after, Options("node2026", {}, (), (), None)).findings
        edits = next((one.fix.edits for one in found if one.fix and one.fix.edits), None)
        if edits is None:
            break
        after = apply_edits(after, edits)
    assert "for i" not in after and "for j" not in after
    for sizes in ("nx, ny = 40, 40", "nx, ny = 23, 40", "nx, ny = 40, 23"):
        made = []
        for text in (source, after):
            space: dict[str, Any] = {}
            exec(compile(text.replace("nx, ny = 40, 40", sizes), "a.py", "exec"), space)
            made.append((space["u"], space["v"]))
        assert all(np.allclose(one, other) for one, other in zip(*made, strict=True)), sizes


LONG = """\
import numpy as np

n, h, dt = 60, 0.1, 0.01
u = np.sin(np.arange(n) * 0.3)
w = np.zeros(n)
for i in range(1, n - 1):
    second = (u[i + 1] - 2 * u[i] + u[i - 1]) / h**2
    first = (u[i + 1] - u[i - 1]) / (2 * h)
    w[i] = u[i] + dt * second + dt * u[i] * first + dt * u[i] ** 3
{after}
"""


@pytest.mark.parametrize("after", ["", "print(first)"])
def test_long_statements_keep_the_names_of_their_parts(after: str) -> None:
    source = LONG.format(after=after)
    found = check_source("a.py", source, Options("node2026", {}, (), (), None)).findings
    texts = [apply_edits(source, one.fix.edits) for one in found if one.fix and one.fix.edits]
    if after:
        # there it is the number that the last iteration left
        assert not texts
        return
    (made,) = texts
    names = [line.partition(" = ")[0] for line in made.splitlines() if "u[2:]" in line]
    assert names == ["second", "first"] and "second + dt" in made
    spaces: list[dict[str, Any]] = [{}, {}]
    for text, space in zip((source, made), spaces, strict=True):
        exec(compile(text, "a.py", "exec"), space)
    assert np.allclose(spaces[0]["w"], spaces[1]["w"])
