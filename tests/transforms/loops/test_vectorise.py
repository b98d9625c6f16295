"""ADV401: array statements give what the loops gave, or are not offered."""

from __future__ import annotations

from itertools import product

import numpy as np

from advisor.ir.statements import Unknown, walk
from tests.transforms.generated.loop_programs import (
    Program,
    program,
    rewritten,
)
from transforms.loops.vectorise import TRANSFORM

BOUNDS = ("0", "2", "N", "N - 3", "K", "N // 2")


def test_every_size_for_which_the_loop_runs() -> None:
    """All bounds and distances; where a statement is offered, all sizes, also empty ones."""
    offered: set[tuple[str, str]] = set()
    for low, high, offset in product(BOUNDS, BOUNDS, (-2, -1, 0, 1, 3)):
        source = "\n".join(
            [
                "import numpy as np",
                "# advise: kernel",
                "# advise: a: i8[N]",
                "# advise: b: i8[N]",
                "def program(a, b, N: int, K: int):",
                f"    for i in range({low}, {high}):",
                f"        a[i] = b[i + {offset}] + 3 * a[i]",
                "",
            ]
        )
        made = Program(source, (("a", 1), ("b", 1)), "i8")
        for proposal in TRANSFORM.propose(made.kernel):
            after = rewritten(made, proposal)
            for n, k in product(range(7), (-2, 0, 3)):
                try:
                    before = run(source, n, k)
                except IndexError:
                    # not a run whose results could be kept
                    continue
                assert run(after, n, k) == before, after
            offered.add((low, high))
    assert {("0", "N"), ("2", "N"), ("2", "N - 3")} <= offered


def run(source: str, n: int, k: int) -> list[int]:
    names: dict[str, object] = {}
    exec(compile(source, "program.py", "exec"), names)
    function = names["program"]
    assert callable(function)
    a = np.arange(n) * 7 + 1
    b = np.arange(n) * 11 + 5
    function(a, b, n, k)
    return list(map(int, a))


def test_a_choice_between_two_numbers_is_made_for_all_at_once() -> None:
    lines = ["for i in range(N):", "    v[i] = w[i] if w[i] > 0.0 else -1.0"]
    made = program(lines, (("v", 1), ("w", 1)), "f8")
    assert not [s for s in walk(made.kernel.body) if isinstance(s, Unknown)]
    (only,) = TRANSFORM.propose(made.kernel)
    assert "v[:] = np.where(w > 0.0, w, -1.0)" in rewritten(made, only)
