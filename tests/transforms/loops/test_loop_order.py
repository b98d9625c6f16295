"""ADV501: every order that is offered gives the same results, the hidden dependences give none."""

from __future__ import annotations

import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from tests.transforms.generated.loop_programs import (
    program,
)
from transforms.loops.loop_order import TRANSFORM

COLUMNS = ("for j in range(N):", "    for i in range(1, N):", "        {}")
ROWS = ("for i in range(1, N):", "    for j in range(N):", "        {}")


def body(lines: tuple[str, ...], statement: str) -> list[str]:
    return [line.format(statement) for line in lines]


@pytest.mark.parametrize(
    ("statement", "applicability"),
    [
        ("a[i, j] = 2 * a[i, j]", Applicability.SAFE),
        ("a[i, j] = a[i - 1, j] + a[i, j]", Applicability.SAFE),
        ("a[i, j] = 2 * b[i, j]", Applicability.UNSAFE),
        ("c[0] += a[i, j]", Applicability.UNSAFE),
    ],
)
def test_who_may_apply_it(statement: str, applicability: Applicability) -> None:
    made = program(["c = np.zeros(3, dtype='f8')", *body(COLUMNS, statement)], dtype="f8")
    (proposal,) = TRANSFORM.propose(made.kernel)
    assert proposal.legality.applicability is applicability


def test_a_bound_that_names_the_other_index_is_not_edited() -> None:
    made = program(
        [
            "for j in range(N):",
            "    for i in range(j - j, N):",
            "        a[i, j] = 2 * a[i, j]",
        ]
    )
    assert [p.edits() for p in TRANSFORM.propose(made.kernel)] == [()]


@pytest.mark.parametrize(
    ("statement", "orders"),
    [
        # each iteration along columns needs what the one before it stored
        ("a[i + 1, j] += a[i, j]", 0),
        ("a[i + 1, j] = b[i, j] + a[i - 1, j]", 0),
        # an element that is changed later, another row of it, and a sum in one element
        ("a[i, j] += a[i + 1, j]", 1),
        ("a[i, j + 1] += a[i, j]", 1),
        ("b[0, j] += a[i, j]", 1),
        ("b[i, j] = 2.0 * a[i, j]", 1),
    ],
)
def test_compiled_loops_are_not_made_to_wait(statement: str, orders: int) -> None:
    def offered(*decorators: str) -> int:
        lines = ["from numba import njit", "# advise: kernel"]
        lines += [f"# advise: {name}: f8[N, N] order=F" for name in "ab"]
        lines += [*decorators, "def program(a, b, N: int):", "    for i in range(2, N - 3):"]
        lines += ["        for j in range(2, N - 3):", f"            {statement}"]
        (kernel,) = read_kernels("program.py", "\n".join(lines) + "\n")
        return len(list(TRANSFORM.propose(kernel)))

    assert offered("@njit") == orders
    assert offered() == 1
