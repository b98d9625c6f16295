"""How many ranks do each statement of a kernel at the same time."""

from __future__ import annotations

import pytest

from advisor.analysis.lower import lower
from advisor.analysis.processes import works
from advisor.frontend.kernels import read_kernels
from costdb.expr import Expr, num, sym
from costdb.work import Statement

WHOLE = ["y[:, :] = 2.0 * x", "y = y + x"]
TURNS = ["for j in range(1, N):", "    x[:, j] = x[:, j] - y[:, j] * x[:, j - 1]"]
OWN = ["for j in range(1, N):", "    x[:, j] = x[:, j] - y[:, j]"]


def together(body: list[str], mesh: str) -> set[Expr | None]:
    lines = ["import numpy as np", "", "# advise: kernel"]
    lines += [f"# advise: {name}: f8[M, N] over (none, block(r)) on mesh({mesh})" for name in "xy"]
    lines += ["def program(x, y, N: int, M: int):", *(f"    {line}" for line in body)]
    (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
    return {work.together for work in works(lower(kernel)) if isinstance(work, Statement)}


@pytest.mark.parametrize("body", [WHOLE, OWN])
def test_all_ranks_of_the_mesh_compute_at_once(body: list[str]) -> None:
    assert together(body, "r=4") == {num(4)}
    assert together(body, "q=3, r=4") == {num(12)}
    assert together(body, "r=P") == {sym("P")}
    assert together(body, "r=1") == {None}


def test_ranks_that_wait_for_one_another_compute_one_at_a_time() -> None:
    assert together(TURNS, "r=4") == {num(1)}
    assert together([*TURNS, *OWN], "r=4") == {num(1), num(4)}
