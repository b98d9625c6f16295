"""ADV501: every order that is offered gives the same results, the hidden dependences give none."""

from __future__ import annotations

from tests.transforms.generated.loop_programs import (
    program,
)
from transforms.loops.loop_order import TRANSFORM

ROWS = ("for i in range(1, N):", "    for j in range(N):", "        {}")


def test_a_bound_that_names_the_other_index_is_not_edited() -> None:
    made = program(
        [
            "for j in range(N):",
            "    for i in range(j - j, N):",
            "        a[i, j] = 2 * a[i, j]",
        ]
    )
    assert [p.edits() for p in TRANSFORM.propose(made.kernel)] == [()]
